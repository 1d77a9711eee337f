"""Random graphs by machine code against ATen in float64: broadcasts, reductions, tails, NaN, infinities,
strides. They go the whole way from nodes to machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "-")

ONE: list[Callable[[Any], Any]] = [
    tf.tanh, tf.sigmoid, tf.square, tf.abs, tf.nn.relu, tf.exp, tf.negative, tf.nn.softplus, tf.nn.elu,
    lambda x: tf.where(x > 0.3, x, 0.5 * x), lambda x: tf.cast(x < 0.0, x.dtype) + x,
    lambda x: tf.sqrt(tf.abs(x) + 0.5), lambda x: tf.log1p(tf.abs(x)),
]  # fmt: skip
TWO: list[Callable[[Any, Any], Any]] = [
    tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.squared_difference,
    lambda x, y: x / (tf.abs(y) + 1.0),
]  # fmt: skip
OVER: list[Callable[..., Any]] = [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min]


class Random:
    """A random graph on feeds; the same for the same seed, in either type."""

    def __init__(self, seed: int, dtype: tf.DType, is_open: bool) -> None:
        self.is_open = is_open
        self.random = np.random.RandomState(seed)
        rank = self.random.randint(2 if is_open else 1, 4)
        self.dims = tuple(int(n) for n in self.random.choice([2, 3, 5, 15, 16, 17, 33, 70], rank))
        self.dtype = dtype
        self.feeds: list[Any] = []
        self.values: list[Any] = []
        self.full = [self.taken("plain")]
        self.small = [self.input(self.dims[-1:]), self.input((*self.dims[:-1], 1)), self.input(())]
        self.full.append(self.taken(str(self.random.choice(["split", "transposed", "plain"]))))
        self.ends: list[Any] = []

    def input(self, dims: tuple[int, ...]) -> Any:
        """A fed tensor."""
        self.values.append(self.random.randn(*dims) * 2)
        leaves_open = self.is_open and len(dims) == len(self.dims)
        self.feeds.append(tf.placeholder(self.dtype, (None, *dims[1:]) if leaves_open else dims))
        return self.feeds[-1]

    def taken(self, how: str) -> Any:
        """A tensor of the graph's shape, in this layout."""
        if how == "split":
            return tf.split(self.input((*self.dims[:-1], 3 * self.dims[-1])), 3, -1)[self.random.randint(3)]
        if how == "transposed" and not self.is_open:
            return tf.transpose(self.input(self.dims[::-1]))
        return self.input(self.dims)

    def pick(self, kinds: list[Any]) -> Any:
        return kinds[self.random.randint(len(kinds))]

    def grow(self) -> None:
        """Adds some nodes."""
        for _ in range(self.random.randint(3, 12)):
            kind = self.random.randint(6)
            x = self.pick(self.full)
            if kind < 2:
                self.full.append(self.pick(ONE)(x))
            elif kind < 4:
                self.full.append(self.pick(TWO)(x, self.pick([*self.full, *self.small])))
            elif kind == 4:
                self.full.append(tf.nn.softmax(x) if self.random.rand() < 0.5 else tf.nn.log_softmax(x))
            else:
                self.reduce(x)

    def reduce(self, x: Any) -> None:
        """Adds a reduction, which others may take if it keeps its axes."""
        over = self.pick(OVER)
        where = self.random.randint(4)
        if where < 2:
            self.small.append(over(x, -1, keepdims=True))
        elif where == 2:
            self.ends.append(over(x, list(range(len(self.dims) - 1)) or None))
        else:
            self.ends.append(over(x))


def results(seed: int, dtype: tf.DType, native: int, special: bool, is_open: bool = False) -> list[Any]:
    """What the graph gives."""
    flags.NATIVE = native
    with tf.Graph().as_default(), tf.Session() as session:
        program = Random(seed, dtype, is_open)
        program.grow()
        values = [np.array(x) for x in program.values]
        if special:
            for x in values:
                bad = program.random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], x.shape)
                np.copyto(x, bad, where=program.random.rand(*x.shape) < 0.02)
        fetches = [tf.tanh(program.full[-1]) * 2.0, *program.full[-2:], *program.ends, *program.small[3:]]
        feed = dict(zip(program.feeds, values))
        found = [session.run(fetches, feed) for _ in range(2)]
        assert native == 0 or "_Cluster(" in session.explain(fetches, program.feeds if is_open else feed)
    return found[1]


@pytest.fixture(autouse=True)
def put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", flags.NATIVE)


SEEDS = range(0, 80, 8)


@pytest.mark.parametrize("first", SEEDS)
def test_float32_is_near_float64(first: int) -> None:
    for seed in range(first, first + 8):
        ours = results(seed, tf.float32, 2, False)
        atens = results(seed, tf.float32, 0, False)
        exact = results(seed, tf.float64, 0, False)
        for a, b, c in zip(ours, atens, exact):
            scale = np.maximum(np.abs(c), 1.0)
            error, usual = np.abs(a - c) / scale, np.abs(b - c) / scale
            assert error.max() <= max(4e-6, 4 * usual.max()), seed


@pytest.mark.parametrize("first", SEEDS)
def test_nan_and_infinities_are_where_aten_has_them(first: int) -> None:
    for seed in range(first, first + 8):
        ours, atens = (results(seed, tf.float64, native, True) for native in (2, 0))
        for a, b in zip(ours, atens):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11, err_msg=str(seed))


@pytest.mark.parametrize("first", SEEDS)
def test_first_sizes_that_are_not_known(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.AT_ONCE", 0)
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.MOST_WIDENINGS", 0)
    for seed in range(first, first + 8):
        ours, atens = (results(seed, tf.float64, native, True, True) for native in (2, 0))
        for a, b in zip(ours, atens):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11, err_msg=str(seed))
