"""One-hot arrays by machine code, beside ATen's kernels: the same elements."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.arrays import hot_places
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize(("index", "extension"), [("i8", "zext"), ("i32", "sext"), ("i64", "")])
@pytest.mark.parametrize(("bits", "lanes"), [(8, 32), (32, 8), (64, 4)])
def test_the_text_is_valid(monkeypatch, team, index, extension, bits, lanes) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = hot_places.hot_places_code(index, extension, bits, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"place"}


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("int32", "float32"), ("uint8", "float64"), ("int8", "bool"), ("int64", "int16"), ("int64", "complex64"),
     ("int32", "complex128"), ("int32", "bfloat16")],
)  # fmt: skip
@pytest.mark.parametrize(("dims", "depth"), [((97, 5), 11), ((3, 70), 100), ((40_000,), 7), ((1, 3), 40_000)])
def test_elements_are_those_without_machine_code(monkeypatch, axis, kind, dtype, dims, depth) -> None:
    monkeypatch.setattr(hot_places, "_asked", hot_places._asked.__wrapped__)
    low = 0 if kind == "uint8" else -3
    indices = np.random.default_rng(depth).integers(low, min(depth + 3, 120), dims).astype(kind)
    on, off = (True, False) if dtype == "bool" else (3, 2)
    found, called, call = [], [], hot_places.HotPlaces.__call__

    def watched(*arguments):
        called.append(flags.NATIVE)
        return call(*arguments)

    monkeypatch.setattr(hot_places.HotPlaces, "__call__", watched)
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(kind, [None] * len(dims))
            made = tf.one_hot(fed, tf.placeholder_with_default(depth, []), on, off, axis, dtype)
            made = tf.cast(made, "float32") if dtype == "bfloat16" else made
            found.append(session.run(made, {fed: indices}))
    assert called == ([] if dtype == "complex128" else [2])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(("count", "calls"), [(300, 0), (14_000, 1)])
def test_of_constant_numbers_few_rows_are_picked_from_a_table(monkeypatch, count, calls) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    called, call = [], hot_places.HotPlaces.__call__
    monkeypatch.setattr(hot_places.HotPlaces, "__call__", lambda *a: called.append(0) or call(*a))
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder("int32", [None])
        indices = np.arange(count) % 10
        np.testing.assert_array_equal(session.run(tf.one_hot(fed, 10), {fed: indices}), np.eye(10)[indices])
    assert len(called) == calls


def test_indices_of_no_elements_and_bad_arguments_are_as_without() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        depth = tf.placeholder(tf.int32, [])
        made = tf.one_hot(tf.zeros([200, 0], tf.int64), depth)
        assert session.run(made, {depth: 5000}).shape == (200, 0, 5000)
        with pytest.raises(tf.errors.InvalidArgumentError, match="depth must be non-negative"):
            session.run(tf.one_hot(tf.zeros([5000], tf.int64), depth), {depth: -1})


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("dims", "at", "depth"),
    [((5000,), 1, 7), ((300, 3), 1, 32), ((40, 70), 2, 5), ((9,), 1, 4096), ((9,), 1, 4097)],
)
def test_elements_are_the_same_past_the_caches(set_profile, dtype, dims, at, depth) -> None:
    code = hot_places._asked(torch.int32, dtype.itemsize)
    indices = torch.randint(
        -1, depth + 2, dims, generator=torch.Generator().manual_seed(0), dtype=torch.int32
    )
    on, off, found = torch.tensor(3).to(dtype), torch.tensor(2).to(dtype), []
    for streamed in (1 << 60, 0):
        set_profile(streamed_copies=streamed)
        while (native := code()) is None:
            time.sleep(0.01)
        found.append(native(indices, depth, at, on, off))
    assert torch.equal(*found)
    assert int((found[0] == on).sum()) == int(((indices >= 0) & (indices < depth)).sum())
