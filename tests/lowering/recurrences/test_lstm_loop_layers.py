"""Layers of LSTM cells, found in a loop and in the loop of its gradient; and loops in which there is more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flowstone as tf
from flowstone.lowering.passes import EVERY
from flowstone.lowering.recurrences.lstm_loop_layers import Match, find_layers
from flowstone.rewriting.analyses.counted_loops import Loops
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune

pytestmark = pytest.mark.needs_onednn
STEPS, ROWS, SIZE, UNITS = 9, 3, 4, 5
BEFORE = [p.name for p in EVERY].index("join_lstm_loops")


def network(layers: int, change: Callable[..., Any] | None = None) -> Any:
    """The outputs of all steps; `change` makes another cell of each."""
    x = tf.placeholder(tf.float32, [STEPS, ROWS, SIZE], name="x")
    cells: Any = [tf.nn.rnn_cell.BasicLSTMCell(UNITS) for _ in range(layers)]
    if change is not None:
        cells = [change(each) for each in cells]
    cell = tf.nn.rnn_cell.MultiRNNCell(cells)
    return tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, time_major=True)[0]


def matches(*fetches: Any) -> list[Match]:
    operations = tf.get_default_graph().get_operations()
    feeds = [op.outputs[0] for op in operations if op.type == "Placeholder"]
    subgraph = prune(list(fetches), [], feeds)
    run_passes(subgraph, EVERY[:BEFORE])
    loops = Loops(subgraph)
    found = [find_layers(loop, loops) for loop in loops.by_frame.values()]
    return [match for match in found if match is not None]


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.by_aten
def test_layers_from_the_lowest_on(layers: int) -> None:
    (match,) = matches(network(layers))
    assert match.steps == STEPS
    assert match.backward is None
    assert len(match.layers) == layers
    for below, above in zip(match.layers, match.layers[1:]):
        assert above.cell.x is below.cell.output
    assert all(layer.gradient is None for layer in match.layers)


@pytest.mark.by_aten
def test_layers_and_their_gradients() -> None:
    y = network(2)
    gradients = tf.gradients(tf.reduce_sum(tf.square(y)), tf.trainable_variables())
    (match,) = matches(*gradients)
    assert match.backward is not None and match.backward is not match.forward
    for layer in match.layers:
        assert layer.gradient is not None
        assert layer.weights is not None and layer.bias is not None
        assert layer.dh is not None and layer.dc is not None
    assert len(match.layers[1].dy) == 1  # from the array; the lower layer's come from the upper one
    assert match.layers[0].dy == (match.layers[1].gradient.dx,)
    assert match.stacks


@pytest.mark.parametrize(
    "change",
    [
        lambda cell: tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=0.5),
        lambda cell: tf.nn.rnn_cell.GRUCell(UNITS),
        lambda cell: tf.nn.rnn_cell.LSTMCell(UNITS, use_peepholes=True),
    ],
)
def test_what_is_no_chain_of_layers(change: Callable[..., Any]) -> None:
    assert not matches(network(1, change))


def test_a_loop_whose_count_is_unknown_is_left() -> None:
    steps = tf.placeholder(tf.int32, [])
    x = tf.placeholder(tf.float32, [None, ROWS, SIZE])
    cell = tf.nn.rnn_cell.BasicLSTMCell(UNITS)
    y, _ = tf.nn.dynamic_rnn(cell, x[:steps], dtype=tf.float32, time_major=True)
    assert not matches(y)
