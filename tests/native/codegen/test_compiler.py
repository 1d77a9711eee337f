"""The cache of object code: found again, not trusted when damaged, not needed."""

from __future__ import annotations

import ctypes
import pathlib

import pytest

from flowstone.framework import flags
from flowstone.native.codegen import compiler, llvm, making

TEXT = "define i64 @seven(i64 %x) {\n %y = add i64 %x, 7\n ret i64 %y\n}"


def call(module: compiler.Module, x: int) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(module.address("seven"))
    return int(function(x))


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    making.wait_until_made()  # what other tests have had made, which must not meet what is replaced here
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    return tmp_path / "flowstone" / "native"


def test_code_is_kept_and_found(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(compiler.compiled(TEXT, ["seven"]), 3) == 10
    assert len(list(folder.glob("*.o"))) == 1
    monkeypatch.setattr(llvm, "object_code", lambda *_: pytest.fail("it is in the cache"))
    assert call(compiler.compiled(TEXT, ["seven"]), 4) == 11


def test_only_what_is_kept_is_found(folder: pathlib.Path) -> None:
    assert compiler.kept(TEXT, ["seven"]) is None
    compiler.compiled(TEXT, ["seven"], quickly=True)
    assert compiler.kept(TEXT, ["seven"]) is None  # there is better code
    compiler.compiled(TEXT, ["seven"])
    found = compiler.kept(TEXT, ["seven"])
    assert found is not None and call(found, 1) == 8


@pytest.mark.parametrize("is_rough", [False, True])
def test_rough_text_and_any_other_give_the_same_code_results(folder: pathlib.Path, is_rough: bool) -> None:
    """Each is kept under a name of its own."""
    text = """
    define i64 @seven(i64 %x) {
     %place = alloca i64
     store i64 0, ptr %place
     br label %head
    head:
     %i = phi i64 [0, %0], [%next, %head]
     %sum = load i64, ptr %place
     %more = add i64 %sum, %x
     store i64 %more, ptr %place
     %next = add i64 %i, 1
     %goes_on = icmp slt i64 %next, 7
     br i1 %goes_on, label %head, label %end
    end:
     %found = load i64, ptr %place
     ret i64 %found
    }"""
    assert call(compiler.compiled(text, ["seven"], is_rough), 5) == 35
    assert call(compiler.compiled(text, ["seven"], not is_rough), 3) == 21
    assert len(list(folder.glob("*.o"))) == 2


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 5000])
def test_a_damaged_file_is_written_anew(folder: pathlib.Path, damage: bytes) -> None:
    compiler.compiled(TEXT, ["seven"])
    (path,) = folder.glob("*.o")
    path.write_bytes(damage)
    assert call(compiler.compiled(TEXT, ["seven"]), 1) == 8
    assert path.read_bytes() != damage


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(flags, "CACHE", str(tmp_path / "file"))
    assert call(compiler.compiled(TEXT, ["seven"]), 2) == 9


def test_text_that_is_none_is_refused() -> None:
    with pytest.raises(RuntimeError):
        compiler.compiled("define i64 @seven( {", ["seven"])


def test_what_is_made_quickly_is_what_is_called() -> None:
    text = """declare i64 @other(i64)
define internal i64 @add(i64 %x) {
 ret i64 %x
}
define i64 @seven(i64 %x) {
 %y = call i64 @add(i64 %x)
 ret i64 %y
}
define i64 @eight(i64 %x) {
 %y = call i64 @seven(i64 %x)
 %z = call i64 @other(i64 %y)
 ret i64 %z
}
declare i64 @more(i64)
"""
    without_eight = text[: text.index("define i64 @eight")] + "declare i64 @more(i64)\n"
    assert compiler.reachable(text, ["seven"]) == without_eight
    assert compiler.reachable(text, ["eight"]) == text


def test_functions_at_both_ends_may_go() -> None:
    first, last = (
        "  define void @a() {\nx:\n ret void\n  }\n",
        "define void @b() {\n call void @c()\n ret void\n}",
    )
    between = "@c1 = constant i64 1\ndefine internal void @c() {\n ret void\n}\n!0 = !{}\n"
    assert compiler.reachable(first + between + last, ["b"]) == between + last
    assert compiler.reachable(first + between + last, ["c"]) == between.rstrip("\n")
    assert compiler.reachable(first + between + last, ["a"]) == f"{first}@c1 = constant i64 1\n!0 = !{{}}"


def test_quick_code_is_kept_until_there_is_better(folder: pathlib.Path) -> None:
    for quickly, ending in ((True, "seven.quick.o"), (True, "seven.quick.o"), (False, "o"), (True, "o")):
        module = compiler.compiled(TEXT, ["seven"], quickly=quickly)
        assert call(module, 3) == 10 and module.is_quick == (ending != "o")
        assert [path.name.partition(".")[2] for path in folder.glob("*.o")] == [ending]
