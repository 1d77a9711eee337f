"""Functions with machine code of their own text: compiled once for equal keys, later where that is wanted."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flowstone.framework import flags
from flowstone.native import kernels, machine_functions
from flowstone.native.machine_functions import MachineFunction

TEXT = "define ptr @same(ptr %self, ptr %args, i64 %n) {\n call void @Py_IncRef(ptr %self)\n ret ptr %self\n}"
TEXT += "\ndeclare void @Py_IncRef(ptr)"


def other(*arguments: Any) -> str:
    return "other"


def test_equal_keys_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_functions, "_modules", {})
    asked: list[int] = []

    def text() -> str:
        asked.append(1)
        return TEXT

    functions = [MachineFunction("same", "key", text, other) for _ in range(3)]
    assert asked == [1] and all(each() is other for each in functions)


def test_threads_that_compile_the_same_share_code_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is asked for by both before either has a module."""
    monkeypatch.setattr(machine_functions, "_modules", {})
    both, begins = threading.Barrier(2), []
    make = machine_functions.builtin

    def noted(name: str, address: int, function: Any) -> Any:
        begins.append(address)
        return make(name, address, function)

    def text() -> str:
        both.wait(20)
        return TEXT

    monkeypatch.setattr(machine_functions, "builtin", noted)
    with ThreadPoolExecutor(2) as pool:
        functions = list(pool.map(lambda _: MachineFunction("same", "shared", text, other), range(2)))
    (module,) = machine_functions._modules.values()
    assert begins == [module.address("same")] * 2
    assert all(each() is other for each in functions)


def test_code_takes_its_place_after_the_second_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    may_compile = threading.Event()

    def text() -> str:
        may_compile.wait(20)
        return TEXT

    function = MachineFunction("same", "later", text, other)
    names: dict[str, Any] = {"f": function}
    function.replace_in(names, "f")
    assert function() == "other" and names["f"] is function
    assert function() == "other"
    may_compile.set()
    kernels.wait_until_compiled()
    assert function.is_compiled and names["f"] is not function and names["f"]() is other
