"""Rewrites programs of Python 2 for Python 3.

    flowstone convert program.py                the rewritten program on standard output
    flowstone convert --diff program.py folder  what would change
    flowstone convert --write program.py folder rewrites the files; each old one stays as NAME.orig

Print statements, `except X, e`, `xrange`, `unicode`, `dict.iteritems()`, `has_key`, `raise X, y`,
backquotes, `<>`, octal and long numbers, `urllib2`, `cPickle`, `StringIO` and the like become what Python 3
has. Divisions stay as they are: a note names the lines where a `/` may have divided integers. The rewriting
is lib2to3's, of Python up to 3.12, or of the package fissix (`pip install flowstone[convert]`).
"""

from __future__ import annotations

import argparse
import difflib
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

NAME = "convert"
SUMMARY = "rewrite a program of Python 2 for Python 3"

_OTHERS = ("set_literal", "ws_comma", "buffer", "idioms")  # changes of taste


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone convert`."""
    parser.add_argument("paths", nargs="+", help="Python files, or folders with them")
    parser.add_argument("--write", action="store_true", help="rewrite the files, keep .orig")
    parser.add_argument("--diff", action="store_true", help="show what would change")


def execute(options: argparse.Namespace) -> int:
    """Rewrites the files. Returns 0; 1 if a file cannot be read as Python 2; 2 without a rewriter or file."""
    rewrite = _rewriter()
    if rewrite is None:
        message = "Python 3.13 has no lib2to3: pip install flowstone[convert], which brings fissix"
        print(f"flowstone convert: {message}", file=sys.stderr)
        return 2
    status = 0
    for path in options.paths:
        if not Path(path).exists():
            print(f"flowstone convert: no such file: {path}", file=sys.stderr)
            return 2
        for file in _python_files(Path(path)):
            status = max(status, _convert(file, rewrite, options))
    return status


def _python_files(path: Path) -> Iterator[Path]:
    return iter(sorted(path.rglob("*.py"))) if path.is_dir() else iter([path])


def _rewriter() -> Any:
    """A function from the text of a program and its name to the new text; None if there is no rewriter."""
    for package in ("fissix", "lib2to3"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                refactor = import_module(f"{package}.refactor")
        except ImportError:
            continue
        fixers = refactor.get_fixers_from_package(f"{package}.fixes")
        chosen = [fixer for fixer in fixers if fixer.rpartition("fix_")[2] not in _OTHERS]
        tool = refactor.RefactoringTool(chosen)
        return lambda text, name: str(tool.refactor_string(text, name))
    return None


def _convert(file: Path, rewrite: Any, options: argparse.Namespace) -> int:
    old = _with_spaces(file.read_bytes().decode("utf-8", "surrogateescape").replace("\r\n", "\n"))
    try:
        new = _without_python_2_encodings(rewrite(f"{old}\n" if not old.endswith("\n") else old, str(file)))
    except Exception as error:
        print(f"{file}: cannot be read as Python 2: {error}", file=sys.stderr)
        return 1
    for line, text in _divisions(old):
        print(f"{file}:{line}: a division, of integers in Python 2 perhaps: {text}", file=sys.stderr)
    if options.diff:
        lines = difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), f"{file} (Python 2)", f"{file} (Python 3)"
        )
        sys.stdout.writelines(lines)
    elif not options.write:
        sys.stdout.write(new)
    elif new != old:
        shutil.copy2(file, f"{file}.orig")
        file.write_bytes(new.encode("utf-8", "surrogateescape"))
        print(f"{file}: rewritten", file=sys.stderr)
    return 0


def _with_spaces(text: str) -> str:
    """The text with eight columns for each tab at the beginning of a line, as Python 2 counts them."""
    return re.sub(r"^[ \t]+", lambda found: found.group().expandtabs(8), text, flags=re.MULTILINE)


def _without_python_2_encodings(text: str) -> str:
    """The text without `"…".encode("hex")` and the like, which Python 3 does by `codecs`."""
    return re.sub(r"\.encode\((['\"])hex\1\)", '.encode("latin-1").hex()', text)


def _divisions(text: str) -> list[tuple[int, str]]:
    """The lines of a program that divide by `/`, unless it says that this is of numbers of any kind."""
    if re.search(r"from\s+__future__\s+import\s+[^\n]*\bdivision\b", text):
        return []
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        code = re.sub(r"(['\"])(?:\\.|(?!\1).)*\1", "''", line).partition("#")[0]
        is_real = re.search(r"/\s*\d+\.\d*|\d+\.\d*\s*/|float\(", code)
        if re.search(r"[\w)\]]\s*/=?\s*[\w(]", code) and not is_real:
            found.append((number, line.strip()))
    return found
