"""Every slot that kernels ask is filled."""

from __future__ import annotations

from flowstone.framework.machine import machine_code
from flowstone.framework.machine.machine_code import Slot
from flowstone.native.offers import offer_all


def test_every_slot_is_filled(monkeypatch) -> None:
    slots = {name: each for name, each in vars(machine_code).items() if isinstance(each, Slot)}
    assert len(slots) > 10
    for each in slots.values():
        monkeypatch.setattr(each, "_ask", None)
    offer_all()
    assert [name for name, each in slots.items() if each._ask is None] == []
