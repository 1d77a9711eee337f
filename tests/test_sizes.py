"""Files and functions stay small enough to be read at a glance."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "flowstone"
LONGEST_FILE = 450
LONG_FUNCTION = 40


def function_sizes() -> list[tuple[int, str]]:
    """The number of lines of every function, and its name."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                found.append((lines, f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"))
    return sorted(found, reverse=True)


def test_no_file_is_long() -> None:
    sizes = {
        path.relative_to(SOURCE).as_posix(): path.read_text().count("\n") for path in SOURCE.rglob("*.py")
    }
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


def test_functions_are_short() -> None:
    sizes = function_sizes()
    long = [(lines, name) for lines, name in sizes if lines >= LONG_FUNCTION]
    assert len(long) <= len(sizes) / 100, long
    assert sizes[len(sizes) // 2][0] <= 6
