"""Linear models trained by stochastic dual coordinate ascent (S. Shalev-Shwartz, T. Zhang, 2013).

Each example has a dual variable. A pass over a batch changes one after another to what maximises the dual
objective, and the weights with it: they are the sum of the examples' features times these variables, over
`l2`. The regularisation by `l1` is a shrinkage of the weights wherever they are used. The order is a random
one; with `adaptative`, examples are drawn in proportion to how far each is from its optimum (D. Csiba, Z. Qu,
P. Richtárik, Stochastic Dual Coordinate Ascent with Adaptive Probabilities, 2015), so that some are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import format_dims, merge
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.dual_losses import LOSSES, Array, DualLoss
from flowstone.ops.networks.example_features import Features, dense_columns, sparse_entries
from flowstone.ops.strings.elementwise_strings import Strings, as_list
from flowstone.ops.strings.fingerprints128 import fingerprint128

__all__ = ["sdca_fprint", "sdca_optimizer", "sdca_shrink_l1"]

_STATE = 4  # numbers kept of each example: its dual variable, primal loss, dual loss, weight

# ---- one pass


@dataclasses.dataclass(frozen=True, eq=False)
class _Pass:
    """What a pass over a batch has: features, labels, weights of examples, the weights of the model at its
    start in one vector, and the attributes of the op.
    """

    features: Features
    labels: Array
    example_weights: Array
    nominal: Array
    loss: DualLoss
    l1: float
    l2: float
    partitions: int

    def predictions(self) -> Array:
        """Those of the nominal weights."""
        return self.features.times(self.shrunk(self.nominal))

    def shrunk(self, weights: Array) -> Array:
        """The weights after the shrinkage by l1."""
        if not self.l1:
            return weights
        return np.sign(weights) * np.maximum(np.abs(weights) - self.l1 / self.l2, 0)

    def run(self, order: Array, state: Array) -> Array:
        """Changes the rows of `state` that `order` names; the changes of the weights."""
        predictions = self.predictions()
        curvatures = self.partitions * self.example_weights * (self.features.squared_norms() / self.l2)
        weights, labels = self.example_weights, self.labels
        delta, duals, last = np.zeros_like(self.nominal), state[:, 0].copy(), state[:, 0].copy()
        curvature_of, label_of = curvatures.tolist(), labels.tolist()
        scales, best = (weights / self.l2).tolist(), self.loss.best
        for i in order.tolist():
            a = float(duals[i])
            wx = self._prediction(i, predictions, delta)
            new = best(a, label_of[i], wx, curvature_of[i])
            self.features.add(i, (new - a) * scales[i], delta)
            last[i], duals[i] = a, new
        done = np.unique(order)
        state[done] = np.stack(
            [
                duals[done],
                self.loss.primal(predictions[done], labels[done]) * weights[done],
                self.loss.dual(last[done], labels[done]) * weights[done],
                weights[done],
            ],
            1,
        )
        return delta

    def _prediction(self, i: int, predictions: Array, delta: Array) -> float:
        """That of example `i` as if all partitions had changed the weights as this one has."""
        if not self.l1:
            return float(predictions[i]) + self.partitions * self.features.row_times(i, delta)
        return self.features.row_times(i, delta, lambda at: self.shrunk(self._current(at, delta)))

    def _current(self, at: Any, delta: Array) -> Array:
        current: Array = self.nominal[at] + self.partitions * delta[at]
        return current

    def importance(self, duals: Array) -> Array:
        """How likely each example is to be drawn: its distance from the optimum times its size."""
        distance = np.abs(duals - self.loss.slope(self.predictions(), self.labels))
        result: Array = distance * np.sqrt(self.features.squared_norms() + self.l2)
        return result


def _order(problem: _Pass, duals: Array, is_adaptive: bool, random: np.random.Generator) -> Array:
    count = len(problem.labels)
    if not is_adaptive:
        return random.permutation(count)
    importance = problem.importance(duals)
    total = importance.sum()
    if not (np.isfinite(total) and total > 0):
        return random.permutation(count)
    return random.choice(count, count, p=importance / total)


# ---- the op

optimizer_op = op(
    "SdcaOptimizer",
    "sparse_example_indices: num_sparse_features*int64, sparse_feature_indices: num_sparse_features*int64, "
    "sparse_feature_values: num_sparse_features_with_values*float, "
    "dense_features: num_dense_features*float, example_weights: float, example_labels: float, "
    "sparse_indices: num_sparse_features*int64, sparse_weights: num_sparse_features*float, "
    "dense_weights: num_dense_features*float, example_state_data: float -> "
    "out_example_state_data: float, out_delta_sparse_weights: num_sparse_features*float, "
    "out_delta_dense_weights: num_dense_features*float",
    "loss_type: string in ['logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', "
    "'poisson_loss'] ; adaptative: bool = false ; num_sparse_features: int >= 0 ; "
    "num_sparse_features_with_values: int >= 0"
    " ; num_dense_features: int >= 0 ; l1: float ; l2: float ; num_loss_partitions: int >= 1"
    " ; num_inner_iterations: int >= 1",
    stateful=True,  # for its order is a random one
    by_element=True,
)
optimizer_op.not_differentiable()


def _groups(node: Node, values: Sequence[Any]) -> list[Any]:
    """The inputs by argument: lists of those that are lists."""
    sparse, valued, dense = (
        node.attributes[f"num_{name}"]
        for name in ("sparse_features", "sparse_features_with_values", "dense_features")
    )
    sizes = [sparse, sparse, valued, dense, None, None, sparse, sparse, dense, None]
    groups: list[Any] = []
    at = 0
    for size in sizes:
        groups.append(values[at] if size is None else list(values[at : at + size]))
        at += 1 if size is None else size
    return groups


@optimizer_op.infer
def _(node: Node) -> Shapes:
    *_, labels, _, sparse, dense, _ = _groups(node, range(len(node.inputs)))
    rank = node.dims(labels)
    if rank is not None and not rank:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    return [(None, _STATE), *(node.dims(i) for i in (*sparse, *dense))]


@optimizer_op.kernel(CPU)  # one example after another: a GPU has nothing to do at once
def _(node: Node, env: Environment) -> Kernel:
    attributes = node.attributes
    random = env.state(node, lambda: np.random.default_rng(0))
    loss = LOSSES[attributes["loss_type"]]
    regularisation = (attributes["l1"], attributes["l2"], attributes["num_loss_partitions"])

    def optimize(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        groups = _groups(node, [value.numpy() for value in inputs])
        examples, ids, values, dense, weights, labels, known, sparse_weights, dense_weights, state = groups
        weights = weights.reshape(-1).astype(np.float64)
        labels = _checked(labels, loss, len(weights), state)
        if not examples and not dense:
            raise invalid("Requires at least one feature to train.")
        nominal = [_row(each) for each in (*sparse_weights, *dense_weights)]
        sizes = [len(each) for each in nominal]
        entries = sparse_entries(examples, ids, values, known, sizes, len(weights))
        columns = dense_columns(dense, sizes[len(examples) :], len(weights))
        weight_vector = np.concatenate(nominal)
        features = Features(entries, columns, len(weights), len(weight_vector))
        with np.errstate(all="ignore"):
            problem = _Pass(features, labels, weights, weight_vector, loss, *regularisation)
            result = state.astype(np.float64)
            order = _order(problem, result[:, 0], attributes["adaptative"], random)
            delta = problem.run(order, result)
        parts = np.split(delta.astype(np.float32), np.cumsum(sizes)[:-1])
        shapes = [each.shape for each in (*sparse_weights, *dense_weights)]
        deltas = [torch.from_numpy(part.reshape(shape)) for part, shape in zip(parts, shapes, strict=True)]
        return (torch.from_numpy(result.astype(np.float32)), *deltas)

    return optimize


def _checked(labels: Array, loss: DualLoss, count: int, state: Array) -> Array:
    """The labels as the loss takes them, if they and the state fit so many examples."""
    if labels.size != count:
        raise invalid(f"Expected {count} example labels but got {labels.size}")
    if state.ndim != 2:
        raise invalid(f"example_state_data must be rank 2 but is rank {state.ndim}")
    if state.shape != (count, _STATE):
        raise invalid(
            f"Expected shape [{count},{_STATE}] for example_state_data, got {format_dims(state.shape)}"
        )
    taken, allowed = loss.labels(labels.reshape(-1).astype(np.float64))
    if not allowed.all():
        raise invalid(f"{loss.message}{labels.reshape(-1)[~allowed][0]:g}")
    return taken


def _row(weights: Array) -> Array:
    """The weights of one group of features, a vector or a matrix of one row."""
    if weights.ndim not in (1, 2) or (weights.ndim == 2 and weights.shape[0] != 1):
        raise invalid(f"Weights must be a vector or one row, got shape {format_dims(weights.shape)}")
    return weights.reshape(-1).astype(np.float64)


def sdca_optimizer(
    sparse_example_indices: Sequence[Any],
    sparse_feature_indices: Sequence[Any],
    sparse_feature_values: Sequence[Any],
    dense_features: Sequence[Any],
    example_weights: Any,
    example_labels: Any,
    sparse_indices: Sequence[Any],
    sparse_weights: Sequence[Any],
    dense_weights: Sequence[Any],
    example_state_data: Any,
    loss_type: str,
    l1: float,
    l2: float,
    num_loss_partitions: int,
    num_inner_iterations: int,
    adaptative: bool = False,
    name: str | None = None,
) -> Any:
    """One pass of stochastic dual coordinate ascent over a batch of n examples.

    Args:
        sparse_example_indices: for each group of sparse features the example of every entry; int64.
        sparse_feature_indices: for each group the feature of every entry, one of its `sparse_indices`.
        sparse_feature_values: the values of the entries, for the first groups; those of the others are 1.
        dense_features: matrices [n, columns].
        example_weights: [n].
        example_labels: [n]; 0 or 1 for the classifying losses, not negative for "poisson_loss".
        sparse_indices: for each group, which feature each of its weights is for.
        sparse_weights: for each group a vector, or one row.
        dense_weights: for each matrix a vector, or one row.
        example_state_data: [n, 4]: of each example the dual variable, and what the last pass found of it: the
            primal loss, the dual loss and the weight. Zeros at first.
        loss_type: "logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss" or "poisson_loss".
        l1: the strength of the regularisation that makes weights zero.
        l2: the strength of the other one, not 0.
        num_loss_partitions: how many such passes, over other examples, change the same weights at once.
        num_inner_iterations: accepted; a pass goes over the batch once, as with TensorFlow.
        adaptative: whether examples far from their optimum are more likely to be taken.
        name: of the node.

    Returns a named tuple of the new state and of two lists: what is to be added to the sparse and to the
    dense weights. Raises InvalidArgumentError for labels, shapes or features that do not fit.
    """
    return optimizer_op.several(
        sparse_example_indices,
        sparse_feature_indices,
        sparse_feature_values,
        dense_features,
        example_weights,
        example_labels,
        sparse_indices,
        sparse_weights,
        dense_weights,
        example_state_data,
        loss_type=loss_type,
        l1=l1,
        l2=l2,
        num_loss_partitions=num_loss_partitions,
        num_inner_iterations=num_inner_iterations,
        adaptative=adaptative,
        name=name,
    )


# ---- shrinkage

shrink_op = op(
    "SdcaShrinkL1",
    "weights: Ref(num_features*float) ->",
    "num_features: int >= 0 ; l1: float ; l2: float",
    mutates=[0],
)
shrink_op.not_differentiable()


@shrink_op.infer
def _(node: Node) -> Shapes:
    return []


@shrink_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    with np.errstate(all="ignore"):
        threshold = float(np.float32(node.attributes["l1"]) / np.float32(node.attributes["l2"]))

    def shrink(*variables: Any) -> None:
        for variable in variables:
            with variable.lock:
                held = variable.tensor
                held.copy_(held.sign() * (held.abs() - threshold).clamp_min_(0))

    return shrink


def sdca_shrink_l1(weights: Sequence[Any], l1: float, l2: float, name: str | None = None) -> Operation:
    """Shrinks each reference variable of `weights` (float32) by l1 / l2 towards zero; returns the node."""
    return shrink_op.operation(weights, l1=l1, l2=l2, name=name)


# ---- fingerprints

fprint_op = op("SdcaFprint", "input: string -> output: int64", by_element=True)
fprint_op.not_differentiable()


@fprint_op.infer
def _(node: Node) -> Shapes:
    (count,) = merge(node.dims(0), (None,)) or (None,)
    return (count, 2)


@fprint_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Kernel:
    def fingerprints(strings: Strings) -> torch.Tensor:
        if strings.ndim != 1:
            raise invalid(f"Input must be a vector, got shape {format_dims(strings.shape)}")
        return torch.from_numpy(fingerprint128(as_list(strings)).view(np.int64))

    return fingerprints


def sdca_fprint(input: Any, name: str | None = None) -> Tensor:
    """The FarmHash fingerprint of 128 bits of each string of the vector `input`: int64, [strings, 2]."""
    return fprint_op(input, name=name)
