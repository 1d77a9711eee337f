"""Distinct integers by machine code: beside Python's dictionaries, and steps with and without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.arrays import distinct
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
TYPES = {torch.int32: "i32", torch.int64: "i64"}


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_the_text_is_valid_and_has_its_functions(kind: str) -> None:
    assert shown_functions(distinct.distinct_code(kind)) == set(distinct.PLACES)


def numbers(dtype: torch.dtype, how: str) -> torch.Tensor:
    chance, kind = np.random.default_rng(0), np.iinfo(str(dtype).removeprefix("torch."))
    made = {
        "narrow": lambda: chance.integers(-50, 50, 700),
        "wide": lambda: chance.integers(kind.min, kind.max, 700),
        "few and wide": lambda: chance.choice([kind.min, -1, 0, 1, kind.max], 700),
        "multiples": lambda: chance.integers(-300, 300, 700) << 20,  # which a bad hash puts in one slot
        "one": lambda: np.array([kind.min]),
        "in order": lambda: np.arange(700) * 5,
    }[how]()
    return torch.from_numpy(made.astype(kind.dtype))


@pytest.mark.parametrize("how", ["narrow", "wide", "few and wide", "multiples", "one", "in order"])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_ranks_and_first_places(dtype: torch.dtype, how: str) -> None:
    x = numbers(dtype, how)
    for given in (x, torch.stack([x, x], 1)[:, 0]):
        found = distinct.Distinct(TYPES[dtype])(given)
        assert found is not None
        seen: dict[int, int] = {}
        places, ranks = [], []
        for i, number in enumerate(x.tolist()):
            if number not in seen:
                seen[number] = len(seen)
                places.append(i)
            ranks.append(seen[number])
        assert found[0].tolist() == ranks
        assert found[1].tolist() == places


def test_none_has_none() -> None:
    assert distinct.Distinct("i64")(torch.zeros(0, dtype=torch.int64)) is None
    assert distinct.distinct(torch.float32) is None


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "int8", "float32"])
def test_steps_are_the_same_with_and_without(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, results = np.random.default_rng(0), []
    x: Any = chance.integers(0, 100, 600).astype(dtype)
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(dtype, [600])
            found = [*tf.unique(fed), *tf.unique_with_counts(fed, out_idx=tf.int64)]
            if dtype != "uint32":
                found += tf.raw_ops.UniqueV2(x=tf.reshape(fed, [300, 2]) % 7, axis=[0])
                found += tf.raw_ops.UniqueWithCountsV2(x=tf.reshape(fed, [2, 300]), axis=[1])
            results.append(session.run(found, {fed: x}))
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
