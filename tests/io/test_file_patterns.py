"""Patterns fit what they say, and none fails; `tests/ops/readers/test_files.py` has what TensorFlow finds."""

from __future__ import annotations

import fnmatch

from hypothesis import given
from hypothesis import strategies as st

from flowstone.io.file_patterns import matching_paths

TREE = {".": ["a", "b", "ab"], "a": ["x", ".y"], "": ["a", "b", "ab"], "/": ["r"]}


def found(pattern: str, here: str = ".") -> list[str]:
    paths = {"a", "b", "ab", "a/x", "a/.y", "/r"}
    return matching_paths(
        pattern, paths.__contains__, lambda path: TREE.get(path.removeprefix("./"), []), here
    )


def test_components() -> None:
    assert found("*") == ["./a", "./b", "./ab"] and found("*", here="") == ["a", "b", "ab"]
    assert found("a/*") == ["a/x", "a/.y"] and found("*/x") == ["./a/x"] and found("/*") == ["/r"]
    assert found("a") == ["a"] and found("c") == [] and found("a/x/*") == []


@given(st.text(alphabet="ab*?[]^!-\\/x.", max_size=10))
def test_any_pattern(pattern: str) -> None:
    assert set(found(pattern)) <= {
        "a",
        "b",
        "ab",
        "a/x",
        "a/.y",
        "/r",
        "./a",
        "./b",
        "./ab",
        "./a/x",
        "./a/.y",
    }


@given(st.text(alphabet="ab*?", min_size=1, max_size=6).filter(lambda text: set(text) & set("*?")))
def test_what_python_finds(pattern: str) -> None:
    assert found(pattern) == [f"./{name}" for name in TREE["."] if fnmatch.fnmatchcase(name, pattern)]
