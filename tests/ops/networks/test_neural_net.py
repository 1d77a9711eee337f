"""The public functions of neural nets: values, names as TensorFlow gives them, errors."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.networks import (
    convolution_layers,
    cross_entropies,
    embedding,
    neural_net,
    normalization,
    pooling_layers,
    softmax,
    sparse_cross_entropies,
)
from flowstone.ops.numbers import ranking


def run(make):
    """The value of what `make()` builds in a new graph."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        return session.run(make())


def names_of(make):
    """The names of the nodes that `make()` adds."""
    with tf.Graph().as_default() as graph:
        make()
        return [operation.name for operation in graph.get_operations()]


def test_dropout_keeps_the_mean_and_zeroes_the_rest() -> None:
    """Elements are 0 or scaled; noise of one column drops rows as a whole."""
    values = run(lambda: neural_net.dropout(np.ones((200, 50), np.float32), 0.8, seed=1))
    assert set(np.unique(values)) == {np.float32(0), np.float32(1.25)}
    assert abs((values == 0).mean() - 0.2) < 0.02
    rows = run(lambda: neural_net.dropout(np.ones((200, 4), np.float32), 0.5, noise_shape=[200, 1], seed=1))
    assert (rows == rows[:, :1]).all()


def test_dropout_refuses() -> None:
    """Rates outside [0, 1), both rates, no rate, and integers; in TensorFlow 1.15's words."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        with pytest.raises(ValueError, match=r"a float in the range \[0, 1\), got -0.5"):
            neural_net.dropout(x, 1.5)
        with pytest.raises(ValueError, match="both"):
            neural_net.dropout(x, 0.5, rate=0.5)
        with pytest.raises(ValueError, match="must provide a rate"):
            neural_net.dropout(x)
        with pytest.raises(ValueError, match="floating"):
            neural_net.dropout(tf.placeholder(tf.int32, [2]), 0.5)


def test_softmax_along_the_first_axis() -> None:
    """Each column sums to 1."""
    x = np.random.RandomState(0).randn(3, 4).astype(np.float32)
    values = run(lambda: softmax.softmax(x, 0))
    np.testing.assert_allclose(values, np.exp(x) / np.exp(x).sum(0), rtol=1e-6)


def test_cross_entropies_agree() -> None:
    """Dense, sparse and sigmoid forms against their formulas."""
    random = np.random.RandomState(0)
    logits = random.randn(2, 3, 4).astype(np.float32)
    labels = random.randint(0, 4, (2, 3))
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -np.take_along_axis(log_probabilities, labels[..., None], -1)[..., 0]
    dense = np.eye(4, dtype=np.float32)[labels]
    for make in (
        lambda: sparse_cross_entropies.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits),
        lambda: cross_entropies.softmax_cross_entropy_with_logits(labels=dense, logits=logits),
        lambda: cross_entropies.softmax_cross_entropy_with_logits_v2(
            dense.transpose(0, 2, 1), logits.transpose(0, 2, 1), axis=1
        ),
    ):
        np.testing.assert_allclose(run(make), expected, rtol=1e-5)
    values = run(lambda: cross_entropies.sigmoid_cross_entropy_with_logits(labels=dense, logits=logits))
    chance = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(values, -dense * np.log(chance) - (1 - dense) * np.log(1 - chance), rtol=1e-5)


def test_cross_entropies_need_named_arguments() -> None:
    """As in TensorFlow, so that labels and logits are not swapped."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 3])
        with pytest.raises(ValueError, match="named arguments"):
            cross_entropies.softmax_cross_entropy_with_logits(x, x)
        with pytest.raises(ValueError, match="rank"):
            sparse_cross_entropies.sparse_softmax_cross_entropy_with_logits(labels=[[1]], logits=x)


def test_gradient_flows_to_labels_only_in_v2() -> None:
    """The first version stops it."""
    with tf.Graph().as_default():
        x, z = (tf.placeholder(tf.float32, [2, 3]) for _ in range(2))
        old = cross_entropies.softmax_cross_entropy_with_logits(labels=z, logits=x)
        new = cross_entropies.softmax_cross_entropy_with_logits_v2(labels=z, logits=x)
        assert tf.gradients(old, z) == [None]
        assert tf.gradients(new, z)[0].shape.as_list() == [2, 3]


def test_moments_and_batch_normalization() -> None:
    """Normalised by its moments, data has mean 0 and variance 1."""
    x = np.random.RandomState(0).randn(50, 3).astype(np.float32) * 3 + 5

    def make():
        mean, variance = normalization.moments(tf.constant(x), [0])
        return mean, variance, normalization.batch_normalization(x, mean, variance, None, None, 1e-6)

    mean, variance, values = run(make)
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(variance, x.var(0), rtol=1e-5)
    np.testing.assert_allclose([values.mean(0), values.var(0)], [[0] * 3, [1] * 3], atol=1e-4)


def test_atrous_convolution_is_one_with_holes_in_the_filter() -> None:
    """A rate of 2 puts a zero between the filter's elements."""
    random = np.random.RandomState(0)
    x, kernel = random.randn(1, 7, 7, 2).astype(np.float32), random.randn(2, 2, 2, 3).astype(np.float32)
    holes = np.zeros((3, 3, 2, 3), np.float32)
    holes[::2, ::2] = kernel
    atrous = run(lambda: convolution_layers.atrous_conv2d(x, kernel, 2, "VALID"))
    np.testing.assert_allclose(
        atrous, run(lambda: convolution_layers.conv2d(x, holes, [1, 1, 1, 1], "VALID")), atol=1e-5
    )


def test_transposed_convolution_is_the_adjoint() -> None:
    """<conv(x), y> = <x, transpose(y)>, with odd padding and a stride."""
    random = np.random.RandomState(0)
    x, y = random.randn(1, 5, 6, 2).astype(np.float32), random.randn(1, 3, 3, 4).astype(np.float32)
    kernel = random.randn(2, 3, 2, 4).astype(np.float32)
    forward = run(lambda: convolution_layers.conv2d(x, kernel, 2, "SAME"))
    back = run(lambda: convolution_layers.conv2d_transpose(y, kernel, [1, 5, 6, 2], 2))
    np.testing.assert_allclose((forward * y).sum(), (x * back).sum(), rtol=1e-4)


def test_dilated_pooling() -> None:
    """Windows of 2 with a gap of one."""
    x = np.arange(25, dtype=np.float32).reshape(1, 5, 5, 1)
    values = run(lambda: pooling_layers.pool(x, [2, 2], "MAX", "VALID", dilation_rate=[2, 2]))
    np.testing.assert_array_equal(values, x[:, 2:, 2:])


def test_top_k_ranks_equals_by_index() -> None:
    """And in_top_k counts equals in favour."""
    values, indices = run(lambda: ranking.top_k(np.float32([[1, 3, 3, 2]]), 3))
    assert values.tolist() == [[3, 3, 2]] and indices.tolist() == [[1, 2, 3]]
    assert run(lambda: ranking.in_top_k(np.float32([[1, 3, 3, 2]]), [2], 1)).tolist() == [True]


@pytest.mark.parametrize(("strategy", "order"), [("mod", [0, 3, 1, 4, 2]), ("div", [0, 1, 2, 3, 4])])
def test_embeddings_of_partitions(strategy, order) -> None:
    """Ids find their rows in two partitions of 3 and 2 rows."""
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    ids = np.int32([[0, 4], [1, 2]])
    found = run(lambda: embedding.embedding_lookup([rows[:3], rows[3:]], ids, strategy))
    np.testing.assert_array_equal(found, rows[order][ids])


def test_embeddings_clipped_to_a_norm() -> None:
    """Rows longer than max_norm are scaled down."""
    found = run(lambda: embedding.embedding_lookup(np.float32([[3, 4], [0.3, 0.4]]), [0, 1], max_norm=1.0))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("max_norm", [None, 1.0])
def test_rows_are_looked_up_where_the_table_is(graph, resource, max_norm) -> None:
    """Only rows go from a parameter server to a worker, as TensorFlow 1.15 places them."""
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1"]})
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        table = tf.get_variable("table", [5, 2], use_resource=resource)
        parts = [tf.get_variable(f"part_{i}", [5, 2], use_resource=resource) for i in range(2)]
        tf.nn.embedding_lookup(table, [1], max_norm=max_norm)
        tf.nn.embedding_lookup(parts, [1])
    lookups = [op for op in graph.get_operations() if op.type in ("GatherV2", "ResourceGather")]
    assert [op.colocation_groups() for op in lookups] == [[b"loc:@table"], [b"loc:@part_0"], [b"loc:@part_1"]]


def test_small_losses() -> None:
    """Normalised vectors, the fraction of zeros, half the squares, the Poisson loss."""
    np.testing.assert_allclose(run(lambda: neural_net.l2_normalize(np.float32([3, 4]), 0)), [0.6, 0.8])
    assert run(lambda: neural_net.zero_fraction([0, 1, 0, 2])) == 0.5
    assert run(lambda: neural_net.l2_loss(np.float32([3, 4]))) == 12.5
    found = run(lambda: neural_net.log_poisson_loss(np.float32([0.5, 2]), np.float32([0, 1]), True))
    stirling = 2 * np.log(2) - 2 + 0.5 * np.log(4 * np.pi)
    np.testing.assert_allclose(found, [1, np.e - 2 + stirling], rtol=1e-5)


def test_sequences_have_one_stride_and_a_format() -> None:
    """TensorFlow 1.15's classes of errors."""
    x, kernel = tf.zeros([1, 12, 2]), tf.zeros([3, 2, 2])
    for stride in (2, [2], [1, 2, 1], np.int64(2)):
        assert tf.nn.conv1d(x, kernel, stride, "SAME").shape.as_list() == [1, 6, 2]
    with pytest.raises(ValueError, match="length"):
        tf.nn.conv1d(x, kernel, [2, 2], "SAME")
    with pytest.raises(ValueError, match="data_format"):
        tf.nn.conv1d(x, kernel, 1, "SAME", data_format="NHCW")
