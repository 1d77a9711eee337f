"""Ragged tensors in variants: both ways, by rows, with gradients, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import registry
from flowstone.ops.ragged import ragged_rows

pytestmark = pytest.mark.usefixtures("graph")
VALUES = np.arange(10, dtype=np.float32).reshape(5, 2)
OUTER, INNER = [0, 2, 3], [0, 2, 2, 5]


def splits(*rows: list[int]) -> list[Any]:
    return [tf.constant(each, tf.int64) for each in rows]


def packed(parts: list[Any], values: Any, batched: bool) -> Any:
    return registry["RaggedTensorToVariant"](parts, values, batched_input=batched, Tsplits=tf.int64)


def unpacked(variant: Any, given: int, found: int, dtype: Any = tf.float32, kind: Any = tf.int64) -> Any:
    ends, values = registry["RaggedTensorFromVariant"].several(
        variant, input_ragged_rank=given, output_ragged_rank=found, Tvalues=dtype, Tsplits=kind
    )
    return [*ends, values]


def run(outputs: Any) -> list[Any]:
    with tf.Session() as session:
        return [each.tolist() for each in session.run(outputs)]


@pytest.mark.parametrize(("batched", "given"), [(False, 2), (False, -1), (True, 1), (True, -1)])
def test_what_went_in_comes_out(batched: bool, given: int) -> None:
    variant = packed(splits(OUTER, INNER), VALUES, batched)
    assert variant.shape.as_list() == ([2] if batched else [])
    assert run(unpacked(variant, given, 2)) == [OUTER, INNER, VALUES.tolist()]


def test_rows_of_dense_values_become_rows() -> None:
    assert run(unpacked(packed([], VALUES, True), 0, 1)) == [[0, 2, 4, 6, 8, 10], list(range(10))]
    assert run(unpacked(packed([], VALUES, False), 0, 0)) == [VALUES.tolist()]
    words = np.array([b"a", b"b", b"c"], object)
    variant = packed(splits([0, 1, 1, 3]), words, True)
    assert run(unpacked(variant, 0, 1, tf.string)) == [[0, 1, 1, 3], [b"a", b"b", b"c"]]


def test_variants_are_stacked_and_sliced() -> None:
    rows = packed(splits(OUTER, INNER), VALUES, True)
    assert run(unpacked(rows[0], 1, 1)) == [[0, 2, 2], VALUES[:2].tolist()]
    assert run(unpacked(rows[:0], 1, 2)) == [[0], [0], []]
    both = run(unpacked(tf.stack([rows, rows]), 1, 3))
    assert both[:3] == [[0, 2, 4], [0, 2, 3, 5, 6], [0, 2, 2, 5, 7, 7, 10]]
    assert both[3] == [*VALUES.tolist(), *VALUES.tolist()]


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("parts", [(), (INNER,), (OUTER, INNER)])
def test_gradients_flow_through(batched: bool, parts: tuple[list[int], ...]) -> None:
    values = tf.constant(VALUES)
    variant = packed(splits(*parts), values, batched)
    found = unpacked(variant, len(parts) - (batched and bool(parts)), len(parts) + (batched and not parts))[
        -1
    ]
    weights = tf.reshape(tf.range(10.0), tf.shape(found))
    assert run(tf.gradients(found * weights, values)) == [VALUES.tolist()]


def test_what_does_not_fit_is_refused() -> None:
    variant = packed(splits(OUTER, INNER), VALUES, False)
    with tf.Session() as session:
        beyond, scalar = packed(splits([0, 1]), VALUES, False), packed([], 1.0, False)
        wrong = [unpacked(variant, 1, 1), unpacked(variant, 2, 2, tf.int32)]
        wrong += [unpacked(variant, 2, 2, kind=tf.int32), unpacked(beyond, 1, 1), unpacked(scalar, 0, 0)]
        for outputs in wrong:
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(outputs)
    with pytest.raises(ValueError, match="rank 0"):
        unpacked(packed(splits(OUTER), VALUES, True), 1, 1)
    with pytest.raises(ValueError, match="rank 1"):
        packed([], 1.0, True)


def test_indices_of_other_ranks_are_refused() -> None:
    gather = registry["RaggedGather"]
    with pytest.raises(ValueError, match="OUTPUT_RAGGED_RANK"):
        gather.several(splits(INNER), VALUES, [0], OUTPUT_RAGGED_RANK=2)
    indices = tf.placeholder(tf.int32)
    found = gather.several(splits(INNER), VALUES, indices, OUTPUT_RAGGED_RANK=2)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="OUTPUT_RAGGED_RANK"):
        session.run(found, {indices: [0]})


def test_functions_write_tensorflows_nodes() -> None:
    ragged = tf.RaggedTensor.from_row_splits(VALUES, INNER)
    made = {
        "RaggedGather": tf.gather(ragged, [1, 0]),
        "RaggedRange": tf.ragged.range([3, 1]),
        "RaggedTensorToSparse": ragged.to_sparse(),
        "RaggedTensorToTensor": ragged.to_tensor(),
    }
    kinds = [each.type for each in tf.get_default_graph().get_operations()]
    assert {kind: kinds.count(kind) for kind in made} == dict.fromkeys(made, 1)


@pytest.mark.parametrize("few", [0, 64])
def test_picked_rows_are_the_same_by_few_numbers_and_by_many(
    monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(ragged_rows, "_FEW", few)
    outer, inner, values = [0, 2, 2, 3], [0, 2, 3, 5], np.arange(5.0)
    expected = [[[0, 1], [2]], [], [[3, 4]]]
    with tf.Graph().as_default(), tf.Session() as session:
        given = [tf.placeholder(tf.int64, [None]) for _ in range(3)]
        rows = registry["RaggedGather"].several(given[:2], values, given[2], OUTPUT_RAGGED_RANK=2)

        def picked(outer: list[int], inner: list[int], indices: list[int]) -> list[list[list[float]]]:
            (first, second), found = session.run(list(rows), dict(zip(given, (outer, inner, indices))))
            parts = [found[a:b].tolist() for a, b in itertools.pairwise(second)]
            return [parts[a:b] for a, b in itertools.pairwise(first)]

        for indices in ([2, 0, 2], [1], [0, 1, 2, 1, 0], []):
            assert picked(outer, inner, indices) == [expected[i] for i in indices]
        for wrong in ([3], [-1], [0, 7]):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"is not in \[0, 3\)"):
                picked(outer, inner, wrong)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be sorted"):
            picked([0, 2, 1, 3], inner, [0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="must end with the number of values 5"):
            picked(outer, [0, 2, 3, 6], [0])


def test_rows_that_constants_pick_are_known_with_the_plan() -> None:
    outer, inner, values = [0, 2, 2, 3], [0, 2, 3, 5], np.arange(5.0)
    gather, fed = registry["RaggedGather"], tf.placeholder(tf.float64, [5])
    given = [tf.constant(each, tf.int64) for each in (outer, inner)]
    with tf.Session() as session:
        found = gather.several(given, fed, [2, 0, 2], OUTPUT_RAGGED_RANK=2)
        (first, second), picked = session.run(list(found), {fed: values})
        assert (first.tolist(), second.tolist()) == ([0, 1, 3, 4], [0, 2, 4, 5, 7])
        assert picked.tolist() == [3, 4, 0, 1, 2, 3, 4]
        first[:] = 7  # the fetched splits are the caller's
        assert session.run(list(found), {fed: values})[0][0].tolist() == [0, 1, 3, 4]
        wrong = gather.several(given, fed, [3], OUTPUT_RAGGED_RANK=2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"is not in \[0, 3\)"):
            session.run(list(wrong), {fed: values})
