"""Object code without LLVM: the same results as by it, and what is left to it."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from flowstone.native.codegen import compiler, host, llvm, object_code

pytestmark = pytest.mark.skipif(
    bool(host.reason()) or sys.platform != "linux" or platform.machine() != "x86_64",
    reason="only for x86-64 under Linux",
)
TEXT = """
@table = internal constant [4 x i64] [i64 3, i64 5, i64 7, i64 11]
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @omp_get_max_threads()
define internal i64 @look(i64 %i) noinline {
 %place = getelementptr i64, ptr @table, i64 %i
 %x = load i64, ptr %place
 ret i64 %x
}
define i64 @sum(i64 %i) {
 %a = call i64 @look(i64 %i)
 %b = add i64 %a, %i
 ret i64 %b
}
define i64 @clear(ptr %place, i64 %count) {
 call void @llvm.memset.p0.i64(ptr %place, i8 0, i64 %count, i1 false)
 ret i64 0
}
define i64 @threads(i64 %i) {
 %n = call i32 @omp_get_max_threads()
 %m = zext i32 %n to i64
 ret i64 %m
}
define double @scaled(double %x) {
 %y = fmul double %x, 0x400921FB54442D18
 ret double %y
}
"""
NAMES = ["sum", "clear", "threads", "scaled"]


def code(text: str = TEXT) -> bytes:
    return llvm.object_code(text, host.features(), 2, llvm.EVERY)


def test_functions_have_the_results_that_llvm_gives_them() -> None:
    by_llvm = compiler._loaded_by_llvm(code(), NAMES)
    memory, addresses = object_code.loaded(code(), host.symbols(), NAMES)
    whole = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    for name in ("sum", "threads"):
        functions = whole(by_llvm.address(name)), whole(addresses[name])
        assert [functions[0](i) for i in range(4)] == [functions[1](i) for i in range(4)]
    assert whole(addresses["sum"])(2) == 9
    scaled = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(addresses["scaled"])
    assert scaled(2.0) == 2 * 3.141592653589793
    numbers = (ctypes.c_char * 100)(*[7] * 100)
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(addresses["clear"])(numbers, 60)
    assert bytes(numbers) == bytes(60) + bytes([7]) * 40
    assert memory


UNKNOWN = (
    "declare i64 @no_such_function()\ndefine i64 @go() {\n %x = call i64 @no_such_function()\n ret i64 %x\n}"
)
WRITABLE = "@kept = internal global i64 3\ndefine i64 @go() {\n %x = load i64, ptr @kept\n" \
    " %y = add i64 %x, 1\n store i64 %y, ptr @kept\n ret i64 %x\n}"  # fmt: skip


@pytest.mark.parametrize("text", [UNKNOWN, WRITABLE])
def test_what_is_not_known_is_left_to_llvm(text) -> None:
    with pytest.raises(object_code.Unsupported):
        object_code.loaded(code(text), host.symbols(), ["go"])


def test_llvm_loads_what_is_left_to_it() -> None:
    module = compiler._loaded(code(WRITABLE), ["go"])
    go = ctypes.CFUNCTYPE(ctypes.c_int64)(module.address("go"))
    assert [go(), go()] == [3, 4]


@pytest.mark.parametrize("damage", ["empty", "short", "another machine", "no such function"])
def test_a_file_that_is_another_is_refused(damage) -> None:
    found, names = code(), NAMES
    if damage == "no such function":
        names = ["difference"]
    else:
        machine = found[:18] + b"\xb7\x00" + found[20:]
        found = {"empty": b"", "short": found[: len(found) // 2], "another machine": machine}[damage]
    with pytest.raises(object_code.Unsupported):
        object_code.loaded(found, host.symbols(), names)


def test_other_machines_are_left_to_llvm(monkeypatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(object_code.Unsupported):
        object_code.loaded(code(), host.symbols(), NAMES)


PROGRAM = """
import sys
import torch
from flowstone.native.clusters import kernels
from flowstone.native.codegen import llvm
from flowstone.native.networks import normalization_kernels as native
assert kernels.is_on()
y, _ = native.normalize(torch.ones(2, 4), torch.ones(4), torch.ones(4), 0.1)
assert torch.equal(y, torch.ones(2, 4))
print(bool(llvm._found))
"""


def test_a_second_process_does_not_load_llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("FLOWSTONE_NATIVE", "1")
    command = [sys.executable, "-c", PROGRAM]
    said = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(2)]
    assert said == ["True\n", "False\n"]
