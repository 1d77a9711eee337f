"""Layers of LSTM cells as one kernel: what becomes one, what does not, and equal results without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.framework.machine.machine_profiles import NEVER
from flowstone.lowering.passes import EVERY

RNG = np.random.default_rng(11)
STEPS, ROWS, SIZE, UNITS = 9, 3, 4, 5
UP_TO_IT = [p.name for p in EVERY if p.name not in flags.DISABLED_PASSES]
UP_TO_IT = UP_TO_IT[: UP_TO_IT.index("join_lstm_layers") + 1]


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def weights(size: int = SIZE) -> tuple[Any, Any]:
    return tf.Variable(values(size + UNITS, 4 * UNITS)), tf.Variable(values(4 * UNITS))


def cell(x: Any, h: Any, c: Any, parameters: Any, order: str = "ijfo", forget: float = 1.0) -> Any:
    """A cell as programs write it, its gates in this order."""
    total = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), parameters[0]), parameters[1])
    gates = dict(zip(order, tf.split(total, 4, 1)))
    c = tf.sigmoid(gates["f"] + forget) * c + tf.sigmoid(gates["i"]) * tf.tanh(gates["j"])
    return tf.sigmoid(gates["o"]) * tf.tanh(c), c


def unrolled(xs: Any, h: Any, c: Any, parameters: Any, **how: Any) -> tuple[list[Any], list[Any]]:
    outputs, states = [], []
    for x in xs:
        h, c = cell(x, h, c, parameters, **how)
        outputs.append(h)
        states.append(c)
    return outputs, states


def placeholders() -> tuple[Any, Any, Any, Any]:
    """Inputs of all steps, first output and state, and values for them."""
    x, h, c = (tf.placeholder(tf.float32, d) for d in ([ROWS, STEPS, SIZE], [ROWS, UNITS], [ROWS, UNITS]))
    return x, h, c, {x: values(ROWS, STEPS, SIZE), h: values(ROWS, UNITS), c: values(ROWS, UNITS)}


def count(lines: list[str]) -> tuple[int, int, int]:
    found = ops(lines)
    return found.count("_LSTMLayer"), found.count("_LSTMLayerGradient"), found.count("Sigmoid")


@pytest.mark.needs_onednn
def test_layers_and_their_gradients_become_one_node_each(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [ROWS, STEPS, SIZE])
    layers = [tf.nn.rnn_cell.BasicLSTMCell(n) for n in (5, 6)]
    outputs, _ = tf.nn.static_rnn(
        tf.nn.rnn_cell.MultiRNNCell(layers), tf.unstack(x, STEPS, 1), dtype=tf.float32
    )
    loss = tf.reduce_mean(tf.square(tf.stack(outputs)))
    gradients = tf.gradients(loss, tf.trainable_variables())
    assert count(text([loss, *gradients], [x], *UP_TO_IT)) == (2, 2, 0)
    lines = text([outputs[-1]], [x], *UP_TO_IT)
    assert count(lines) == (2, 0, 0) and not any("training=True" in line for line in lines)
    feed = {x: values(ROWS, STEPS, SIZE)}
    setup = [v.assign(values(*v.shape.as_list())) for v in tf.trainable_variables()]
    log = agree(monkeypatch, [loss, *gradients], feed, "join_lstm_layers", fires=2, setup=setup)
    assert "9 cells in one kernel, and their gradients" in log


@pytest.mark.needs_onednn
@pytest.mark.parametrize("order", ["ijfo", "ifjo", "fijo", "ojif"])
@pytest.mark.parametrize("forget", [0.0, 1.0, -0.5])
def test_gates_lie_in_any_order(monkeypatch, order: str, forget: float) -> None:
    x, h, c, feed = placeholders()
    parameters = weights()
    outputs, states = unrolled(tf.unstack(x, STEPS, 1), h, c, parameters, order=order, forget=forget)
    loss = tf.reduce_sum(tf.stack(outputs, 1) * values(ROWS, STEPS, UNITS)) + tf.reduce_sum(states[-1] ** 2)
    fetches = [loss, *tf.gradients(loss, [*parameters, x, h, c])]
    assert count(text(fetches, [x, h, c], *UP_TO_IT)) == (1, 1, 0)
    agree(monkeypatch, fetches, feed, "join_lstm_layers", fires=1, setup=tf.global_variables_initializer())


@pytest.mark.needs_onednn
def test_gradients_of_some_outputs(monkeypatch) -> None:
    x, h, c, feed = placeholders()
    parameters = weights()
    outputs, _ = unrolled(tf.unstack(x, STEPS, 1), h, c, parameters)
    for some in ([2], [0, 5, 5], [STEPS - 1]):
        loss = tf.add_n([tf.reduce_sum(tf.square(outputs[i]) * (i + 1)) for i in some])
        fetches = [outputs[-1], *tf.gradients(loss, [*parameters, x])]
        assert count(text(fetches, [x, h, c], *UP_TO_IT)) == (1, 1, 0)
        agree(
            monkeypatch, fetches, feed, "join_lstm_layers", fires=1, setup=tf.global_variables_initializer()
        )


@pytest.mark.needs_onednn
def test_other_gradients_of_the_weights_are_added(monkeypatch) -> None:
    x, h, c, feed = placeholders()
    parameters = weights()
    xs = tf.unstack(x, STEPS, 1)
    outputs, _ = unrolled(xs, h, c, parameters)
    others, _ = unrolled(xs[::-1], c, h, parameters)
    loss = tf.reduce_sum(outputs[-1] * others[-1]) + tf.nn.l2_loss(parameters[0])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.control_dependencies([train]):
        after = tf.identity(parameters[0].read_value())
    fetches = [loss, after]
    assert count(text([loss], [x, h, c], *UP_TO_IT, targets=[train])) == (2, 2, 0)
    agree(monkeypatch, fetches, feed, "join_lstm_layers", fires=2, setup=tf.global_variables_initializer())


def test_a_decoder_that_is_fed_its_own_words_stays(monkeypatch) -> None:
    parameters, (_, h, c, feed) = weights(UNITS), placeholders()
    x = first = h
    for _ in range(STEPS):
        h, c = cell(tf.square(x), h, c, parameters)
        x = h
    assert count(text([h], list(feed)[1:], *UP_TO_IT))[0] == 0
    assert first is not h


@pytest.mark.needs_onednn
def test_states_that_are_wanted_keep_their_cells() -> None:
    x, h, c, _ = placeholders()
    outputs, states = unrolled(tf.unstack(x, STEPS, 1), h, c, weights())
    assert count(text([outputs[-1], states[-1]], [x, h, c], *UP_TO_IT))[0] == 1
    assert count(text([outputs[-1], states[3]], [x, h, c], *UP_TO_IT))[0] == 0
    assert count(text([outputs[-1], tf.square(states[3])], [x, h, c], *UP_TO_IT))[0] == 0


def test_gradients_that_stop_between_steps_keep_their_cells(monkeypatch) -> None:
    x, h, c, feed = placeholders()
    parameters = weights()
    xs = tf.unstack(x, STEPS, 1)
    outputs, states = unrolled(xs[:4], h, c, parameters)
    more, _ = unrolled(xs[4:], tf.stop_gradient(outputs[-1]), tf.stop_gradient(states[-1]), parameters)
    loss = tf.reduce_sum(tf.square(tf.stack(outputs + more)))
    fetches = [loss, *tf.gradients(loss, parameters)]
    assert count(text(fetches, [x, h, c], *UP_TO_IT))[0] == 0
    agree(monkeypatch, fetches, feed, "join_lstm_layers", fires=0, setup=tf.global_variables_initializer())


@pytest.mark.needs_onednn
def test_an_output_that_is_changed_in_place_is_still_there_for_the_gradient(monkeypatch) -> None:
    x, h, c, feed = placeholders()
    parameters = weights()
    outputs, _ = unrolled(tf.unstack(x, STEPS, 1), h, c, parameters)
    loss = tf.reduce_sum(tf.tanh(tf.nn.relu(outputs[3] + 1.0)) + tf.exp(outputs[-1]))
    fetches = [loss, *tf.gradients(loss, [*parameters, h])]
    agree(monkeypatch, fetches, feed, "join_lstm_layers", fires=1, setup=tf.global_variables_initializer())


def test_few_cells_and_other_types_stay() -> None:
    x, h, c, _ = placeholders()
    outputs, _ = unrolled(tf.unstack(x, STEPS, 1)[:7], h, c, weights())
    assert count(text([outputs[-1]], [x, h, c], *UP_TO_IT))[0] == 0
    wide = [tf.cast(v, tf.float64) for v in (*tf.unstack(x, STEPS, 1), h, c, *weights())]
    outputs, _ = unrolled(wide[:STEPS], *wide[STEPS : STEPS + 2], wide[STEPS + 2 :])
    assert count(text([outputs[-1]], [x, h, c], *UP_TO_IT))[0] == 0


@pytest.mark.needs_onednn
@pytest.mark.parametrize("least", [0, NEVER])
def test_weights_that_change_before_the_gradient(monkeypatch, set_profile, least: int) -> None:
    """It takes the weights that the layer took."""
    set_profile(layers_by_products=least)
    monkeypatch.setattr(flags, "NATIVE", 2)
    x, h, c, feed = placeholders()
    kernel = tf.get_variable("kernel", initializer=values(SIZE + UNITS, 4 * UNITS), use_resource=True)
    read = kernel.read_value()
    outputs, states = unrolled(tf.unstack(x, STEPS, 1), h, c, (read, tf.constant(values(4 * UNITS))))
    loss = tf.reduce_sum(outputs[-1] * states[-1])
    with tf.control_dependencies([loss]):
        change = kernel.assign(-read)
    with tf.control_dependencies([change]):
        gradients = tf.gradients(tf.identity(loss), [read, x, h, c])
    fetches, setup = [loss, *gradients], tf.global_variables_initializer()
    log = agree(monkeypatch, fetches, feed, "join_lstm_layers", fires=1, setup=setup)
    assert "9 cells in one kernel, and their gradients" in log
