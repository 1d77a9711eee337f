"""Dual coordinate ascent with several examples: what passes in any order have in common and lead to.

Steps with one example are in `tests/ops/tables/dual_ascent.py`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.networks.dual_losses import LOSSES

# Each row: what TensorFlow 2.21 gave for these examples in some order, the dual variables and the changes.
EXAMPLES = np.array([[1.7640524, 0.4001572], [0.978738, 2.2408931], [1.867558, -0.9772779]], np.float32)
LABELS = np.array([0.95008844, -0.1513572, -0.10321885], np.float32)
TENSORFLOWS = (
    (0.249584, -0.021686, -0.020407, 0.380944, 0.07122),
    (0.235715, -0.021686, -0.146146, 0.121653, 0.188552),
    (0.249208, -0.02267, -0.018964, 0.382011, 0.067455),
    (0.222399, -0.112414, -0.137599, 0.025325, -0.028439),
    (0.222399, -0.105274, -0.144604, 0.019231, -0.005596),
    (0.235287, -0.111102, -0.018964, 0.270902, -0.136284),
)


class Model:
    """A linear model with one sparse and one dense group, trained over one batch."""

    def __init__(self, loss: str, dense: Any, labels: Any, **options: Any) -> None:
        self.graph = tf.Graph()
        count = len(labels)
        options = {"l1": 0.0, "l2": 1.0, "num_loss_partitions": 1, "num_inner_iterations": 1, **options}
        with self.graph.as_default():
            self.weights = tf.Variable(np.zeros((1, dense.shape[1]), np.float32))
            self.bias = tf.Variable(np.zeros(1, np.float32))
            self.state = tf.Variable(np.zeros((count, 4), np.float32))
            rows, zeros = np.arange(count, dtype=np.int64), np.zeros(count, np.int64)
            result = tf.train.sdca_optimizer(
                [rows],
                [zeros],
                [],
                [dense],
                np.ones(count, np.float32),
                labels,
                [[0]],
                [self.bias.read_value()],
                [self.weights.read_value()],
                self.state.read_value(),
                loss,
                **options,
            )
            self.step = tf.group(
                self.weights.assign_add(result.out_delta_dense_weights[0]),
                self.bias.assign_add(result.out_delta_sparse_weights[0]),
                self.state.assign(result.out_example_state_data),
            )
            self.start = tf.global_variables_initializer()

    def train(self, passes: int) -> tuple[Any, Any, Any]:
        """The weights, the bias and the state after so many passes."""
        with tf.Session(graph=self.graph) as session:
            session.run(self.start)
            for _ in range(passes):
                session.run(self.step)
            weights, bias, state = session.run([self.weights, self.bias, self.state])
        return weights[0], bias[0], state


def once(**options: Any) -> Any:
    """A pass over `EXAMPLES`: the function of a session's run."""
    options = {"adaptative": False, "num_inner_iterations": 1, **options}
    result = tf.train.sdca_optimizer(
        [], [], [], [EXAMPLES], np.ones(3, np.float32), LABELS, [], [], [np.zeros((1, 2), np.float32)],
        np.zeros((3, 4), np.float32), "squared_loss", 0.0, 1.0, 1, **options,
    )  # fmt: skip
    return [result.out_example_state_data, result.out_delta_dense_weights[0]]


def test_a_pass_is_one_of_tensorflows_orders() -> None:
    fetches = once()
    seen = set()
    with tf.Session() as session:
        for _ in range(40):
            state, delta = session.run(fetches)
            found = np.concatenate([state[:, 0], delta[0]])
            (order,) = [i for i, one in enumerate(TENSORFLOWS) if np.allclose(found, one, atol=2e-6)]
            seen.add(order)
            np.testing.assert_allclose(state[:, 1], [0.451334, 0.011455, 0.005327], atol=2e-6)
            np.testing.assert_array_equal(np.abs(state[:, 2:]), [[0, 1]] * 3)
    assert seen == set(range(len(list(itertools.permutations(range(3))))))


def test_adaptive_passes_leave_some_examples_as_they_are() -> None:
    fetches = once(adaptative=True)
    with tf.Session() as session:
        taken = np.array([session.run(fetches)[0][:, 3] for _ in range(60)])
    assert set(taken.flat) == {0.0, 1.0}
    assert taken[:, 0].mean() > taken[:, 1].mean()  # which is near its optimum from the start


@pytest.mark.parametrize("adaptative", [False, True])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_passes_converge_to_the_least_regularised_loss(loss: str, adaptative: bool) -> None:
    random = np.random.default_rng(3)
    dense = random.normal(size=(40, 3)).astype(np.float32)
    truth = dense @ [1.0, -2.0, 0.5] + 0.3
    labels = {
        "squared_loss": truth,
        "poisson_loss": random.poisson(np.exp(np.minimum(truth, 2))),
    }.get(loss, truth > random.normal(size=40))
    labels = np.asarray(labels, np.float32)
    weights, bias, state = Model(loss, dense, labels, l2=2.0, adaptative=adaptative).train(300)

    exact = np.append(weights, bias).astype(float)
    features = np.append(dense, np.ones((40, 1)), 1).astype(float)
    taken, _ = LOSSES[loss].labels(labels.astype(float))

    def objective(w: Any) -> float:
        return float(LOSSES[loss].primal(features @ w, taken).sum() + w @ w)  # l2 / 2 = 1

    least = objective(exact)
    for _ in range(100):
        assert objective(exact + random.normal(size=4) * 0.05) > least
    # The dual objective meets the primal one; the weights are made of the dual variables.
    dual = -LOSSES[loss].dual(state[:, 0].astype(float), taken).sum() - exact @ exact
    np.testing.assert_allclose(dual, least, rtol=2e-3)
    np.testing.assert_allclose(features.T @ state[:, 0] / 2, exact, atol=2e-4)


def test_l1_makes_weights_zero() -> None:
    random = np.random.default_rng(5)
    dense = random.normal(size=(50, 4)).astype(np.float32)
    labels = (dense @ [2.0, 0.0, 0.0, -1.0]).astype(np.float32)
    weights, bias, _ = Model("squared_loss", dense, labels, l1=8.0).train(100)
    variable = tf.Variable(weights)
    other = tf.Variable([bias, 9.0, -9.0])
    shrink = tf.train.sdca_shrink_l1([variable, other], l1=8.0, l2=1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(shrink) is None
        kept, others = session.run([variable, other])
    assert (kept != 0).tolist() == [True, False, False, True]
    # Where a weight stays, the loss falls as fast as the penalty grows.
    excess = dense.T @ (labels - dense @ kept)
    np.testing.assert_allclose(excess[[0, 3]], kept[[0, 3]] + 8 * np.sign(kept[[0, 3]]), rtol=1e-3)
    assert others.tolist() == [0.0, 1.0, -1.0]


def test_shrinking_is_tensorflows() -> None:
    variable = tf.Variable(np.array([-3, -0.2, 0.1, 2, 0.5, np.nan, np.inf], np.float32))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.train.sdca_shrink_l1([variable], 0.5, 2.0))
        expected = [-2.75, 0, 0, 1.75, 0.25, np.nan, np.inf]
        np.testing.assert_array_equal(session.run(variable), expected)


def test_weights_and_features_that_do_not_fit() -> None:
    two = np.ones((2, 2), np.float32)

    def run(dense: Any, weights: Any, known: Any = ((0,),), sparse: Any = ([0.0],), values: Any = ()) -> None:
        result = tf.train.sdca_optimizer(
            [[0, 1]], [[0, 0]], values, [dense], [1.0, 1.0], [1.0, 0.0], known, sparse, [weights],
            np.zeros((2, 4), np.float32), "hinge_loss", 0.0, 1.0, 1, 1,
        )  # fmt: skip
        with tf.Session() as session:
            session.run(result.out_example_state_data)

    run(two, two[0])
    for arguments, message in (
        ((two[:, :1], two[0]), r"Dense features at index 0 must have shape \[2,2\], got \[2,1\]"),
        ((np.ones((3, 2), np.float32), two[0]), r"must have shape \[2,2\], got \[3,2\]"),
        ((two, two), r"a vector or one row, got shape \[2,2\]"),
        ((two, two[0], [[0, 1]]), "2 sparse_indices for 1 sparse weights"),
        ((two, two[0], [[0]], [[0.0]], [[1.0]]), "1 sparse_feature_values for 2 feature_indices"),
        ((two, two[0], [[]], [[0.0]]), "out of valid range: 0"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(*arguments)
