"""What Keras' modules get of Python, NumPy and h5py of their time; other programs see none of it."""

from __future__ import annotations

import collections
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowstone.keras import older_python


def test_modules_have_the_names_that_they_once_had() -> None:
    older: Any = older_python.substitute("numpy")
    assert older.float is float and older.string_ is np.bytes_
    assert older.mean is np.mean
    assert older.argsort([[2, 1, 2, 1]]).tolist() == [[1, 3, 0, 2]]
    assert older.array([[1], [2, 3]]).dtype == object and older.asarray([[1, 2]]).shape == (1, 2)
    containers: Any = older_python.substitute("collections")
    assert containers.OrderedDict is collections.OrderedDict
    assert issubclass(list, containers.Iterable)
    assert not hasattr(collections, "Iterable")
    inspection: Any = older_python.substitute("inspect")
    assert inspection.getargspec(lambda a, b=1: a).args == ["a", "b"]
    assert older_python.substitute("json") is None


@pytest.mark.skipif(find_spec("h5py") is None, reason="needs flowstone[keras]")
def test_attributes_of_hdf5_files_are_those_of_h5py_2(tmp_path: Path) -> None:
    program = f"""
import h5py
from flowstone.keras import older_python
older_python.prepare()
older_python.prepare()
file = older_python.substitute("h5py").File({str(tmp_path / "a.h5")!r})
file.attrs["one"] = "word"
file.attrs["many"] = [b"a", b"bc"]
print(file.attrs["one"].decode("utf8"), file.attrs["many"].tolist(), file.fid == file.id)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert result.stdout == "word [b'a', b'bc'] True\n", result.stderr
