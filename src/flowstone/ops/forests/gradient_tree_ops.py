"""The operations of the ensembles of `tf.contrib.boosted_trees`.

A step of training finds each example's leaf in the tree that grows (GradientTreesPartitionExamples), sums
gradients and Hessians there (`stats_accumulators`), finds every leaf's best split (`split_ops`), and grows a
layer (GrowTreeEnsemble). Trees are in host memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.forests.boosted_trees_ops import declare_resource_handle, declare_step_op
from flowstone.ops.forests.gradient_ensemble import GradientEnsembleState, Growing
from flowstone.ops.forests.gradient_trees import GradientExamples
from flowstone.ops.forests.stats_accumulators import check_stamp
from flowstone.ops.forests.tree_growth import NodeSplit
from flowstone.ops.strings.elementwise_strings import attribute_bytes

__all__: list[str] = []

Array = np.ndarray[Any, Any]
_HANDLE = "tree_ensemble_handle: resource"
_OBLIVIOUS = 1


def _text(value: bytes) -> Array:
    found = np.empty((), object)
    found[()] = value
    return found


def _learner(node: Node) -> Any:
    """The message LearnerConfig; InvalidArgumentError for another text."""
    from google.protobuf.message import DecodeError

    from flowstone.io.proto import learner_pb2

    try:
        return learner_pb2.LearnerConfig.FromString(attribute_bytes(node, "learner_config"))
    except DecodeError:
        raise invalid("Unable to parse learner config.") from None


# ---- the resource


def _read(node: Node) -> Callable[..., None]:
    return lambda state, stamp, text: state.read(int(stamp), bytes(text.item()))


def _create(node: Node) -> Callable[..., None]:
    def call(state: GradientEnsembleState, stamp: Any, text: Any) -> None:
        with state.lock:
            if not state.is_initialized:
                state.read(int(stamp), bytes(text.item()))

    return call


def _serialize(node: Node) -> Callable[..., Any]:
    def call(state: GradientEnsembleState) -> tuple[Any, Array]:
        with state.lock:
            return torch.tensor(state.stamp), _text(state.message.SerializeToString())

    return call


def _stamp(node: Node) -> Callable[..., Any]:
    def call(state: GradientEnsembleState) -> Any:
        with state.lock:
            assert state.message is not None
            return torch.tensor(state.stamp)

    return call


def _stats(node: Node) -> Callable[..., Any]:
    def call(state: GradientEnsembleState, stamp: Any) -> Any:
        with state.lock:
            found = state.stats() if state.stamp == int(stamp) else (0,) * 6
        return tuple(torch.tensor(number) for number in found)

    return call


def _used_handlers(node: Node) -> Callable[..., Any]:
    count = node.attributes["num_all_handlers"]

    def call(state: GradientEnsembleState, stamp: Any) -> Any:
        mask = np.zeros(count, bool)
        with state.lock:
            check_stamp(state, int(stamp))
            used = list(state.message.growing_metadata.used_handler_ids)
        if any(not 0 <= handler < count for handler in used):
            raise invalid(f"handlers {used} are used, and there are {count}")
        mask[used] = True
        return torch.tensor(len(used)), torch.from_numpy(mask)

    return call


declare_resource_handle("DecisionTreeEnsembleResourceHandleOp", "gradient_ensemble", GradientEnsembleState)
_TEXT = f"{_HANDLE}, stamp_token: int64, tree_ensemble_config: string ->"
declare_step_op("CreateTreeEnsembleVariable", _TEXT, "", None, _create)
declare_step_op("TreeEnsembleDeserialize", _TEXT, "", None, _read)
declare_step_op(
    "TreeEnsembleIsInitializedOp",
    f"{_HANDLE} -> is_initialized: bool",
    "",
    (),
    lambda node: lambda state: torch.tensor(state.is_initialized),
)
declare_step_op("TreeEnsembleStampToken", f"{_HANDLE} -> stamp_token: int64", "", (), _stamp)
declare_step_op(
    "TreeEnsembleSerialize",
    f"{_HANDLE} -> stamp_token: int64, tree_ensemble_config: string",
    "",
    [(), ()],
    _serialize,
)
declare_step_op(
    "TreeEnsembleStats",
    f"{_HANDLE}, stamp_token: int64 -> num_trees: int64, num_layers: int64, active_tree: int64,"
    " active_layer: int64, attempted_trees: int64, attempted_layers: int64",
    "",
    [()] * 6,
    _stats,
)
declare_step_op(
    "TreeEnsembleUsedHandlers",
    f"{_HANDLE}, stamp_token: int64 -> num_used_handlers: int64, used_handlers_mask: bool",
    "num_all_handlers: int >= 0",
    lambda node: [(), (node.attributes["num_all_handlers"],)],
    _used_handlers,
)

# ---- examples

_FEATURES = (
    "dense_float_features: num_dense_float_features*float,"
    " sparse_float_feature_indices: num_sparse_float_features*int64,"
    " sparse_float_feature_values: num_sparse_float_features*float,"
    " sparse_float_feature_shapes: num_sparse_float_features*int64,"
    " sparse_int_feature_indices: num_sparse_int_features*int64,"
    " sparse_int_feature_values: num_sparse_int_features*int64,"
    " sparse_int_feature_shapes: num_sparse_int_features*int64"
)
_COUNTS = (
    "num_dense_float_features: int >= 0 ; num_sparse_float_features: int >= 0 ;"
    " num_sparse_int_features: int >= 0 ; use_locking: bool = false"
)


def _examples(node: Node) -> Callable[[Sequence[Any]], GradientExamples]:
    dense = node.attributes["num_dense_float_features"]
    sparse, ids = (node.attributes[f"num_sparse_{kind}_features"] for kind in ("float", "int"))

    def read(inputs: Sequence[Any]) -> GradientExamples:
        arrays = [np.asarray(each) for each in inputs]
        floats, rest = arrays[dense : dense + 3 * sparse], arrays[dense + 3 * sparse :]
        of_floats = [(floats[at], floats[at + sparse], floats[at + 2 * sparse]) for at in range(sparse)]
        of_ids = [(rest[at], rest[at + ids], rest[at + 2 * ids]) for at in range(ids)]
        return GradientExamples(arrays[:dense], of_floats, of_ids)

    return read


def _predict(node: Node, verbose: bool) -> Callable[..., Any]:
    read, config, attributes = _examples(node), _learner(node), node.attributes
    outputs = max(int(config.num_classes) - (1 if attributes["reduce_dim"] else 0), 0)
    if not outputs:
        raise invalid(
            "Number of classes must be >=2" if attributes["reduce_dim"] else "num_classes must be > 0"
        )

    def call(state: GradientEnsembleState, seed: Any, *features: Any) -> Any:
        examples = read(features)
        with state.lock:
            found = state.predict(
                config, examples, outputs, int(seed), attributes["apply_dropout"],
                attributes["apply_averaging"], attributes["center_bias"],
            )  # fmt: skip
        tensors = tuple(torch.from_numpy(each) for each in found)
        return tensors if verbose else tensors[:2]

    return call


_PREDICT_ATTRIBUTES = (
    f"learner_config: string ; {_COUNTS} ; apply_dropout: bool ; apply_averaging: bool ; center_bias: bool ;"
    " reduce_dim: bool"
)
_PREDICT = f"{_HANDLE}, seed: int64, {_FEATURES} -> predictions: float, drop_out_tree_indices_weights: float"
declare_step_op(
    "GradientTreesPrediction",
    _PREDICT,
    _PREDICT_ATTRIBUTES,
    lambda node: [_logits(node), (2, None)],
    lambda node: _predict(node, False),
)
declare_step_op(
    "GradientTreesPredictionVerbose",
    f"{_PREDICT}, leaf_index: int32",
    _PREDICT_ATTRIBUTES,
    lambda node: [_logits(node), (2, None), (None, None)],
    lambda node: _predict(node, True),
)


def _logits(node: Node) -> tuple[int | None, int]:
    return None, int(_learner(node).num_classes) - (1 if node.attributes["reduce_dim"] else 0)


def _partition(node: Node) -> Callable[..., Any]:
    read = _examples(node)

    def call(state: GradientEnsembleState, *features: Any) -> Any:
        examples = read(features)
        with state.lock:
            return torch.from_numpy(state.partitions(examples))

    return call


declare_step_op(
    "GradientTreesPartitionExamples",
    f"{_HANDLE}, {_FEATURES} -> partition_ids: int32",
    _COUNTS,
    (None,),
    _partition,
)

# ---- growing


def _center(node: Node) -> Callable[..., Any]:
    epsilon = node.attributes["centering_epsilon"]

    def call(state: GradientEnsembleState, stamp: Any, following: Any, delta: Any) -> Any:
        with state.lock:
            return torch.tensor(state.center(int(stamp), int(following), np.asarray(delta), epsilon))

    return call


declare_step_op(
    "CenterTreeEnsembleBias",
    f"{_HANDLE}, stamp_token: int64, next_stamp_token: int64, delta_updates: float"
    " -> continue_centering: bool",
    "learner_config: string ; centering_epsilon: float = 0.01",
    (),
    _center,
)


def _splits_of(handler: int, nodes: Any, gains: Any, texts: Any) -> list[NodeSplit]:
    from flowstone.io.proto import split_info_pb2

    read = split_info_pb2.SplitInfo.FromString
    rows = zip(np.asarray(nodes).tolist(), np.asarray(gains).tolist(), np.asarray(texts), strict=True)
    return [NodeSplit(at, gain, handler, read(bytes(text))) for at, gain, text in rows]


def _layer_split_of(handler: int, nodes: Any, gains: Any, texts: Any) -> list[NodeSplit]:
    """The split of the whole layer, if there is one; splits of layers are all of node 0."""
    from flowstone.io.proto import split_info_pb2

    read = split_info_pb2.ObliviousSplitInfo.FromString
    rows = zip(np.asarray(gains).tolist(), np.asarray(texts), strict=True)
    return [NodeSplit(0, gain, handler, read(bytes(text))) for gain, text in rows]


def _grow(node: Node) -> Callable[..., None]:
    config, count, bias = _learner(node), node.attributes["num_handlers"], node.attributes["center_bias"]

    def call(state: GradientEnsembleState, stamp: Any, following: Any, *inputs: Any) -> None:
        rate, seed, depth, learner, *parts = inputs
        oblivious = int(learner) == _OBLIVIOUS
        read = _layer_split_of if oblivious else _splits_of
        splits = [split for at in range(count) for split in read(at, *parts[at::count])]
        how = Growing(config, float(rate), int(depth), int(seed), bias, oblivious)
        with state.lock:
            state.grow(int(stamp), int(following), splits, how)

    return call


declare_step_op(
    "GrowTreeEnsemble",
    f"{_HANDLE}, stamp_token: int64, next_stamp_token: int64, learning_rate: float, dropout_seed: int64,"
    " max_tree_depth: int32, weak_learner_type: int32, partition_ids: num_handlers*int32,"
    " gains: num_handlers*float, splits: num_handlers*string ->",
    "learner_config: string ; num_handlers: int >= 0 ; center_bias: bool",
    None,
    _grow,
)
