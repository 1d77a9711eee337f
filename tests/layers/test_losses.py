"""Losses give TensorFlow 1.15's values, gradients, nodes and collections, and refuse what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.layers import loss_programs

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = Path(__file__).parents[1] / "golden" / "layers"
VALUES = np.load(GOLDEN / "losses.npz")


def golden_lines(name: str) -> dict[str, list[str]]:
    text = (GOLDEN / name).read_text(encoding="utf-8")
    sections = [section.strip().split("\n") for section in text.split("# ")[1:]]
    return {lines[0]: lines[1:] for lines in sections}


LINES = golden_lines("losses.txt")


def run(tensor: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(tensor, feeds)


def test_every_loss_and_program_has_its_goldens() -> None:
    assert list(VALUES.files) == list(loss_programs.LOSSES)
    assert list(LINES) == list(loss_programs.PROGRAMS)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", loss_programs.LOSSES)
def test_values_and_gradients(name: str, known: bool) -> None:
    np.testing.assert_allclose(loss_programs.values(tf, name, known), VALUES[name], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", loss_programs.PROGRAMS)
def test_nodes_and_collections(name: str) -> None:
    assert loss_programs.node_lines(tf, loss_programs.PROGRAMS[name]) == LINES[name]


# ---- weights


@pytest.mark.parametrize(
    ("weights", "values", "message"),
    [
        ([3], [4, 3], r"values\.rank=2\. weights\.rank=1\. values\.shape=\(4, 3\)"),
        ([2, 3], [4, 3], r"Mismatch at dim 0\..*weights\.shape=\(2, 3\)"),
        ([4, 5], [None, 3], "Mismatch at dim 1"),
    ],
)
def test_weights_that_are_known_not_to_fit(weights: Any, values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"weights can not be broadcast to values\..*{message}"):
        tf.losses.compute_weighted_loss(
            tf.placeholder(tf.float32, values), tf.placeholder(tf.float32, weights)
        )


UNFIT = [((3,), (4, 3)), ((2, 3), (4, 3)), ((0, 3), (4, 3)), ((4, 3), (1, 3)), ((1, 4, 3), (4, 3))]
FIT = [((), (4, 3)), ((1, 3), (4, 3)), ((4, 1), (4, 3)), ((1, 1), (0, 3)), ((4, 3), (4, 3))]


@pytest.mark.parametrize(("weights", "values"), UNFIT)
def test_weights_that_the_step_finds_not_to_fit(weights: Any, values: Any) -> None:
    w, x = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    loss = tf.losses.compute_weighted_loss(x, w)
    with pytest.raises(tf.errors.InvalidArgumentError, match="weights can not be broadcast to values"):
        run(loss, {w: np.ones(weights), x: np.ones(values)})


@pytest.mark.parametrize(("weights", "values"), FIT)
def test_weights_that_the_step_finds_to_fit(weights: Any, values: Any) -> None:
    w, x = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    loss = tf.losses.compute_weighted_loss(x, w, reduction=tf.losses.Reduction.SUM)
    assert run(loss, {w: np.ones(weights), x: np.ones(values)}) == np.prod(values)


def test_a_loss_has_the_type_that_it_was_computed_of() -> None:
    for dtype in (tf.float16, tf.float64):
        loss = tf.losses.compute_weighted_loss(tf.constant([1, 2, 4], dtype), tf.constant([1, 0, 1]))
        assert loss.dtype is dtype
        assert run(loss) == 2.5
    logits, labels = tf.constant([[1.0, 2.0]], tf.float64), [1]
    assert tf.losses.sparse_softmax_cross_entropy(labels, logits).dtype is tf.float64
    assert tf.losses.mean_squared_error([1.0], tf.constant([2.0], tf.float64)).dtype is tf.float32


def test_weights_of_0_give_a_loss_of_0() -> None:
    for reduction in tf.losses.Reduction.all():
        loss = tf.losses.mean_squared_error([1.0, 2.0], [3.0, 4.0], 0.0, reduction=reduction)
        assert np.all(run(loss) == 0)


def test_no_losses_are_a_loss_of_0() -> None:
    nothing = tf.zeros([0, 3])
    assert run(tf.losses.mean_squared_error(nothing, nothing)) == 0
    assert run(tf.losses.mean_pairwise_squared_error(nothing, nothing)) == 0


# ---- arguments


def test_reductions_by_name() -> None:
    reduction = tf.losses.Reduction
    assert reduction.SUM_BY_NONZERO_WEIGHTS == reduction.SUM_OVER_NONZERO_WEIGHTS
    assert set(reduction.all()) == set(loss_programs.REDUCTIONS)
    reduction.validate(reduction.MEAN)
    with pytest.raises(ValueError, match="Invalid ReductionKey mean"):
        reduction.validate("mean")
    with pytest.raises(ValueError, match="Invalid ReductionKey mean"):
        tf.losses.mean_squared_error([1.0], [2.0], reduction="mean")


@pytest.mark.parametrize("name", loss_programs.LOSSES)
def test_labels_and_predictions_must_be_given(name: str) -> None:
    function = getattr(tf.losses, name)
    arguments = loss_programs.LOSSES[name][2]
    with pytest.raises(ValueError, match=r"labels must not be None\."):
        function(None, tf.zeros([2, 3]), **arguments)
    with pytest.raises(ValueError, match=r"(predictions|logits) must not be None\."):
        function(tf.zeros([2, 3]), None, **arguments)


@pytest.mark.parametrize("name", [name for name in loss_programs.LOSSES if not name.startswith("sparse")])
def test_shapes_must_be_compatible(name: str) -> None:
    with pytest.raises(ValueError, match="incompatible"):
        getattr(tf.losses, name)(tf.zeros([2, 4]), tf.zeros([2, 3]), **loss_programs.LOSSES[name][2])


def test_the_axis_of_a_cosine_distance() -> None:
    x, y = tf.constant([[0.6, 0.8], [1.0, 0.0]]), tf.constant([[0.6, 0.8], [0.5, 0.0]])
    old, new = tf.losses.cosine_distance(x, x, dim=1), tf.losses.cosine_distance(x, y, 0)
    assert run(old) == pytest.approx(0, abs=1e-6)
    assert run(new) == pytest.approx(1 - (0.36 + 0.5 + 0.64) / 2)
    with pytest.raises(ValueError, match="You must specify 'axis'"):
        tf.losses.cosine_distance(x, x)
    with pytest.raises(ValueError, match="Cannot specify both 'axis' and 'dim'"):
        tf.losses.cosine_distance(x, x, axis=1, dim=1)


def test_labels_with_one_dimension_more() -> None:
    logits = tf.constant(np.random.RandomState(0).randn(4, 3).astype("f"))
    labels = np.array([0, 2, 1, 2])
    expected = run(tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=[1.0, 0, 2, 1]))
    for shape in ([4, 1], [None, 1], None):
        fed, weights = tf.placeholder(tf.int64, shape), tf.placeholder(tf.float32, shape)
        loss = tf.losses.sparse_softmax_cross_entropy(fed, logits, weights)
        columns = {fed: labels[:, None], weights: np.array([[1.0], [0], [2], [1]])}
        assert run(loss, columns) == pytest.approx(expected)


def test_soft_labels_get_no_gradient() -> None:
    labels, logits = tf.constant([[0.5, 0.5]]), tf.constant([[1.0, 2.0]])
    loss = tf.losses.softmax_cross_entropy(labels, logits)
    assert tf.gradients(loss, labels) == [None]
    assert tf.gradients(loss, logits) != [None]


# ---- the collection


def test_losses_are_found_by_scope_and_collection() -> None:
    with tf.name_scope("a"):
        first = tf.losses.mean_squared_error([1.0], [2.0])
    with tf.name_scope("b"):
        second = tf.losses.mean_squared_error([1.0], [3.0])
        other = tf.losses.absolute_difference([1.0], [3.0], loss_collection="others")
    tf.losses.absolute_difference([1.0], [3.0], loss_collection=None)
    regularizer = tf.constant(0.5, name="a/regularizer")
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, regularizer)
    assert tf.losses.get_losses() == tf.get_collection(tf.GraphKeys.LOSSES) == [first, second]
    assert tf.losses.get_losses("b") == [second]
    assert tf.losses.get_losses(loss_collection="others") == [other]
    assert tf.losses.get_regularization_losses("a") == [regularizer]
    assert tf.losses.get_regularization_losses("b") == []
    totals = [
        tf.losses.get_total_loss(),
        tf.losses.get_total_loss(add_regularization_losses=False),
        tf.losses.get_total_loss(scope="a"),
        tf.losses.get_regularization_loss(),
        tf.losses.get_regularization_loss("b"),
    ]
    assert run(totals) == [5.5, 5, 1.5, 0.5, 0]


def test_no_total_of_no_losses() -> None:
    with pytest.raises(ValueError, match="at least one"):
        tf.losses.get_total_loss()
