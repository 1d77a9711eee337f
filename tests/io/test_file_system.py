"""Files by their paths, here and in a store of fsspec: the same contents, names and classes of errors."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import flowstone as tf
import forked
from flowstone.framework import errors
from flowstone.io import file_system, stores
from flowstone.io.file_errors import file_error

gfile = tf.gfile


@pytest.fixture(params=["local", "file://", "memory://"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder with a text file, an empty one below a folder, and a hidden one."""
    if request.param == "memory://":
        path = "memory://root"
        fsspec.filesystem("memory").mkdir("/root")
    else:
        path = f"{'' if request.param == 'local' else request.param}{tmp_path}"
    file_system.recursive_create_dir(f"{path}/dir/sub")
    for name, text in {
        "a.txt": "line1\nline2\n\nlast",
        "dir/f": "",
        "dir/.hid": "h",
        "dir/sub/z": "zz",
    }.items():
        file_system.write_string_to_file(f"{path}/{name}", text)
    yield path
    if request.param == "memory://":
        memory: Any = fsspec.filesystem("memory")
        memory.store.clear()
        memory.pseudo_dirs[:] = [""]


def test_what_there_is(root: str) -> None:
    assert gfile.Exists(f"{root}/a.txt") and gfile.Exists(f"{root}/dir") and not gfile.Exists(f"{root}/no")
    assert gfile.Exists(os.fsencode(f"{root}/a.txt")) and not gfile.Exists("")
    assert gfile.IsDirectory(f"{root}/dir") and gfile.IsDirectory(f"{root}/dir/")
    assert not gfile.IsDirectory(f"{root}/a.txt") and not gfile.IsDirectory(f"{root}/no")
    assert gfile.ListDirectory(f"{root}/dir") == [".hid", "f", "sub"]
    assert gfile.ListDirectory(f"{root}/dir/") == [".hid", "f", "sub"]


def test_statistics(root: str) -> None:
    before = time.time_ns() - 10**10
    found = gfile.Stat(f"{root}/a.txt")
    assert (found.length, found.is_directory) == (17, False)
    assert before < found.mtime_nsec < time.time_ns() + 10**10
    assert gfile.Stat(f"{root}/dir").is_directory


def test_patterns(root: str) -> None:
    def found(*patterns: str) -> list[str]:
        paths = gfile.Glob([f"{root}/{each}" for each in patterns])
        return [path.removeprefix(f"{root}/") for path in paths]

    assert found("*") == ["a.txt", "dir"]
    assert found("*/*") == ["dir/.hid", "dir/f", "dir/sub"]
    assert found("dir/[f-z]*", "?.txt") == ["dir/f", "dir/sub", "a.txt"]
    assert found("a.txt", "no", "no/*", "a.txt/*", "[a") == ["a.txt"]
    assert gfile.Glob(f"{root}/*/s*/z") == [f"{root}/dir/sub/z"]
    with pytest.raises(TypeError, match="Expected binary or unicode string, got 3"):
        gfile.Glob(3)


def test_walks(root: str) -> None:
    top = (f"{root}/dir", ["sub"], [".hid", "f"])
    below = (f"{root}/dir/sub", [], ["z"])
    assert list(gfile.Walk(f"{root}/dir")) == [top, below]
    assert list(gfile.Walk(f"{root}/dir", in_order=False)) == [below, top]
    assert list(gfile.Walk(f"{root}/dir/"))[1:] == [below]
    assert list(gfile.Walk(f"{root}/no")) == list(gfile.Walk(f"{root}/a.txt")) == []


def test_folders(root: str) -> None:
    gfile.MkDir(f"{root}/m")
    gfile.MkDir(f"{root}/m")
    gfile.MkDir(f"{root}/a.txt")  # there is something of that name
    assert gfile.IsDirectory(f"{root}/m")
    gfile.MakeDirs(f"{root}/x/y/z")
    gfile.MakeDirs(f"{root}/x/y/z")
    assert gfile.IsDirectory(f"{root}/x/y/z")
    gfile.DeleteRecursively(f"{root}/dir")
    assert not gfile.Exists(f"{root}/dir/sub/z") and not gfile.Exists(f"{root}/dir")


def test_copies_and_names(root: str) -> None:
    gfile.Copy(f"{root}/a.txt", f"{root}/b.txt")
    assert file_system.read_bytes(f"{root}/b.txt") == b"line1\nline2\n\nlast"
    with pytest.raises(errors.AlreadyExistsError, match=r"dir/f; file already exists"):
        gfile.Copy(f"{root}/b.txt", f"{root}/dir/f")
    gfile.Copy(f"{root}/b.txt", f"{root}/dir/f", overwrite=True)
    assert gfile.Stat(f"{root}/dir/f").length == 17
    with pytest.raises(errors.AlreadyExistsError, match="file already exists"):
        gfile.Rename(f"{root}/b.txt", f"{root}/a.txt")
    gfile.Rename(f"{root}/dir/sub/z", f"{root}/a.txt", overwrite=True)
    assert file_system.read_bytes(f"{root}/a.txt") == b"zz" and not gfile.Exists(f"{root}/dir/sub/z")
    gfile.Remove(f"{root}/a.txt")
    assert not gfile.Exists(f"{root}/a.txt")


def test_what_is_missing(root: str) -> None:
    missing = f"{root}/no"
    for act in (
        lambda: gfile.GFile(missing).read(),
        lambda: gfile.Stat(missing),
        lambda: gfile.Remove(missing),
        lambda: gfile.Rename(missing, f"{root}/new"),
        lambda: gfile.Copy(missing, f"{root}/new"),
        lambda: gfile.DeleteRecursively(missing),
        lambda: gfile.ListDirectory(missing),
        lambda: gfile.ListDirectory(f"{root}/a.txt"),
    ):
        with pytest.raises(errors.NotFoundError, match=r"/(no|a\.txt)"):
            act()


def test_folders_are_no_files(root: str) -> None:
    for act in (
        lambda: gfile.GFile(f"{root}/dir").read(),
        lambda: gfile.Remove(f"{root}/dir"),
        lambda: gfile.DeleteRecursively(f"{root}/a.txt"),
    ):
        with pytest.raises(errors.FailedPreconditionError, match="a directory"):
            act()
    with pytest.raises(errors.InvalidArgumentError, match="Is a directory"):
        gfile.Copy(f"{root}/dir", f"{root}/new")


def test_local_errors(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").touch()
    (tmp_path / "empty").mkdir()
    root = str(tmp_path)
    with pytest.raises(errors.NotFoundError, match=r"no/x; No such file or directory"):
        gfile.GFile(f"{root}/no/x", "w").write("")
    with pytest.raises(errors.NotFoundError, match=r"q/w; No such file"):
        gfile.MkDir(f"{root}/q/w")
    with pytest.raises(errors.FailedPreconditionError, match="is not a directory"):
        gfile.MakeDirs(f"{root}/file")
    with pytest.raises(errors.FailedPreconditionError, match="Not a directory"):
        gfile.MakeDirs(f"{root}/file/below")
    with pytest.raises(errors.FailedPreconditionError, match="Directory not empty"):
        gfile.Rename(f"{root}/empty", f"{root}/full", overwrite=True)
    with pytest.raises(errors.FailedPreconditionError, match="Is a directory"):
        gfile.Copy(f"{root}/file", f"{root}/full", overwrite=True)
    gfile.Copy(f"{root}/full/x", f"{root}/full/x", overwrite=True)


@pytest.mark.parametrize(
    ("number", "cls"),
    [
        (errno.EACCES, errors.PermissionDeniedError),
        (errno.ENOSPC, errors.ResourceExhaustedError),
        (errno.EIO, errors.UnknownError),
        (errno.ETIMEDOUT, errors.DeadlineExceededError),
    ],
)
def test_classes_by_number(number: int, cls: type[errors.OpError]) -> None:
    error = file_error("p", OSError(number, "text"))
    assert type(error) is cls and error.message == f"p; {os.strerror(number)}"


def test_a_full_disk() -> None:
    with pytest.raises(errors.ResourceExhaustedError, match="/dev/full; No space left"):
        file_system.write_string_to_file("/dev/full", "x")


def test_errors_without_a_number() -> None:
    assert type(file_error("p", PermissionError("no"))) is errors.PermissionDeniedError
    assert file_error("p", OSError("why")).message == "p; why"


def test_schemes() -> None:
    for act in (gfile.Exists, gfile.ListDirectory, gfile.Remove):
        with pytest.raises(
            errors.UnimplementedError, match=r"File system scheme 'foo' not implemented \(file: 'foo://a'\)"
        ):
            act("foo://a")
    with pytest.raises(errors.UnimplementedError, match=r"Renaming memory://a to /b not implemented"):
        gfile.Rename("memory://a", "/b")


def test_copies_to_another_store(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    gfile.Copy(str(tmp_path / "a"), "memory://far/a")
    gfile.Copy("memory://far/a", str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == b"abc"
    gfile.DeleteRecursively("memory://far")


# ---- files that appear whole


def test_a_file_appears_when_it_is_whole(root: str) -> None:
    path = f"{root}/whole"
    with file_system.written_whole(path) as file:
        file.write(b"abc")
        assert not gfile.Exists(path)
    assert file_system.read_bytes(path) == b"abc"
    with pytest.raises(KeyError), file_system.written_whole(path) as file:
        file.write(b"x" * 10**6)
        raise KeyError
    assert file_system.read_bytes(path) == b"abc"
    assert gfile.ListDirectory(root) == ["a.txt", "dir", "whole"]


def test_text_that_replaces_another(root: str) -> None:
    file_system.atomic_write_string_to_file(f"{root}/a.txt", "é")
    assert file_system.read_file_to_string(f"{root}/a.txt") == "é"
    assert file_system.read_file_to_string(f"{root}/a.txt", binary_mode=True) == b"\xc3\xa9"
    with pytest.raises(errors.AlreadyExistsError):
        file_system.atomic_write_string_to_file(f"{root}/a.txt", "", overwrite=False)


def test_a_whole_file_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="no/file; No such"):
        file_system.atomic_write_string_to_file(tmp_path / "no/file", "")


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    code = (
        "import os, signal, sys\nfrom flowstone.io import file_system\n"
        "with file_system.written_whole(sys.argv[1]) as file:\n"
        "    file.write(b'new' * 10**6)\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = forked.run([str(tmp_path / "f")], code=code)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "f").read_text() == "old"


def test_what_lasts_is_synchronised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synchronised: list[int] = []
    monkeypatch.setattr(stores.os, "fsync", synchronised.append)
    with file_system.written_whole(tmp_path / "a", durable=False):
        pass
    assert synchronised == []
    with file_system.written_whole(tmp_path / "a"):
        pass
    assert len(synchronised) == 2  # the file, and its folder
