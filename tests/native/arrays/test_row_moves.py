"""Rows moved by machine code: each function against NumPy, a shuffling queue with it and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine_code
from flowstone.native import offers
from flowstone.native.arrays.row_moves import RowMoves
from flowstone.ops.queues import queue_storage
from flowstone.ops.queues.queue_rows import KeptRows, Order
from flowstone.ops.queues.queue_storage import SINGLE, SlotStorage, join


@pytest.fixture(scope="module")
def moves() -> RowMoves:
    return RowMoves()


def at(array: Any) -> int:
    return array.ctypes.data


def test_the_order_is_that_of_exchanges_one_by_one(moves):
    random = np.random.default_rng(3)
    for size in (1, 2, 9, 300):
        first = int(random.integers(size))
        draws = random.random(size - first)
        slots = random.permutation(size)
        expected = slots.tolist()
        for i, draw in enumerate(draws, first):
            place = int(draw * (i + 1))
            expected[i], expected[place] = expected[place], expected[i]
        moves.mix(at(slots), first, size, at(draws))
        assert slots.tolist() == expected


def test_draws_next_to_one_stay_below_the_size(moves):
    slots, draws = np.arange(100), np.full(100, np.nextafter(1, 0))
    moves.mix(at(slots), 0, 100, at(draws))
    assert slots.tolist() == list(range(100))


@pytest.mark.parametrize("size", [0, 1, 3, 8, 100, 40_000])
def test_rows_are_copied_by_slots_and_addresses(moves, size):
    random = np.random.default_rng(size)
    rows, values = (random.integers(0, 255, (70, size), dtype=np.uint8) for _ in range(2))
    slots = random.permutation(70)
    out = np.empty((60, size), np.uint8)
    moves.pick(at(rows), at(slots), 60, size, at(out))
    assert np.array_equal(out, rows[slots[:60]])
    addresses = at(rows) + size * random.permutation(70)
    moves.collect(at(addresses), at(slots), 60, size, at(out))
    assert np.array_equal(out, rows[(addresses - at(rows))[slots[:60]] // max(size, 1)])
    expected = rows.copy()
    expected[slots[5:50]] = values[:45]
    moves.place(at(rows), at(slots) + 8 * 5, 45, size, at(values))
    assert np.array_equal(rows, expected)


def test_owners_are_counted_down(moves):
    addresses, owners, left = np.zeros(6, np.int64), np.full(6, -1), np.array([2, 0, 3])
    slots, ended = np.array([4, 1, 0, 5, 3]), np.zeros(4, np.int64)
    moves.note(at(addresses), at(owners), at(slots), 2, 1000, 12, 0)
    moves.note(at(addresses), at(owners), at(slots) + 16, 3, 5000, 12, 2)
    assert owners.tolist() == [2, 0, -1, 2, 0, 2]
    assert addresses.tolist() == [5000, 1012, 0, 5024, 1000, 5012]
    moves.release(at(owners), at(left), at(slots), 3, at(ended))
    assert (ended[: 1 + ended[0]].tolist(), left.tolist()) == ([1, 0], [0, 0, 2])
    assert owners.tolist() == [-1, -1, -1, 2, -1, 2]


# ---- storage


def batches(storage: SlotStorage, types: Any, seed: int) -> list[Any]:
    """What comes out of a random program of puts and takes."""
    random, out, number = np.random.default_rng(seed), [], 0
    for _ in range(60):
        count = int(random.integers(1, 40))
        rows = [torch.arange(number, number + count)]
        for shape, dtype in types:
            wide = rows[0].reshape(-1, *[1] * len(shape)).expand(count, *shape)
            rows.append(wide.to(dtype).contiguous() if random.random() < 0.5 else wide.to(dtype))
        number += count
        kind = random.integers(3)
        if kind == 0:
            for i in range(count):
                storage.put(tuple([each[i] for each in rows]), SINGLE, 0)
        elif kind == 1:
            storage.put(tuple(rows), 0, count // 2)
            storage.put(tuple(rows), count // 2, count)
        else:
            padded = [torch.cat([each, *[each] * 3]) for each in rows]
            storage.put(tuple([each[:count] for each in padded]), 0, count)
        while storage.size > 200 or (storage.size and random.random() < 0.4):
            chunk = storage.take(min(storage.size, int(random.integers(1, 50))))
            if random.random() < 0.1:
                storage.put_back(chunk)
            else:
                out.append(join(chunk))
    out.append(join(storage.take(storage.size)))
    assert sorted(torch.cat([each[0] for each in out]).tolist()) == list(range(number))
    return out


TYPES: list[Any] = [
    ((3, 7), torch.float32), ((100,), torch.bfloat16), ((), torch.int8), ((2, 2), torch.complex128),
    ((0, 2), torch.int32), ((5000,), torch.float64), ((33,), torch.bool),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_a_storage_gives_the_same_with_and_without(moves, monkeypatch, seed):
    shapes = [(), *[shape for shape, _ in TYPES]]
    results = []
    for late in (0, 10**9, 7):  # machine code from the first batch on, never, and after some
        asked = iter(range(10**9))
        monkeypatch.setattr(
            queue_storage, "row_moves", lambda late=late, asked=asked: moves if next(asked) >= late else None
        )
        storage = SlotStorage(shapes, 1000)
        storage._generator = np.random.default_rng(seed)
        results.append(batches(storage, TYPES, seed))
        assert (storage._moves is None) == (late > 100)
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            assert all(map(torch.equal, first, second))
    for drawn in results[0]:
        for part, (shape, dtype) in zip(drawn[1:], TYPES):
            wide = drawn[0].reshape(-1, *[1] * len(shape)).expand(-1, *shape)
            assert torch.equal(part, wide.to(dtype))


def test_blocks_are_kept_as_long_as_they_are_needed(moves):
    rows = KeptRows(torch.zeros(1, 100), (100,), moves)
    rows.grow(400)
    order, held, random = Order(np.arange(400)), 0, np.random.default_rng(1)
    for _ in range(200):
        batch = torch.rand(40, 100)
        rows.place(order, held, batch, 0, 40)
        held += 40
        random.shuffle(order.array[:held])
        while held > 300:
            held -= 30
            rows.gather(order, held, 30)
            assert rows._held == held
            assert rows._kept == sum(len(each) for each in rows._blocks if each is not None) <= 2 * held
    rows.gather(order, 0, held)
    assert rows._kept == 0 and not any(each is not None for each in rows._blocks)
    assert len(rows._blocks) <= 64


def test_a_view_of_much_is_copied(moves):
    much = torch.rand(1000, 100)
    rows, order = KeptRows(much, (100,), moves), Order(np.arange(8))
    rows.grow(8)
    part = much[10:14]
    rows.place(order, 0, part, 1, 4)
    expected = part[1:4].clone()
    much.zero_()
    assert torch.equal(rows.gather(order, 0, 3), expected)


def test_queues_ask_for_it(monkeypatch):
    monkeypatch.setattr(flags, "NATIVE", 2)
    offers.offer_all()
    assert isinstance(machine_code.row_moves(), RowMoves)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert machine_code.row_moves() is None
