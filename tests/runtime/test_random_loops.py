"""Random programs of nested loops and conditionals in which constants come about late, against plain Python.

Values must be equal, and effects run as often as Python's: in loops, in their predicates, in branches. A
program is run as one segment, and with queues or devices, where no function holds the whole step.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf

LARGE = 70_000  # elements, too many for a constant


def _zero(x: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.ZerosLike(x=x)[0]


def _broadcast(x: tf.Tensor) -> tf.Tensor:
    c, d = tf.constant(2.0), tf.constant([1.0, 1.0, 1.0])
    return tf.broadcast_to(d, tf.broadcast_dynamic_shape(tf.shape(c), tf.shape(d)))


LATE: dict[str, tuple[Callable[[tf.Tensor], tf.Tensor], float]] = {  # by shape or identity: function, value
    "like": (lambda x: tf.ones_like(x) + tf.fill(tf.shape(x), 1.0), 2),
    "broadcast": (_broadcast, 1),
    "size": (lambda x: tf.cast(tf.reshape(tf.size(x), [1]), tf.float32) + tf.zeros([3]), 3),
    "large": (lambda x: tf.fill([LARGE], _zero(x) + 2.0)[3:6], 2),
    "larger": (lambda x: tf.exp(tf.fill([LARGE], _zero(x)))[:3] + x * 0.0, 1),
    "drawn": (lambda x: tf.minimum(tf.random_gamma([3], 2.0) + 9.0, 1.0), 1),
    "limits": (lambda x: tf.minimum(tf.random_uniform([3], _zero(x) + 2.0, 3.0), 1.0), 1),
    "array": (
        lambda x: (
            tf.TensorArray(tf.float32, 1 + tf.cast(_zero(x), tf.int32)).write(0, _broadcast(x)).stack()[0]
        ),
        1,
    ),
}


class Program:
    """Statements over float32 vectors of small integers, each of which makes one more value."""

    def __init__(self, seed: int, devices: int = 0, queues: bool = False) -> None:
        self.rng = random.Random(seed)
        self.devices, self.queues, self.effects = devices, queues, 0
        self.told: list[Any] = []
        self.statements = self.draw(2, self.rng.randint(2, 5), 2)

    def draw(self, names: int, size: int, depth: int) -> list[Any]:
        rng, statements = self.rng, []
        for _ in range(size):
            pick = [rng.randrange(max(0, names - 6), names) for _ in range(2)]
            kinds = ["op", "late", "tell"] + ["cond", "loop", "loop"] * (depth > 0)
            kind, self.effects = rng.choice(kinds), self.effects + 1
            rest: Any = rng.choice("+-*")
            if kind == "late":
                rest = rng.choice(list(LATE))
            elif kind == "cond":
                rest = [self.draw(names, rng.randint(1, 3), depth - 1) for _ in range(2)]
            elif kind == "loop":
                rest = (
                    rng.randrange(4),
                    rng.choice([1, 10]),
                    self.draw(names + 2, rng.randint(1, 4), depth - 1),
                )
            statements.append((kind, self.effects, rng.randrange(max(1, self.devices)), pick, rest))
            names += 1
        return statements

    # ---- Python

    def value(self, statements: list[Any], values: list[Any], told: list[Any]) -> Any:
        values = list(values)
        for kind, number, _, (a, b), rest in statements:
            x, y = values[a], values[b]
            if kind == "op":
                z = np.mod({"+": x + y, "-": x - y, "*": x * y}[rest], np.float32(97))
            elif kind == "late":
                z = np.full(3, LATE[rest][1], np.float32)
            elif kind == "tell":
                z = np.ones(3, np.float32)
                told.append(number)
            elif kind == "cond":
                z = self.value(rest[0 if x[0] > y[1] else 1], values, told)
            else:
                z = x
                for i in range(rest[0]):
                    told.append(number)
                    z = self.value(rest[2], [*values, np.full(3, i, np.float32), z], told)
                told.append(number)
            values.append(z)
        return values[-1]

    # ---- a graph

    def tell(self, number: int) -> tf.Tensor:
        told = tf.py_func(lambda x: self.told.append(number) or x, [_broadcast(tf.constant(0.0))], tf.float32)
        return tf.reshape(told, [3])

    def build(self, statements: list[Any], values: list[tf.Tensor]) -> tf.Tensor:
        values = list(values)
        for kind, number, device, (a, b), rest in statements:
            with tf.device(f"/cpu:{device}" if self.devices else None):
                values.append(self.built(kind, number, values, values[a], values[b], rest))
        return tf.identity(values[-1])

    def built(self, kind: str, number: int, values: list[Any], x: Any, y: Any, rest: Any) -> tf.Tensor:
        if kind == "op":
            z = tf.floormod({"+": x + y, "-": x - y, "*": x * y}[rest], 97.0)
            return self.through_queue(z) if self.queues and number % 2 else z
        if kind == "late":
            return LATE[rest][0](x)
        if kind == "tell":
            return self.tell(number)
        if kind == "cond":
            return tf.cond(x[0] > y[1], *(lambda each=each: self.build(each, values) for each in rest))
        count, parallel, body = rest

        def goes_on(i: Any, _: Any) -> Any:
            with tf.control_dependencies([self.tell(number)]):
                return i < count

        def turn(i: Any, z: Any) -> Any:
            return i + 1, self.build(body, [*values, tf.fill([3], tf.cast(i, tf.float32)), z])

        return tf.while_loop(goes_on, turn, [0, x], parallel_iterations=parallel)[1]

    def through_queue(self, x: tf.Tensor) -> tf.Tensor:
        queue = tf.FIFOQueue(10, [tf.float32], [[3]])
        with tf.control_dependencies([queue.enqueue(x)]):
            return queue.dequeue()

    def run(self) -> None:
        """Runs the graph and Python; asserts that they agree. What no result needs is not told."""
        given, told = [np.float32([1, 2, 3]), np.float32([5, 1, 2])], []
        wanted = self.value(self.statements, given, told)
        config = tf.ConfigProto(device_count={"CPU": max(1, self.devices)})
        with tf.Graph().as_default():
            feeds = [tf.placeholder(tf.float32, [3]) for _ in given]
            result = self.build(self.statements, feeds)
            with tf.Session(config=config) as s:
                found = s.run(result, dict(zip(feeds, given)), tf.RunOptions(timeout_in_ms=60_000))
        np.testing.assert_array_equal(found, wanted)
        expected = Counter(told)
        assert {n: k for n, k in Counter(self.told).items() if expected[n] != k} == {}


@pytest.mark.both_ways
@pytest.mark.parametrize("seed", range(40))
def test_a_segment_gives_and_does_what_plain_python_does(seed: int) -> None:
    Program(seed).run()


@pytest.mark.parametrize("seed", range(20))
def test_units_give_and_do_what_plain_python_does(seed: int) -> None:
    Program(1000 + seed, queues=True).run()


@pytest.mark.parametrize("seed", range(20))
def test_parts_give_and_do_what_plain_python_does(seed: int) -> None:
    Program(2000 + seed, devices=3).run()
