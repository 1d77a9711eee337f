"""Losses of connectionist temporal classification: against sums over all paths, and the public functions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flowstone as tf

RANDOM = np.random.RandomState(3)
PLACES = [[0, 0], [0, 1], [1, 0]]


def probabilities(logits: np.ndarray) -> np.ndarray:
    """The soft-max of logits [time, classes]."""
    shares = np.exp(logits.astype(np.float64))
    return shares / shares.sum(1, keepdims=True)


def path_sum(logits: np.ndarray, labels: list[int], blank: int, merge: bool = True) -> float:
    """The loss by its definition: every path of classes that means the labels."""
    shares, total = probabilities(logits), 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        kept = [k for i, k in enumerate(path) if not (merge and i and path[i - 1] == k)]
        if [k for k in kept if k != blank] == labels:
            total += np.prod([row[k] for row, k in zip(shares, path)])
    return float(-np.log(total))


def sparse(labels: list[list[int]]) -> tf.SparseTensor:
    """The sparse matrix of rows of labels."""
    places = [[row, column] for row, each in enumerate(labels) for column in range(len(each))]
    values = [label for each in labels for label in each]
    return tf.SparseTensor(np.reshape(np.int64(places), (-1, 2)), np.int32(values), [len(labels), 9])


@pytest.mark.parametrize("merge", [True, False])
def test_the_loss_is_the_sum_over_all_paths(merge: bool) -> None:
    logits = RANDOM.randn(5, 3, 4).astype(np.float32)
    rows, lengths = [[0, 2], [1, 1], [2]], [5, 4, 3]
    with tf.Graph().as_default(), tf.Session() as session:
        loss = tf.nn.ctc_loss(sparse(rows), logits, lengths, ctc_merge_repeated=merge)
        found = session.run(loss)
    expected = [path_sum(logits[:n, i], rows[i], 3, merge) for i, n in enumerate(lengths)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("merge", [True, False])
def test_the_gradient_is_the_difference_quotient(merge: bool) -> None:
    with tf.Graph().as_default(), tf.Session():
        logits = tf.constant(RANDOM.randn(6, 2, 3))
        loss = tf.nn.ctc_loss(sparse([[0, 0], [1, 0]]), logits, [6, 4], ctc_merge_repeated=merge)
        error = tf.test.compute_gradient_error(logits, [6, 2, 3], loss, [2], delta=1e-4)
    assert error < 1e-6


def test_a_row_of_a_null_label_alone_is_blank() -> None:
    logits = RANDOM.randn(4, 1, 3).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.nn.ctc_loss(sparse([[2]]), logits, [4]))
    np.testing.assert_allclose(found, -np.log(probabilities(logits[:, 0])[:, 2]).sum(), rtol=1e-5)


@pytest.mark.parametrize("blank", [0, 2, -1])
def test_the_second_version_takes_any_blank_and_dense_labels(blank: int) -> None:
    logits = RANDOM.randn(4, 3, 4).astype(np.float32)
    labels = [[k for k in (3, 1, 0) if k != blank % 4][:2], [1], []]
    padded = np.array([(row + [0, 0])[:2] for row in labels])
    lengths = [4, 3, 2]
    expected = [path_sum(logits[:n, i], labels[i], blank % 4) for i, n in enumerate(lengths)]
    with tf.Graph().as_default(), tf.Session() as session:
        dense = tf.nn.ctc_loss_v2(padded, logits, [2, 1, 0], lengths, blank_index=blank)
        batched = np.transpose(logits, [1, 0, 2])
        other = tf.nn.ctc_loss_v2(
            sparse(labels[:2]), batched[:2], None, lengths[:2], logits_time_major=False, blank_index=blank
        )
        found, second = session.run([dense, other])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(second, expected[:2], rtol=1e-5)


def test_labels_without_time_have_infinite_losses_in_the_second_version() -> None:
    logits = tf.constant(RANDOM.randn(3, 3, 4), tf.float32)
    loss = tf.nn.ctc_loss_v2(np.int32([[1, 2], [3, 1], [1, 1]]), logits, [2, 1, 0], [1, 0, 0])
    with tf.Session() as session:
        found, gradient = session.run([loss, tf.gradients(loss, logits)[0]])
    np.testing.assert_array_equal(found, [np.inf, np.inf, 0])
    assert np.isfinite(gradient).all() and not gradient[:, 1:].any()


def test_the_second_version_refuses_blanks_that_are_no_class() -> None:
    with pytest.raises(ValueError, match="must be a class of 4"):
        tf.nn.ctc_loss_v2([[1]], np.zeros((2, 1, 4), np.float32), [1], [2], blank_index=4)
    with pytest.raises(ValueError, match="must be provided when labels is a SparseTensor"):
        tf.nn.ctc_loss_v2(sparse([[1]]), np.zeros((2, 1, 4), np.float32), None, [2])


def test_arguments_and_names() -> None:
    logits = np.zeros((2, 5, 4), np.float32)
    with tf.Graph().as_default() as graph:
        with pytest.raises(TypeError, match="to be a SparseTensor"):
            tf.nn.ctc_loss([[1]], logits, [5, 5])
        loss = tf.nn.ctc_loss(sparse([[1], [2]]), None, [5, 5], time_major=False, logits=logits)
        assert loss.op.name == "CTCLoss" and loss.op.inputs[0].op.name == "transpose"
        gradient = tf.gradients(loss, graph.get_tensor_by_name("transpose:0"))[0]
        assert gradient.op.name == "gradients/CTCLoss_grad/mul"
        with pytest.raises(LookupError):
            tf.gradients(gradient, loss.op.inputs[0])


def test_unique_labels() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        labels, places = session.run(
            tf.nn.ctc_unique_labels(tf.constant([[3, 4, 4, 3], [1, 1, 0, 0], [0, 0, 5, 0]]))
        )
    assert labels.tolist() == [[3, 4, 0, 0], [1, 0, 0, 0], [0, 5, 0, 0]]
    assert places.tolist() == [[0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 1, 0]]
    assert (labels.dtype, places.dtype) == (np.int64, np.int32)


def test_repeated_labels_collapse_by_lengths_of_unknown_shape() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        lengths = tf.placeholder(tf.int32)
        found = tf.nn.collapse_repeated([[1, 1, 2, 2], [4, 5, 5, 6]], lengths)
        labels, left = session.run(found, {lengths: [3, 4]})
    assert labels.tolist() == [[1, 2, 0], [4, 5, 6]] and left.tolist() == [2, 3]
