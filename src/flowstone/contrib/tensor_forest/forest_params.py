"""How a forest is described: `ForestHParams`, and the message that operations read."""

from __future__ import annotations

import math
import numbers
import random
from typing import Any

from google.protobuf import text_format

import flowstone as tf
from flowstone.io.proto import decision_trees_pb2 as _tree_proto
from flowstone.io.proto import tensor_forest_params_pb2 as _params_proto

__all__ = [
    "CLASSIFICATION_LEAF_MODEL_TYPES",
    "FINISH_TYPES",
    "PRUNING_TYPES",
    "REGRESSION_MODEL_TYPE",
    "SPLIT_TYPES",
    "ForestHParams",
    "build_params_proto",
    "parse_number_or_string_to_proto",
]

# By model name: the kind of leaves, and that of their statistics.
CLASSIFICATION_LEAF_MODEL_TYPES = {
    "all_dense": (_params_proto.MODEL_DENSE_CLASSIFICATION, _params_proto.STATS_DENSE_GINI),
    "all_sparse": (_params_proto.MODEL_SPARSE_CLASSIFICATION, _params_proto.STATS_SPARSE_GINI),
    "sparse_then_dense": (
        _params_proto.MODEL_SPARSE_OR_DENSE_CLASSIFICATION,
        _params_proto.STATS_SPARSE_THEN_DENSE_GINI,
    ),
}
REGRESSION_MODEL_TYPE = (
    _params_proto.MODEL_REGRESSION,
    _params_proto.STATS_LEAST_SQUARES_REGRESSION,
    _params_proto.COLLECTION_BASIC,
)
FINISH_TYPES = {
    "basic": _params_proto.SPLIT_FINISH_BASIC,
    "hoeffding": _params_proto.SPLIT_FINISH_DOMINATE_HOEFFDING,
    "bootstrap": _params_proto.SPLIT_FINISH_DOMINATE_BOOTSTRAP,
}
PRUNING_TYPES = {
    "none": _params_proto.SPLIT_PRUNE_NONE,
    "half": _params_proto.SPLIT_PRUNE_HALF,
    "quarter": _params_proto.SPLIT_PRUNE_QUARTER,
    "10_percent": _params_proto.SPLIT_PRUNE_10_PERCENT,
    "hoeffding": _params_proto.SPLIT_PRUNE_HOEFFDING,
}
SPLIT_TYPES = {
    "less_or_equal": _tree_proto.InequalityTest.LESS_OR_EQUAL,
    "less": _tree_proto.InequalityTest.LESS_THAN,
}


def parse_number_or_string_to_proto(proto: Any, param: Any) -> None:
    """Fills the message DepthDependentParam: with a constant, or as the text of the message says."""
    if isinstance(param, numbers.Number):
        proto.constant_value = param
    elif param.isdigit():
        proto.constant_value = int(param)
    else:
        text_format.Merge(param, proto)


def build_params_proto(params: Any) -> Any:
    """The message TensorForestParams of filled `ForestHParams`."""
    proto = _params_proto.TensorForestParams()
    if params.param_file:
        with tf.gfile.Open(params.param_file) as file:
            text_format.Merge(file.read(), proto)
    else:
        proto.leaf_type, proto.stats_type = params.leaf_model_type, params.stats_model_type
        proto.collection_type = _params_proto.COLLECTION_BASIC
        proto.pruning_type.type, proto.finish_type.type = params.pruning_type, params.finish_type
        proto.inequality_test_type = params.split_type
        proto.num_trees, proto.max_nodes = params.num_trees, params.max_nodes
        proto.is_regression, proto.num_features = params.regression, params.num_features
        proto.num_outputs = params.num_outputs if params.regression else params.num_classes
        proto.drop_final_class = False
        for name in (
            "collate_examples",
            "checkpoint_stats",
            "use_running_stats_method",
            "initialize_average_splits",
            "inference_tree_paths",
        ):
            setattr(proto, name, getattr(params, name))
        for name in ("num_splits_to_consider", "split_after_samples", "dominate_fraction"):
            parse_number_or_string_to_proto(getattr(proto, name), getattr(params, name))
        check = params.early_finish_check_every_samples
        parse_number_or_string_to_proto(proto.finish_type.check_every_steps, check)
        parse_number_or_string_to_proto(proto.pruning_type.prune_every_samples, params.prune_every_samples)
    return proto


class ForestHParams:
    """What describes a forest; any other keyword is kept, too. `num_classes` and `num_features` are needed.

    Args:
        num_trees: how many trees vote.
        max_nodes: a tree with so many nodes is not split any more.
        bagging_fraction: the part of a batch, drawn at random, that each tree sees.
        num_splits_to_consider: candidates for a node's test; 0: the root of the number of features, but
            at least 10.
        feature_bagging_fraction: the part of the features, drawn at random, that each tree sees.
        split_after_samples: how many examples a leaf counts before it is split.
        model_name: "all_dense", "all_sparse" or "sparse_then_dense": how leaves are saved.
        split_finish_name: "basic": a leaf is split when it has its number of examples.
        split_pruning_name: "none": all candidates are kept.
        checkpoint_stats, collate_examples, use_running_stats_method: are kept.
        inference_tree_paths: whether predictions come with the nodes that led to them.
        param_file: a file with the text of the message TensorForestParams, in place of all these.
        split_name: "less_or_equal" or "less": how features are compared.
        max_fertile_nodes, valid_leaf_threshold, dominate_method, dominate_fraction, prune_every_samples,
            early_finish_check_every_samples: are kept, and change nothing.
    """

    num_classes: int
    num_features: int
    regression: bool
    serialized_params_proto: bytes
    params_proto: Any

    def __init__(
        self,
        num_trees: int = 100,
        max_nodes: int = 10000,
        bagging_fraction: float = 1.0,
        num_splits_to_consider: Any = 0,
        feature_bagging_fraction: float = 1.0,
        max_fertile_nodes: int = 0,
        split_after_samples: Any = 250,
        valid_leaf_threshold: int = 1,
        dominate_method: str = "bootstrap",
        dominate_fraction: Any = 0.99,
        model_name: str = "all_dense",
        split_finish_name: str = "basic",
        split_pruning_name: str = "none",
        prune_every_samples: Any = 0,
        early_finish_check_every_samples: Any = 0,
        collate_examples: bool = False,
        checkpoint_stats: bool = False,
        use_running_stats_method: bool = False,
        initialize_average_splits: bool = False,
        inference_tree_paths: bool = False,
        param_file: str | None = None,
        split_name: str = "less_or_equal",
        **kwargs: Any,
    ) -> None:
        given = dict(locals())
        del given["self"], given["kwargs"]
        self.__dict__.update(given, **kwargs)

    def values(self) -> dict[str, Any]:
        """All parameters by name."""
        return self.__dict__

    def fill(self) -> ForestHParams:
        """Works out what is not given, in place.

        Raises AttributeError without `num_classes` or `num_features`, KeyError for an unknown name, and
        ValueError for a way of splitting that flowstone's forests do not have.
        """
        params = self.__dict__
        self.bagged_num_features = int(params["feature_bagging_fraction"] * self.num_features)
        self.bagged_features = None
        if params["feature_bagging_fraction"] < 1.0:
            features = range(self.num_features)
            self.bagged_features = [
                random.sample(features, self.bagged_num_features) for _ in range(params["num_trees"])
            ]
        self.regression = params.get("regression", False)
        self.num_outputs = self.num_classes if self.regression else 1
        self.num_output_columns = self.num_classes + 1
        if not params["num_splits_to_consider"]:
            self.num_splits_to_consider = max(10, math.floor(math.sqrt(self.num_features)))
        self.base_random_seed = params.get("base_random_seed", 0)
        leaf_types = CLASSIFICATION_LEAF_MODEL_TYPES[params["model_name"]]
        chosen = REGRESSION_MODEL_TYPE if self.regression else leaf_types
        self.leaf_model_type, self.stats_model_type = chosen[0], chosen[1]
        self.finish_type = FINISH_TYPES[params["split_finish_name"]]
        self.pruning_type = PRUNING_TYPES[params["split_pruning_name"]]
        self.split_type = SPLIT_TYPES[params["split_name"]]
        if self.finish_type or self.pruning_type or params["initialize_average_splits"]:
            raise ValueError(
                "flowstone's forests split a leaf once it has its number of examples, and keep all"
                " candidates: use split_finish_name='basic', split_pruning_name='none' and no"
                " initialize_average_splits"
            )
        return self
