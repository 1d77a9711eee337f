"""Padded arrays and bands of matrices by machine code: beside ATen's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.arrays import framed_rows
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
TYPES = (torch.bool, torch.int16, torch.float32, torch.complex64)


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
def test_the_text_is_valid_and_has_its_functions(kind: str) -> None:
    assert shown_functions(framed_rows.framed_rows_code(kind, 8)) == set(framed_rows.PLACES)


@pytest.fixture
def of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framed_rows, "_SHORTEST", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # a single row is enough, too


def numbers(dtype: torch.dtype, *dims: int) -> torch.Tensor:
    x = torch.rand(dims, generator=torch.Generator().manual_seed(0)) * 100 + 1
    return x > 50 if dtype is torch.bool else x.to(dtype)


@pytest.mark.usefixtures("of_any_length")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    ("dims", "pairs"),
    [
        ((4, 300), [(1, 0), (0, 2)]),
        ((4, 37), [(0, 0), (3, 40)]),
        ((2, 3, 5), [(1, 2), (0, 1), (2, 0)]),
        ((2, 3, 4, 9), [(0, 0), (1, 1), (2, 3), (0, 0)]),
        ((2, 3, 4, 9), [(0, 0), (0, 0), (0, 0), (0, 0)]),
        ((2, 3, 4), [(0, 0), (2, 1), (0, 0)]),
        ((3, 4, 2, 5), [(2, 1), (0, 0), (1, 0), (0, 0)]),
        ((1, 1, 20), [(0, 3), (0, 0), (1, 1)]),
    ],
)
def test_padding(dtype: torch.dtype, dims: Any, pairs: Any) -> None:
    x, value = numbers(dtype, *dims), torch.tensor(3).to(dtype)
    code = framed_rows.FramedRows(x.itemsize)
    found = code.pad(x, pairs, value)
    assert found is not None
    flat = [n for pair in reversed(pairs) for n in pair]
    assert torch.equal(found, torch.constant_pad_nd(x, flat, value.item()))


@pytest.mark.usefixtures("of_any_length")
@pytest.mark.parametrize("dims", [(20, 20), (3, 9, 70), (3, 70, 9), (2, 2, 1, 5), (40, 1)])
@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (1, 2), (5, 0), (0, 70), (70, 1), (70, 70)])
def test_bands(dims: Any, lower: int, upper: int) -> None:
    x = numbers(torch.float32, *dims)
    found = framed_rows.FramedRows(4).band(x, min(lower, dims[-2]), min(upper, dims[-1]))
    assert found is not None
    assert torch.equal(found, x.triu(-lower).tril(upper))


@pytest.fixture
def past_the_caches(set_profile: Any) -> None:
    set_profile(streamed_copies=0)


JOINED = [
    (0, [(3, 5), (1, 5)]), (1, [(3, 5), (3, 300), (3, 1)]), (1, [(3, 2, 77), (3, 4, 77)]),
    (-1, [(2, 3, 40), (2, 3, 70)]), (0, [(40_000,), (3,), (70_001,)]),
]  # fmt: skip


@pytest.mark.usefixtures("of_any_length")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(("axis", "dims"), JOINED)
@pytest.mark.parametrize("streams", [False, True])
def test_joining(dtype: torch.dtype, axis: int, dims: Any, streams: bool, request: Any) -> None:
    if streams:
        request.getfixturevalue("past_the_caches")
    xs = [numbers(dtype, *each) for each in dims]
    code = framed_rows.FramedRows(xs[0].itemsize)
    found = code.join(xs, axis, False)
    assert found is not None and torch.equal(found, torch.cat(xs, axis))
    for new in range(xs[0].ndim + 1):
        stacked = code.join([xs[0]] * 3, new, True)
        assert stacked is not None and torch.equal(stacked, torch.stack([xs[0]] * 3, new))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("count", [0, 5, 100, 40_003])
def test_filling_past_the_caches(dtype: torch.dtype, count: int, past_the_caches: None) -> None:
    whole, value = numbers(dtype, count + 9), torch.tensor(3).to(dtype)
    expected = whole.clone()
    framed_rows.FramedRows(whole.itemsize).fill(whole[3 : 3 + count], value)
    expected[3 : 3 + count] = value
    assert torch.equal(whole, expected)


@pytest.mark.usefixtures("of_any_length", "past_the_caches")
def test_padding_and_bands_past_the_caches() -> None:
    x = numbers(torch.float32, 101, 203)
    for begin in range(3):
        for end in range(3):
            found = framed_rows.FramedRows(4).pad(x, [(1, 0), (begin, end)], torch.tensor(2.0))
            assert found is not None and torch.equal(found, torch.constant_pad_nd(x, [begin, end, 1, 0], 2.0))
    band = framed_rows.FramedRows(4).band(x, 30, 60)
    assert band is not None and torch.equal(band, x.triu(-30).tril(60))


def test_what_is_left_to_aten() -> None:
    code = framed_rows.FramedRows(4)
    pairs, zero = [(1, 1), (1, 1)], torch.zeros(())
    assert code.pad(torch.ones(100, 8), pairs, zero) is None  # short rows
    assert code.pad(torch.ones(300, 100).t(), pairs, zero) is None  # another layout
    assert code.band(torch.ones(100, 8), 1, 1) is None
    x = torch.ones(100, 80)
    assert code.join([torch.ones(100, 8)] * 2, 1, False) is None
    assert code.join([x.t(), x.t()], 1, False) is None
    assert code.join([x, torch.ones(99, 80)], 1, False) is None  # which ATen refuses
    assert code.join([x, torch.ones(100, 80, 1)], 1, False) is None
    assert code.join([x, torch.ones(100, 81)], 0, True) is None
    assert framed_rows.framed_rows(16) is None


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_share_the_rows(threads: int) -> None:
    x, before = numbers(torch.float32, 501, 801), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        padded = framed_rows.FramedRows(4).pad(x, [(1, 2), (3, 4)], torch.zeros(()))
        band = framed_rows.FramedRows(4).band(x, 3, 1)
    finally:
        torch.set_num_threads(before)
    assert padded is not None and torch.equal(padded, torch.constant_pad_nd(x, [3, 4, 1, 2]))
    assert band is not None and torch.equal(band, x.triu(-3).tril(1))


def test_steps_are_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    given, results = np.random.default_rng(0).normal(size=(200, 200)).astype("f"), []
    given[3, 4] = np.nan
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [200, 200])
            pairs = tf.placeholder(tf.int32, [2, 2])
            found = [
                tf.pad(x, [[1, 0], [2, 3]]),
                tf.pad(x, pairs, constant_values=2.5),
                tf.pad(x, pairs, constant_values=x[0, 0]),
                tf.matrix_band_part(x, 2, -1),
                tf.matrix_band_part(x, -1, 0),
                tf.matrix_band_part(x, 3, 1),
                tf.matrix_band_part(tf.cast(x, tf.complex64), 3, 1),
            ]
            results.append(session.run(found, {x: given, pairs: [[0, 4], [5, 6]]}))
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


def test_steps_join_large_arrays_by_it(monkeypatch: pytest.MonkeyPatch, past_the_caches: None) -> None:
    made = []
    join = framed_rows.FramedRows.join
    monkeypatch.setattr(framed_rows.FramedRows, "join", lambda *args: made.append(join(*args)) or made[-1])
    monkeypatch.setattr(flags, "NATIVE", 2)
    given = np.random.default_rng(0).normal(size=(3, 20_000)).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3, 20_000])
        found = [
            tf.concat([x, x], 0),
            tf.concat([x, 2.0 * x], 1),
            tf.stack([x, x], 1),
            tf.concat([x, x[:, :1]], 1),
        ]
        joined = session.run(found, {x: given})
    assert [each is not None for each in made].count(True) == 3  # the last has short rows
    expected = [np.concatenate([given] * 2), np.concatenate([given, 2 * given], 1), np.stack([given] * 2, 1)]
    for one, other in zip(joined, [*expected, np.concatenate([given, given[:, :1]], 1)]):
        np.testing.assert_array_equal(one, other)
