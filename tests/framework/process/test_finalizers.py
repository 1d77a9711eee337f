"""`when_freed`: called once, by the object's end or never."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest

import forked
from flowstone.framework.process import finalizers
from flowstone.framework.process.finalizers import when_freed


class _Held:
    pass


def test_it_is_called_once_when_the_last_reference_goes() -> None:
    calls: list[object] = []
    held = _Held()
    other = held
    when_freed(held, calls.append, 1)
    del held
    assert calls == []
    del other
    assert calls == [1]


def test_undone_it_is_not_called_and_nothing_is_kept() -> None:
    calls: list[object] = []
    held = _Held()
    before = len(finalizers._living)
    undo = when_freed(held, calls.append, 1)
    undo()
    undo()
    del held
    assert calls == []
    assert len(finalizers._living) == before


def test_arrays_which_have_no_hash() -> None:
    calls: list[object] = []
    arrays = [np.zeros(2), np.zeros(2)]
    for number, array in enumerate(arrays):
        when_freed(array, calls.append, number)
    del array
    arrays.clear()
    assert sorted(map(str, calls)) == ["0", "1"]


def test_what_has_no_weak_references() -> None:
    with pytest.raises(TypeError, match="weak reference"):
        when_freed([], print)


def test_from_many_threads_while_another_goes_through_those_of_python() -> None:
    """`weakref.finalize` raises RuntimeError here: its registry changes while it is read at the exit."""
    calls: list[object] = []
    before = len(weakref.finalize._registry)  # type: ignore[attr-defined]

    def make() -> None:
        for number in range(1000):
            when_freed(_Held(), calls.append, number)

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 3000
    assert len(weakref.finalize._registry) == before  # type: ignore[attr-defined]


def test_at_the_exit_nothing_is_called() -> None:
    result = forked.run(
        code="""
        from flowstone.framework.process.finalizers import when_freed
        class Held: pass
        held = Held()
        when_freed(held, print, "freed")
        """.replace("\n        ", "\n")
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
