"""Looking for files gives TensorFlow's names, in its order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flowstone as tf
from flowstone.io.file_system import get_matching_files

FILES = (
    "b.txt", "a.txt", "c10", "c2", ".hid.txt", "sub/x.txt", "sub/y.txt", "sub2/x.txt", "[q].txt", "z*.txt",
    "s\\t.txt", "^e",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


# What TensorFlow 2.21 finds.
FOUND = {
    "*.txt": ["./.hid.txt", "./[q].txt", "./a.txt", "./b.txt", "./s\\t.txt", "./z*.txt"],
    "nonexist": [],
    "nodir/*": [],
    "": [],
    "sub*/x.txt": ["./sub/x.txt", "./sub2/x.txt"],
    "*/x.txt": ["./sub/x.txt", "./sub2/x.txt"],
    "**/x.txt": ["./sub/x.txt", "./sub2/x.txt"],
    "[ab].txt": ["./a.txt", "./b.txt"],
    "[!a].txt": ["./b.txt"],
    "[^a].txt": ["./b.txt"],
    "?.txt": ["./a.txt", "./b.txt"],
    "sub": ["sub"],
    "sub/": ["sub/"],
    "sub/*": ["sub/x.txt", "sub/y.txt"],
    "./c*": ["./c10", "./c2"],
    "[[]q].txt": ["./[q].txt"],
    "z\\*.txt": ["./z*.txt"],
    "s\\\\t.txt": ["./s\\t.txt"],
    "{a,b}.txt": [],
    "sub/../a.txt": ["sub/../a.txt"],
    "sub//x.txt": ["sub//x.txt"],
    "[a": [],
    "[z-a].txt": [],
    "c[0-9]*": ["./c10", "./c2"],
}


@pytest.mark.parametrize("pattern", FOUND)
def test_patterns(folder: Path, pattern: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        names = session.run(tf.matching_files(pattern))
    assert names.shape == (len(FOUND[pattern]),)
    assert [name.decode() for name in names] == FOUND[pattern]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_absolute_patterns(folder: Path, scheme: str) -> None:
    assert get_matching_files(f"{scheme}{folder}/sub?/*") == [f"{scheme}{folder}/sub2/x.txt"]
    assert get_matching_files(f"{scheme}{folder}/a.txt") == [f"{scheme}{folder}/a.txt"]
    assert get_matching_files("/*") != []


def test_several_patterns_are_sorted_together(folder: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        patterns = tf.placeholder(tf.string)
        found = tf.matching_files(patterns)
        assert found.shape.as_list() == [None]
        names = session.run(found, {patterns: ["b*", "c*", "a*", "a.txt"]})
        assert names.tolist() == [b"./a.txt", b"./b.txt", b"./c10", b"./c2", b"a.txt"]
        assert session.run(found, {patterns: np.array([], object)}).shape == (0,)


def test_every_step_looks_again(folder: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        count = tf.size(tf.matching_files("c*"))
        assert session.run(count) == 2
        (folder / "c3").touch()
        assert session.run(count) == 3


def test_errors() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(ValueError, match="Shape must be at most rank 1 but is rank 2"):
            tf.matching_files([["x"]])
        patterns = tf.placeholder(tf.string)
        found = tf.matching_files(patterns)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"scalar or vector, but had shape: \[1,1\]"):
            session.run(found, {patterns: [["x"]]})
        with pytest.raises(
            tf.errors.UnimplementedError, match="File system scheme 'missing' not implemented"
        ):
            session.run(found, {patterns: "missing://x"})
