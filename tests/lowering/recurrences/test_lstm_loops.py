"""Loops of LSTM cells as kernels of layers: what becomes one, what does not, equal results without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.lowering.passes import EVERY

RNG = np.random.default_rng(12)
STEPS, ROWS, SIZE, UNITS = 9, 3, 4, 5
UP_TO_IT = [p.name for p in EVERY if p.name not in flags.DISABLED_PASSES]
UP_TO_IT = UP_TO_IT[: UP_TO_IT.index("forward_whole_arrays") + 1]
NAMES = ("join_lstm_loops", "forward_whole_arrays")


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def variables(layers: int) -> list[tuple[Any, Any]]:
    sizes = [SIZE, *[UNITS] * layers][:layers]
    return [(tf.Variable(values(n + UNITS, 4 * UNITS)), tf.Variable(values(4 * UNITS))) for n in sizes]


def looped(
    x: Any, state: Any, parameters: Any, steps: int = STEPS, change: Any = None, **how: Any
) -> tuple[Any, Any]:
    """Outputs of the layers, [layers, T, B, H], and the last state: x and h of a layer, below to above."""
    inputs = tf.TensorArray(tf.float32, steps).unstack(x)
    arrays = [tf.TensorArray(tf.float32, steps) for _ in parameters]

    def body(t: Any, arrays: Any, *state: Any) -> list[Any]:
        y, new = inputs.read(t), []
        for k, (weights, bias) in enumerate(parameters):
            gates = tf.split(tf.matmul(tf.concat([y, state[2 * k + 1]], 1), weights) + bias, 4, 1)
            c = tf.sigmoid(gates[2] + 1.0) * state[2 * k] + tf.sigmoid(gates[0]) * tf.tanh(gates[1])
            y = tf.sigmoid(gates[3]) * tf.tanh(c)
            y = y if change is None else change(y)
            new += [c, y]
        return [t + 1, [a.write(t, new[2 * k + 1]) for k, a in enumerate(arrays)], *new]

    results = tf.while_loop(lambda t, *_: t < steps, body, [tf.constant(0), arrays, *state], **how)
    return [a.stack() for a in results[1]], results[2:]


def fed(*dims: int) -> tuple[Any, dict[Any, Any]]:
    x = tf.placeholder(tf.float32, dims)
    return x, {x: values(*dims)}


def zeros(layers: int) -> list[Any]:
    return [tf.zeros([ROWS, UNITS]) for _ in range(2 * layers)]


def weighed(*tensors: Any) -> Any:
    """A scalar on which all elements of all these have their own influence."""
    return tf.add_n([tf.reduce_sum(x * values(*x.shape.as_list())) for x in tensors])


def assigned() -> list[Any]:
    """What gives all variables the same values in each session."""
    variables = [(v, v.shape.as_list()) for v in tf.global_variables()]
    return [v.assign(np.cos(np.arange(np.prod(dims)) * 3.7).reshape(dims)) for v, dims in variables]


def flat(parameters: Any) -> list[Any]:
    return [x for pair in parameters for x in pair]


def count(lines: list[str]) -> tuple[int, int, int]:
    """Kernels of layers and of their gradients, and what is left of loops and arrays."""
    found = ops(lines)
    others = [x for x in found if x in ("Enter", "StackV2") or x.startswith("TensorArray")]
    return found.count("_LSTMSequence"), found.count("_LSTMSequenceGradient"), len(others)


def same(
    monkeypatch: Any, fetches: Any, feed: Any, layers: int, gradients: int, fires: tuple[int, int]
) -> str:
    """That there are so many kernels and no loop, and that results are the same without."""
    assert count(text(fetches, list(feed), *UP_TO_IT)) == (layers, gradients, 0)
    return agree(monkeypatch, fetches, feed, *NAMES, fires=fires, setup=assigned())


@pytest.mark.needs_onednn
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("swap_memory", [False, True])
@pytest.mark.by_aten
def test_a_loop_and_its_gradient_are_kernels(monkeypatch, layers: int, swap_memory: bool) -> None:
    x, feed = fed(STEPS, ROWS, SIZE)
    parameters = variables(layers)
    outputs, _ = looped(x, zeros(layers), parameters, swap_memory=swap_memory)
    loss = weighed(outputs[-1])
    fetches = [loss, *tf.gradients(loss, flat(parameters))]
    log = same(monkeypatch, fetches, feed, layers, layers, fires=(1, 3))
    assert f"{layers} layers of LSTM cells, 9 steps, and their gradients" in log
    assert not any("training=True" in line for line in text([outputs[-1]], [x], *UP_TO_IT))
    same(monkeypatch, [outputs[-1]], feed, layers, 0, fires=(1, 2))


@pytest.mark.needs_onednn
@pytest.mark.by_aten
def test_the_graph_is_that_of_the_layers() -> None:
    x, _ = fed(STEPS, ROWS, SIZE)
    outputs, _ = looped(x, zeros(1), variables(1))
    assert text([outputs[0]], [x], *UP_TO_IT)[-2:] == [
        "%4 = _LSTMSequence(%0, %1, %1, %2, %3) forget_bias=1.0 gates=(0,2,1,3) :"
        " float32[9,3,5], float32[3,5], float32[3,5], resource[]  # while/MatMul",
        "return %4",
    ]


@pytest.mark.needs_onednn
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.by_aten
def test_states_and_inputs_have_gradients(monkeypatch, layers: int) -> None:
    x, feed = fed(STEPS, ROWS, SIZE)
    parameters = variables(layers)
    first = [tf.Variable(values(ROWS, UNITS)) for _ in range(2 * layers)]
    outputs, last = looped(tf.tanh(x), first, parameters)
    arrays = 2 * layers + 2  # with the outputs, of each of which gradients come
    for loss, taken in (
        (weighed(*outputs, *last), arrays),
        (weighed(*last), 2),
        (weighed(last[-1]), 2),
        (weighed(outputs[0], last[0]), 4),
    ):
        wanted = [x, *flat(parameters), *first]
        gradients = [g for g in tf.gradients(loss, wanted) if g is not None]
        agree(monkeypatch, [loss, *last, *gradients], feed, *NAMES, fires=(1, taken), setup=assigned())
    loss = weighed(*outputs, *last)
    fetches = [loss, *tf.gradients(loss, [x, *flat(parameters), *first])]
    same(monkeypatch, fetches, feed, layers, layers, fires=(1, arrays))


@pytest.mark.needs_onednn
@pytest.mark.by_aten
def test_all_states_are_fetched_without_gradients(monkeypatch) -> None:
    x, feed = fed(STEPS, ROWS, SIZE)
    _, last = looped(x, zeros(2), variables(2))
    same(monkeypatch, list(last), feed, 2, 0, fires=(1, 1))


@pytest.mark.needs_onednn
@pytest.mark.by_aten
def test_some_of_the_outputs_are_used(monkeypatch) -> None:
    x, feed = fed(STEPS, ROWS, SIZE)
    parameters = variables(2)
    outputs, _ = looped(x, zeros(2), parameters)
    loss = weighed(outputs[-1][-1], outputs[-1][2])
    same(monkeypatch, [loss, *tf.gradients(loss, flat(parameters))], feed, 2, 2, fires=(1, 3))


@pytest.mark.needs_onednn
@pytest.mark.by_aten
def test_gradients_that_end_between_layers(monkeypatch) -> None:
    x, feed = fed(STEPS, ROWS, SIZE)
    parameters = variables(1)
    below, _ = looped(x, zeros(1), parameters)
    above = variables(2)[1:]
    outputs, _ = looped(tf.stop_gradient(below[0]), zeros(1), above)
    loss = weighed(outputs[0])
    same(monkeypatch, [loss, *tf.gradients(loss, flat(above))], feed, 2, 1, fires=(2, 5))


@pytest.mark.needs_onednn
@pytest.mark.by_aten
def test_weights_that_two_loops_share(monkeypatch) -> None:
    x, feed = fed(STEPS, ROWS, SIZE)
    parameters = variables(1)
    (forwards,), _ = looped(x, zeros(1), parameters)
    (backwards,), _ = looped(tf.reverse(x, [0]), zeros(1), parameters)
    loss = weighed(forwards * backwards) + tf.nn.l2_loss(parameters[0][0])
    same(monkeypatch, [loss, *tf.gradients(loss, flat(parameters))], feed, 2, 2, fires=(2, 6))


@pytest.mark.needs_onednn
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.by_aten
def test_dynamic_rnn(monkeypatch, layers: int, time_major: bool) -> None:
    x, feed = fed(*((STEPS, ROWS) if time_major else (ROWS, STEPS)), SIZE)
    cells = [tf.nn.rnn_cell.LSTMCell(UNITS) for _ in range(layers)]
    cell = cells[0] if layers == 1 else tf.nn.rnn_cell.MultiRNNCell(cells)
    outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, time_major=time_major)
    c, h = state if layers == 1 else state[-1]
    same(monkeypatch, [outputs, c, h], feed, layers, 0, fires=(1, 2))
    for loss, taken in ((weighed(outputs), 4), (weighed(h), 2), (weighed(outputs, c, h), 4)):
        fetches = [loss, *tf.gradients(loss, [x, *tf.trainable_variables()])]
        same(monkeypatch, fetches, feed, layers, layers, fires=(1, taken))


@pytest.mark.needs_onednn
@pytest.mark.by_aten
def test_bidirectional_dynamic_rnn(monkeypatch) -> None:
    x, feed = fed(ROWS, STEPS, SIZE)
    cells = [tf.nn.rnn_cell.BasicLSTMCell(UNITS) for _ in range(2)]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, dtype=tf.float32)
    loss = weighed(*outputs)
    same(monkeypatch, [loss, *tf.gradients(loss, [x, *tf.trainable_variables()])], feed, 2, 2, fires=(2, 8))


@pytest.mark.needs_onednn
@pytest.mark.by_aten
def test_training_steps(monkeypatch) -> None:
    x, feed = fed(STEPS, ROWS, SIZE)
    parameters = variables(2)
    outputs, _ = looped(x, zeros(2), parameters)
    loss = weighed(tf.square(outputs[-1]))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    with tf.control_dependencies([train]):
        after = [tf.identity(v.read_value()) for v in flat(parameters)]
    assert count(text([loss, *after], [x], *UP_TO_IT)) == (2, 2, 0)
    agree(monkeypatch, [loss, *after], feed, *NAMES, fires=(1, 3), setup=assigned())


@pytest.mark.needs_onednn
@pytest.mark.by_aten
def test_rows_and_steps_that_are_known_when_they_are_fed(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [None, None, SIZE])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(UNITS), x, dtype=tf.float32)
    loss = tf.reduce_sum(tf.square(outputs))
    fetches = [loss, outputs, *tf.gradients(loss, tf.trainable_variables())]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for rows, steps in ((3, 9), (2, 12), (1, 4)):
            feed = {x: values(rows, steps, SIZE)}
            weights, bias = session.run(tf.trainable_variables())
            h, c = np.zeros((2, rows, UNITS), "f")
            for t in range(steps):
                i, j, f, o = np.split(np.concatenate([feed[x][:, t], h], 1) @ weights + bias, 4, 1)
                c = c / (1 + np.exp(-f - 1)) + np.tanh(j) / (1 + np.exp(-i))
                h = np.tanh(c) / (1 + np.exp(-o))
            np.testing.assert_allclose(session.run(fetches, feed)[1][:, -1], h, atol=1e-5)
    agree(monkeypatch, fetches, {x: values(3, 9, SIZE)}, *NAMES, fires=(1, 3), setup=assigned())


def stays(fetches: Any, feeds: Any) -> bool:
    found = count(text(fetches, feeds, *UP_TO_IT))
    return found[:2] == (0, 0) and found[2] > 0


@pytest.mark.by_aten
def test_what_is_more_than_cells_stays(monkeypatch) -> None:
    x, feed = fed(STEPS, ROWS, SIZE)
    parameters = variables(2)
    outputs, _ = looped(x, zeros(2), parameters, change=lambda y: y * 2.0)
    loss = weighed(outputs[-1])
    fetches = [loss, *tf.gradients(loss, flat(parameters))]
    assert stays(fetches, [x]) and stays([loss], [x])
    agree(monkeypatch, fetches, feed, *NAMES, fires=(0, 0), setup=assigned())


@pytest.mark.by_aten
def test_few_steps_and_sequence_lengths_stay() -> None:
    x, _ = fed(STEPS, ROWS, SIZE)
    assert stays([looped(x[:7], zeros(1), variables(1), steps=7)[0][0]], [x])
    lengths = tf.placeholder(tf.int32, [ROWS])
    cell = tf.nn.rnn_cell.LSTMCell(UNITS)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32, time_major=True)
    assert stays([outputs], [x, lengths])


def test_steps_that_are_not_known_stay() -> None:
    x, _ = fed(STEPS, ROWS, SIZE)
    steps = tf.placeholder(tf.int32, [])
    assert stays([looped(x, zeros(1), variables(1), steps=steps)[0][0]], [x, steps])


@pytest.mark.by_aten
def test_gradients_of_gradients_stay(monkeypatch) -> None:
    x, feed = fed(STEPS, ROWS, SIZE)
    parameters = variables(1)
    outputs, last = looped(x, zeros(1), parameters)
    (slope,) = tf.gradients(weighed(outputs[0]), [x])
    fetches = [slope, last[0], *tf.gradients(weighed(last[0]), flat(parameters))]
    assert stays(fetches, [x])  # two loops of gradients pop what one loop pushes
    agree(monkeypatch, fetches, feed, *NAMES, fires=(0, 0), setup=assigned())


def test_a_session_goes_on_after_an_error() -> None:
    x = tf.placeholder(tf.float32, [STEPS, ROWS, None])
    outputs, _ = looped(tf.ensure_shape(x, [STEPS, ROWS, SIZE]), zeros(1), variables(1))
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(outputs, {x: values(STEPS, ROWS, SIZE)})
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(outputs, {x: values(STEPS, ROWS, SIZE + 1)})
        assert session.run(outputs, {x: values(STEPS, ROWS, SIZE)})[0].shape == (STEPS, ROWS, UNITS)
