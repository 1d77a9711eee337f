"""What the executor's Switches and Merges do with their arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from flowstone.runtime.execution.executor import DEAD, SWITCH
from flowstone.runtime.execution.primitives import prepared, primitive_call


def unit(**fields: Any) -> Any:
    return SimpleNamespace(**{"kind": "", "buffers": (), "copies": (), "names_place": False, **fields})


def test_most_hand_on_their_arguments_without_a_call() -> None:
    assert primitive_call(unit()) is None


def test_a_switch_gives_its_value_to_one_side() -> None:
    call = primitive_call(unit(kind=SWITCH))
    assert call(None, "value", True) == (DEAD, "value")
    assert call(None, "value", False) == ("value", DEAD)


def test_a_merge_that_is_asked_for_it_names_the_input() -> None:
    value, place = primitive_call(unit(names_place=True))(None, (5.0, 1))
    assert value == 5.0 and place.dtype is torch.int32 and place.item() == 1


def test_variables_are_read_and_what_may_change_is_copied() -> None:
    variable, kept = SimpleNamespace(tensor=torch.ones(2)), torch.zeros(2)
    asked = unit(buffers=(0,), copies=(1,))
    read, copy = prepared(asked, (variable, kept))
    assert read is variable.tensor and torch.equal(copy, kept) and copy is not kept
    on, off = primitive_call(unit(kind=SWITCH, buffers=(0,)))(None, variable, False)
    assert on is variable.tensor and off is DEAD
    assert primitive_call(asked)(None, variable, kept)[0] is variable.tensor
