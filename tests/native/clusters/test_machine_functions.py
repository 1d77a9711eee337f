"""Functions with machine code of their own text: compiled once for equal keys, later where that is wanted."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from flowstone.framework import flags
from flowstone.native.clusters import kernels
from flowstone.native.clusters.machine_functions import MachineFunction
from flowstone.native.codegen import making
from flowstone.native.codegen.loaded_modules import LoadedModules

TEXT = "define ptr @same(ptr %self, ptr %args, i64 %n) {\n call void @Py_IncRef(ptr %self)\n ret ptr %self\n}"
TEXT += "\ndeclare void @Py_IncRef(ptr)"


def other(*arguments: Any) -> str:
    return "other"


def test_equal_keys_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
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
        monkeypatch.setattr(kernels, "_modules", LoadedModules())
        function = MachineFunction("same", "later", lambda: TEXT, other)
        function.begin_by_aten()
        names: dict[str, Any] = {"f": function}
        function.replace_in(names, "f")
        assert function() == "other" and not function.is_compiled
        assert function() is other and (names["f"] is not function) == is_kept
        assert function() is other
        making.wait_until_made()
        assert names["f"] is not function and names["f"]() is other


class Work(NamedTuple):
    """A key that says how much work a call is."""

    work: float


@pytest.mark.parametrize(
    "part, calls, awaits", [(0.5, 30, False), (1, 30, True), (20, 5, True), (1e3, 1, True)]
)
def test_more_work_begins_sooner_and_by_the_best_code(
    part: float, calls: int, awaits: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, set_profile
) -> None:
    set_profile(cluster_much=1e6)
    monkeypatch.setattr(flags, "NATIVE", 1)
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    monkeypatch.setattr(MachineFunction, "make_better", lambda self: None)  # the thread makes nothing
    function = MachineFunction("same", Work(part * 1e6), lambda: TEXT, other)
    function.begin_by_aten()
    assert [function() for _ in range(calls)] == ["other"] * calls and not function.is_compiled
    assert function() is other and function._is_quick != awaits


def test_threads_that_compile_the_same_share_code_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """One makes it while the other waits."""
    asked, begins = threading.Semaphore(0), []
    make = kernels.builtin

    def noted(name: str, module: Any, entry: str, function: Any) -> Any:
        begins.append(module)
        return make(name, module, entry, function)

    class Noted(LoadedModules):
        def found(self, key: Any, quickly: bool) -> Any:
            asked.release()
            return super().found(key, quickly)

    def text() -> str:
        for _ in range(3):  # the other has looked, and this one twice
            assert asked.acquire(timeout=20)
        texts.append(TEXT)
        return TEXT

    texts: list[str] = []
    monkeypatch.setattr(kernels, "builtin", noted)
    monkeypatch.setattr(kernels, "_modules", Noted())
    with ThreadPoolExecutor(2) as pool:
        functions = list(pool.map(lambda _: MachineFunction("same", "shared", text, other), range(2)))
    (module,) = kernels._modules._best.values()
    assert len(texts) == 1
    assert begins == [module] * 2
    assert all(each() is other for each in functions)


def test_the_best_code_may_be_begun_before_the_first_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    function = MachineFunction("same", "at first", lambda: TEXT, other)
    names: dict[str, Any] = {"f": function}
    function.replace_in(names, "f")
    function.begin_by_best()
    making.wait_until_made()
    assert [path.suffixes for path in tmp_path.rglob("*.o")] == [[".o"]]  # none that was made quickly
    assert function() is other and function.is_compiled and names["f"] is not function
