"""Documentation that is run: every block of code in README and `docs`, and every example in a docstring.

A Python block is run, in the namespace of the document's blocks before it; one that begins with ``>>>`` is a
doctest. A comment ``<!-- run …  -->`` holds Python that readers need not see. A shell block is run line by
line. A comment before a block says what else it is:

- ``<!-- not run: REASON -->``: it is only read;
- ``<!-- part of: FILE -->``: lines of this file, in their order; ``…`` stands for others between them;
- ``<!-- printed -->``: lines that the Python block before it printed, in the same notation;
- ``<!-- file: NAME -->``: the contents of this file, for the commands after it.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F, OpDeclaration, registry

ROOT = Path(__file__).parents[1]
DOCUMENTS = ["README.md", *sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
SOURCES = ROOT / "src"
EXAMPLES = sorted(
    path.relative_to(SOURCES).with_suffix("").as_posix().replace("/", ".")
    for path in SOURCES.rglob("*.py")
    if ">>>" in path.read_text()
)
_BLOCK = re.compile(
    r"^ *(?:<!-- (?P<marker>[^:\n]+?)(?:: (?P<detail>(?:[^-]|-(?!->))+?))? -->\n+)?"
    r" *```(?P<language>python|sh)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
_HIDDEN = re.compile(r"^ *<!-- run\n(.*?)^-->$", re.MULTILINE | re.DOTALL)
_DECLARED = re.compile(r"\bop\((?:\s*#[^\n]*)?\s*\"(\w+)\"")
_LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]+)(?:#(?P<anchor>[^)]+))?\)")


# They show what is chosen where there is oneDNN.
_OF_ONEDNN = ("README.md", "flowstone.framework.machine.machine")


def _parameters(names: list[str]) -> list[Any]:
    marks = {True: [pytest.mark.needs_onednn], False: []}
    return [pytest.param(name, marks=marks[name in _OF_ONEDNN]) for name in names]


class Block(NamedTuple):
    """A block of a document: the line that it begins at, `marker` and `detail` of the comment before it."""

    language: str
    text: str
    marker: str
    detail: str
    line: int


def blocks_of(text: str) -> list[Block]:
    text = _HIDDEN.sub(r"```python\n\1```", text)
    return [
        Block(
            match["language"],
            match["text"],
            match["marker"] or "",
            match["detail"] or "",
            text.count("\n", 0, match.start("text")) + 1,
        )
        for match in _BLOCK.finditer(text)
    ]


class Document:
    """The state of a document that is being run: the blocks' namespace, and what the last one printed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.printed = name, folder, ""
        self.module = types.ModuleType("document")

    def run(self, block: Block) -> None:
        """Runs or checks one block; AssertionError names it if it is not what it says."""
        where = f"{self.name}:{block.line}"
        if block.marker == "part of":
            assert_lines(block.text, (ROOT / block.detail).read_text(), where)
        elif block.marker == "printed":
            assert_lines(block.text, self.printed, where)
        elif block.marker == "file":
            (self.folder / block.detail).write_text(block.text)
        elif block.marker == "not run":
            assert len(block.detail.split()) > 2, f"{where} says no reason"
        else:
            assert not block.marker, f"{where}: {block.marker}"
            {"sh": self._run_commands, "python": self._run_python}[block.language](block, where)

    def _run_python(self, block: Block, where: str) -> None:
        if block.text.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(block.text, vars(self.module), where, where, 0)
            assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
            return
        output = io.StringIO()
        text, path = "\n" * (block.line - 1) + block.text, str(ROOT / self.name)
        linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path  # AutoGraph reads it
        code = compile(text, path, "exec")
        with contextlib.redirect_stdout(output):
            exec(code, vars(self.module))
        self.printed = output.getvalue()

    def _run_commands(self, block: Block, where: str) -> None:
        python = shlex.quote(sys.executable)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCES), str(ROOT)])}
        for line in block.text.splitlines():
            command = re.sub(r"^flowstone\b", f"{python} -m flowstone", line.partition("#")[0])
            command = re.sub(r"^python\b", python, command)
            folder = ROOT if "examples/" in line else self.folder
            result = subprocess.run(
                command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
            )
            assert result.returncode == 0, f"{where}: {line}\n{result.stderr}"
            self.printed = result.stdout


def assert_lines(shown: str, text: str, where: str) -> None:
    """The lines of `shown` are in `text`, one after the other except where `…` is; indentation aside."""
    lines = [line.strip() for line in text.splitlines()]
    start = 0
    for piece in re.split(r"^\s*…\n", shown, flags=re.MULTILINE):
        wanted = [line.partition("  #")[0].strip() for line in piece.splitlines() if line.strip()]
        places = range(start, len(lines) - len(wanted) + 1)
        at = next((i for i in places if lines[i : i + len(wanted)] == wanted), None)
        assert at is not None, f"{where} is not there:\n{piece}\n--- in\n{text}"
        start = at + len(wanted)


OF_PROCESSES = ("flowstone.compat.tensorflow_name",)  # whose examples change the process that runs them


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives a `Document` of its own graph and folder. Ops that it declares again are as before afterwards."""

    def begin(name: str) -> Document:
        code = "".join(block.text for block in blocks_of((ROOT / name).read_text()))
        for declared in _DECLARED.findall(code):
            monkeypatch.delitem(registry._declarations, declared)
            monkeypatch.delitem(vars(F), declared, raising=False)
        return Document(name, tmp_path)

    monkeypatch.chdir(tmp_path)
    with tf.Graph().as_default():
        yield begin


@pytest.mark.by_aten
@pytest.mark.parametrize("name", _parameters(DOCUMENTS))
def test_blocks(name: str, document: Any) -> None:
    """Python and commands run, and what is shown of files and of output is there."""
    running = document(name)
    for block in blocks_of((ROOT / name).read_text()):
        running.run(block)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links(name: str) -> None:
    """Links lead to files and headings that exist."""
    path = ROOT / name
    for match in _LINK.finditer(path.read_text()):
        target = path.parent / match["path"]
        assert target.exists(), match[0]
        if match["anchor"]:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert match["anchor"] in [re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings]


def test_files_that_are_named_exist() -> None:
    """`io/stores.py` and `tests/ops/test_table.py` are where the documents say, `stores.py` anywhere."""
    folders = ("src", "tests", "examples", "benchmarks", "docs")
    files = [f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*.py")]
    missing = {
        f"{name}: {path}"
        for name in DOCUMENTS
        for path in re.findall(r"`([\w/]+\.py)`", (ROOT / name).read_text())
        if not any(file.endswith("/" + path) for file in files)
    }
    assert missing == {"docs/explain.md: softmax_regression.py"}


def test_the_files_to_read_in_a_day_have_as_many_lines_as_is_said() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    section = text.split("## The runtime in a day\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+`) \| ([\d,]+) \|$", section, re.MULTILINE)
    lines = 0
    for files, said in rows:
        paths = [SOURCES / "flowstone" / name for name in re.findall(r"`([^`]+)`", files)]
        found = sum(len(path.read_text().splitlines()) for path in paths)
        assert abs(found - int(said.replace(",", ""))) <= 150, f"{files} have {found} lines"
        lines += found
    total = re.search(r"([\d,]+) in all", section)
    assert total and abs(lines - int(total[1].replace(",", ""))) <= 500, f"{lines} lines in all"
    assert len(rows) == 8 and lines < 10_000, "more than a day"


@pytest.mark.parametrize("name", _parameters(EXAMPLES))
def test_examples_in_docstrings(name: str) -> None:
    if name in OF_PROCESSES:
        code = (
            f"import doctest, sys, {name} as module; tried = doctest.testmod(module); "
            "sys.exit(tried.failed or not tried.attempted)"
        )
        environment = os.environ | {"PYTHONPATH": str(SOURCES)}
        assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=300).returncode == 0
        return
    module = importlib.import_module(name.removesuffix(".__init__"))
    with tf.Graph().as_default():
        results = doctest.testmod(module)
    assert results.failed == 0
    assert results.attempted > 0 or "+SKIP" in (module.__doc__ or "")


def test_the_explanation_that_is_shown(tmp_path: Path) -> None:
    """The rewrites of the program in `docs/explain.md`; its times are another machine's."""
    text = (ROOT / "docs/explain.md").read_text()
    (program,) = [block for block in blocks_of(text) if block.marker == "file"]
    (tmp_path / program.detail).write_text(program.text)
    arguments = re.findall(r"^\$ flowstone (.*)$", text, re.MULTILINE)[0].split()
    shown = subprocess.run(
        [sys.executable, "-m", "flowstone", *arguments],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(SOURCES), "FLOWSTONE_MACHINE": "amd-zen5", "FLOWSTONE_NATIVE": "0"},
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout
    (rewrites,) = re.findall(r"^58 rewrites\n.*?^$", text, re.MULTILINE | re.DOTALL)
    assert_lines(rewrites, shown, "docs/explain.md")
    assert "kernels were chosen by the profile amd-zen5" in shown and "kernels were chosen" in text


def test_every_part_of_a_declaration_is_explained() -> None:
    """`docs/adding_an_op.md` has every trait and every part that a declaration may have."""
    text = (ROOT / "docs/adding_an_op.md").read_text()
    code = OpDeclaration.__init__.__code__
    traits = set(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
    questions = {
        "why_removed",
        "is_capturable",
        "static_value",
        "static_value_inputs",
        "result",
        "check_complete",
    }
    methods = {name for name, value in vars(OpDeclaration).items() if callable(value)}
    parts = {name for name in methods if not name.startswith("_")} - questions
    missing = {name for name in traits | parts if not re.search(rf"`{name}\b", text)}
    assert traits >= {"stateful", "mutates"} and parts >= {"infer", "kernel"} and missing == set()


def test_lines_are_compared() -> None:
    """What is not there is seen, and so are markers."""
    with pytest.raises(AssertionError, match="page:3"):
        assert_lines("a\nc\n", "a\nb\nc\n", "page:3")
    assert_lines("a\n…\nc\n", "a\nb\n  c\n", "page:3")
    text = textwrap.dedent(
        """
        <!-- not run: needs a GPU -->
        ```python
        1
        ```
        """
    )
    assert blocks_of(text) == [Block("python", "1\n", "not run", "needs a GPU", 4)]


def test_the_page_of_ops_is_that_of_the_declarations() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "import make_ops_page as m; print(m.PAGE.read_text() == m.page())"],
        cwd=ROOT / "docs",
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
    )
    assert made.stdout == "True\n", "run `python docs/make_ops_page.py`"


def test_ops_of_numbers_without_a_kernel_for_gpus_have_a_reason() -> None:
    program = (
        "import make_ops_page as m\n"
        "print(sorted(' '.join(m.HOST_REASONS.values()).split()) == m.on_host_alone())"
    )
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "docs", capture_output=True, text=True, check=True
    )
    assert made.stdout == "True\n", "`HOST_REASONS` of docs/make_ops_page.py lacks an op, or has one too many"
