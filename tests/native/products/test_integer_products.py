"""Products of quantised integers by machine code, beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.products import integer_products
from flowstone.native.products.integer_products import integer_product

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
TYPES = [torch.uint8, torch.int8, torch.uint16, torch.int16]


@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid(monkeypatch, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = integer_products.integer_product_code(("i8", "zext"), ("i16", "sext"), 8)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"multiply", "add"}


@pytest.mark.parametrize("x", TYPES)
@pytest.mark.parametrize("y", TYPES)
@pytest.mark.parametrize("count", [0, 1, 9, 1003, 70_000])
def test_products(x, y, count) -> None:
    random = np.random.default_rng(count)
    a, b = (
        torch.from_numpy(
            random.integers(torch.iinfo(t).min, torch.iinfo(t).max + 1, count).astype(str(t)[6:])
        )
        for t in (x, y)
    )
    multiply = integer_product(x, y)
    assert multiply is not None
    found = multiply(a, b, 12, -7)
    expected = (a.numpy().astype(np.int64) - 12) * (b.numpy().astype(np.int64) + 7)
    np.testing.assert_array_equal(found.numpy(), expected.astype(np.int32))
    expected = a.numpy().astype(np.int64) * 90_000 - b.numpy().astype(np.int64) * 3 + 5
    np.testing.assert_array_equal(multiply.sum(a, b, 90_000, -3, 5).numpy(), expected.astype(np.int32))


@pytest.mark.parametrize("kinds", [("quint8", "qint8"), ("qint8", "qint8"), ("quint16", "quint8")])
def test_an_op_gives_the_same_with_it_and_without(monkeypatch, kinds) -> None:
    found = []
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = [tf.placeholder(tf.float32, [5, 21]) for _ in range(2)]
            (x, *x_ends), (y, *y_ends) = (
                tf.quantize(each, low, high, getattr(tf, kind))
                for each, low, high, kind in zip(fed, (-1.0, -0.5), (2.0, 0.25), kinds)
            )
            results: list[Any] = []
            for op in (tf.raw_ops.QuantizedMul, tf.raw_ops.QuantizedAdd):
                results += op(
                    x=x, y=y, min_x=x_ends[0], max_x=x_ends[1], min_y=y_ends[0], max_y=y_ends[1],
                    Toutput=tf.qint32,
                )  # fmt: skip
            values = np.random.default_rng(1).normal(size=(2, 5, 21))
            found.append(session.run(results, dict(zip(fed, values))))
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


def test_there_is_none_for_wide_numbers() -> None:
    assert integer_product(torch.int32, torch.uint8) is None
