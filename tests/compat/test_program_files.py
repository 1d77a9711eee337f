"""Which files a program is made of, and what their names stand for across them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowstone.compat.program_files import ProgramFiles

FILES = {
    "train.py": "from nets import *\nimport nets.big as big, os\nimport helper\ntf.one\n",
    "helper.py": "import train\nfrom common import tf as flow, _hidden\nflow.two\n_hidden.three\n",
    "common.py": "import tensorflow as tf\n_hidden = tf.nn\n",
    "nets/__init__.py": "from .small import *\nfrom . import other\n",
    "nets/small.py": "from ..common import tf\ntf.four\n",
    "nets/other.py": "from .. import common\nfrom .small import tf as t\nt.five\n",
    "nets/big.py": "import keras\nprint 'Python 2'\n",
    "unused.py": "import tensorflow\ntensorflow.six\n",
    "numpy.py": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def names(program: ProgramFiles, file: Path) -> list[str]:
    return [use.name.removeprefix("tensorflow.") for use in program.uses(file) if not use.is_import]


def test_a_script_and_the_modules_that_it_imports(folder: Path) -> None:
    program = ProgramFiles([folder / "train.py"])
    files = [file.relative_to(folder).as_posix() for file in program]
    assert files[0] == "train.py"
    assert sorted(files) == sorted(set(FILES) - {"unused.py", "numpy.py"})


def test_what_names_stand_for_that_come_from_other_modules(folder: Path) -> None:
    program = ProgramFiles([folder / "train.py"])
    assert names(program, folder / "train.py") == ["one"]
    assert names(program, folder / "helper.py") == ["two", "nn.three"]
    assert names(program, folder / "nets/small.py") == ["four"]
    assert names(program, folder / "nets/other.py") == ["five"]
    with pytest.raises(SyntaxError):
        program.uses(folder / "nets/big.py")


def test_all_files_of_a_folder_once(folder: Path) -> None:
    files = [file.relative_to(folder).as_posix() for file in ProgramFiles([folder, folder / "train.py"])]
    assert sorted(files) == sorted(FILES)


def test_a_relative_import_from_outside_is_none_of_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alone.py").write_text("from ... import x\nimport tensorflow as tf\ntf.one\n")
    monkeypatch.chdir(tmp_path)
    program = ProgramFiles([Path("alone.py")])
    assert list(program) == [Path("alone.py")] and names(program, Path("alone.py")) == ["one"]
