"""Loops over batches and lengths that only the step knows, as one machine code for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.machine.machine import Machine
from flowstone.lowering.programs import program_regions
from flowstone.lowering.programs.open_dims import with_open_dims, without_open
from flowstone.native.programs import program_code
from flowstone.native.programs.open_sizes import named
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.plans import function_calls

_STEPS = 9
Fed = Callable[[Any], dict[Any, Any]]
_Program = Callable[[], tuple[Any, Fed]]


def _variable(name: str, *dims: int) -> Any:
    values = np.random.RandomState(len(name) + sum(dims)).randn(*dims) * 0.3
    return tf.get_variable(name, initializer=values.astype(np.float32))


def _shape(rng: Any) -> tuple[int, int]:
    return int(rng.randint(2, 20)), int(rng.randint(3, 20))


def _recurrence(cell: Callable[[], Any]) -> tuple[Any, Fed]:
    x, lengths = tf.placeholder(tf.float32, [None, None, 3]), tf.placeholder(tf.int32, [None])
    y, _ = tf.nn.dynamic_rnn(cell(), x, lengths, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(y))
    gradients = tf.gradients(loss, [x, *tf.trainable_variables()])

    def fed(rng: Any) -> dict[Any, Any]:
        b, t = _shape(rng)
        return {x: rng.rand(b, t, 3).astype(np.float32), lengths: rng.randint(0, t + 1, b)}

    return [y, loss, *gradients], fed


def _scan() -> tuple[Any, Fed]:
    x, w = tf.placeholder(tf.float32, [None, None, 4]), _variable("w", 4, 4)
    y = tf.scan(lambda s, e: tf.tanh(tf.matmul(s, w) + e), tf.transpose(x, [1, 0, 2]), tf.zeros_like(x[:, 0]))
    loss = tf.reduce_sum(y[-1] * y[0])
    return [y, *tf.gradients(loss, [x, w])], lambda rng: {x: rng.rand(*_shape(rng), 4).astype(np.float32)}


def _attention() -> tuple[Any, Fed]:
    memory, start = tf.placeholder(tf.float32, [None, None, 4]), tf.placeholder(tf.float32, [None, 4])
    w = _variable("w", 8, 4)

    def body(i: Any, h: Any) -> Any:
        weights = tf.nn.softmax(tf.reduce_sum(memory * tf.expand_dims(h, 1), 2))
        context = tf.reduce_sum(tf.expand_dims(weights, 2) * memory, 1)
        return i + 1, tf.tanh(tf.matmul(tf.concat([h, context], 1), w))

    _, h = tf.while_loop(lambda i, h: i < 5, body, (0, start))
    loss = tf.reduce_sum(h * h)

    def fed(rng: Any) -> dict[Any, Any]:
        b, t = _shape(rng)
        return {memory: rng.rand(b, t, 4).astype(np.float32), start: rng.rand(b, 4).astype(np.float32)}

    return [h, *tf.gradients(loss, [memory, start, w])], fed


def _viterbi() -> tuple[Any, Fed]:
    x, w = tf.placeholder(tf.float32, [None, None, 4]), _variable("w", 4, 4)
    scores = tf.transpose(x, [1, 0, 2])

    def step(before: Any, e: Any) -> Any:
        ways = tf.expand_dims(before[0], 2) + w
        return tf.reduce_max(ways, 1) + e, tf.argmax(ways, 1, output_type=tf.int32)

    first = scores[0], tf.zeros_like(tf.cast(scores[0], tf.int32))
    found = tf.scan(step, scores[1:], initializer=first)
    return list(found), lambda rng: {x: rng.rand(*_shape(rng), 4).astype(np.float32)}


def _field() -> tuple[Any, Fed]:
    """A conditional random field's likelihood, in log space, with padding and slices of the labels."""
    x, labels = tf.placeholder(tf.float32, [None, None, 4]), tf.placeholder(tf.int32, [None, None])
    w, lengths = _variable("w", 4, 4), tf.placeholder(tf.int32, [None])
    scores = tf.transpose(x, [1, 0, 2])

    def step(before: Any, now: Any) -> Any:
        t, e = now
        total = tf.reduce_logsumexp(tf.expand_dims(before, 2) + w, 1) + e
        return tf.where(t < lengths, total, before)

    alphas = tf.scan(step, (tf.range(1, tf.shape(scores)[0]), scores[1:]), initializer=scores[0])
    pairs = tf.gather(tf.reshape(w, [-1]), labels[:, :-1] * 4 + labels[:, 1:])
    loss = tf.reduce_mean(tf.reduce_logsumexp(alphas[-1], 1)) - tf.reduce_mean(tf.reduce_sum(pairs, 1))

    def fed(rng: Any) -> dict[Any, Any]:
        b, t = _shape(rng)
        ids = rng.randint(0, 4, (b, t))
        return {x: rng.rand(b, t, 4).astype(np.float32), labels: ids, lengths: rng.randint(1, t + 1, b)}

    return [loss, *tf.gradients(loss, [x, w])], fed


def _solver() -> tuple[Any, Fed]:
    x = tf.placeholder(tf.float32, [None, 3])
    i, y = tf.while_loop(
        lambda i, y: tf.logical_and(i < 30, tf.reduce_max(tf.abs(y * y - x)) > 1e-3),
        lambda i, y: (i + 1, 0.5 * (y + x / y)),
        (0, tf.ones_like(x)),
    )
    return [i, y, *tf.gradients(y, x)], lambda rng: {x: 0.1 + rng.rand(_shape(rng)[0], 3).astype(np.float32)}


def _whole_numbers() -> tuple[Any, Fed]:
    x, n = tf.placeholder(tf.int32, [None, 3]), tf.placeholder(tf.int32, [])

    def body(i: Any, y: Any) -> Any:
        return i + 1, tf.where(tf.greater(y, 5), y // (x + 1), y * 3 + tf.reduce_sum(x))

    _, y = tf.while_loop(lambda i, y: i < n, body, (0, x))
    return [y], lambda rng: {x: rng.randint(0, 9, (_shape(rng)[0], 3)), n: rng.randint(0, 9)}


def _branches() -> tuple[Any, Fed]:
    x, n = tf.placeholder(tf.float32, [None, None, 3]), tf.placeholder(tf.int32, [])

    def body(i: Any, y: Any) -> Any:
        return i + 1, tf.cond(
            tf.equal(i % 3, 0), lambda: tf.sin(y) + x, lambda: y - tf.reduce_mean(y, 0, True)
        )

    _, y = tf.while_loop(lambda i, y: i < n, body, (0, x))
    return [y], lambda rng: {
        x: rng.rand(*_shape(rng), 3).astype(np.float32),
        n: rng.randint(0, 9),
    }


PROGRAMS: dict[str, _Program] = {
    "GRU": lambda: _recurrence(lambda: tf.nn.rnn_cell.GRUCell(6)),
    "LSTM": lambda: _recurrence(lambda: tf.nn.rnn_cell.LSTMCell(6, use_peepholes=True)),
    "scan": _scan,
    "attention": _attention,
    "Viterbi": _viterbi,
    "conditional random field": _field,
    "branches": _branches,
    "solver": _solver,
    "whole numbers": _whole_numbers,
}


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        yield


def _run(make: _Program, native: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What steps on ever new shapes give."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        fetches, fed = make()
        session.run(tf.global_variables_initializer())
        rng, found = np.random.RandomState(0), []
        for i in range(_STEPS):
            is_wide = i > 1  # the first shapes have plans of their own
            monkeypatch.setattr(flags, "NATIVE", native if is_wide else 0)
            found.append(session.run(fetches, fed(rng)))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_on_ever_new_shapes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[list[str]] = []  # why loops of plans with open sizes are Python
    joined = program_regions._joined

    def noted(subgraph: Any, has_open: bool) -> Any:
        result = joined(subgraph, has_open)
        if has_open:
            left.append([why for node, why in result.items() if node.declaration.role == "enter"])
        return result

    wanted = _run(PROGRAMS[name], 0, monkeypatch)
    monkeypatch.setattr(program_regions, "_joined", noted)
    found = _run(PROGRAMS[name], 2, monkeypatch)
    assert left and not any(left)
    for a, b in zip(found, wanted, strict=True):
        for x, y in zip(a, b, strict=True):
            assert x.dtype == y.dtype and np.shape(x) == np.shape(y)
            np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)


def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_code, "_MOST_OPEN", 1 << 14)


def _many_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "looped_products", lambda machine, with_gradients: 16 * 7 * 7)


@pytest.mark.parametrize("bound", [_large, _many_products])
def test_steps_with_much_work_are_lowered_without_programs(
    bound: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(monkeypatch)
    lowered: list[set[str]] = []
    run_passes = function_calls.run_passes

    def noted(subgraph: Any, *args: Any) -> Any:
        run_passes(subgraph, *args)
        lowered.append({node.type for node in subgraph.nodes})

    monkeypatch.setattr(function_calls, "run_passes", noted)
    x, w = tf.placeholder(tf.float32, [None, None, 7]), _variable("w", 7, 7)
    y = tf.scan(lambda s, e: tf.tanh(tf.matmul(s, w) * 0.5 + e), x, tf.zeros_like(x[0]))
    fetches, rng = [y, *tf.gradients(y, [x, w])], np.random.RandomState(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for rows in (2, 3, 4, 5, 6, 40, 7, 50):
            values = rng.rand(rows // 2 + 2, rows, 7).astype(np.float32)
            monkeypatch.setattr(flags, "NATIVE", 0)
            with tf.Session() as other:
                other.run(tf.global_variables_initializer())
                wanted = other.run(fetches, {x: values})
            monkeypatch.setattr(flags, "NATIVE", 2)
            for a, b in zip(session.run(fetches, {x: values}), wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
            assert len(lowered) == (rows >= 40 or bool(lowered))
    assert "_Cluster" in lowered[0] and "_Program" not in lowered[0]


def test_an_index_out_of_range_raises_and_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    x, n = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + tf.gather(x, i, name="rows")),
                      (0, tf.zeros([tf.shape(x)[1]])))[1]  # fmt: skip
    with tf.Session() as session:
        for size in (3, 4, 5, 6, 7):
            values = np.ones((size, size), np.float32)
            assert session.run(y, {x: values, n: size}).tolist() == [size] * size
        with pytest.raises(tf.errors.InvalidArgumentError, match="rows"):
            session.run(y, {x: np.ones((8, 8), np.float32), n: 9})
        assert session.run(y, {x: np.ones((9, 2), np.float32), n: 1}).tolist() == [1, 1]


def test_static_shapes_are_as_before_afterwards() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    z = tf.tanh(tf.reshape(x, [-1, 1, 3]))
    subgraph = prune([z], [], [x], [(None, 3)])
    with with_open_dims(subgraph) as has_open:
        assert not has_open
    subgraph.named_sizes = [(-1, 3)], {}
    before = [out.dims for node in subgraph.nodes for out in node.outputs]
    with with_open_dims(subgraph) as has_open:
        assert has_open and subgraph.fetches[0].dims == (named(1), 1, 3)
        assert without_open(subgraph.fetches[0].dims) == (None, 1, 3)
    assert [out.dims for node in subgraph.nodes for out in node.outputs] == before
