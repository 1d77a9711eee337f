"""When Python's garbage collector is paused, and what is walked afterwards."""

from __future__ import annotations

import gc

import pytest

from flowstone.framework.process import collector


@pytest.mark.parametrize("many", [False, True])
def test_many_objects_are_walked_once(many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Afterwards it is among the oldest, and a program without the collector has nothing walked."""
    monkeypatch.setattr(collector, "_MANY_NEW", 100 if many else 10**9)
    with collector.paused():
        made = [[i] for i in range(5000)]
        assert not gc.isenabled()
    assert gc.isenabled()
    oldest = {id(each) for each in gc.get_objects(generation=2)}
    assert all((id(each) in oldest) == many for each in made)


def test_a_program_without_the_collector_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_MANY_NEW", 0)
    gc.disable()
    try:
        with collector.paused():
            made = [[i] for i in range(10)]
        assert not gc.isenabled() and all(gc.is_tracked(each) for each in made)
        assert not {id(each) for each in made} & {id(each) for each in gc.get_objects(generation=2)}
    finally:
        gc.enable()
