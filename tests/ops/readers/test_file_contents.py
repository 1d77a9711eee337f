"""Whole files, read and written by steps."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowstone as tf


def test_there_and_back(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "folder" / "f")
    with tf.Graph().as_default(), tf.Session() as session:
        contents = tf.placeholder(tf.string)
        write, read = tf.write_file(path, contents), tf.read_file(path)
        assert read.shape == []
        for text in (b"first \0\xff", b""):
            session.run(write, {contents: text})
            assert session.run(read) == text  # read again by every step


def test_any_store() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.write_file("memory://file_contents/f", "text"))
        assert session.run(tf.read_file("memory://file_contents/f")) == b"text"


def test_refused(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.NotFoundError, match="nope"):
            session.run(tf.read_file(str(tmp_path / "nope")))
        with pytest.raises(ValueError, match="rank"):
            tf.read_file(["a"])
