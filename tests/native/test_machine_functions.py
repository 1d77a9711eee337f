"""Functions with machine code of their own text: compiled once for equal keys, later where that is wanted."""

from __future__ import annotations

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


def test_code_takes_its_place_after_the_second_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    function = MachineFunction("same", "later", lambda: TEXT, other)
    names: dict[str, Any] = {"f": function}
    function.replace_in(names, "f")
    assert function() == "other" and names["f"] is function
    assert function() == "other"
    kernels.wait_until_compiled()
    assert function.is_compiled and names["f"] is not function and names["f"]() is other
