"""Sums of picked rows by machine code, beside ATen's in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.arrays import segment_sums
from flowstone.native.codegen import host
from flowstone.ops.numbers import segment_reductions
from flowstone.ops.sparse import sparse_segment_reductions

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
SHAPES = [  # rows, columns, elements, segments
    (5, 3, 7, 4),
    (50, 1, 100, 60),
    (30, 67, 900, 40),
    (3000, 33, 20_000, 900),  # by a team
    (10, 130, 5000, 2),
    (4, 0, 5, 3),
    (1, 8, 1, 1),
]
KINDS = [torch.float32, torch.float64, torch.int32, torch.int8, torch.int64]
INDICES = [(torch.int32, torch.int64), (torch.int64, torch.int32)]


def code(how: str, *types: torch.dtype) -> Any:
    """The functions."""
    found = segment_sums.segment_sums(how, *types)
    assert found is not None
    return found


def given(shape: tuple[int, ...], kinds: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices, and segments' numbers that do not fall; some segments are empty."""
    rows, _, count, segments = shape
    chance = torch.Generator().manual_seed(sum(shape))
    indices = torch.randint(rows, (count,), generator=chance).to(kinds[0])
    return indices, torch.randint(segments, (count,), generator=chance).sort()[0].to(kinds[1])


def scales(how: str, ids: torch.Tensor, segments: int) -> Any:
    """What each segment's sum is multiplied by."""
    sizes = torch.bincount(ids, minlength=segments).clamp(min=1)[:, None].double()
    return {"sum": 1, "mean": 1 / sizes, "sqrtn": sizes.rsqrt()}[how]


@pytest.mark.parametrize("how", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kinds", INDICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_and_their_gradients(shape: Any, kinds: Any, dtype: torch.dtype, how: str) -> None:
    if how != "sum" and not dtype.is_floating_point:
        assert segment_sums.segment_sums(how, dtype, *kinds) is None
        return
    rows, columns, _, segments = shape
    segments += 3  # the last ones are empty
    indices, ids = given(shape, kinds)
    functions = code(how, dtype, *kinds)
    data = (torch.randn(rows, columns) * 100).to(dtype)
    flow = (torch.randn(segments, columns) * 100).to(dtype)
    wide = torch.float64 if dtype.is_floating_point else torch.int64
    scale = scales(how, ids, segments)
    sums = torch.zeros(segments, columns, dtype=wide).index_add_(0, ids.long(), data[indices.long()].to(wide))
    flows = (flow.to(wide) * scale)[ids.long()]
    spread = torch.zeros(rows + 2, columns, dtype=wide).index_add_(0, indices.long(), flows)
    for found, expected in (
        (functions.reduce(data, indices, ids, segments), sums * scale),
        (functions.spread(flow, indices, ids, rows + 2), spread),
    ):
        assert found.dtype is dtype
        if dtype.is_floating_point:
            bound = 1e-5 if dtype is torch.float32 else 1e-13
            limit = float(expected.abs().max()) if expected.numel() else 0.0
            torch.testing.assert_close(found.to(wide), expected, rtol=bound, atol=bound * limit)
        else:
            assert torch.equal(found, expected.to(dtype))


@pytest.mark.skipif(not host.has_halves(), reason="the processor has no float16")
@pytest.mark.parametrize("how", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("shape", SHAPES)
def test_float16_is_rounded_as_by_aten(shape: Any, how: str) -> None:
    rows, columns, _, segments = shape
    indices, ids = given(shape, INDICES[0])
    functions = code(how, torch.float16, *INDICES[0])
    data, flow = torch.randn(rows, columns).half(), torch.randn(segments, columns).half()
    scale: Any = 1
    if how != "sum":  # of the last few of a vector ATen rounds twice
        scale = sparse_segment_reductions.segment_scale(how, data.float(), ids, segments).half()
    sums = segment_reductions.sum_rows(data.index_select(0, indices), ids, segments) * scale
    flows = (flow * scale).index_select(0, ids)
    assert torch.equal(functions.reduce(data, indices, ids, segments), sums)
    spread = segment_reductions.sum_rows(flows, indices, rows)
    assert torch.equal(functions.spread(flow, indices, ids, rows), spread)


@pytest.mark.parametrize("how", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("kinds", INDICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_the_picked_rows(shape: Any, kinds: Any, how: str) -> None:
    rows, columns, _, segments = shape
    indices, ids = given(shape, kinds)
    flow = torch.randn(segments, columns)
    functions = code(how, torch.float32, *kinds)
    values, found = functions.spread_picked(flow, indices, ids, rows)
    assert found.dtype is kinds[0]
    assert found.tolist() == sorted(set(indices.tolist()))
    assert torch.equal(values, functions.spread(flow, indices, ids, rows)[found.long()])


@pytest.mark.parametrize(
    ("name", "number"), [("indices", 30), ("indices", -1), ("ids", 43), ("ids", -5), ("ids", -1)]
)
@pytest.mark.parametrize("at", [0, 1, 450, 899])
def test_what_cannot_be(name: str, number: int, at: int) -> None:
    indices, ids = given(SHAPES[2], INDICES[0])
    (indices if name == "indices" else ids)[at] = number
    functions = code("mean", torch.float32, *INDICES[0])
    assert functions.reduce(torch.ones(30, 67), indices, ids, 43) is None
    assert functions.spread(torch.ones(43, 67), indices, ids, 30) is None
    assert functions.spread_picked(torch.ones(43, 67), indices, ids, 30) is None


@pytest.mark.parametrize("count", [4, 60_000])
def test_segments_that_fall(count: int) -> None:
    ids = torch.arange(count).div(2, rounding_mode="floor").int()
    ids[count // 2 :] -= 2
    indices = torch.zeros(count, dtype=torch.int64)
    functions = code("sum", torch.float32, torch.int64, torch.int32)
    assert functions.reduce(torch.ones(1, 8), indices, ids, count) is None
    assert functions.spread(torch.ones(count, 8), indices, ids, 1) is None


def test_infinities_and_nan_stay_in_their_segments() -> None:
    data = torch.tensor([[1.0, np.inf], [np.nan, 2.0], [3.0, 4.0]])
    indices, ids = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 0, 2, 3], dtype=torch.int32)
    found = code("mean", torch.float32, torch.int64, torch.int32).reduce(data, indices, ids, 4)
    expected = torch.tensor([[2, np.inf], [0, 0], [np.nan, 2], [3, 4]])
    torch.testing.assert_close(found, expected, equal_nan=True)


OPS = [tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n]


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("function", OPS)
def test_sessions_give_the_same_with_and_without(
    monkeypatch: pytest.MonkeyPatch, function: Any, numbered: bool
) -> None:
    """Values, gradients, and the errors of a wrong index and of segments out of order."""
    chance = np.random.default_rng(0)
    data = chance.normal(size=(20, 3, 5)).astype("float32")
    results = []
    for native in (0, 1):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            rows = tf.constant(data)
            indices, ids = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
            found = function(rows, indices, ids, num_segments=9 if numbered else None)
            flow = tf.gradients(tf.reduce_sum(found**2), rows)[0]
            fed = {indices: [3, 3, 19, 0, 7], ids: [0, 0, 2, 5, 5]}
            results.append(session.run([found, flow], fed))
            assert results[-1][0].shape == (9 if numbered else 6, 3, 5)
            for wrong in ({indices: [3, 3, 20, 0, 7]}, {ids: [0, 3, 2, 5, 5]}, {ids: [-1, 0, 2, 5, 5]}):
                for fetch in (found, flow):
                    with pytest.raises(tf.errors.InvalidArgumentError):
                        session.run(fetch, {**fed, **wrong})
            empty = session.run(found, {indices: [], ids: []})
            assert empty.shape == (9 if numbered else 0, 3, 5)
            assert not empty.any()
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_other_types_have_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert segment_sums.segment_sums("sum", torch.complex64, torch.int32, torch.int32) is None
    assert segment_sums.segment_sums("sum", None, torch.int32, torch.int32) is None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert segment_sums.segment_sums("sum", torch.float32, torch.int32, torch.int32) is None


@pytest.mark.parametrize("how", ["sum", "mean", "min", "max", "prod"])
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("float16", "int64"),
        ("float32", "int32"),
        ("float64", "int64"),
        ("uint8", "int32"),
        ("int32", "int64"),
    ],
)
@pytest.mark.parametrize("shape", [each for each in SHAPES if each[1]])
def test_all_rows_reduced_as_by_aten(monkeypatch, shape: Any, dtype: str, kind: str, how: str) -> None:
    _, columns, count, _ = shape
    _, ids = given(shape, (torch.int32, getattr(torch, kind)))
    data = np.random.default_rng(count).normal(size=(count, columns)) * 3
    data = abs(data) if dtype == "uint8" else data
    data = data.astype(dtype)
    if dtype in ("float16", "float32") and how in ("min", "max"):
        data[count // 2, 0] = np.nan
    found = []
    for native in (0, 1):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(dtype, [count, columns])
            op = getattr(tf, f"segment_{how}")
            found.append(session.run(op(fed, ids.numpy()), {fed: data}))
    assert found[0].shape == found[1].shape
    if dtype == "float16":  # to the bit: each operation is rounded, in the order of the rows
        np.testing.assert_array_equal(*found)
    else:
        np.testing.assert_allclose(*found, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_means_of_integers_are_truncated(dtype: torch.dtype) -> None:
    """Of sums of both signs that wrap around, of more rows than the type counts, and of large numbers."""
    info = torch.iinfo(dtype)
    chance = torch.Generator().manual_seed(0)
    data = torch.randint(max(info.min, -(1 << 62)), min(info.max, 1 << 62), (700, 19), generator=chance).to(
        dtype
    )
    ids = torch.tensor([0] * 3 + [2] * 300 + [3] * 397, dtype=torch.int32)
    rows = segment_sums.segment_rows("mean", dtype, torch.int32)
    assert rows is not None
    assert torch.equal(rows(data, ids, 4), segment_reductions._mean_rows(data, ids, 4))


@pytest.mark.parametrize("how", ["min", "max"])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_nan_among_single_numbers_is_what_its_segment_has(how: str, place: int, dtype: str) -> None:
    data = torch.tensor([4.0, -5.0, 3.0, 7.0, -np.inf, 8.0], dtype=getattr(torch, dtype))
    data[place] = np.nan
    ids = torch.tensor([0, 0, 0, 2, 2, 2], dtype=torch.int32)
    rows = segment_sums.segment_rows(how, data.dtype, ids.dtype)
    assert rows is not None
    found = rows(data, ids, 3)
    expected = [np.nan, 0, -np.inf if how == "min" else 8]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=data.dtype), equal_nan=True)


@pytest.mark.parametrize(
    ("ids", "message"), [([1, 0], "not increasing"), ([-1, 0], ">= 0"), ([0, -5], "not incr")]
)
def test_numbers_that_cannot_be_are_refused_as_without(monkeypatch, ids, message) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    data = tf.placeholder_with_default([1.0, 2.0], [2])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(tf.segment_max(data, ids))


@pytest.mark.parametrize("how", ["sum", "prod", "min", "max"])
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("float16", "int64"),
        ("float32", "int32"),
        ("float64", "int64"),
        ("uint8", "int32"),
        ("int32", "int64"),
    ],
)
@pytest.mark.parametrize("shape", [*[each for each in SHAPES if each[1]], (9, 16, 30, 4), (9, 1, 30, 4)])
def test_rows_in_any_order_reduced_as_by_aten(shape: Any, dtype: str, kind: str, how: str) -> None:
    """To the bit; segments without rows and rows without a segment among them."""
    _, columns, count, segments = shape
    chance = torch.Generator().manual_seed(sum(shape))
    ids = torch.randint(segments, (count,), generator=chance).to(getattr(torch, kind))
    data = torch.randn((count, columns), generator=chance) * 3
    data = (data.abs() if dtype == "uint8" else data).to(getattr(torch, dtype))
    if data.is_floating_point():
        data[count // 2, 0], data[count // 3, -1] = np.nan, -np.inf
    expected = getattr(segment_reductions, f"{how}_rows")(data, ids, segments + 2)
    rows = segment_sums.unsorted_rows(how, data.dtype, ids.dtype)
    assert rows is not None
    assert torch.equal(rows(data, ids, segments + 2).nan_to_num(7), expected.nan_to_num(7))
    ids[:: max(count // 4, 1)] = -3
    left = ids >= 0
    expected = getattr(segment_reductions, f"{how}_rows")(data[left], ids[left], segments + 2)
    assert torch.equal(rows(data, ids, segments + 2).nan_to_num(7), expected.nan_to_num(7))
    ids[-1] = segments + 2
    assert rows(data, ids, segments + 2) is None


def test_rows_of_other_types_have_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert segment_sums.unsorted_rows("sum", torch.complex64, torch.int32) is None
    assert segment_sums.unsorted_rows("sum", None, torch.int32) is None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert segment_sums.unsorted_rows("sum", torch.float32, torch.int32) is None


@pytest.mark.parametrize("how", ["sum", "prod", "min", "max"])
def test_steps_over_unsorted_segments_are_the_same_with_and_without(monkeypatch, how: str) -> None:
    """Values and gradients, to the bit, and the error of a number that is too large."""
    chance, results = np.random.default_rng(3), []
    data = chance.normal(size=(400, 3, 5)).astype("float32")
    numbers = chance.integers(-1, 30, size=400).astype("int32")
    for native in (0, 1):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            rows, ids = tf.constant(data), tf.placeholder(tf.int32, [400])
            found = getattr(tf, f"unsorted_segment_{how}")(rows, ids, 40)
            flow = tf.gradients(tf.reduce_sum(found * tf.constant(data[:40])), rows)[0]
            results.append(session.run([found, flow], {ids: numbers}))
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 40 is out of range \[0, 40\)"):
                session.run(found, {ids: numbers + 11 * (numbers == 29)})
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("columns", [1, 7, 32, 300])
def test_picked_rows_in_any_order_are_added_as_by_aten(dtype: str, columns: int) -> None:
    """To the bit; indices or numbers that are none have no result."""
    chance = torch.Generator().manual_seed(columns)
    data = (torch.randn((9, columns), generator=chance) * 3).to(getattr(torch, dtype))
    indices = torch.randint(9, (400,), generator=chance)
    ids = torch.randint(-1, 6, (400,), generator=chance).int()
    strict, lenient = (
        segment_sums.picked_sums((data.dtype, ids.dtype, indices.dtype), x) for x in (False, True)
    )
    assert strict is not None and lenient is not None
    reduce = segment_sums.unsorted_rows("sum", data.dtype, ids.dtype)
    assert reduce is not None
    expected = reduce(data[indices], ids, 8)
    assert torch.equal(strict(data, indices, ids, 8), expected)
    assert torch.equal(lenient(data, indices, ids, 8), expected)
    assert strict(data, indices, ids, 5) is None and lenient(data, indices, ids, 5) is None
    indices[::5] = -2
    rows = data[indices.clamp(min=0)].index_fill_(0, (indices < 0).nonzero()[:, 0], 0)
    assert strict(data, indices, ids, 8) is None
    assert torch.equal(lenient(data, indices, ids, 8), reduce(rows, ids, 8))
    indices[0] = 9
    assert lenient(data, indices, ids, 8) is None


def test_picked_rows_of_other_types_have_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert segment_sums.picked_sums((torch.complex64, torch.int32, torch.int32), False) is None
    assert segment_sums.picked_sums((torch.float32, torch.int32, None), False) is None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert segment_sums.picked_sums((torch.float32, torch.int32, torch.int32), False) is None
