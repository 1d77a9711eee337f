"""The operations of ensembles of boosted trees (`tf.estimator.BoostedTreesClassifier` and its kin).

An ensemble is a resource. A step of training finds each example's leaf (BoostedTreesTrainingPredict), sums
the loss's first and second derivatives by leaf and bucket (BoostedTreesMakeStatsSummary), finds every leaf's
best split (BoostedTreesCalculateBestGainsPerFeature), and grows a layer (BoostedTreesUpdateEnsemble). Trees
are in host memory.
Algorithm: N. Ponomareva et al., "Compact Multi-class Boosted Trees" (2017). One logit an example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, StepCall, Value
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.leaf_gains import best_splits, weight_and_gain
from flowstone.ops.forests.tree_ensemble import EnsembleState, Split
from flowstone.ops.queues.queue_ops import find_resource

__all__ = ["declare_resource_handle", "declare_step_op"]

Array = np.ndarray[Any, Any]


def declare_resource_handle(name: str, family: str, make: Callable[[str], Any]) -> None:
    """An op whose value is the resource that `make(name)` makes."""
    declaration = op(
        name, "-> resource: resource", "container: string = '' ; shared_name: string = ''", stateful=True
    )
    declaration.infer(lambda node: ())
    declaration.kernel(CPU)(lambda node, env: Value(find_resource(node, env, family, make)))
    declaration.not_differentiable()


def declare_step_op(
    name: str, signature: str, attributes: str, dims: Any, make: Callable[[Node], Callable[..., Any]]
) -> OpDeclaration:
    """An op on resources, of which `make(node)` gives what a step calls with the inputs."""
    declaration = op(name, signature, attributes, stateful=True)
    declaration.infer(dims if callable(dims) else lambda node: dims)

    def kernel(node: Node, env: Environment) -> StepCall:
        call = make(node)
        return StepCall(lambda step, *inputs: call(*inputs))

    declaration.kernel(CPU)(kernel)
    declaration.not_differentiable()
    return declaration


def _text(value: bytes) -> Array:
    found = np.empty((), object)
    found[()] = value
    return found


def _int32(value: Any) -> Any:
    return torch.tensor(value, dtype=torch.int32)


def _read(node: Node) -> Callable[..., None]:
    return lambda state, stamp, text: state.read(int(stamp), bytes(text.item()))


declare_resource_handle("BoostedTreesEnsembleResourceHandleOp", "boosted_trees_ensemble", EnsembleState)
for _name in ("BoostedTreesCreateEnsemble", "BoostedTreesDeserializeEnsemble"):
    declare_step_op(
        _name,
        "tree_ensemble_handle: resource, stamp_token: int64, tree_ensemble_serialized: string ->",
        "",
        None,
        _read,
    )
declare_step_op(
    "IsBoostedTreesEnsembleInitialized",
    "tree_ensemble_handle: resource -> is_initialized: bool",
    "",
    (),
    lambda node: lambda state: torch.tensor(state.is_initialized),
)


def _serialize(node: Node) -> Callable[..., Any]:
    def call(state: EnsembleState) -> tuple[Any, Array]:
        with state.lock:
            return torch.tensor(state.stamp), _text(state.message.SerializeToString())

    return call


declare_step_op(
    "BoostedTreesSerializeEnsemble",
    "tree_ensemble_handle: resource -> stamp_token: int64, tree_ensemble_serialized: string",
    "",
    [(), ()],
    _serialize,
)


def _states(node: Node) -> Callable[..., Any]:
    def call(state: EnsembleState) -> tuple[Any, ...]:
        with state.lock:
            trees, finished, layers, nodes = state.states()
            return torch.tensor(state.stamp), _int32(trees), _int32(finished), _int32(layers), _int32(nodes)

    return call


declare_step_op(
    "BoostedTreesGetEnsembleStates",
    "tree_ensemble_handle: resource -> stamp_token: int64, num_trees: int32, num_finalized_trees: int32,"
    " num_attempted_layers: int32, last_layer_nodes_range: int32",
    "",
    [(), (), (), (), (2,)],
    _states,
)

# ---- predictions


def _features(buckets: Any) -> Array:
    """int32 [features, examples]; InvalidArgumentError if features have another number of examples."""
    found = [np.asarray(each) for each in buckets]
    if any(each.shape != found[0].shape or each.ndim != 1 for each in found):
        raise invalid(f"bucketized features have the shapes {[each.shape for each in found]}")
    return np.stack(found)


def _check_logits(node: Node) -> None:
    if node.attributes["logits_dimension"] != 1:
        raise invalid("Currently only one dimensional outputs are supported.")


def _predict(node: Node) -> Callable[..., Any]:
    _check_logits(node)

    def call(state: EnsembleState, *buckets: Any) -> Any:
        features = _features(buckets)
        with state.lock:
            return torch.from_numpy(state.logits(features)[:, None])

    return call


def _further(node: Node) -> Callable[..., Any]:
    _check_logits(node)

    def call(state: EnsembleState, trees: Any, nodes: Any, *buckets: Any) -> Any:
        features = _features(buckets)
        with state.lock:
            change, at_trees, at_nodes = state.further(np.asarray(trees), np.asarray(nodes), features)
        return torch.from_numpy(change[:, None]), torch.from_numpy(at_trees), torch.from_numpy(at_nodes)

    return call


def _debug_outputs(node: Node) -> Callable[..., Any]:
    _check_logits(node)

    def call(state: EnsembleState, *buckets: Any) -> Array:
        from flowstone.io.proto import boosted_trees_pb2

        features = _features(buckets)
        found = np.empty(features.shape[1], object)
        with state.lock:
            paths = state.paths(features)
        for example, (asked, logits) in enumerate(paths):
            output = boosted_trees_pb2.DebugOutput(feature_ids=asked, logits_path=logits)
            found[example] = output.SerializeToString()
        return found

    return call


def _batch(node: Node, at: int) -> int | None:
    dims = node.dims(at)
    return dims[0] if dims else None


_FEATURES = "bucketized_features: num_bucketized_features*int32"
_COUNTS = "num_bucketized_features: int >= 1 ; logits_dimension: int"
declare_step_op(
    "BoostedTreesPredict",
    f"tree_ensemble_handle: resource, {_FEATURES} -> logits: float",
    _COUNTS,
    lambda node: (_batch(node, 1), node.attributes["logits_dimension"]),
    _predict,
)
declare_step_op(
    "BoostedTreesTrainingPredict",
    f"tree_ensemble_handle: resource, cached_tree_ids: int32, cached_node_ids: int32, {_FEATURES}"
    " -> partial_logits: float, tree_ids: int32, node_ids: int32",
    _COUNTS,
    lambda node: [
        (_batch(node, 3), node.attributes["logits_dimension"]),
        (_batch(node, 3),),
        (_batch(node, 3),),
    ],
    _further,
)
declare_step_op(
    "BoostedTreesExampleDebugOutputs",
    f"tree_ensemble_handle: resource, {_FEATURES} -> examples_debug_outputs_serialized: string",
    _COUNTS,
    lambda node: (_batch(node, 1),),
    _debug_outputs,
)

# ---- growing


def _center(node: Node) -> Callable[..., Any]:
    def call(state: EnsembleState, gradients: Any, hessians: Any, l1: Any, l2: Any) -> Any:
        sums = np.asarray(gradients).reshape(-1)[:1], np.asarray(hessians).reshape(-1)[:1]
        weight, _ = weight_and_gain(*sums, float(l1), float(l2))
        with state.lock:
            return torch.tensor(state.center(float(weight[0])))

    return call


declare_step_op(
    "BoostedTreesCenterBias",
    "tree_ensemble_handle: resource, mean_gradients: float, mean_hessians: float, l1: float, l2: float"
    " -> continue_centering: bool",
    "",
    (),
    _center,
)


def _splits(feature_ids: list[int], columns: list[list[Array]]) -> dict[int, Split]:
    """The best split of each node over all features: of equal gains that of the least feature."""
    best: dict[int, Split] = {}
    for place, feature in enumerate(feature_ids):
        nodes, gains, thresholds, lefts, rights = (column[place] for column in columns)
        for row, node in enumerate(nodes.tolist()):
            split = Split(
                float(gains[row]), feature, int(thresholds[row]), float(lefts[row, 0]), float(rights[row, 0])
            )
            known = best.get(node)
            if known is None or (split.gain, -feature) > (known.gain, -known.feature):
                best[node] = split
    return best


def _update(node: Node) -> Callable[..., None]:
    count, pruning = node.attributes["num_features"], node.attributes["pruning_mode"]

    def call(state: EnsembleState, feature_ids: Any, *parts: Any) -> None:
        arrays = [np.asarray(part) for part in parts]
        columns = [arrays[start : start + count] for start in range(0, 5 * count, count)]
        splits = _splits(np.asarray(feature_ids).tolist(), columns)
        with state.lock:
            state.grow(splits, float(arrays[-1]), int(arrays[-2]), pruning)

    return call


declare_step_op(
    "BoostedTreesUpdateEnsemble",
    "tree_ensemble_handle: resource, feature_ids: int32, node_ids: num_features*int32,"
    " gains: num_features*float,"
    " thresholds: num_features*int32, left_node_contribs: num_features*float,"
    " right_node_contribs: num_features*float, max_depth: int32, learning_rate: float ->",
    "pruning_mode: int >= 0 ; num_features: int >= 0",
    None,
    _update,
)

# ---- statistics: pure functions

stats_op = op(
    "BoostedTreesMakeStatsSummary",
    "node_ids: int32, gradients: float, hessians: float, bucketized_features_list: num_features*int32"
    " -> stats_summary: float",
    "max_splits: int >= 1 ; num_buckets: int >= 1 ; num_features: int >= 1",
)
stats_op.not_differentiable()


@stats_op.infer
def _(node: Node) -> tuple[int, ...]:
    sizes = node.attributes
    return sizes["num_features"], sizes["max_splits"], sizes["num_buckets"], 2


@stats_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    sizes = node.attributes
    shape = sizes["max_splits"], sizes["num_buckets"], 2

    def call(node_ids: Any, gradients: Any, hessians: Any, *buckets: Any) -> Any:
        nodes = np.asarray(node_ids)
        terms = np.column_stack([np.asarray(gradients)[:, 0], np.asarray(hessians)[:, 0]])
        features = _features(buckets)
        if (nodes.size and not 0 <= nodes.min() <= nodes.max() < shape[0]) or features.min(initial=0) < 0:
            raise invalid(f"nodes must be in [0, {shape[0]}), and buckets not negative")
        features = np.minimum(
            features, shape[1] - 1
        )  # quantiles may be one more; TensorFlow writes outside then
        found = np.zeros((len(buckets), *shape), np.float32)
        for feature, each in enumerate(features):
            np.add.at(found[feature], (nodes, each), terms)
        return torch.from_numpy(found)

    return call


gains_op = op(
    "BoostedTreesCalculateBestGainsPerFeature",
    "node_id_range: int32, stats_summary_list: num_features*float, l1: float, l2: float,"
    " tree_complexity: float, min_node_weight: float -> node_ids_list: num_features*int32,"
    " gains_list: num_features*float,"
    " thresholds_list: num_features*int32, left_node_contribs_list: num_features*float,"
    " right_node_contribs_list: num_features*float",
    "max_splits: int >= 1 ; num_features: int >= 1",
)
gains_op.not_differentiable()


@gains_op.infer
def _(node: Node) -> Any:
    count = node.attributes["num_features"]
    return [(None,)] * 3 * count + [(None, 1)] * 2 * count


@gains_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    def call(node_range: Any, *parts: Any) -> Any:
        *summaries, l1, l2, complexity, least = (np.asarray(part) for part in parts)
        first, end = np.asarray(node_range).tolist()
        found = [
            best_splits(each, first, end, float(l1), float(l2), float(complexity), float(least))
            for each in summaries
        ]
        return tuple(torch.from_numpy(column) for columns in zip(*found, strict=True) for column in columns)

    return call
