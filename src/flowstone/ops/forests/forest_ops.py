"""The operations of forests of decision trees that learn from a stream (`tf.contrib.tensor_forest`).

A tree and the statistics of its leaves are two resources. A step of training finds each example's leaf
(TraverseTreeV4), counts it there (UpdateModelV4), counts how the candidates for the leaf's test part it
(ProcessInputV4), and splits the leaves that have counted enough (GrowTreeV4). Trees are in host memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, StepCall, Value
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.forest_examples import Examples
from flowstone.ops.forests.forest_state import ForestParams, StatisticsState, TreeState
from flowstone.ops.queues.queue_ops import find_resource
from flowstone.ops.strings.elementwise_strings import attribute_bytes
from flowstone.ops.strings.fingerprints import hash64

__all__: list[str] = []

Array = np.ndarray[Any, Any]
_EXAMPLES = (
    "input_data: float, sparse_input_indices: int64, sparse_input_values: float, sparse_input_shape: int64"
)
_SPEC = "input_spec: string ; params: string"

_STRING_SEED = 0xC70F6907  # that of the C++ library's hash of strings

# ---- resources


def _declare_handle(name: str, family: str, make: Callable[[str], Any]) -> None:
    declaration = op(
        name, "-> resource: resource", "container: string = '' ; shared_name: string = ''", stateful=True
    )
    declaration.infer(lambda node: ())
    declaration.kernel(CPU)(lambda node, env: Value(find_resource(node, env, family, make)))
    declaration.not_differentiable()


def _params(node: Node) -> ForestParams:
    return ForestParams.of(attribute_bytes(node, "params"))


def _declare(
    name: str, signature: str, attributes: str, dims: Any, make: Callable[[Node], Callable[..., Any]]
) -> OpDeclaration:
    """An op of which `make(node)` gives what a step calls with the inputs."""
    declaration = op(name, signature, attributes, stateful=True)
    declaration.infer(lambda node: dims)

    def kernel(node: Node, env: Environment) -> StepCall:
        call = make(node)
        return StepCall(lambda step, *inputs: call(*inputs))

    declaration.kernel(CPU)(kernel)
    declaration.not_differentiable()
    return declaration


def _bytes(value: Any) -> bytes:
    return bytes(value.item())


def _text(value: bytes) -> Array:
    found = np.empty((), object)
    found[()] = value
    return found


def _create(node: Node) -> Callable[..., None]:
    params = _params(node)
    return lambda state, config: state.create(_bytes(config), params)


def _scalar(value: Any) -> Any:
    return torch.tensor(value)


_declare_handle("DecisionTreeResourceHandleOp", "decision_tree", TreeState)
_declare_handle("FertileStatsResourceHandleOp", "fertile_stats", StatisticsState)
for _name in ("CreateTreeVariable", "TreeDeserialize"):
    _declare(_name, "tree_handle: resource, tree_config: string ->", "params: string", None, _create)
for _name in ("CreateFertileStatsVariable", "FertileStatsDeserialize"):
    _declare(_name, "stats_handle: resource, stats_config: string ->", "params: string", None, _create)
_declare(
    "TreeIsInitializedOp",
    "tree_handle: resource -> is_initialized: bool",
    "",
    (),
    lambda node: lambda state: _scalar(state.is_initialized),
)
_declare(
    "FertileStatsIsInitializedOp",
    "stats_handle: resource -> is_initialized: bool",
    "",
    (),
    lambda node: lambda state: _scalar(state.is_initialized),
)
_declare(
    "TreeSerialize",
    "tree_handle: resource -> tree_config: string",
    "",
    (),
    lambda node: lambda state: _text(state.tree.to_message()),
)


def _serialize_statistics(node: Node) -> Callable[..., Array]:
    params = _params(node)
    return lambda state: _text(state.serialize(params))


_declare(
    "FertileStatsSerialize",
    "stats_handle: resource -> stats_config: string",
    "params: string",
    (),
    _serialize_statistics,
)
_declare(
    "TreeSize",
    "tree_handle: resource -> tree_size: int32",
    "",
    (),
    lambda node: lambda state: torch.tensor(state.tree.size, dtype=torch.int32),
)


def _feature_counts(node: Node) -> Callable[..., Any]:
    features = int(_params(node).message.num_features)
    return lambda state: torch.from_numpy(state.tree.feature_counts(features))


_declare(
    "FeatureUsageCounts",
    "tree_handle: resource -> feature_counts: int32",
    "params: string",
    (None,),
    _feature_counts,
)

# ---- examples


def _examples(node: Node) -> Callable[..., Examples]:
    spec = attribute_bytes(node, "input_spec")

    def read(dense: Any, indices: Any, values: Any, shape: Any) -> Examples:
        return Examples(np.asarray(dense), np.asarray(indices), np.asarray(values), np.asarray(shape), spec)

    return read


def _traverse(node: Node) -> Callable[..., Any]:
    read = _examples(node)

    def call(state: TreeState, *parts: Any) -> Any:
        with state.lock:
            return torch.from_numpy(state.tree.find_leaves(read(*parts)))

    return call


_declare(
    "TraverseTreeV4",
    f"tree_handle: resource, {_EXAMPLES} -> leaf_ids: int32",
    _SPEC,
    (None,),
    _traverse,
)


def _predict(node: Node) -> Callable[..., Any]:
    read, params = _examples(node), _params(node)

    def call(state: TreeState, *parts: Any) -> tuple[Any, Array]:
        with state.lock:
            leaves = state.tree.find_leaves(read(*parts))
            values = state.tree.leaf_values(leaves)
            paths = np.empty((len(leaves) if params.message.inference_tree_paths else 0), object)
            for at in range(len(paths)):
                paths[at] = state.tree.path_message(int(leaves[at]))
        if not params.is_regression:
            sums = values.sum(1, keepdims=True)
            values = np.divide(values, sums, out=np.zeros_like(values), where=sums > 0)
        return torch.from_numpy(values), paths

    return call


_declare(
    "TreePredictionsV4",
    f"tree_handle: resource, {_EXAMPLES} -> predictions: float, tree_paths: string",
    _SPEC,
    [(None, None), (None,)],
    _predict,
)


def _weights(given: Any, count: int) -> Array:
    """float32 [examples]: ones if none are given; InvalidArgumentError for another number of them."""
    weights = np.asarray(given, np.float32).reshape(-1)
    if not len(weights):
        return np.ones(count, np.float32)
    if len(weights) != count:
        raise invalid(f"{count} examples have {len(weights)} weights")
    return weights


def _update(node: Node) -> Callable[..., None]:
    params = _params(node)

    def call(state: TreeState, leaf_ids: Any, labels: Any, weights: Any) -> None:
        if params.is_regression:
            return  # a leaf's mean is what it had when it was made
        leaves = np.asarray(leaf_ids)
        targets = params.targets(np.asarray(labels), len(leaves))
        with state.lock:
            state.tree.add_to_leaves(leaves, targets * _weights(weights, len(leaves))[:, None])

    return call


_declare(
    "UpdateModelV4",
    "tree_handle: resource, leaf_ids: int32, input_labels: float, input_weights: float ->",
    "params: string",
    None,
    _update,
)


def _process(node: Node) -> Callable[..., Any]:
    read, params = _examples(node), _params(node)
    draws = np.random.RandomState(node.attributes["random_seed"] % 2**32)

    def call(state: TreeState, statistics: StatisticsState, *parts: Any) -> Any:
        examples = read(*parts[:4])
        labels, weights, leaf_ids = (np.asarray(part) for part in parts[4:])
        if len(leaf_ids) != len(examples):
            raise invalid(f"{len(examples)} examples have {len(leaf_ids)} leaves")
        targets = params.targets(labels, len(examples))
        counts = _weights(weights, len(examples))
        finished = statistics.process(examples, targets, counts, leaf_ids, draws)
        return torch.tensor(finished, dtype=torch.int32)

    return call


_declare(
    "ProcessInputV4",
    f"tree_handle: resource, stats_handle: resource, {_EXAMPLES}, input_labels: float, input_weights: float,"
    " leaf_ids: int32 -> finished_nodes: int32",
    f"random_seed: int ; {_SPEC}",
    (None,),
    _process,
)


def _grow(node: Node) -> Callable[..., None]:
    params = _params(node)
    return lambda state, statistics, finished: statistics.grow(state, np.asarray(finished).tolist(), params)


_declare(
    "GrowTreeV4",
    "tree_handle: resource, stats_handle: resource, finished_nodes: int32 ->",
    "params: string",
    None,
    _grow,
)


def _finalize(node: Node) -> Callable[..., None]:
    def call(state: TreeState, statistics: StatisticsState) -> None:
        raise errors.UnimplementedError(None, None, "FinalizeTree is disabled, as in TensorFlow 1.15")

    return call


_declare(
    "FinalizeTree", "tree_handle: resource, stats_handle: resource ->", "params: string", None, _finalize
)

# ---- tensors

reinterpret_op = op("ReinterpretStringToFloat", "input_data: string -> output_data: float")
reinterpret_op.infer(lambda node: node.dims(0))
reinterpret_op.not_differentiable()


@reinterpret_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    def call(strings: Array) -> Any:
        hashes = hash64([bytes(each) for each in strings.reshape(-1)], _STRING_SEED)
        return torch.from_numpy(hashes.astype(np.float32).reshape(strings.shape))

    return call
