"""Rows picked by tuples of indices: beside indexing, and the errors of indices out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.arrays import tuple_rows
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.mark.parametrize("index", ["i32", "i64"])
def test_the_text_is_valid_and_has_its_function(index: str) -> None:
    assert shown_functions(tuple_rows.tuple_rows_code(index)) == set(tuple_rows.PLACES)


def picker(index: torch.dtype) -> tuple_rows.TupleRows:
    return tuple_rows.TupleRows({torch.int32: "i32", torch.int64: "i64"}[index])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bool, torch.int16, torch.complex64])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("outer", [(), (5,), (2, 70)])
def test_rows_are_those_of_indexing(dtype: Any, index: Any, depth: int, outer: Any) -> None:
    chance = torch.Generator().manual_seed(depth)
    params = (torch.rand(4, 3, 7, generator=chance) * 100).to(dtype)
    indices = torch.stack([torch.randint(n, outer, generator=chance) for n in params.shape[:depth]], -1)
    expected = params[tuple(indices.unbind(-1))]
    for given in (params, params.transpose(0, 2).contiguous().transpose(0, 2)):
        found = picker(index)(given, indices.to(index), expected.shape)
        assert found is not None
        assert torch.equal(found, expected)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("sizes", [(7,), (4, 3), (2, 5, 3), (1 << 20, 1 << 20, 1 << 20)])
@pytest.mark.parametrize("outer", [(), (0,), (3, 9)])
def test_places_are_in_row_major_order(index: Any, sizes: Any, outer: Any) -> None:
    chance = torch.Generator().manual_seed(1)
    indices = torch.stack([torch.randint(n, outer, generator=chance) for n in sizes], -1)
    found = picker(index).places(indices.to(index), sizes)
    expected = np.ravel_multi_index(indices.reshape(-1, len(sizes)).T.numpy(), sizes)
    np.testing.assert_array_equal(found, expected)
    for wrong in (-1, sizes[-1]):
        if indices.numel():
            indices[..., -1] = wrong
            assert picker(index).places(indices.to(index), sizes) is None


@pytest.mark.parametrize("wrong", [[4, 0], [-1, 0], [0, 3], [0, -1], [3, 1 << 20]])
def test_what_is_out_of_bounds_is_nothing(wrong: list[int]) -> None:
    indices = torch.tensor([[0, 0], wrong, [3, 2]])
    assert picker(torch.int64)(torch.zeros(4, 3), indices, (3,)) is None


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_many_rows(width: int, threads: int) -> None:
    chance, before = torch.Generator().manual_seed(0), torch.get_num_threads()
    params, count = torch.rand(50, 40, width, generator=chance), 40_001
    indices = torch.stack([torch.randint(n, (count,), generator=chance) for n in (50, 40)], -1)
    torch.set_num_threads(threads)
    try:
        found = picker(torch.int64)(params, indices, (count, width))
        indices[-1, 0] = 50
        wrong = picker(torch.int64)(params, indices, (count, width))
    finally:
        torch.set_num_threads(before)
    assert found is not None and wrong is None
    indices[-1, 0] = 0
    assert torch.equal(found[:-1], params[tuple(indices.unbind(-1))][:-1])


def test_other_indices_have_none() -> None:
    assert tuple_rows.tuple_rows(torch.int16) is None


def test_steps_are_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, gradients, and the error of the first index out of bounds."""
    chance, results = np.random.default_rng(0), []
    data, places = chance.normal(size=(4, 5, 6)).astype("f"), chance.integers(0, 4, size=(3, 70, 2))
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            params, indices = tf.placeholder(tf.float32, [4, 5, 6]), tf.placeholder(tf.int32, [3, 70, 2])
            held = tf.get_variable("held", initializer=params, validate_shape=False, use_resource=True)
            with tf.control_dependencies([held.initializer]):
                read = tf.raw_ops.ResourceGatherNd(resource=held.handle, indices=indices, dtype=tf.float32)
            found = tf.gather_nd(params, indices)
            flow = tf.gradients(found * found, params)[0]
            results.append(session.run([found, flow, read], {params: data, indices: places}))
            bad = places.copy()
            bad[1, 2] = 2, 5
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[72\] = \[2, 5\]"):
                session.run(found, {params: data, indices: bad})
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)
