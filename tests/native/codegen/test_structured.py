"""Functions with loops: counting, conditions, masks and gathered vectors, against Python's own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch

from flowstone.native.codegen import compiler, host
from flowstone.native.codegen.structured import Code

LANES = (4, 8, 16)


def run(lanes: int, write: Callable[[Code], None], *tensors: torch.Tensor) -> None:
    """Compiles a function of these tensors' addresses and calls it."""
    declarations: dict[str, str] = {}
    e = Code("go", [f"ptr x{i}" for i in range(len(tensors))], lanes, declarations, is_public=True)
    write(e)
    function = e.text()
    module = compiler.compiled("\n".join([*declarations.values(), function]), ["go"])
    kind: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(tensors))
    kind(module.address("go"))(*[x.data_ptr() for x in tensors])


def test_loops_and_conditions_count() -> None:
    found = torch.zeros(5, dtype=torch.int64)

    def write(e: Code) -> None:
        total = e.variable("i64", "0")
        with e.loop(2, 20, 3) as i, e.loop(0, i) as j, e.when(e.within(e.sub(j, 3), 4)):
            e.set("i64", total, e.add(e.get("i64", total), e.mul(i, j)))
        e.set("i64", "%x0", e.get("i64", total))
        e.set("i64", e.at("%x0", 1, "i64"), e.quotient(e.word("%x0", 0), 7))
        e.set("i64", e.at("%x0", 2, "i64"), e.rest(e.word("%x0", 0), 7))
        e.set("i64", e.at("%x0", 3, "i64"), e.least(e.word("%x0", 0), 5))
        e.set("i64", e.at("%x0", 4, "i64"), e.most(-3, e.sub(0, 9)))

    run(1, write, found)
    total = sum(i * j for i in range(2, 20, 3) for j in range(i) if 3 <= j < 7)
    assert found.tolist() == [total, total // 7, total % 7, 5, -3]


@pytest.mark.parametrize("start", [1, 6, 27, 1024])
def test_repeating_ends_where_something_holds(start: int) -> None:
    """The steps of Collatz's sequence until 1, or until 10; loops within it count as ever."""
    found = torch.zeros(2, dtype=torch.int64)

    def write(e: Code) -> None:
        number, steps, inner = (e.variable("i64", value) for value in (str(start), "0", "0"))
        with e.repeat() as leave:
            here = e.get("i64", number)
            leave(e.let(f"icmp eq i64 {here}, 1"))
            leave(e.let(f"icmp eq i64 {here}, 10"))
            e.set("i64", steps, e.add(e.get("i64", steps), 1))
            with e.loop(0, 3):
                e.set("i64", inner, e.add(e.get("i64", inner), 1))
            is_odd = e.let(f"icmp eq i64 {e.rest(here, 2)}, 1")
            after = (e.add(e.mul(here, 3), 1), e.quotient(here, 2))
            e.set("i64", number, e.let(f"select i1 {is_odd}, i64 {after[0]}, i64 {after[1]}"))
        e.set("i64", "%x0", e.get("i64", steps))
        e.set("i64", e.at("%x0", 1, "i64"), e.get("i64", inner))

    run(1, write, found)
    number, steps = start, 0
    while number not in (1, 10):
        number, steps = (3 * number + 1 if number % 2 else number // 2), steps + 1
    assert found.tolist() == [steps, 3 * steps]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("count", [0, 1, 3, 4, 100])
def test_masks_read_and_write_the_first_lanes_only(lanes, count) -> None:
    source, target = torch.arange(1.0, 17.0), torch.full((16,), -1.0)

    def write(e: Code) -> None:
        value = e.fma(e.read("%x0", e.mask(str(count))), e.number(2.0), e.splat(e.get("float", "%x0")))
        e.write("%x1", value, e.mask(str(count + 1)))

    run(lanes, write, source, target)
    seen = [2 * source[i].item() + 1 if i < count else 1.0 for i in range(16)]
    assert target.tolist() == [seen[i] if i < min(count + 1, lanes) else -1.0 for i in range(16)]


@pytest.mark.parametrize("lanes", LANES)
def test_gathered_elements_lie_apart(lanes) -> None:
    source, target = torch.arange(0.0, 100.0), torch.zeros(lanes)
    run(lanes, lambda e: e.write("%x1", e.gather("%x0", "5", e.mask("3"))), source, target)
    assert target.tolist() == [0.0, 5.0, 10.0] + [0.0] * (lanes - 3)


def test_arithmetic_and_places() -> None:
    x, y = torch.tensor([3.0, 5.0]), torch.zeros(3)

    def write(e: Code) -> None:
        held = e.array("float", 2)
        a, b = e.read("%x0"), e.read(e.at("%x0", 1))
        e.set("float", e.at(held, 1), e.minus(a, b))
        e.write("%x1", e.plus(a, b))
        e.write(e.at("%x1", 1), e.times(a, b))
        e.write(e.at("%x1", 2), e.get("float", e.at(held, 1)))

    run(1, write, x, y)
    assert y.tolist() == [8.0, 15.0, -2.0]


def test_only_public_functions_are_found_by_name() -> None:
    hidden, shown = (Code("f", ["ptr a"], 1, {}, is_public=public).text() for public in (False, True))
    assert "internal" in hidden and "internal" not in shown
    assert host.lanes() in LANES
