"""A step gives the same bits wherever its nodes are: training on 1 to 4 devices against one device.

Random training graphs (dense layers, activations, losses, both kinds of variables, three optimisers), each op
on a random device; loops whose nodes lie on different devices, and their gradients. Fusion is switched off on
both sides, because it changes the order of floating-point operations where it applies.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.passes import LOWERING

ACTIVATIONS = [tf.nn.relu, tf.tanh, tf.sigmoid, tf.identity, lambda x: x * x]
OPTIMIZERS = [
    lambda: tf.train.GradientDescentOptimizer(0.1),
    lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    lambda: tf.train.AdamOptimizer(0.01),
]
STEPS = 3


class Somewhere:
    """Gives each piece of a program a device: a random one of `devices`, or none if there are 0."""

    def __init__(self, seed, devices):
        self.rng, self.devices = random.Random(seed), devices

    def __call__(self):
        chosen = self.rng.randrange(4)  # drawn for any number of devices, so that programs are equal
        return tf.device(f"/cpu:{chosen % self.devices}" if self.devices else None)


def dense(rng, somewhere, x, width, name):
    with somewhere():
        start = tf.random_normal_initializer(0, 0.3, seed=len(name))
        is_resource = rng.random() < 0.5
        w = tf.get_variable(f"{name}_w", [x.shape[1], width], initializer=start, use_resource=is_resource)
    with somewhere():
        b = tf.get_variable(f"{name}_b", [width], initializer=tf.constant_initializer(0.1))
    with somewhere():
        y = tf.matmul(x, w)
    with somewhere():
        y = tf.add(y, b)
    with somewhere():
        return rng.choice(ACTIVATIONS)(y)


def recurrence(rng, somewhere, x, name):
    """A while loop whose body lies on several devices."""
    with somewhere():
        w = tf.get_variable(
            f"{name}_r", [x.shape[1]] * 2, initializer=tf.random_normal_initializer(0, 0.3, seed=len(name))
        )

    def body(i, y):
        with somewhere():
            z = tf.matmul(y, w)
        with somewhere():
            z = tf.tanh(z)
        with somewhere():
            return i + 1, z + y

    count = rng.randint(1, 4)
    with somewhere():
        return tf.while_loop(lambda i, y: i < count, body, [0, x], parallel_iterations=rng.choice([1, 10]))[1]


def build(seed, devices, loops):
    """Feeds, the initialiser, the training op and what to fetch of a random model."""
    rng, somewhere = random.Random(seed), Somewhere(seed, devices)
    x = tf.placeholder(tf.float32, [5, 4])
    labels = tf.placeholder(tf.float32, [5, 3])
    layers = [x]
    for i in range(rng.randint(2, 5)):
        source = rng.choice(layers[-2:])
        if loops and rng.random() < 0.5:
            layers.append(recurrence(rng, somewhere, source, f"layer{i}"))
        else:
            layers.append(dense(rng, somewhere, source, rng.randint(3, 6), f"layer{i}"))
    top = dense(rng, somewhere, layers[-1], 3, "top")
    with somewhere():
        if rng.random() < 0.5:
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=top))
        else:
            loss = tf.reduce_mean(tf.square(top - labels))
    optimizer = rng.choice(OPTIMIZERS)()
    gradients = optimizer.compute_gradients(loss)
    with somewhere():
        train = optimizer.apply_gradients(gradients)
    variables = tf.trainable_variables()
    return [x, labels], train, [loss, *[g for g, _ in gradients if g is not None]], variables


def run(seed, devices, loops, monkeypatch):
    """The fetched values of each step and the variables at the end, and how many devices took part."""
    rng = np.random.RandomState(seed)
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(seed)
        feeds, train, fetches, variables = build(seed, devices, loops)
        config = tf.ConfigProto(device_count={"CPU": max(devices, 1)}, operation_timeout_in_ms=120_000)
        monkeypatch.setattr(
            flags, "DISABLED_PASSES", flags.DISABLED_PASSES | {each.name for each in LOWERING}
        )
        with tf.Session(graph=graph, config=config) as session:
            session.run(tf.global_variables_initializer())
            results = []
            for _ in range(STEPS):
                values = [rng.randn(*[n.value for n in x.shape]).astype(np.float32) for x in feeds]
                results.append(session.run([train, *fetches], dict(zip(feeds, values)))[1:])
            used = {session.planner.assigned.get(variable.op.name) for variable in variables}
            return results, session.run(variables), len(used)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_training_gives_the_same_bits_on_any_number_of_devices(seed, loops, monkeypatch):
    monkeypatch.setattr(flags, "NATIVE", 2)  # no device begins by ATen
    expected_steps, expected_variables, _ = run(seed, 0, loops, monkeypatch)
    for devices in (2, 4) if seed % 3 else (1, 2, 3, 4):
        steps, variables, used = run(seed, devices, loops, monkeypatch)
        assert used > 1 or devices == 1, "the variables lie on several devices"
        for expected, found in zip(expected_steps, steps):
            for a, b in zip(expected, found):
                np.testing.assert_array_equal(a, b)
        for a, b in zip(expected_variables, variables):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_the_gradient_of_a_loop_over_devices(devices):
    def program(somewhere):
        x = tf.placeholder(tf.float32, [3])

        def body(i, y):
            with somewhere():
                z = tf.sin(y)
            with somewhere():
                return i + 1, z * x

        y = tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]
        (first,) = tf.gradients(y, x)
        return x, [y, first]

    def values(devices):
        with tf.Graph().as_default():
            x, fetches = program(Somewhere(7, devices))
            config = tf.ConfigProto(device_count={"CPU": max(devices, 1)}, operation_timeout_in_ms=60_000)
            with tf.Session(config=config) as session:
                return session.run(fetches, {x: [0.1, 0.7, -1.3]})

    for a, b in zip(values(0), values(devices)):
        np.testing.assert_array_equal(a, b)


def test_greedy_placement_gives_the_same_bits(monkeypatch):
    """Without requests, placement chooses."""
    monkeypatch.setattr(flags, "NATIVE", 2)  # no device begins by ATen
    monkeypatch.setattr(flags, "DISABLED_PASSES", flags.DISABLED_PASSES | {each.name for each in LOWERING})

    def values(devices):
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            x = tf.placeholder(tf.float32, [64, 300])
            heads = [tf.tanh(dense(random.Random(i), Somewhere(0, 0), x, 300, f"head{i}")) for i in range(4)]
            loss = tf.add_n([tf.reduce_mean(tf.square(head)) for head in heads])
            train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
            config = tf.ConfigProto(device_count={"CPU": devices})
            with tf.Session(config=config) as session:
                session.run(tf.global_variables_initializer())
                given = np.random.RandomState(0).randn(64, 300).astype(np.float32)
                losses = [session.run([loss, train], {x: given})[0] for _ in range(STEPS)]
                return [losses, *session.run(tf.trainable_variables())], set(
                    session.planner.assigned.values()
                )

    (expected, one), (found, several) = values(1), values(4)
    assert len(one) <= 1 < len(several)
    for a, b in zip(expected, found):
        np.testing.assert_array_equal(a, b)
