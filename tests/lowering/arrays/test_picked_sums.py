"""Picked rows that are added up: graph text, and the same bits without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags

NAME = "sum_picked_rows"


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)


def messages(shape: tuple[int, ...], numbers: str, dtype: str = "float32") -> tuple[Any, ...]:
    """Sums over the edges of a graph, with their gradient, and what is fed."""
    params = tf.placeholder(dtype, shape)
    sources, ends = tf.placeholder(numbers, [7]), tf.placeholder(numbers, [7])
    total = tf.unsorted_segment_sum(tf.gather(params, sources), ends, 4)
    return total, params, sources, ends


@pytest.mark.parametrize("numbers", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 18), (5, 2, 3), (5, 160)])
@pytest.mark.parametrize("ends", [[3, 1, 1, 0, 2, 3, 3], [3, -1, 1, -7, 0, 3, 3], [-1] * 7])
def test_sums_and_their_gradients(
    monkeypatch: pytest.MonkeyPatch, shape: Any, numbers: str, ends: Any
) -> None:
    total, params, sources, fed = messages(shape, numbers)
    flow = tf.convert_to_tensor(tf.gradients(tf.sin(total), params)[0])
    found = ops(text([total], [params, sources, fed], NAME))
    assert found[-1] == "_PickedSum" and "GatherV2" not in found
    feed = {params: np.random.randn(*shape), sources: [4, 0, 0, 1, 2, 4, 3], fed: ends}
    agree(monkeypatch, [total, flow], feed, NAME, fires=2, tolerance=0)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64"])
def test_other_types(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    total, params, sources, ends = messages((5, 3), "int32", dtype)
    feed = {params: np.random.randn(5, 3) * 9, sources: [4, 0, 0, 1, 2, 4, 3], ends: [3, 1, 1, 0, 2, 3, 3]}
    agree(monkeypatch, [total], feed, NAME, fires=1, tolerance=0)


def test_numbers_of_two_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    params, sources, ends = (
        tf.placeholder(t, d) for t, d in (("float32", [5, 2]), ("int64", [2, 3]), ("int32", [2, 3]))
    )
    total = tf.unsorted_segment_sum(tf.gather(params, sources), ends, 4)
    feed = {params: np.random.randn(5, 2), sources: [[4, 0, 0], [1, 2, 4]], ends: [[0, 1, -1], [3, 3, 0]]}
    agree(monkeypatch, [total], feed, NAME, fires=1, tolerance=0)


@pytest.mark.parametrize(
    ("sources", "ends", "name", "line"),
    [
        ([4, 0, 5, 1, 2, 4, 3], [3, 1, 1, 0, 2, 3, 3], "rows", "indices[2] = 5 is not in [0, 5)"),
        ([4, 0, -1, 1, 2, 4, 3], [3, 1, 1, 0, 2, 3, 3], "rows", "indices[2] = -1 is not in [0, 5)"),
        ([4, 0, 0, 1, 2, 4, 3], [3, 1, 4, 0, 2, 3, 3], "total", "segment_ids[2] = 4 is out of range [0, 4)"),
    ],
)
def test_wrong_numbers_fail_where_they_did(sources: Any, ends: Any, name: str, line: str) -> None:
    params = tf.placeholder(tf.float32, [5, 2])
    fed, numbers = tf.placeholder(tf.int32, [7]), tf.placeholder(tf.int32, [7])
    total = tf.unsorted_segment_sum(tf.gather(params, fed, name="rows"), numbers, 4, name="total")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as raised:
        session.run(total, {params: np.ones([5, 2]), fed: sources, numbers: ends})
    assert line in str(raised.value) and f"node {name} " in str(raised.value)
    assert raised.value.op is not None and raised.value.op.name == name


def test_rows_that_are_wanted_themselves_are_picked() -> None:
    total, params, sources, ends = messages((5, 3), "int32")
    rows = total.op.inputs[0]
    assert "_PickedSum" not in ops(text([total, rows], [params, sources, ends], NAME))
    axis = tf.unsorted_segment_sum(tf.gather(params, [0, 1], axis=1), [0, 1, 0, 1, 0], 4)
    assert "_PickedSum" not in ops(text([axis], [params], NAME))
