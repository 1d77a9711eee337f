"""What generated code calls values, and when it lets their names go."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.segments import compile_segment

pytestmark = pytest.mark.usefixtures("graph")


def segment_of(fetches, feeds, watched=False, targets=()):
    environment = Environment(resources=ResourceStore())
    return compile_segment(prune(fetches, list(targets), feeds), environment, watched)


def test_memory_is_released_inside_the_step():
    x = tf.placeholder(tf.float32, [2])
    alive = []

    def watch(value):
        alive.append(weakref.ref(value))
        return value

    first = tf.py_func(lambda v: v * 2, [x], tf.float32)
    seen = tf.py_func(lambda v: np.float32(sum(r() is not None for r in alive)), [first], tf.float32)
    with tf.Session() as session:
        assert session.run(seen, {x: [1, 2]}) == 0
    watched = torch.ones(1)
    watch(watched)
    del watched
    gc.collect()
    assert alive[0]() is None


def test_only_one_of_several_outputs_is_kept():
    x = tf.placeholder(tf.float32, [4])
    first, _ = tf.split(x, 2)
    text = segment_of([first], [x]).source
    assert ", _ = split" in text and "del a0, _" in text


def test_node_names_that_are_no_identifiers():
    with tf.name_scope("for"):
        c = tf.constant(1.0, name="class")
        d = tf.constant(2.0, name="0-9")
    e = tf.constant(4.0, name="v1")
    x = tf.placeholder(tf.float32, [], name="step")
    with tf.Session() as session:
        assert session.run(x + c + d + e, {x: 1.0}) == 8.0
