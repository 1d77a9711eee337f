"""Products of few rows as machine code: which become calls, what they take along, equal results without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, text
from flowstone.framework import flags
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "-")
RANDOM = np.random.RandomState(0)
PASSES = ("fuse_biases", "join_clusters", "compile_products")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)


def fed(*dims: int | None, dtype: str = "float32") -> Any:
    return tf.placeholder(dtype, dims)


def calls(fetches: list[Any], feeds: list[Any]) -> list[str]:
    """What each call of the machine code of a product does."""
    lines = text(fetches, feeds, *PASSES)
    return [line.split("operations='")[1].split("'")[0] for line in lines if " _ProductCluster(" in line]


def values(*placeholders: Any) -> dict[Any, Any]:
    return {x: RANDOM.standard_normal(x.shape.as_list()) for x in placeholders}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_with_bias_activation_and_cluster_is_one_call(
    monkeypatch: pytest.MonkeyPatch, dtype: str, transposed: bool
) -> None:
    x, b, y = fed(20, 60, dtype=dtype), fed(50, dtype=dtype), fed(20, 50, dtype=dtype)
    w = fed(50, 60, dtype=dtype) if transposed else fed(60, 50, dtype=dtype)
    z = tf.nn.tanh(tf.nn.bias_add(tf.matmul(x, w, transpose_b=transposed), b)) * y + 0.5
    assert calls([z], [x, w, b, y]) == ["product+AddV2+Tanh+Mul+AddV2"]
    agree(monkeypatch, [z], values(x, w, b, y), "compile_products", fires=1)


def test_others_may_take_the_product_too(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, y = fed(20, 60), fed(60, 50), fed(20, 50)
    product = tf.matmul(x, w)
    z = tf.exp(product) * y
    fetches = [z, tf.reduce_max(product, 0), product]
    assert calls(fetches, [x, w, y]) == ["product+Exp+Mul"]
    agree(monkeypatch, fetches, values(x, w, y), "compile_products", fires=1)


def test_of_two_products_the_cluster_joins_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, h, u, w = fed(20, 60), fed(20, 50), fed(60, 50), fed(50, 50)
    z = tf.tanh(tf.matmul(x, u) * tf.matmul(h, w))
    assert calls([z], [x, h, u, w]) == ["product", "product+Mul+Tanh"]
    agree(monkeypatch, [z], values(x, h, u, w), "compile_products", fires=2)


def test_what_waits_for_a_product_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, y = fed(20, 60), fed(60, 50), fed(20, 50)
    product = tf.matmul(x, w)
    state = tf.Variable(tf.ones([50]))
    with tf.control_dependencies([product]):
        later = tf.assign_add(state, tf.ones([50]))
    z = tf.exp(product * 0.1) * y + later
    assert calls([z], [x, w, y]) == ["product"]
    agree(monkeypatch, [z], values(x, w, y), "compile_products", fires=1, setup=state.initializer)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_weights_are_calls(
    monkeypatch: pytest.MonkeyPatch, set_profile: Any, dtype: str
) -> None:
    x, g, y = fed(20, 60, dtype=dtype), fed(20, 50, dtype=dtype), fed(60, 50, dtype=dtype)
    z = tf.matmul(x, g, transpose_a=True) * 0.1 + y
    set_profile(gradient_examples=0)
    assert calls([z], [x, g, y]) == []
    set_profile(gradient_examples=20)
    assert calls([z], [x, g, y]) == ["product+Mul+AddV2"]
    agree(monkeypatch, [z], values(x, g, y), "compile_products", fires=1)
    assert calls([tf.matmul(x, g_columns := fed(50, 20, dtype=dtype), True, True)], [x, g_columns]) == []


def test_many_rows_other_types_and_transposed_first_matrices_are_left() -> None:
    x, w = fed(500, 60), fed(60, 50)
    assert calls([tf.matmul(x, w)], [x, w]) == []
    assert calls([tf.matmul(x, x, transpose_a=True)], [x]) == []
    x, w = fed(20, 60, dtype="complex64"), fed(60, 50, dtype="complex64")
    assert calls([tf.matmul(x, w)], [x, w]) == []


def test_clusters_with_reductions_are_left_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = fed(20, 60), fed(60, 50)
    z = tf.nn.softmax(tf.matmul(x, w) * 2.0)
    assert calls([z], [x, w]) == ["product"]
    agree(monkeypatch, [z], values(x, w), "compile_products", fires=1)


@pytest.mark.parametrize("resource", [False, True])
def test_weights_that_change_are_read_as_they_are(monkeypatch: pytest.MonkeyPatch, resource: bool) -> None:
    x, y = fed(20, 60), fed(20, 50)
    w = tf.Variable(RANDOM.standard_normal((60, 50)).astype("f"), use_resource=resource)
    before = tf.exp(tf.matmul(x, w) * 0.1) * y
    with tf.control_dependencies([before]):
        changed = tf.assign_add(w, tf.ones([60, 50]))
    with tf.control_dependencies([changed]):
        after = tf.exp(tf.matmul(x, w.read_value()) * 0.1) * y
    setup = tf.global_variables_initializer()
    fetches = [before, after]
    agree(monkeypatch, fetches, values(x, y), "compile_products", fires=2, setup=setup, tolerance=1e-3)


def test_weights_that_change_while_a_product_waits_for_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = fed(20, 60), fed(20, 50)
    w = tf.Variable(RANDOM.standard_normal((60, 50)).astype("f"))
    product = tf.matmul(x, w)
    with tf.control_dependencies([product]):
        changed = tf.assign(w, tf.zeros([60, 50]))
    with tf.control_dependencies([changed]):
        z = tf.exp(product * 0.1) * y
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [z], values(x, y), "compile_products", fires=1, setup=setup)


CELLS: dict[str, Any] = {
    "basic": lambda: tf.nn.rnn_cell.BasicRNNCell(40),
    "gru": lambda: tf.nn.rnn_cell.GRUCell(40),
    "peepholes": lambda: tf.nn.rnn_cell.LSTMCell(40, use_peepholes=True),
    "projection": lambda: tf.nn.rnn_cell.LSTMCell(40, num_proj=24),
    "normalised": lambda: tf.contrib.rnn.LayerNormBasicLSTMCell(40),
    "residual": lambda: tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.GRUCell(40)),
}


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_recurrences_and_their_gradients(monkeypatch: pytest.MonkeyPatch, name: str, looped: bool) -> None:
    tf.set_random_seed(1)
    x, lengths = fed(12, 4, 40), tf.constant([1 + i % 4 for i in range(12)])
    cell = CELLS[name]()
    if looped:
        y, _ = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    else:
        outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
        y = tf.stack(outputs)
    weights = tf.trainable_variables()
    fetches = [y, *tf.gradients(tf.reduce_sum(tf.square(y)), [x, *weights])]
    setup = tf.global_variables_initializer()
    disabled = flags.DISABLED_PASSES | frozenset(
        {"join_programs", "join_lstm_layers", "join_lstm_loops"}
    )  # they come before
    explained = compared(monkeypatch, fetches, values(x), setup, disabled)
    assert "compile_products: " in explained


def compared(
    monkeypatch: pytest.MonkeyPatch, fetches: list[Any], feeds: Any, setup: Any, disabled: frozenset[str]
) -> str:
    """The plan's explanation, once the results with and without machine code of products agree."""
    results, texts = [], []
    for more in (frozenset(), frozenset({"compile_products"})):
        monkeypatch.setattr(flags, "DISABLED_PASSES", disabled | more)
        with tf.Session() as session:
            session.run(setup)
            texts.append(session.explain(fetches, feeds))
            results.append(session.run(fetches, feeds))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    return texts[0]


def test_the_first_runs_go_by_aten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    x, w, y = fed(20, 60), fed(60, 50), fed(20, 50)
    agree(monkeypatch, [tf.sigmoid(tf.matmul(x, w)) * y], values(x, w, y), "compile_products", fires=1)


def test_explanations_name_the_call() -> None:
    x, w, y = fed(20, 60), fed(60, 50), fed(20, 50)
    with tf.Session() as session:
        z = tf.exp(tf.matmul(x, w)) * y
        explained = session.explain([z], values(x, w, y))
    assert "product float32[20,60] x float32[60,50]" in explained


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_choice_of_rows_comes_along(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """As in a layer of sequences with lengths, whose state stays where a sequence is over."""
    x, w, h = fed(20, 60, dtype=dtype), fed(60, 50, dtype=dtype), fed(20, 50, dtype=dtype)
    is_over = tf.placeholder(tf.bool, [20])
    z = tf.tanh(tf.matmul(x, w))
    fetches = [tf.where(is_over, h, z), tf.where(is_over, tf.zeros_like(z), z)]
    assert calls(fetches, [x, w, h, is_over]) == ["product+Tanh+Select+Select"]
    feed = {**values(x, w, h), is_over: RANDOM.rand(20) < 0.5}
    feed[h][3] = np.nan
    agree(monkeypatch, fetches, feed, "compile_products", fires=1)
