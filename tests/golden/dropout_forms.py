"""Calls that drop elements or draw uniform numbers, whose nodes and values are compared with TensorFlow's.

`FORMS` has functions of the module ``tf`` and a float32 placeholder [3, 4] that return a tensor; `lines_of`
describes a graph's nodes, `values_of` says what they give where only the graph has a seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["FORMS", "X", "lines_of", "values_of"]

Form = Any
X = np.float32([[1, -2, 3, -4], [np.inf, -np.inf, np.nan, 0], [-0.0, 0.5, 1e38, -1e38]])


def _fed(tf: Any, value: Any) -> Any:
    return tf.placeholder_with_default(np.float32(value), [])


def _sized(tf: Any, x: Any, dims: Any) -> Any:
    return tf.placeholder_with_default(x, dims)


def _cell(tf: Any, *arguments: Any, **keywords: Any) -> Any:
    class Doubling(tf.nn.rnn_cell.RNNCell):  # type: ignore[misc, name-defined]
        state_size = output_size = 4

        def call(self, inputs: Any, state: Any) -> Any:
            return inputs + state, state

    cell = tf.nn.rnn_cell.DropoutWrapper(Doubling(), *arguments, **keywords)
    return lambda x: tf.add_n(cell(x, tf.ones([3, 4])))


def _twice(tf: Any, x: Any) -> Any:
    return tf.layers.dropout(tf.layers.dropout(x, training=True), training=True)


FORMS: dict[str, Form] = {
    "rate": lambda tf, x: tf.nn.dropout(x, rate=0.3),
    "keep_prob": lambda tf, x: tf.nn.dropout(x, 0.7),
    "named": lambda tf, x: tf.nn.dropout(x, keep_prob=0.75, seed=5, name="d"),
    "rate of numpy": lambda tf, x: tf.nn.dropout(x, rate=np.float32(0.3)),
    "float16": lambda tf, x: tf.nn.dropout(tf.cast(x, tf.float16), 0.6),
    "float64": lambda tf, x: tf.nn.dropout(tf.cast(x, tf.float64), 0.6),
    "list": lambda tf, x: tf.nn.dropout([[1.0, 2.0]], 0.5),
    "all": lambda tf, x: tf.nn.dropout(x, rate=0),
    "all kept": lambda tf, x: tf.nn.dropout(x, 1.0),
    "constant rate of 0": lambda tf, x: tf.nn.dropout(x, rate=tf.constant(0.0)),
    "constant keep_prob of 1": lambda tf, x: tf.nn.dropout(x, tf.constant(1.0)),
    "fed rate": lambda tf, x: tf.nn.dropout(x, rate=_fed(tf, 0.4)),
    "fed keep_prob": lambda tf, x: tf.nn.dropout(x, _fed(tf, 0.4)),
    "noise_shape": lambda tf, x: tf.nn.dropout(x, 0.5, noise_shape=[3, 1]),
    "noise_shape with None": lambda tf, x: tf.nn.dropout(x, 0.5, [None, 1]),
    "noise_shape of a tensor": lambda tf, x: tf.nn.dropout(x, 0.5, tf.shape(x)),
    "batch of any size": lambda tf, x: tf.nn.dropout(_sized(tf, x, [None, 4]), 0.5),
    "any shape": lambda tf, x: tf.nn.dropout(_sized(tf, x, None), 0.5),
    "layer": lambda tf, x: tf.layers.dropout(x),
    "layer in training": lambda tf, x: tf.layers.dropout(x, 0.4, training=True, name="d"),
    "layer with noise_shape": lambda tf, x: tf.layers.dropout(x, 0.4, [3, 1], 9, training=True),
    "layer with None": lambda tf, x: tf.layers.dropout(x, 0.4, [None, 1], training=True),
    "layer of rate 0": lambda tf, x: tf.layers.dropout(x, 0.0, training=True),
    "layer of a fed rate": lambda tf, x: tf.layers.dropout(x, _fed(tf, 0.4), training=True),
    "fed training": lambda tf, x: tf.layers.dropout(x, training=tf.placeholder_with_default(True, [])),
    "constant training": lambda tf, x: tf.layers.dropout(x, training=tf.constant(True)),
    "layers": _twice,
    "contrib": lambda tf, x: tf.contrib.layers.dropout(x, noise_shape=[3, 1]),
    "contrib, not in training": lambda tf, x: tf.contrib.layers.dropout(x, is_training=False),
    "contrib, fed": lambda tf, x: tf.contrib.layers.dropout(x, _fed(tf, 0.4)),
    "cell": lambda tf, x: _cell(tf, 0.8, 0.7, 0.6, seed=3)(x),
    "cell, fed": lambda tf, x: _cell(tf, _fed(tf, 0.8), 1.0, 1)(x),
    "cell, same elements": lambda tf, x: _cell(tf, 0.8, 0.7, 0.6, True, 4, tf.float32)(x),
    "uniform": lambda tf, x: tf.random_uniform([5]),
    "uniform of whole numbers": lambda tf, x: tf.random_uniform([5], 0, 1),
    "uniform to 3": lambda tf, x: tf.random_uniform([5], maxval=3),
    "uniform to a fed bound": lambda tf, x: tf.random_uniform([5], 0, _fed(tf, 3.0)),
    "uniform float16": lambda tf, x: tf.random_uniform([5], dtype=tf.float16),
}


def graph_of(tf: Any, name: str) -> tuple[Any, Any, Any]:
    """The graph of a form, its input and its output."""
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(7)
        x = tf.placeholder(tf.float32, [3, 4], "x")
        return graph, x, FORMS[name](tf, x)


def lines_of(tf: Any, name: str) -> list[str]:
    """A line for each node: its type, name, inputs and seeds."""
    lines = []
    for op in graph_of(tf, name)[0].get_operations():
        node = op.node_def
        inputs = [each[:-2] if each.endswith(":0") else each for each in node.input]
        seeds = [f"{key}={node.attr[key].i}" for key in ("seed", "seed2") if key in node.attr]
        lines.append(" ".join([op.type, op.name, *inputs, *seeds]))
    return lines


def values_of(tf: Any, name: str) -> list[Any]:
    """Of two steps: the output, its gradient by the input, and numbers of what is created later."""
    graph, x, y = graph_of(tf, name)
    with graph.as_default(), tf.Session() as session:
        later = [tf.random_normal([2]), tf.get_variable("v", [2, 2]).initial_value]
        gradients = [each for each in tf.gradients(tf.tanh(y) + y * y, x) if each is not None]
        fetches = [y, *later, *gradients]
        return [np.asarray(each) for _ in range(2) for each in session.run(fetches, {x: X})]
