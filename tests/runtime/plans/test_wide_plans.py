"""Wide plans: random programs on values of open sizes give what they give without knowledge of their sizes,
and fail where they fail without it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.runtime.plans import plan

SIZES = [
    (4, 5), (6, 3),  # with plans of their own
    (5, 4), (3, 3), (7, 2), (2, 6), (0, 3), (1, 4), (5, 1), (1, 1), (3, 0), (8, 5), (3, 3), (2, 2),
]  # fmt: skip
FLOATS = [tf.tanh, tf.square, tf.zeros_like, lambda x: x + 1.0]
BINARY = [tf.add, tf.multiply, tf.maximum, tf.subtract]


class Program:
    """Random operations on tensors, whose sizes are those of the feeds or made of them; `fails`: also such as
    fail for some sizes."""

    def __init__(self, seed: int, fails: bool) -> None:
        self.random, self.fails = random.Random(seed), fails
        self.feeds = [tf.placeholder(tf.float32, dims) for dims in ([None, 3], [None, None], [None])]
        self.tensors = list(self.feeds)
        self.sizes = [tf.shape(x)[i] for x in self.feeds[:2] for i in (0, 1)]
        while len(self.tensors) < 10:
            try:
                self.add()
            except ValueError:  # refused when the graph is built
                continue

    def fed(self, n: int, m: int) -> dict[Any, Any]:
        numbers = np.random.RandomState(7)
        shapes = [(n, 3), (n, m), (m,)]
        return {x: numbers.uniform(0.5, 1.5, dims).astype("f") for x, dims in zip(self.feeds, shapes)}

    def add(self) -> None:
        if self.random.random() < 0.3:
            self.sizes.append(self.random.choice([self.size_of, self.sum, self.product])())
        kinds = [self.unary, self.binary, self.reduced, self.turned, self.flat, self.axes, self.sliced]
        kinds += [self.joined, self.loop, self.array] + ([self.reshaped, self.made] if self.fails else [])
        x = self.random.choice(kinds)(self.random.choice(self.tensors))
        if x.shape.ndims is not None and x.shape.ndims < 5:
            self.tensors.append(x)

    # ---- sizes

    def size_of(self) -> Any:
        x = self.random.choice(self.tensors)
        return self.random.choice([tf.size(x), tf.reduce_prod(tf.shape(x)[:-1]), tf.shape(x)[-1]])

    def sum(self) -> Any:
        return self.random.choice(self.sizes) + self.random.choice([-2, -1, 1])

    def product(self) -> Any:
        a, b = self.random.choice(self.sizes), self.random.choice(self.sizes)
        return self.random.choice([a * b, a * 2, a // 2, tf.maximum(a, 2), tf.minimum(a, b)])

    # ---- tensors

    def unary(self, x: Any) -> Any:
        return self.random.choice(FLOATS)(x)

    def binary(self, x: Any) -> Any:
        own = x.shape.as_list()
        fitting = [y for y in self.tensors if self.fails or y.shape.as_list() == own == [None, 3]]
        y = self.random.choice([*fitting, x, tf.shape(x)])
        return self.random.choice(BINARY)(x, tf.cast(tf.size(y), tf.float32) if y.dtype == tf.int32 else y)

    def reduced(self, x: Any) -> Any:
        axis = self.random.randrange(max(1, x.shape.ndims))
        function = self.random.choice([tf.reduce_sum, tf.reduce_mean])
        return function(x, axis, keepdims=self.random.random() < 0.5)

    def turned(self, x: Any) -> Any:
        axes = list(range(x.shape.ndims))
        self.random.shuffle(axes)
        return tf.transpose(x, axes)

    def flat(self, x: Any) -> Any:
        flat = tf.tanh(tf.reshape(x, [-1]))
        return self.random.choice([flat, tf.reshape(flat, tf.shape(x)), tf.reshape(x, [tf.size(x), 1])])

    def axes(self, x: Any) -> Any:
        sizes = list(tf.unstack(tf.shape(x), num=x.shape.ndims))
        sizes.insert(self.random.randint(0, len(sizes)), 1)
        wider = tf.reshape(x, tf.stack(sizes))
        return self.random.choice([wider, tf.reshape(wider, tf.shape(x)), tf.nn.softmax(wider)])

    def sliced(self, x: Any) -> Any:
        n = tf.shape(x)[0]
        twice = tf.tile(x[:1], [2] + [1] * (x.shape.ndims - 1))
        found = [x[:-1], x[1:], x[:2], x[-1:], x[::2], x[: n - 1], x[n - 1 :], twice]
        found += [x[0], x[-1], x[n - 2]] if self.fails else []
        return self.random.choice(found)

    def joined(self, x: Any) -> Any:
        other = self.random.choice(self.tensors) if self.fails else x
        return tf.concat([x, self.random.choice([tf.zeros_like(x), x[1:], other])], 0)

    def loop(self, x: Any) -> Any:
        def grown(i: Any, h: Any) -> Any:
            return i + 1, tf.concat([h, h[-1:]], 0)

        def kept(i: Any, h: Any) -> Any:
            return i + 1, tf.tanh(h + x)

        body = self.random.choice([grown, kept])
        shape = tf.TensorShape([None] * x.shape.ndims)
        return tf.while_loop(lambda i, h: i < 3, body, [0, x], [tf.TensorShape([]), shape])[1]

    def array(self, x: Any) -> Any:
        return self.random.choice([lambda: tf.map_fn(tf.tanh, x), lambda: tf.scan(lambda a, b: a * b, x)])()

    def reshaped(self, x: Any) -> Any:
        sizes = [self.random.choice([*self.sizes, -1]) for _ in range(self.random.randint(1, 3))]
        return self.random.choice([tf.reshape(x, tf.stack(sizes)), tf.reshape(x, tf.shape(self.tensors[-1]))])

    def made(self, x: Any) -> Any:
        n, m = self.random.choice(self.sizes), self.random.choice(self.sizes)
        made = [tf.fill([n, 2], 1.5), tf.zeros([n, m]), tf.broadcast_to(x, [n, m]), tf.expand_dims(x, 0)]
        made += [tf.cast(each, tf.float32) for each in (tf.range(n), tf.range(n, n * m))]
        return self.random.choice(made)


def outcomes(fetches: Any, program: Program) -> list[Any]:
    """What steps of all sizes give: values, or the class of the error that they raise."""
    found = []
    with tf.Session() as s:
        for sizes in SIZES:
            try:
                found.append(s.run(fetches, program.fed(*sizes)))
            except tf.errors.OpError as error:
                found.append(type(error))
    return found


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_agree(monkeypatch: Any, seed: int, fails: bool) -> None:
    program = Program(seed, fails)
    results = [*program.tensors[-4:], *program.sizes[-2:]]
    gradients = [x for x in tf.gradients(program.tensors[-2:], program.feeds) if x is not None]
    fetches = [*results, *gradients]
    known = outcomes(fetches, program)
    monkeypatch.setattr(plan, "use_equal_sizes", lambda subgraph, feed_dims, values: None)
    for sizes, got, wanted in zip(SIZES, known, outcomes(fetches, program)):
        assert isinstance(got, list) == isinstance(wanted, list), (sizes, got, wanted)
        if not isinstance(got, list):
            assert got is wanted, sizes
            continue
        for a, b in zip(got, wanted):
            assert np.shape(a) == np.shape(b), sizes
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=str(sizes))


def test_sizes_without_names_are_compared_in_the_step() -> None:
    """Images are halved and doubled again: equal to the masks' sizes in the step, though no plan for all
    sizes can know it."""
    images, masks = tf.placeholder(tf.float32, [None, None, None, 1]), tf.placeholder(tf.int32, [None] * 3)
    halved = tf.nn.max_pool(images, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    size = 2 * tf.shape(halved)[1:3]
    doubled = tf.image.resize_nearest_neighbor(halved, size)
    scores = tf.concat([doubled, -doubled], 3)
    loss = tf.losses.sparse_softmax_cross_entropy(masks, scores)
    same = tf.reduce_all(tf.equal(tf.shape(masks), tf.shape(scores)[:3]))
    other = tf.reduce_any(tf.not_equal(tf.shape(masks), tf.shape(scores)[:3]))
    with tf.Session() as session:
        for n in (8, 6, 10, 4, 12, 2, 14):
            fed = {images: np.ones([2, n, n, 1], np.float32), masks: np.zeros([2, n, n], np.int32)}
            value, *compared = session.run([loss, same, other], fed)
            assert compared == [True, False]
            np.testing.assert_allclose(value, np.log1p(np.exp(-2.0)), rtol=1e-5)
