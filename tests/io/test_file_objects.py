"""`tf.gfile.GFile` behaves as TensorFlow 1.15's: what is expected here was read off it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework import errors

TEXT = "line1\nline2\n\nlast"


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "a.txt").write_text(TEXT)
    return str(tmp_path / "a.txt")


def test_reading(path: str) -> None:
    assert tf.gfile.GFile(path).read() == TEXT
    assert tf.gfile.Open(path, "rb").read() == TEXT.encode()
    assert tf.gfile.FastGFile(path).read(3) == "lin"
    assert tf.gfile.GFile(path).readline() == "line1\n"
    assert tf.gfile.GFile(path).readlines() == ["line1\n", "line2\n", "\n", "last"]
    assert list(tf.gfile.GFile(path, "rb")) == [b"line1\n", b"line2\n", b"\n", b"last"]
    assert next(tf.gfile.GFile(path)) == tf.gfile.GFile(path).next() == "line1\n"


def test_text_that_is_no_utf8(path: str) -> None:
    Path(path).write_bytes(b"\xfa")
    with pytest.raises(UnicodeDecodeError):
        tf.gfile.GFile(path).read()
    assert tf.gfile.GFile(path, "rb").read() == b"\xfa"


def test_places(path: str) -> None:
    file = tf.gfile.GFile(path)
    assert file.tell() == 0 and file.size() == 17 and file.seekable()
    file.seek(3)
    assert file.read(2) == "e1" and file.tell() == 5
    file.seek(2, 1)
    assert file.tell() == 7
    file.seek(-2, 2)
    assert file.read() == "st" and file.read() == ""
    file.seek(position=3)
    assert file.tell() == 3
    with pytest.raises(errors.InvalidArgumentError, match="Seeking to a negative position: -82"):
        file.seek(-99, 2)
    with pytest.raises(errors.OutOfRangeError, match="reached end of file"):
        file.seek(999)
    with pytest.raises(errors.InvalidArgumentError, match="Invalid whence argument: 3"):
        file.seek(1, 3)
    with pytest.raises(TypeError, match="offset argument required"):
        file.seek()


def test_writing(path: str) -> None:
    file = tf.gfile.GFile(path, "w")
    assert Path(path).read_text() == TEXT  # it is opened when it is written
    file.write("ab")
    file.write(b"cd")
    assert file.tell() == 4
    file.flush()
    assert Path(path).read_text() == "abcd" and file.size() == 4
    file.close()
    file.close()
    file = tf.gfile.GFile(path, "a")
    assert file.tell() == 4
    file.write("é")
    file.close()
    assert tf.gfile.GFile(path).read() == "abcdé"


def test_closed_files_open_anew(path: str) -> None:
    with tf.gfile.GFile(path) as file:
        file.read(3)
    assert file.read() == TEXT
    with tf.gfile.GFile(path, "w") as writer:
        writer.write("a")
    writer.write("b")
    writer.close()
    assert Path(path).read_text() == "b"


def test_a_file_that_was_not_written_is_not_made(tmp_path: Path) -> None:
    with tf.gfile.GFile(str(tmp_path / "new"), "w"):
        pass
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("mode", ["r+", "w+", "a+"])
def test_reading_and_writing(path: str, mode: str) -> None:
    assert tf.gfile.GFile(path, mode).read() == TEXT
    with tf.gfile.GFile(path, mode) as file:
        file.write("XY")
        assert file.read() == {"r+": "XY" + TEXT[2:], "w+": "XY", "a+": TEXT + "XY"}[mode]


@pytest.mark.parametrize("mode", ["x", "rw", "rt", ""])
def test_other_modes(path: str, mode: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"mode is not 'r' or 'w' or 'a' or 'r\+'"):
        tf.gfile.GFile(path, mode)


@pytest.mark.parametrize(
    ("mode", "use", "word"),
    [
        ("w", lambda file: file.read(), "reading"),
        ("w", lambda file: file.seek(1), "reading"),
        ("w", lambda file: file.readline(), "reading"),
        ("r", lambda file: file.write("x"), "writing"),
    ],
)
def test_what_the_mode_does_not_allow(path: str, mode: str, use: Callable[[Any], Any], word: str) -> None:
    with pytest.raises(errors.PermissionDeniedError, match=f"File isn't open for {word}"):
        use(tf.gfile.GFile(path, mode))
    assert Path(path).read_text() == TEXT


def test_values_and_names(path: str) -> None:
    with pytest.raises(TypeError, match="Expected binary or unicode string, got 3"):
        tf.gfile.GFile(path, "w").write(3)
    with pytest.raises(TypeError, match="Expected binary or unicode string, got None"):
        tf.gfile.GFile(None).read()
    file = tf.gfile.GFile(path, "rb")
    assert (file.name, file.mode) == (path, "rb")
    assert tf.gfile.GFile(Path(path)).read(2) == "li"


def test_a_store(path: str) -> None:
    with tf.gfile.GFile("memory://files/a", "w") as file:
        file.write("ab\ncd")
    file = tf.gfile.GFile("memory://files/a")
    assert file.readline() == "ab\n" and file.read() == "cd" and file.size() == 5
    file.seek(1)
    assert file.read() == "b\ncd"
    tf.gfile.DeleteRecursively("memory://files")
