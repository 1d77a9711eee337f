"""Recurrent layers with cuDNN's vector of parameters: values by NumPy, gradients by difference quotients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

RANDOM = np.random.default_rng(5)
STEPS, BATCH, INPUTS, UNITS = 4, 2, 3, 3
GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def one_direction(mode: str, x: Any, h: Any, c: Any, weights: Any) -> Any:
    """A layer in one direction: the outputs, and the last state."""
    w, r, bw, br = weights
    outputs = []
    for row in x:
        a, b = np.split(row @ w.T + bw, GATES[mode], 1), np.split(h @ r.T + br, GATES[mode], 1)
        if mode == "lstm":
            i, f, new, o = (p + q for p, q in zip(a, b))
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
            h = sigmoid(o) * np.tanh(c)
        elif mode == "gru":
            reset, update = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
            h = (1 - update) * np.tanh(a[2] + reset * b[2]) + update * h
        else:
            h = np.maximum(a[0] + b[0], 0) if mode == "rnn_relu" else np.tanh(a[0] + b[0])
        outputs.append(h)
    return np.stack(outputs), h, c


def by_numpy(
    mode: str, layers: int, directions: int, skips: bool, x: Any, h: Any, c: Any, params: Any
) -> Any:
    rows, shapes = GATES[mode] * UNITS, []
    for layer in range(layers):
        width = INPUTS if layer == 0 else UNITS * directions
        for _ in range(directions):
            shapes += [(0, width) if skips and layer == 0 else (rows, width), (rows, UNITS)]
    shapes += [(rows,)] * len(shapes)
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    assert ends[-1] == len(params)
    parts = [part.reshape(shape) for part, shape in zip(np.split(params, ends[:-1]), shapes)]
    half, last_h, last_c = len(parts) // 2, [], []
    for layer in range(layers):
        found = []
        for direction in range(directions):
            i = 2 * (layer * directions + direction)
            weights = [parts[i], parts[i + 1], parts[half + i], parts[half + i + 1]]
            if not weights[0].size:
                weights[0] = np.tile(np.eye(UNITS), (GATES[mode], 1))
            place = layer * directions + direction
            y, *state = one_direction(mode, x[::-1] if direction else x, h[place], c[place], weights)
            found.append(y[::-1] if direction else y)
            last_h.append(state[0])
            last_c.append(state[1])
        x = np.concatenate(found, 2)
    return x, np.stack(last_h), np.stack(last_c)


def arguments(mode: str, layers: int, directions: int, skips: bool = False) -> list[Any]:
    count, rows = layers * directions, GATES[mode] * UNITS
    size = sum(
        rows * ((0 if skips and layer == 0 else INPUTS if layer == 0 else UNITS * directions) + UNITS + 2)
        for layer in range(layers) for _ in range(directions)
    )  # fmt: skip
    state = (count, BATCH, UNITS)
    shapes = [(STEPS, BATCH, INPUTS), state, state, (size,)]
    return [RANDOM.standard_normal(shape) * 0.5 for shape in shapes]


@pytest.mark.parametrize("mode", GATES)
@pytest.mark.parametrize(("layers", "directions", "kind"), [
    (1, 1, "linear_input"), (2, 1, "linear_input"), (2, 2, "linear_input"), (2, 2, "skip_input"),
    (1, 1, "auto_select"),
])  # fmt: skip
def test_values_and_gradients(mode: str, layers: int, directions: int, kind: str) -> None:
    skips = kind != "linear_input"
    given = arguments(mode, layers, directions, skips)
    direction = "bidirectional" if directions == 2 else "unidirectional"
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.constant(each) for each in given]
        outputs = F.CudnnRNN(*inputs, rnn_mode=mode, input_mode=kind, direction=direction)
        found = session.run(outputs)
        expected = by_numpy(mode, layers, directions, skips, *given)
        has_cell = mode == "lstm"
        for mine, theirs in zip(found[: 3 if has_cell else 2], expected):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        assert outputs[0].shape.as_list() == list(expected[0].shape)
        loss = sum(tf.reduce_sum(each**2) for each in outputs[: 3 if has_cell else 2])
        if not has_cell:
            inputs = [inputs[0], inputs[1], inputs[3]]
        for x in inputs:
            if mode != "rnn_relu":  # whose slope jumps
                assert tf.test.compute_gradient_error(x, x.shape.as_list(), loss, [], delta=1e-5) < 1e-6


def test_dropout_between_layers_is_the_same_in_the_gradient() -> None:
    given = arguments("lstm", 2, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        x, *rest = (tf.constant(each) for each in given)
        output, _, _, kept = F.CudnnRNN(x, *rest, dropout=0.5, seed=1, seed2=2)
        (gradient,) = tf.gradients(output, x)
        plain = F.CudnnRNN(x, *rest, dropout=0.5, is_training=False)[0]
        values = [session.run([output, gradient, kept, plain]) for _ in range(2)]
        assert set(np.unique(values[0][2])) == {0.0, 2.0}
        assert (values[0][2] != values[1][2]).any() and (values[0][0] != values[1][0]).any()
        np.testing.assert_allclose(values[0][3], by_numpy("lstm", 2, 1, False, *given)[0], rtol=1e-9)
        with pytest.raises(ValueError, match="needs is_training"):
            tf.gradients(plain, x)
    with tf.Graph().as_default(), tf.Session() as session:  # the same seeds, the same numbers
        again = F.CudnnRNN(*(tf.constant(each) for each in given), dropout=0.5, seed=1, seed2=2)
        np.testing.assert_array_equal(session.run(again[0]), values[0][0])


def test_what_does_not_fit_together() -> None:
    x, h, c, params = arguments("lstm", 1, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        for wrong, message in (
            ((x, h, c, params[1:]), "params must be a vector of"),
            ((x, h[:, :1], c, params), "does not fit input"),
            ((x[..., :2], h, c, params), "params must be a vector of"),
        ):
            unknown = [tf.placeholder_with_default(each, None) for each in wrong]
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                session.run(F.CudnnRNN(*unknown)[0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="as many units as inputs"):
            session.run(F.CudnnRNN(x[..., :2], h, c, params, input_mode="skip_input")[0])
