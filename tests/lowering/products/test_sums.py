"""Sums of products and of slices' gradients: graph text before and after, equal results without passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.lowering.passes import EVERY
from flowstone.lowering.products import product_sums

RNG = np.random.default_rng(5)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def products(transposed: tuple[bool, bool], count: int = 4) -> tuple[Any, list[Any]]:
    shapes = [(2, 9) if transposed[0] else (9, 2), (8, 2) if transposed[1] else (2, 8)]
    operands = [[tf.constant(values(*shape)) for shape in shapes] for _ in range(count)]
    terms = [tf.matmul(a, b, transposed[0], transposed[1]) for a, b in operands]
    return tf.add_n(terms, name="sum"), terms


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_a_sum_of_products_is_one_product(monkeypatch, transposed) -> None:
    total, _ = products(transposed)
    x = tf.placeholder(tf.float32, [9, 8], name="x")
    lines = text([total], [], "stack_products")
    assert [line.split(" = ")[1].split("(")[0] for line in lines[8:-1]] == [
        "Const", "ConcatV2", "Const", "ConcatV2", "MatMul",
    ]  # fmt: skip
    monkeypatch.setattr(flags, "DISABLED_PASSES", flags.DISABLED_PASSES | {"fold_constants"})
    agree(monkeypatch, [total + x], {x: values(9, 8)}, "stack_products", fires=1)


def test_a_large_operand_that_is_transposed_lies_as_the_product_reads_it(monkeypatch, set_profile) -> None:
    parts = [torch.arange(6.0).view(2, 3) + i for i in range(4)]
    stack = product_sums.stack_by_columns(parts)
    assert torch.equal(stack, torch.cat(parts)) and stack.t().is_contiguous()
    set_profile(call_elements=72 / 32)
    for transposed, count in (((True, False), 1), ((True, True), 1), ((False, False), 0)):
        total, _ = products(transposed)  # of four operands of 18 elements
        lines = text([total], [], "stack_products")
        assert sum("_StackByColumns(" in line for line in lines) == count
        x = tf.placeholder(tf.float32, [9, 8])
        monkeypatch.setattr(flags, "DISABLED_PASSES", flags.DISABLED_PASSES | {"fold_constants"})
        agree(monkeypatch, [total + x], {x: values(9, 8)}, "stack_products", fires=1)
    set_profile(call_elements=73 / 32)
    assert not any(
        "_StackByColumns" in line for line in text([products((True, False))[0]], [], "stack_products")
    )


@pytest.mark.parametrize("by_bias", [False, True])
def test_a_sum_of_sums_of_rows_is_one_sum_of_the_stack_that_a_product_takes(monkeypatch, by_bias) -> None:
    x, d = ([tf.placeholder(tf.float32, [2, n]) for _ in range(4)] for n in (9, 8))
    weights = tf.add_n([tf.matmul(a, b, transpose_a=True) for a, b in zip(x, d)])
    if by_bias:
        bias = tf.placeholder_with_default(values(8), [8])
        terms = tf.gradients([tf.nn.bias_add(b, bias) for b in d], [bias], grad_ys=d)
    else:
        terms = [tf.add_n([tf.reduce_sum(b, 0) for b in d])]
    fetches = [weights, *terms]
    kinds = ops(text(fetches, [*x, *d], "apply_identities", "stack_products"))
    assert kinds.count("BiasAddGrad" if by_bias else "Sum") == 1 and kinds.count("ConcatV2") == 2
    assert "AddN" not in kinds
    agree(
        monkeypatch,
        fetches,
        {each: values(*each.shape.as_list()) for each in (*x, *d)},
        "stack_products",
        fires=2,
    )


def test_sums_of_other_axes_or_kept_ones_stay() -> None:
    x = [tf.placeholder(tf.float32, [3, 3]) for _ in range(4)]
    for axis, kept in ((1, False), (0, True)):
        total = tf.add_n([tf.reduce_sum(each, axis, keepdims=kept) for each in x])
        assert "ConcatV2" not in ops(text([total], x, "stack_products"))


def test_products_that_others_want_stay() -> None:
    total, terms = products((True, False), 3)
    assert "ConcatV2" not in str(text([total, terms[0]], [], "stack_products"))


def test_products_smaller_than_their_operands_stay() -> None:
    x = [tf.placeholder(tf.float32, [50, 3]) for _ in range(4)]
    total = tf.add_n([tf.matmul(a, a, transpose_a=True) for a in x])
    assert "ConcatV2" not in str(text([total], x, "stack_products"))


def test_other_terms_of_the_sum_stay(monkeypatch) -> None:
    x = [tf.placeholder(tf.float32, [2, 9]) for _ in range(3)]
    y = tf.placeholder(tf.float32, [9, 9])
    total = tf.add_n([y, *[tf.matmul(a, a, transpose_a=True) for a in x]])
    lines = text([total], [*x, y], "stack_products")
    assert sum("MatMul(" in line for line in lines) == 1 and sum("AddN(" in line for line in lines) == 1
    feed = {**{a: values(2, 9) for a in x}, y: values(9, 9)}
    assert "products of stacked operands" in agree(monkeypatch, [total], feed, "stack_products", fires=1)


def test_an_unrolled_recurrence(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [4, 6, 5])
    w = tf.placeholder(tf.float32, [13, 8])
    h = tf.zeros([4, 8])
    for t in range(6):
        h = tf.tanh(tf.matmul(tf.concat([x[:, t, :], h], 1), w))
    gradients = tf.gradients(tf.reduce_sum(h * h), [w, x])
    feed = {x: values(4, 6, 5), w: values(13, 8) * 0.1}
    log = agree(monkeypatch, gradients, feed, "stack_products", "join_slices", fires=(1, 1))
    assert "join_slices" in log and "stack_products" in log


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_gradients_of_slices_that_tile_are_joined(monkeypatch, axis, order) -> None:
    x = tf.placeholder(tf.float32, [3, 3, 2])
    rows = [tf.square(x[i] if axis == 0 else x[:, i]) * float(i + 1) for i in order]
    gradient = tf.gradients(rows, x)[0]
    assert "join_slices" in agree(monkeypatch, [gradient], {x: values(3, 3, 2)}, "join_slices", fires=1)
    lines = text([gradient], [x], "fold_constants", "join_slices")
    assert any("Pack(" in line for line in lines) and not any("StridedSliceGrad" in line for line in lines)


def test_ranges_are_concatenated_and_gaps_are_left(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [6, 2])
    gradient = tf.gradients([tf.exp(piece) for piece in (x[:2], x[2:5], x[-1:])], x)[0]
    assert "join_slices" in agree(monkeypatch, [gradient], {x: values(6, 2)}, "join_slices", fires=1)
    for pieces in ([x[:2], x[3:]], [x[:3], x[2:]], [x[::2], x[1::2]]):
        gap = tf.gradients([tf.exp(piece) for piece in pieces], x)[0]
        assert "ConcatV2" not in str(text([gap], [x], "join_slices"))
        agree(monkeypatch, [gap], {x: values(6, 2)}, "join_slices", fires=0)


# ---- sums that loops make


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_slices_with_sizes_are_joined(monkeypatch, axis) -> None:
    x, y = tf.placeholder(tf.float32, [6, 6]), tf.placeholder(tf.float32, [6, 6])
    start, sizes = [[0, 0], [4, 0]], [[4, -1], [-1, -1]]
    if axis:
        start, sizes = [place[::-1] for place in start], [size[::-1] for size in sizes]
    parts = [tf.slice(x, at, size) for at, size in zip(start, sizes)]
    total = tf.add_n([tf.reduce_sum(tf.square(part)) for part in parts])
    gradient = tf.gradients(total, x)[0]
    lines = ops(text([gradient * y], [x, y], *[each.name for each in EVERY]))
    assert "ConcatV2" in lines and "Pad" not in lines
    assert "join_slices" in agree(monkeypatch, [gradient], {x: values(6, 6)}, "join_slices", fires=1)


def test_padded_tensors_that_do_not_tile_are_added(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    pads = [[[0, 3], [0, 0]], [[2, 1], [0, 0]]], [[[0, 2], [0, 0]], [[1, 1], [0, 0]]]
    sums = [tf.add_n([tf.pad(x, pad) for pad in pair]) for pair in pads]
    both = tf.add_n([tf.pad(x, [[0, 2], [0, 1]]), tf.pad(x, [[2, 0], [0, 1]])])
    for total in (*sums, both):
        assert "AddN" in ops(text([total], [x], "join_slices"))
    agree(monkeypatch, [*sums, both], {x: values(2, 3)}, "join_slices", fires=0)
