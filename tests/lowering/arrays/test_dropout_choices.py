"""Dropout by differences: what becomes one, what stays a choice by a mask, equal bits without the pass.

The choices are those of TensorFlow 2; TensorFlow 1.15's multiplication by a mask is left to clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.framework.declarations.operation import registry

RNG = np.random.default_rng(13)
BEFORE = ("fold_constants", "drop_waits", "apply_identities", "merge_common_subexpressions", "drop_stacks")
PASS = "choose_by_margins"


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def chosen(x: Any, keep: Any, noise_shape: Any = None) -> Any:
    """Dropout as TensorFlow 2 writes it."""
    noise = tf.random_uniform(noise_shape or x.shape)
    return tf.raw_ops.SelectV2(condition=noise >= 1.0 - keep, t=x * (1.0 / keep), e=tf.constant(0.0))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    tf.set_random_seed(7)


def test_dropout_and_its_gradient_choose_by_one_difference(monkeypatch) -> None:
    x, keep = tf.placeholder(tf.float32, [6, 5]), tf.placeholder(tf.float32, [])
    y = chosen(tf.tanh(x), keep)
    fetches = [y, *tf.gradients(tf.square(y), x)]
    found = ops(text(fetches, [x, keep], *BEFORE, PASS))
    assert found.count("_KeptByMargin") == 2 and not {"GreaterEqual", "SelectV2"}.intersection(found)
    assert "GreaterEqual" in ops(text(fetches, [x, keep], *BEFORE))
    for number in (0.3, 1.0):
        agree(monkeypatch, fetches, {x: values(6, 5), keep: number}, PASS, fires=1, tolerance=0)


def test_loops_push_the_difference(monkeypatch) -> None:
    x, keep = tf.placeholder(tf.float32, [6, 5]), tf.placeholder(tf.float32, [])

    def body(i, y):
        return i + 1, tf.sin(chosen(chosen(y, keep) + y, 0.8))

    y = tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]
    fetches = [y, *tf.gradients(y, x)]
    lines = text(fetches, [x, keep], *BEFORE, PASS)
    assert ops(lines).count("_KeptByMargin") == 4 and "SelectV2" not in ops(lines)
    assert not any("elem_type=bool" in line for line in lines if "Stack" in line)
    assert "chooses by a difference instead of a mask" in agree(
        monkeypatch, fetches, {x: values(6, 5), keep: 0.7}, PASS, fires=2, tolerance=0
    )


def test_masks_that_others_want_stay(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [6, 5])
    noise = tf.random_uniform([6, 5])
    mask = tf.greater_equal(noise, 0.5)
    kept = tf.where(mask, x, tf.zeros([6, 5]))
    assert "_KeptByMargin" in ops(text([kept], [x], *BEFORE, PASS))
    for fetches in ([kept, mask], [kept, tf.cast(mask, tf.int32)], [kept, tf.where(mask, x, x + 1.0)]):
        assert "_KeptByMargin" not in ops(text(fetches, [x], *BEFORE, PASS))
    agree(monkeypatch, [kept, noise], {x: values(6, 5)}, PASS, fires=1, tolerance=0)


def test_other_comparisons_stay() -> None:
    x, row = tf.placeholder(tf.float32, [6, 5]), tf.placeholder(tf.float32, [5])
    zero = tf.zeros([6, 5])
    for condition in (
        tf.greater_equal(x, 0.5),  # may be NaN
        tf.greater_equal(tf.random_uniform([6, 5]), row),
        tf.greater(tf.random_uniform([6, 5]), 0.5),
        tf.greater_equal(tf.random_uniform([6, 5], maxval=3.0), 0.5),
    ):
        assert "_KeptByMargin" not in ops(text([tf.where(condition, x, zero)], [x, row], *BEFORE, PASS))
    spread = chosen(x, 0.5, [6, 1])
    assert "_KeptByMargin" not in ops(text([spread], [x], *BEFORE, PASS))


def test_masks_that_are_multiplied_by_are_no_nodes_of_their_own(monkeypatch) -> None:
    """TensorFlow 1.15's dropout is one cluster with what is before it and its gradient."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    x = tf.placeholder(tf.float32, [64, 50])
    y = tf.nn.dropout(tf.tanh(x), 0.8)
    lines = text([y, *tf.gradients(tf.square(y), x)], [x], *BEFORE, PASS, "join_clusters")
    assert ops(lines) == ["_Arg", "Const", "RandomUniform", "_Cluster"]


def test_every_bit_of_what_is_kept_stays() -> None:
    x = torch.tensor([float("nan"), float("inf"), -0.0, 1.0, float("nan"), 2.0, 3.0])
    noise = torch.tensor([0.5, 0.5, 0.5, 0.25, 0.25, 0.0, 1.0 - 2.0**-24])
    with tf.Graph().as_default():
        node = registry["_KeptByMargin"](tf.zeros([7]), tf.zeros([7]), name="kept").op
    call = node.declaration.kernels["CPU"](node, None)
    for rate in (0.0, 0.25, 0.5, 2.0**-24, 1.0 - 2.0**-24, 1.0):
        expected = torch.where(noise >= rate, x, torch.zeros(7))
        got = call(x, noise - rate)
        assert got.view(torch.int32).tolist() == expected.view(torch.int32).tolist()
        in_place = x.clone()
        assert call.overwrites[0](in_place, noise - rate) is not None
        assert in_place.view(torch.int32).tolist() == expected.view(torch.int32).tolist()
