"""The choices that ``flowstone calibrate`` measures, each with the programs whose speed it decides.

The programs are what users write: layers of some sizes, and their training. A rung is a size; thresholds are
in the units of the profile's fields (`framework/machine/machine_profiles.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

import flowstone as tf
from flowstone.framework.machine.machine_profiles import NEVER, ZEN5

Program = Callable[[], Any]
"""Adds nodes to the default graph; returns the operation that a step runs."""


class Rung(NamedTuple):
    """A program, and the `threshold` that takes the choice from this size on."""

    threshold: int
    program: Program


class Choice(NamedTuple):
    """Fields of the profile that decide between two ways of computing something.

    `always` and `never`: the values of the fields with which the choice is always taken, and never; `rungs`:
    its programs, from the smallest on; `chosen(threshold)`: the values for a threshold that was measured.
    """

    name: str
    always: dict[str, Any]
    never: dict[str, Any]
    rungs: Sequence[Rung]
    chosen: Callable[[int], dict[str, Any]]


# ---- parts of programs


def _variable(*dims: int) -> Any:
    numbers = np.random.default_rng(len(dims)).standard_normal(dims)
    return tf.Variable((0.1 * numbers).astype(np.float32))


def _product(rows: int, terms: int, columns: int, transposed: bool = False) -> Program:
    def program() -> Any:
        a = _variable(terms, rows) if transposed else _variable(rows, terms)
        return tf.matmul(a, _variable(terms, columns), transpose_a=transposed).op

    return program


def _packed_product(size: int) -> Program:
    return lambda: tf.matmul(_variable(16, size), tf.get_variable("w", [size, size], use_resource=True)).op


def _update_by_few(size: int) -> Program:
    """A gradient descent step on eight examples."""

    def program() -> Any:
        gradient = tf.matmul(_variable(8, size), _variable(8, size), transpose_a=True)
        optimizer = tf.train.GradientDescentOptimizer(1e-6)
        return optimizer.apply_gradients([(gradient, _variable(size, size))])

    return program


def _convolution(
    images: Sequence[int], window: int, outputs: int, trains: bool = False, stride: int = 1
) -> Program:
    """A convolution with ReLU; `trains`: also the gradients with respect to its images and its filter."""

    def program() -> Any:
        x, w = _variable(*images), _variable(window, window, images[-1], outputs)
        y = tf.nn.conv2d(x, w, [1, stride, stride, 1], "SAME")
        y = tf.nn.relu(tf.nn.bias_add(y, _variable(outputs)))
        return tf.group(y, *tf.gradients(y, [x, w])) if trains else y.op

    return program


def _normalization(images: Sequence[int]) -> Program:
    return lambda: tf.nn.local_response_normalization(_variable(*images), depth_radius=4).op


def _pooling(images: Sequence[int]) -> Program:
    return lambda: tf.nn.max_pool(_variable(*images), [1, 3, 3, 1], [1, 1, 1, 1], "SAME").op


def _softmax(rows: int, columns: int) -> Program:
    return lambda: tf.nn.softmax(_variable(rows, columns)).op


def _recurrence(steps: int, examples: int, units: int) -> Program:
    """A layer of cells, with its gradients."""

    def program() -> Any:
        x = _variable(examples, steps, units)
        y, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(units), x, dtype=tf.float32)
        return tf.group(*tf.gradients(tf.reduce_sum(y), [x, *tf.trainable_variables()[1:]]))

    return program


def _tangents(elements: int) -> Program:
    return lambda: tf.tanh(_variable(elements)).op


def _squares(elements: int) -> Program:
    return lambda: tf.square(_variable(elements)).op


def _products_in_a_row(size: int, count: int) -> Program:
    def program() -> Any:
        x = _variable(size, size)
        for _ in range(count):
            x = tf.matmul(x, _variable(size, size))
        return x.op

    return program


# ---- the choices


def _rungs(programs: Iterable[tuple[int, Program]]) -> tuple[Rung, ...]:
    return tuple(Rung(*each) for each in programs)


def _threshold(field: str, rungs: Iterable[tuple[int, Program]], never: int = NEVER, **others: Any) -> Choice:
    """A field that is the smallest size for which the choice is taken; the values of `others` are the same
    either way."""
    return Choice(
        field,
        {**others, field: 0},
        {**others, field: never},
        _rungs(rungs),
        lambda found: {field: found},
    )


def _taken_whole(fields: dict[str, Any], never: dict[str, Any], program: Program) -> Choice:
    """Fields that are all set if one program gains by them."""
    return Choice(next(iter(fields)), fields, never, (Rung(0, program),), lambda found: fields)


def _up_to(field: str, rungs: Iterable[tuple[int, Program]]) -> Choice:
    """A field that is the largest size for which the choice is taken; rungs begin with the largest."""
    return Choice(field, {field: 64}, {field: 0}, _rungs(rungs), lambda found: {field: found})


_SIDES = (64, 80, 104, 128, 192, 256, 384)
_ALL_PRODUCTS = {"product_by_onednn": 0, "block_by_onednn": 0, "transposed_by_onednn": 0}
_NO_PRODUCTS = dict.fromkeys(_ALL_PRODUCTS, NEVER)
_ALONE = {"team_starts": 0, "team_among_others": NEVER, "team_together": NEVER}

CHOICES: tuple[Choice, ...] = (
    Choice(
        "product_by_onednn",
        _ALL_PRODUCTS,
        _NO_PRODUCTS,
        _rungs((32 * n * n, _product(32, n, n)) for n in _SIDES),
        lambda found: {"product_by_onednn": found},
    ),
    Choice(
        "block_by_onednn",
        _ALL_PRODUCTS,
        _NO_PRODUCTS,
        _rungs((n**3, _product(n, n, n)) for n in _SIDES),
        lambda found: {"block_by_onednn": found},
    ),
    Choice(
        "transposed_by_onednn",
        _ALL_PRODUCTS,
        _NO_PRODUCTS,
        _rungs((n**3, _product(n, n, n, True)) for n in _SIDES),
        lambda found: {"transposed_by_onednn": found},
    ),
    _taken_whole({"narrow_plain": True}, {"narrow_plain": False}, _product(4096, 32, 32)),
    _taken_whole({"packed_rows": 64, "packed_weights": 1 << 20}, {"packed_rows": 0}, _packed_product(2048)),
    _threshold("updates_by_rows", [(n * n, _update_by_few(n)) for n in (1024, 2048)]),
    _threshold(
        "convolution_by_onednn",
        [(n * n * 16 * 16 * 9, _convolution((1, n, n, 16), 3, 16)) for n in (8, 14, 20, 28, 40)],
    ),
    _taken_whole(
        {"pointwise_strides": True},
        {"pointwise_strides": False},
        _convolution((4, 56, 56, 256), 1, 256, trains=True, stride=2),
    ),
    _taken_whole(
        {"pointwise_positions": 64, "pointwise_positions_in_all": 512},
        {"pointwise_positions": 0, "pointwise_positions_in_all": 0},
        _convolution((8, 7, 7, 512), 1, 512, trains=True),
    ),
    _taken_whole(
        {"pointwise_rows": 1024, "pointwise_positions_in_all": 4096},
        {"pointwise_rows": 0},
        _convolution((4, 7, 7, 2048), 1, 512, trains=True),
    ),
    _taken_whole(
        {"pointwise_products": 1 << 26},
        {"pointwise_products": 0},
        _convolution((32, 8, 8, 64), 1, 64, trains=True),
    ),
    _taken_whole(
        {"tiny_images": 800, "tiny_gradients": 256},
        {"tiny_images": 0, "tiny_gradients": 0},
        _convolution((8192, 4, 4, 2), 3, 2, trains=True),
    ),
    _taken_whole({"band_channels": 128}, {"band_channels": 0}, _normalization((16, 28, 28, 64))),
    _threshold("sliding_maxima", [(n * n * 256, _pooling((1, n, n, 256))) for n in (14, 20, 28, 56)]),
    _taken_whole(
        {"winograd": ZEN5.winograd, "winograd_by_filter": ZEN5.winograd_by_filter},
        {"winograd": None, "winograd_by_filter": None},
        _convolution((8, 28, 28, 256), 3, 256, trains=True),
    ),
    _threshold("layer_cells", [(n, _recurrence(n, 20, 200)) for n in (8, 16, 32)]),
    _up_to("softmax_columns", [(n, _softmax(4000, n)) for n in (15, 7, 3)]),
    _threshold(
        "tanh_by_exponentials",
        [(n, _tangents(n)) for n in (3_000, 6_000, 12_000, 24_000)],
        tanh_by_onednn=NEVER,
    ),
    _threshold("tanh_by_onednn", [(n, _tangents(n)) for n in (20_000, 40_000, 80_000, 160_000)]),
    _threshold("team_alone", [(n**3, _product(n, n, n)) for n in (64, 80, 104, 116, 144, 192)], **_ALONE),
    _threshold(
        "team_by_element",
        [(6 * n, _squares(n)) for n in (30_000, 60_000, 125_000, 250_000)],
        **_ALONE,
        team_alone=NEVER,
    ),
    Choice(
        "team_among_others",
        {"team_alone": 0},
        {"team_alone": NEVER, **_ALONE},
        _rungs((n**3, _products_in_a_row(n, 20)) for n in (40, 56, 72, 80, 104, 128)),
        lambda found: {"team_among_others": found, "team_together": 12 * found},
    ),
)
"""The choices in the order in which they are measured: later ones run with the results of earlier ones."""
