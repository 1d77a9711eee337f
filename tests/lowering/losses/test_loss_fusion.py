"""Losses in one kernel, with gradients as they are wanted: graph text, and equal results without the pass."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.lowering.passes import EVERY

RNG = np.random.default_rng(5)
FOLDING = (
    "fold_constants",
    "apply_identities",
    "drop_waits",
    "merge_common_subexpressions",
    "remove_unneeded",
)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


@pytest.mark.by_aten
@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_sum])
def test_a_batch_of_cross_entropies_becomes_its_total(reduce):
    logits, labels = tf.placeholder(tf.float32, [6, 5]), tf.placeholder(tf.float32, [6, 5])
    loss = reduce(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    gradient = tf.gradients(loss, logits)[0]
    everything = [p.name for p in EVERY]
    before = ops(text([loss, gradient], [logits, labels]))
    after = ops(text([loss, gradient], [logits, labels], *everything))
    assert "SoftmaxCrossEntropyWithLogits" in before and "_SoftmaxCrossEntropyTotal" in after
    assert not {"SoftmaxCrossEntropyWithLogits", "Sum", "Mean"} & set(after)


@pytest.mark.by_aten
@pytest.mark.parametrize("kind", [tf.int32, tf.int64])
@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_sum])
def test_a_batch_of_sparse_cross_entropies_becomes_its_total(monkeypatch, reduce, kind):
    logits, labels = tf.placeholder(tf.float32, [6, 5]), tf.placeholder(kind, [6])
    loss = reduce(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    gradient = tf.gradients(loss, logits)[0]
    after = ops(text([loss, gradient], [logits, labels], *[p.name for p in EVERY]))
    assert "_SparseSoftmaxCrossEntropyTotal" in after
    assert not {"SparseSoftmaxCrossEntropyWithLogits", "Sum", "Mean"} & set(after)
    values = np.random.RandomState(3).standard_normal((6, 5)).astype("f") * 9
    log = agree(
        monkeypatch, [loss, gradient], {logits: values, labels: [0, 4, 2, 2, 1, 0]}, "fuse_losses", fires=1
    )
    assert "fuse_losses: " in log
    for label in (-1, 5):
        with (
            tf.Session() as session,
            pytest.raises(tf.errors.InvalidArgumentError, match=f"value of {label} "),
        ):
            session.run([loss, gradient], {logits: values, labels: [0, 4, label, 2, 1, 0]})


def test_losses_that_are_fetched_too_are_computed():
    logits, labels = tf.placeholder(tf.float32, [6, 5]), tf.placeholder(tf.float32, [6, 5])
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    after = ops(text([tf.reduce_mean(losses), losses], [logits, labels], *[p.name for p in EVERY]))
    assert "_SoftmaxCrossEntropyTotal" not in after


def classifier(bias: Any = tf.add) -> tuple[Any, Any, Any, Any]:
    """Features, labels, the mean loss of a layer of 5 classes on 6 examples, and its two variables."""
    x, y = tf.placeholder(tf.float32, [6, 4], name="x"), tf.placeholder(tf.int64, [6], name="y")
    w, b = tf.get_variable("w", initializer=values(4, 5)), tf.get_variable("b", initializer=values(5))
    logits = bias(tf.matmul(x, w), b)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return x, y, loss, [w, b]


@pytest.mark.parametrize("bias", [tf.add, tf.nn.bias_add])
def test_products_and_sums_take_a_gradient_with_an_example_a_column(bias) -> None:
    x, y, loss, variables = classifier(bias)
    gradients = tf.gradients(loss, variables)
    lines = text([loss, *gradients], [x, y], *FOLDING, "fuse_losses")
    (total,) = [line for line in lines if "CrossEntropyTotal" in line]
    assert "divisor=6" in total and "transposed=True : float32[], float32[5,6]" in total
    assert "scale=0.1666" in total and "Mul" not in ops(lines)
    number = total.split(" = ")[0]
    product = next(line for line in lines if "= MatMul(%0," in line and "transpose_a=True" in line)
    assert f"{number}:1) transpose_a=True transpose_b=True : float32[4,5]" in product
    (sums,) = [line for line in lines if " = Sum(" in line]
    assert f"Sum({number}:1, " in sums and sums.split("  #")[0].endswith(": float32[5]")


@pytest.mark.by_aten
def test_products_that_are_added_to_a_matrix_take_a_gradient_with_an_example_a_column(monkeypatch) -> None:
    shapes = [[70, 40], [40, 5], [70, 40]]
    x, w, z = (tf.placeholder(tf.float32, dims) for dims in shapes)
    y, logits = tf.placeholder(tf.int32, [70]), tf.matmul(x, w)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    total = tf.gradients(loss, x)[0] + tf.square(z)
    feed = {y: np.arange(70) % 5, **{each: values(*dims) for each, dims in zip((x, w, z), shapes)}}
    lines = text([loss, total], [*feed], *FOLDING, "fuse_biases", "fuse_losses")
    (added,) = [line for line in lines if " = _AddedMatMul(" in line]
    assert "transpose_a=True transpose_b=True" in added
    log = agree(monkeypatch, [loss, total], feed, "fuse_losses", fires=1)
    assert "gradient with an example a column" in log


@pytest.mark.parametrize("bias", [tf.add, tf.nn.bias_add])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_sum])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_gradients_are_the_same_without_the_pass(monkeypatch, bias, sparse, reduce, dtype) -> None:
    x = tf.placeholder(dtype, [6, 4])
    w, b = (tf.placeholder(dtype, dims) for dims in ([4, 5], [5]))
    logits = bias(tf.matmul(x, w), b)
    if sparse:
        y = tf.placeholder(tf.int32, [6])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    else:
        y = tf.placeholder(dtype, [6, 5])
        losses = tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = reduce(losses) * 0.25
    fetches = [loss, *tf.gradients(loss, [x, w, b])]
    labels = [0, 4, 2, 2, 1, 0] if sparse else np.eye(5)[[0, 4, 2, 2, 1, 0]] * 0.9 + 0.02
    feed = {x: values(6, 4), w: values(4, 5), b: values(5), y: labels}
    log = agree(monkeypatch, fetches, feed, "fuse_losses", fires=1)
    assert "gradient with an example a column" in log


def test_a_gradient_that_others_want_is_not_transposed(monkeypatch) -> None:
    x, y, loss, (w, _) = classifier()
    gradient = tf.gradients(loss, w)[0]
    of_logits = tf.gradients(loss, loss.op.inputs[0].op.inputs[0])[0]
    feed = {x: values(6, 4), y: [0, 4, 2, 2, 1, 0]}
    setup = tf.global_variables_initializer()
    for others in (
        of_logits,
        tf.exp(of_logits),
        tf.reduce_sum(of_logits, 1),
        tf.reduce_sum(of_logits, 0, True),
    ):
        log = agree(monkeypatch, [loss, gradient, others], feed, "fuse_losses", fires=1, setup=setup)
        assert "fuse_losses: " in log and "example a column" not in log
        monkeypatch.undo()


def test_a_gradient_that_is_multiplied_by_several_numbers_is_not_scaled(monkeypatch) -> None:
    x, y = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.int64, [3])
    w = tf.placeholder(tf.float32, [4, 5])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w))
    gradient = tf.gradients(losses, w, grad_ys=np.array([1, 2, 0.5], "f"))[0]
    fetches = [tf.reduce_sum(losses), gradient]
    lines = text(fetches, [x, y, w], *FOLDING, "fuse_losses")
    assert "_SparseSoftmaxCrossEntropyTotal" in ops(lines) and "Mul" in ops(lines)
    assert not any("scale" in line for line in lines)
    feed = {x: values(3, 4), y: [1, 0, 4], w: values(4, 5)}
    agree(monkeypatch, fetches, feed, "fuse_losses", fires=1)


def test_classes_ruled_out_by_infinite_logits(monkeypatch) -> None:
    logits, y = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.int64, [3])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    given = values(3, 4)
    given[:, 2] = -np.inf
    fetches = [loss, tf.gradients(loss, logits)[0]]
    agree(monkeypatch, fetches, {logits: given, y: [0, 1, 3]}, "fuse_losses", fires=1)
    with tf.Session() as session:
        found, gradient = session.run(fetches, {logits: given, y: [0, 1, 3]})
    assert np.isfinite(found) and not gradient[:, 2].any()


# ---- tf.losses


def by_hand(kind: str, labels: Any, logits: Any) -> Any:
    """The losses by element, as programs spell them out."""
    if kind == "softmax_cross_entropy":
        return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    if kind == "sparse_softmax_cross_entropy":
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    if kind == "sigmoid_cross_entropy":
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    if kind == "mean_squared_error":
        return tf.squared_difference(logits, labels)
    if kind == "absolute_difference":
        return tf.abs(logits - labels)
    return tf.nn.relu(1.0 - (2.0 * labels - 1.0) * logits)  # hinge_loss


LOSSES = (
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
    "sigmoid_cross_entropy",
    "mean_squared_error",
    "absolute_difference",
    "hinge_loss",
)


def step_of(kind: str, spelled_out: bool, rows: int, classes: int, **options: Any) -> tuple[Any, Any]:
    """The fetches of a training step of a layer, and its feeds."""
    x = tf.placeholder(tf.float32, [None, 4])
    if kind.startswith("sparse"):
        labels, value = tf.placeholder(tf.int64, [None]), np.arange(rows) % classes
    else:
        labels = tf.placeholder(tf.float32, [None, classes])
        value = np.eye(classes, dtype="f")[np.arange(rows) % classes]
    logits = tf.nn.xw_plus_b(x, tf.Variable(tf.ones([4, classes])), tf.Variable(tf.zeros([classes])))
    if spelled_out:
        loss = tf.reduce_mean(by_hand(kind, labels, logits))
    else:
        getattr(tf.losses, kind)(labels, logits, **options)
        loss = tf.losses.get_total_loss()
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    return [step, loss], {x: values(rows, 4), labels: value}


def kernels(*arguments: Any, **options: Any) -> list[str]:
    """The functions that the step's code calls, in order."""
    with tf.Graph().as_default(), tf.Session() as session:
        explanation = session.explain(*step_of(*arguments, **options))
    code = explanation[explanation.index("def segment") :]
    return re.findall(r"(\w+)\(", code)


@pytest.mark.by_aten
@pytest.mark.parametrize(("rows", "classes"), [(6, 5), (300, 300)])
@pytest.mark.parametrize("kind", LOSSES)
def test_steps_of_losses_have_the_kernels_of_those_spelled_out(kind, rows, classes) -> None:
    wanted = kernels(kind, True, rows, classes)
    assert kernels(kind, False, rows, classes) == wanted


@pytest.mark.parametrize("reduction", [tf.losses.Reduction.MEAN, tf.losses.Reduction.SUM_OVER_BATCH_SIZE])
def test_reductions_to_a_mean_have_its_kernels(reduction) -> None:
    wanted = kernels("softmax_cross_entropy", True, 6, 5)
    assert kernels("softmax_cross_entropy", False, 6, 5, reduction=reduction) == wanted


@pytest.mark.by_aten
def test_a_weight_costs_its_product_alone() -> None:
    wanted = kernels("softmax_cross_entropy", True, 6, 5)
    found = kernels("softmax_cross_entropy", False, 6, 5, weights=0.5)
    assert [call for call in found if call not in ("mul_", "div_")] == wanted
    assert len(found) == len(wanted) + 2
