"""Cells that no kernel runs a layer of: which are found, with what, and which are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.lowering.recurrences.cell_patterns import BASIC, GRU, LSTM, layers_without_kernel
from flowstone.rewriting.passes import SIMPLIFYING, run_passes
from flowstone.rewriting.simplification.partial_execution import prune

RNG = np.random.default_rng(5)
STEPS, ROWS, SIZE, UNITS = 9, 2, 3, 4
CELLS = tf.nn.rnn_cell


def simplified(*fetches: Any) -> Subgraph:
    placeholders = [
        op.outputs[0] for op in tf.get_default_graph().get_operations() if op.type == "Placeholder"
    ]
    return run_passes(prune(list(fetches), [], placeholders), SIMPLIFYING)


def unrolled(cell: Any) -> tuple[Any, list[Any]]:
    x = tf.placeholder(tf.float32, [ROWS, STEPS, SIZE])
    return x, tf.nn.static_rnn(cell, tf.unstack(x, STEPS, 1), dtype=tf.float32)[0]


def names(subgraph: Subgraph, fewest: int = STEPS) -> list[str]:
    return [text for _, text in layers_without_kernel(subgraph.nodes, lambda count, _: count >= fewest)]


class NormalizedCell(CELLS.BasicLSTMCell):
    """An LSTM cell with layer normalisation of its gates and its state, as tf.contrib.rnn has it."""

    def call(self, inputs: Any, state: Any) -> Any:
        c, h = state
        total = tf.matmul(tf.concat([inputs, h], 1), self._kernel)
        i, j, f, o = [self.normalized(each, name) for each, name in zip(tf.split(total, 4, 1), "ijfo")]
        c = self.normalized(c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j), "state")
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, CELLS.LSTMStateTuple(c, h)

    @staticmethod
    def normalized(x: Any, name: str) -> Any:
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            scale, offset = tf.get_variable("gamma", [UNITS]), tf.get_variable("beta", [UNITS])
        mean, variance = tf.nn.moments(x, [1], keep_dims=True)
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-12)


KINDS = [
    (lambda: CELLS.BasicRNNCell(UNITS), "basic cells"),
    (lambda: CELLS.BasicRNNCell(UNITS, activation="relu"), "basic cells"),
    (lambda: CELLS.GRUCell(UNITS), "gated recurrent units"),
    (lambda: CELLS.LSTMCell(UNITS, use_peepholes=True), "LSTM cells with peepholes"),
    (lambda: CELLS.LSTMCell(UNITS, cell_clip=0.1), "LSTM cells with clipping"),
    (lambda: CELLS.LSTMCell(UNITS, num_proj=3), "LSTM cells with projection"),
    (lambda: CELLS.LSTMCell(UNITS, num_proj=3, proj_clip=0.1), "LSTM cells with projection"),
    (
        lambda: CELLS.LSTMCell(UNITS, use_peepholes=True, cell_clip=0.1, num_proj=3),
        "LSTM cells with peepholes and clipping and projection",
    ),
    (lambda: NormalizedCell(UNITS), "LSTM cells with layer normalisation"),
]


@pytest.mark.needs_onednn
@pytest.mark.parametrize(("cell", "kind"), KINDS)
def test_layers_of_all_cells_are_named_with_and_without_gradients(monkeypatch, cell: Any, kind: str) -> None:
    x, outputs = unrolled(cell())
    loss = tf.reduce_sum(tf.square(tf.stack(outputs)))
    gradients = [g for g in tf.gradients(loss, [x, *tf.trainable_variables()]) if g is not None]
    assert names(simplified(*outputs)) == names(simplified(*outputs, *gradients)) == [f"{STEPS} {kind}"]
    assert not names(simplified(*outputs), STEPS + 1) and not names(simplified(*outputs[:-1]))
    feed = {x: RNG.standard_normal((ROWS, STEPS, SIZE)).astype("f")}
    setup = [v.assign(RNG.standard_normal(v.shape.as_list())) for v in tf.global_variables()]
    log = agree(monkeypatch, [*outputs, *gradients], feed, "join_lstm_layers", fires=1, setup=setup)
    assert f"{STEPS} {kind} stay: no kernel runs a layer of them" in log


def test_other_layers_are_not_named() -> None:
    _, outputs = unrolled(CELLS.BasicLSTMCell(UNITS))
    assert not names(simplified(*outputs))
    dense = tf.placeholder(tf.float32, [ROWS, UNITS])
    weights = tf.Variable(np.ones((2 * UNITS, UNITS), "f"))
    apart = [tf.tanh(tf.matmul(tf.concat([dense + i, dense], 1), weights) + 1.0) for i in range(STEPS)]
    assert not names(simplified(*apart))


def gru(x: Any, h: Any, **how: Any) -> Any:
    """A unit whose gates are split before the activation; `how` changes one thing."""
    weights = [tf.Variable(RNG.standard_normal((SIZE + UNITS, n * UNITS)).astype("f")) for n in (2, 1)]
    total = tf.nn.bias_add(
        tf.matmul(tf.concat([x, h], how.get("axis", 1)), weights[0]), np.ones(2 * UNITS, "f")
    )
    r, u = map(tf.sigmoid, tf.split(total, 2, 1))
    rows = tf.concat([x, (u if how.get("same") else r) * h], 1)
    candidate = tf.tanh(tf.matmul(rows, weights[1]) + np.ones(UNITS, "f"))
    return u * h + (how.get("one", 1.0) - u) * (u if how.get("own") else candidate)


def gru_inputs() -> tuple[Any, Any]:
    return tf.placeholder(tf.float32, [ROWS, SIZE]), tf.placeholder(tf.float32, [ROWS, UNITS])


def test_what_a_gated_unit_consists_of() -> None:
    x, h = gru_inputs()
    (cell,) = GRU.find(simplified(gru(x, h)).nodes)
    assert (cell.reset_part, cell.update_part) == (0, 1) and cell.h.op.name == h.op.name
    assert cell.candidate_weights.dims == (SIZE + UNITS, UNITS) and cell.weights.dims == (7, 2 * UNITS)
    for change in ({"one": 2.0}, {"same": True}, {"own": True}):
        assert not list(GRU.find(simplified(gru(x, h, **change)).nodes)), change


def test_what_an_lstm_has_besides() -> None:
    cell = CELLS.LSTMCell(UNITS, use_peepholes=True, cell_clip=0.5, num_proj=3)
    _, outputs = unrolled(cell)
    *_, last = LSTM.find(simplified(*outputs).nodes)
    assert last.peephole.op.name.endswith("w_o_diag") and float(last.limit) == 0.5
    assert last.projection.op.name.endswith("projection/kernel") and last.scale is None
    assert len(list(LSTM.find(simplified(*outputs).nodes))) == STEPS


def test_basic_cells_have_a_bias_and_one_product() -> None:
    x, h = gru_inputs()
    weights = tf.Variable(np.ones((SIZE + UNITS, UNITS), "f"))
    total = tf.matmul(tf.concat([x, h], 1), weights)
    assert len(list(BASIC.find(simplified(tf.tanh(total + np.ones(UNITS, "f"))).nodes))) == 1
    for other in (tf.tanh(total), tf.exp(total + np.ones(UNITS, "f"))):
        assert not list(BASIC.find(simplified(other).nodes))
    transposed = tf.matmul(tf.concat([x, h], 1), tf.Variable(np.ones((4, 7), "f")), transpose_b=True)
    assert not list(BASIC.find(simplified(tf.tanh(transposed + np.ones(UNITS, "f"))).nodes))


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16])
def test_cells_of_other_types_are_found(dtype: Any) -> None:
    x = tf.placeholder(dtype, [ROWS, STEPS, SIZE])
    for k, (cell, kind) in enumerate(
        ((CELLS.GRUCell, "gated recurrent units"), (CELLS.BasicRNNCell, "basic cells"))
    ):
        with tf.variable_scope(f"network_{k}"):
            outputs, _ = tf.nn.static_rnn(cell(UNITS), tf.unstack(x, STEPS, 1), dtype=dtype)
        assert names(simplified(*outputs)) == [f"{STEPS} {kind}"]


@pytest.mark.needs_onednn
def test_cells_that_wait_for_something_are_found_and_wait(monkeypatch) -> None:
    x, h = gru_inputs()
    counter = tf.Variable(0)
    with tf.control_dependencies([counter.assign_add(1)]):
        y = gru(x, h)
    assert len(list(GRU.find(simplified(y).nodes))) == 1
    feed = {z: RNG.standard_normal(z.shape.as_list()).astype("f") for z in (x, h)}
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [y], feed, "join_lstm_layers", fires=0, setup=setup)
    with tf.Session() as session:
        session.run(setup)
        session.run(y, feed)
        assert session.run(counter) == 1
