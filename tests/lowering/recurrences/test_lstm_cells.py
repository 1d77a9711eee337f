"""LSTM cells and their gradients, found in a graph: their parts, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.lowering.recurrences.lstm_cells import Cell, find_cells, find_gradient
from flowstone.rewriting.simplification.offset_slices import split_at_offsets
from flowstone.rewriting.simplification.partial_execution import prune

ROWS, SIZE, UNITS = 3, 4, 5


def placeholder(name: str, *dims: int | None, dtype: Any = tf.float32) -> Any:
    return tf.placeholder(dtype, dims, name=name)


def cell(order: str = "ijfo", rows: int | None = ROWS, dtype: Any = tf.float32, **change: Any) -> list[Any]:
    """A cell's output and state; `change` replaces one of its parts."""
    x, h, c = (placeholder(n, rows, d, dtype=dtype) for n, d in (("x", SIZE), ("h", UNITS), ("c", UNITS)))
    weights = placeholder("weights", SIZE + UNITS, 4 * UNITS, dtype=dtype)
    bias = placeholder("bias", 4 * UNITS, dtype=dtype)
    parts = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), weights), bias), 4, 1)
    gates = dict(zip(order, parts))
    forget = change.get("forget", tf.constant(0.5, dtype))
    squash = change.get("squash", tf.tanh)
    state = tf.sigmoid(gates["f"] + forget) * c + tf.sigmoid(gates["i"]) * squash(gates["j"])
    return [tf.sigmoid(gates["o"]) * tf.tanh(state), state]


def planned(*fetches: Any) -> Subgraph:
    operations = tf.get_default_graph().get_operations()
    feeds = [op.outputs[0] for op in operations if op.type == "Placeholder"]
    subgraph = prune([x for x in fetches if x is not None], [], feeds)
    split_at_offsets(subgraph)
    return subgraph


def cells(subgraph: Subgraph) -> list[Cell]:
    return find_cells(subgraph.nodes, subgraph.consumers())


@pytest.mark.parametrize("order", ["ijfo", "ifjo", "ojif"])
def test_the_parts_of_a_cell(order: str) -> None:
    subgraph = planned(*cell(order))
    (found,) = cells(subgraph)
    assert [x.op.name for x in (found.x, found.h, found.c, found.weights, found.bias)] == [
        "x",
        "h",
        "c",
        "weights",
        "bias",
    ]
    assert found.order == tuple(order.index(part) for part in "ifjo")
    assert found.forget_bias == 0.5
    assert [found.output, found.state] == subgraph.fetches
    assert found.squashed.op.inputs[0] is found.state


def test_cells_of_one_layer_are_of_one_kind() -> None:
    x, h, c = placeholder("x", ROWS, SIZE), placeholder("h", ROWS, UNITS), placeholder("c", ROWS, UNITS)
    one = tf.nn.rnn_cell.BasicLSTMCell(UNITS)
    state = tf.nn.rnn_cell.LSTMStateTuple(c, h)
    for _ in range(3):
        h, state = one(x, state)
    found = cells(planned(h))
    assert len(found) == 3
    assert len({each.kind for each in found}) == 1
    assert found[1].h is found[0].output
    assert found[1].c is found[0].state


@pytest.mark.parametrize(
    "change",
    [
        {"squash": tf.nn.relu},  # another activation
        {"forget": tf.ones([ROWS, UNITS]) * 2.0, "rows": ROWS},  # no number is added
        {"rows": None},  # sizes are not known
        {"rows": 0},  # oneDNN makes nothing of nothing
        {"dtype": tf.float64},
    ],
)
def test_what_is_no_cell(change: dict[str, Any]) -> None:
    if "forget" in change:
        change = {**change, "forget": placeholder("forget", ROWS, UNITS)}
    assert not cells(planned(*cell(**change)))


def test_a_part_with_another_consumer_is_no_cells() -> None:
    output, state = cell()
    split = next(op for op in output.graph.get_operations() if op.type == "Split")
    assert cells(planned(output, state))
    assert not cells(planned(output, state, tf.exp(split.outputs[0])))


def test_the_gradient_of_a_cell() -> None:
    output, state = cell()
    names = ["x", "h", "c", "weights", "bias"]
    inputs = [output.graph.get_tensor_by_name(f"{name}:0") for name in names]
    by = [placeholder("dy", ROWS, UNITS), placeholder("dc", ROWS, UNITS)]
    subgraph = planned(*tf.gradients([output, state], inputs, by), output)
    (found,) = cells(subgraph)
    gradient = find_gradient(found, subgraph.consumers())
    assert gradient is not None
    results = [gradient.dx, gradient.dh, gradient.before, gradient.weights, gradient.bias]
    assert results == subgraph.fetches[:5]
    assert gradient.dy.op.inputs[0].op.name == "dy"


def test_a_gradient_with_respect_to_some_inputs() -> None:
    output, _ = cell()
    weights = output.graph.get_tensor_by_name("weights:0")
    subgraph = planned(*tf.gradients(output, weights), output)
    (found,) = cells(subgraph)
    gradient = find_gradient(found, subgraph.consumers())
    assert gradient is not None
    assert gradient.weights is subgraph.fetches[0]
    assert (gradient.dx, gradient.bias, gradient.before) == (None, None, None)


def test_a_cell_without_a_gradient_has_none() -> None:
    subgraph = planned(*cell())
    (found,) = cells(subgraph)
    assert find_gradient(found, subgraph.consumers()) is None
