"""Random graphs: generated code agrees with node-by-node execution of the graph as it was built."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.kernel import Environment
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.execution.interpreter import disagreement, interpret
from flowstone.runtime.steps.step import UNLIMITED

UNARY = [
    tf.negative,
    tf.square,
    tf.tanh,
    tf.identity,
    tf.nn.relu,
    lambda x: tf.reshape(x, [3, 2]),
    lambda x: tf.transpose(x),
    lambda x: x[::-1],
    lambda x: tf.stop_gradient(x),
    lambda x: x * 1.0,
]
BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum]


def random_graph(random: np.random.RandomState, size: int):
    """A graph of views, in-place candidates, shared subexpressions, constants and conditionals on [2, 3]
    values.
    """
    feeds = [tf.placeholder(tf.float32, [2, 3]) for _ in range(2)]
    predicates = [tf.placeholder(tf.bool, []) for _ in range(2)]
    values = [*feeds, tf.constant(random.randn(2, 3).astype(np.float32))]

    def pick():
        return values[random.randint(max(0, len(values) - 6), len(values))]

    for _ in range(size):
        choice = random.rand()
        if choice < 0.4:
            value = UNARY[random.randint(len(UNARY))](pick())
        elif choice < 0.85:
            value = BINARY[random.randint(len(BINARY))](pick(), pick())
        else:
            a, b = pick(), pick()
            inner = predicates[random.randint(2)]

            def nested(a=a, b=b, inner=inner):
                return tf.cond(inner, lambda: tf.add(a, b), lambda: tf.negative(a))

            value = tf.cond(predicates[random.randint(2)], nested, lambda b=b: tf.square(b))
        values.append(tf.reshape(value, [2, 3]))
    fetches = [values[i] for i in random.choice(len(values), 4, replace=False)]
    return feeds + predicates, fetches


@pytest.mark.parametrize("seed", range(60))
def test_segments_agree_with_the_interpreter(seed):
    random = np.random.RandomState(seed)
    with tf.Graph().as_default():
        feeds, fetches = random_graph(random, random.randint(3, 30))
        plain = prune(fetches, [], feeds)
        optimised = run_passes(prune(fetches, [], feeds), EVERY)
        segment = compile_segment(optimised, Environment())
        for _ in range(3):
            arrays = [torch.from_numpy(random.randn(2, 3).astype(np.float32)) for _ in range(2)]
            choices = [torch.tensor(bool(random.randint(2))) for _ in range(2)]
            with torch.inference_mode():
                originals = [a.clone() for a in arrays]
                expected = interpret(plain, Environment(), [*arrays, *choices])
                computed = segment.function(UNLIMITED, *arrays, *choices)
            assert disagreement(computed, expected) is None, segment.source
            for array, original in zip(arrays, originals):
                assert torch.equal(array, original), "a feed was overwritten"


def test_disagreement_says_which_fetch():
    assert "fetch 1" in str(disagreement([torch.ones(2), torch.ones(2)], [torch.ones(2), torch.zeros(2)]))
    assert disagreement([torch.tensor(1)], [torch.tensor(1)]) is None
