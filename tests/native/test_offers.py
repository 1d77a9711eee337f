"""Every slot that kernels ask is filled."""

from __future__ import annotations

from flowstone.framework.machine import array_code, image_code, machine_code, network_code, record_code
from flowstone.framework.machine.machine_code import Slot
from flowstone.native.offers import offer_all


def test_every_slot_is_filled(monkeypatch) -> None:
    modules = (array_code, image_code, machine_code, network_code, record_code)
    slots = {
        name: each for module in modules for name, each in vars(module).items() if isinstance(each, Slot)
    }
    assert len(slots) > 10
    for each in slots.values():
        monkeypatch.setattr(each, "_ask", None)
    offer_all()
    assert [name for name, each in slots.items() if each._ask is None] == []
