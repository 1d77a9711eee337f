"""`tf.io.gfile`: the names that TensorFlow 1.13 and later have there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import flowstone as tf


def test_files_and_folders(tmp_path: Path) -> None:
    gfile, top = tf.io.gfile, str(tmp_path / "top")
    inner = os.path.join(top, "inner")
    gfile.makedirs(inner)
    gfile.mkdir(os.path.join(top, "empty"))
    one, two, three = (os.path.join(inner, name) for name in ("one.txt", "two.txt", "three.txt"))
    with gfile.GFile(one, "w") as file:
        file.write("abc")
    gfile.copy(one, two)
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.copy(one, two)
    gfile.copy(one, two, overwrite=True)
    gfile.rename(two, three)
    assert (gfile.exists(two), gfile.exists(three), gfile.isdir(inner), gfile.isdir(one)) == (
        False,
        True,
        True,
        False,
    )
    assert gfile.listdir(inner) == ["one.txt", "three.txt"]
    assert gfile.glob(os.path.join(inner, "*.txt")) == gfile.glob([one, three]) == [one, three]
    assert gfile.stat(one).length == 3
    folders = [(top, ["empty", "inner"], []), (os.path.join(top, "empty"), [], [])]
    folders.append((inner, [], ["one.txt", "three.txt"]))
    assert list(gfile.walk(top)) == folders
    assert list(gfile.walk(top, topdown=False)) == [*folders[1:], folders[0]]
    gfile.remove(one)
    gfile.rmtree(top)
    assert not gfile.exists(top)


def test_a_walk_of_what_is_no_folder(tmp_path: Path) -> None:
    seen: list[Exception] = []
    nowhere = str(tmp_path / "nowhere")
    assert list(tf.io.gfile.walk(nowhere)) == []
    assert list(tf.io.gfile.walk(nowhere, onerror=seen.append)) == []
    assert [type(error) for error in seen] == [tf.errors.NotFoundError]
