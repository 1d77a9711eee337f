"""Functions with machine code of their own text: compiled once for equal keys, later where that is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowstone.framework import flags
from flowstone.native import kernels
from flowstone.native.machine_functions import MachineFunction

TEXT = "define ptr @same(ptr %self, ptr %args, i64 %n) {\n call void @Py_IncRef(ptr %self)\n ret ptr %self\n}"
TEXT += "\ndeclare void @Py_IncRef(ptr)"


def other(*arguments: Any) -> str:
    return "other"


def test_equal_keys_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_modules", {})
    asked: list[int] = []

    def text() -> str:
        asked.append(1)
        return TEXT

    functions = [MachineFunction("same", "key", text, other) for _ in range(3)]
    assert asked == [1] and all(each() is other for each in functions)


def test_code_takes_its_place_once_it_is_the_best(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_ATEN_CALLS", 1)
    for is_kept in (False, True):
        monkeypatch.setattr(kernels, "_modules", {})
        monkeypatch.setattr(kernels, "_quick_modules", {})
        function = MachineFunction("same", "later", lambda: TEXT, other)
        function.begin_by_aten()
        names: dict[str, Any] = {"f": function}
        function.replace_in(names, "f")
        assert function() == "other" and not function.is_compiled
        assert function() is other and (names["f"] is not function) == is_kept
        assert function() is other
        kernels.wait_until_compiled()
        assert names["f"] is not function and names["f"]() is other
