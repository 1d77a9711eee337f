"""`tf.contrib.tensor_forest.tensor_forest`: random forests that learn from a stream of batches.

Of each example, a tree finds the leaf, and counts it there. The first examples of a leaf are candidates for
the test that splits it; once enough others have been counted, the best becomes it. The forest's answer is the
mean of the trees'. P. Domingos, G. Hulten, "Mining high-speed data streams", 2000; D. Colthurst et al.,
"TensorForest: Scalable random forests on TensorFlow", 2016.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.framework.variables import VariableDeviceChooser
from flowstone.contrib.tensor_forest import data_ops, model_ops, stats_ops
from flowstone.contrib.tensor_forest.forest_params import (
    CLASSIFICATION_LEAF_MODEL_TYPES,
    FINISH_TYPES,
    PRUNING_TYPES,
    REGRESSION_MODEL_TYPE,
    SPLIT_TYPES,
    ForestHParams,
    build_params_proto,
    parse_number_or_string_to_proto,
)

__all__ = [
    "CLASSIFICATION_LEAF_MODEL_TYPES",
    "FINISH_TYPES",
    "PRUNING_TYPES",
    "REGRESSION_MODEL_TYPE",
    "SPLIT_TYPES",
    "ForestHParams",
    "ForestTrainingVariables",
    "ForestVariables",
    "RandomForestGraphs",
    "RandomTreeGraphs",
    "TreeTrainingVariables",
    "TreeVariables",
    "build_params_proto",
    "data_ops",
    "get_epoch_variable",
    "model_ops",
    "parse_number_or_string_to_proto",
    "stats_ops",
]

_NO_SPARSE_BAGS = "feature_bagging_fraction of sparse features is not supported: use 1.0"


class TreeVariables:
    """The resources of one tree: `tree`, and `stats`, those of its leaves."""

    def __init__(
        self, params: Any, tree_num: int, training: bool, tree_config: Any = "", tree_stat: Any = ""
    ) -> None:
        if not hasattr(params, "params_proto"):
            params.params_proto = build_params_proto(params)
            params.serialized_params_proto = params.params_proto.SerializeToString()
        self.stats: Any = None
        if training:
            stats_name = self.get_tree_name("stats", tree_num)
            self.stats = stats_ops.fertile_stats_variable(params, tree_stat, stats_name)
        self.tree = model_ops.tree_variable(
            params, tree_config, self.stats, self.get_tree_name("tree", tree_num)
        )

    def get_tree_name(self, name: str, num: int) -> str:
        """What a tree's resource is called: "tree-3"."""
        return f"{name}-{num}"


class ForestVariables:
    """The resources of all trees, by number.

    Args:
        params: filled `ForestHParams`.
        device_assigner: a device function for the trees.
        training: whether trees have statistics.
        tree_variables_class: what makes those of one tree.
        tree_configs, tree_stats: texts of messages that the trees begin with.
    """

    def __init__(
        self,
        params: Any,
        device_assigner: Any,
        training: bool = True,
        tree_variables_class: Any = TreeVariables,
        tree_configs: Any = None,
        tree_stats: Any = None,
    ) -> None:
        self.variables: list[Any] = []
        with tf.device(device_assigner):
            # Each stands for the device of its tree.
            self.device_dummies = [
                tf.get_variable(f"device_dummy_{i}", shape=0) for i in range(params.num_trees)
            ]
        for i in range(params.num_trees):
            kwargs = {}
            if tree_configs is not None:
                kwargs["tree_config"] = tree_configs[i]
            if tree_stats is not None:
                kwargs["tree_stat"] = tree_stats[i]
            with tf.device(self.device_dummies[i].device):
                self.variables.append(tree_variables_class(params, i, training, **kwargs))

    def __setitem__(self, t: int, val: Any) -> None:
        self.variables[t] = val

    def __getitem__(self, t: int) -> Any:
        return self.variables[t]


class RandomTreeGraphs:
    """The graphs of one tree."""

    def __init__(self, variables: Any, params: Any, tree_num: int) -> None:
        self.variables, self.params, self.tree_num = variables, params, tree_num

    def _examples(self, input_data: Any, sparse_features: Any) -> list[Any]:
        dense = [] if input_data is None else input_data
        if sparse_features is None:
            return [dense, [], [], []]
        return [dense, sparse_features.indices, sparse_features.values, sparse_features.dense_shape]

    def training_graph(
        self,
        input_data: Any,
        input_labels: Any,
        random_seed: int,
        data_spec: Any,
        sparse_features: Any = None,
        input_weights: Any = None,
    ) -> Any:
        """The operation that trains the tree with a batch.

        Args:
            input_data: float32 [examples, features], or None.
            input_labels: float32 [examples], or [examples, outputs] of numbers.
            random_seed: of the candidates' features; 0 for another sequence each time.
            data_spec: the `TensorForestDataSpec` of the features.
            sparse_features: a SparseTensor of features, or None.
            input_weights: float32 [examples], ones if None.
        """
        spec = (data_spec or data_ops.TensorForestDataSpec()).SerializeToString()
        params = self.params.serialized_params_proto
        examples = self._examples(input_data, sparse_features)
        weights = [] if input_weights is None else input_weights
        tree, stats = self.variables.tree, self.variables.stats
        leaf_ids = model_ops.traverse_tree_v4(tree, *examples, input_spec=spec, params=params)
        update = model_ops.update_model_v4(tree, leaf_ids, input_labels, weights, params=params)
        finished = stats_ops.process_input_v4(
            tree,
            stats,
            *examples,
            input_labels,
            weights,
            leaf_ids,
            random_seed=random_seed,
            input_spec=spec,
            params=params,
        )
        with tf.control_dependencies([update]):
            return stats_ops.grow_tree_v4(tree, stats, finished, params=params)

    def inference_graph(self, input_data: Any, data_spec: Any, sparse_features: Any = None) -> Any:
        """(predictions [examples, outputs], the paths that led to them as texts of messages TreePath)."""
        return model_ops.tree_predictions_v4(
            self.variables.tree,
            *self._examples(input_data, sparse_features),
            input_spec=data_spec.SerializeToString(),
            params=self.params.serialized_params_proto,
        )

    def size(self) -> Any:
        """How many nodes the tree has: int32, []."""
        return model_ops.tree_size(self.variables.tree)

    def feature_usage_counts(self) -> Any:
        """How many nodes test each feature: int32, [features]."""
        return model_ops.feature_usage_counts(self.variables.tree, params=self.params.serialized_params_proto)


class RandomForestGraphs:
    """The graphs of a forest.

    Args:
        params: filled `ForestHParams`.
        tree_configs, tree_stats: texts of messages that the trees begin with, one a tree.
        device_assigner: a device function for the trees; parameter servers in turn if None.
        variables: the trees' resources, made here if None.
        tree_variables_class: what makes those of one tree.
        tree_graphs: the class of the graphs of one tree.
        training: whether trees have what training needs.
    """

    def __init__(
        self,
        params: Any,
        tree_configs: Any = None,
        tree_stats: Any = None,
        device_assigner: Any = None,
        variables: Any = None,
        tree_variables_class: Any = TreeVariables,
        tree_graphs: Any = None,
        training: bool = True,
    ) -> None:
        self.params = params
        self.device_assigner = device_assigner or VariableDeviceChooser()
        self.variables = variables or ForestVariables(
            params,
            self.device_assigner,
            training=training,
            tree_variables_class=tree_variables_class,
            tree_configs=tree_configs,
            tree_stats=tree_stats,
        )
        make = tree_graphs or RandomTreeGraphs
        self.trees: list[Any] = [make(self.variables[i], params, i) for i in range(params.num_trees)]

    def _bag_features(self, tree_num: int, input_data: Any) -> Any:
        columns = tf.split(input_data, int(input_data.shape[1]), 1)
        return tf.concat([columns[i] for i in self.params.bagged_features[tree_num]], 1)

    def get_all_resource_handles(self) -> list[Any]:
        """The handles of all trees, then those of all statistics."""
        numbers = range(len(self.trees))
        return [self.variables[i].tree for i in numbers] + [self.variables[i].stats for i in numbers]

    def _bagged(self, tree: int, data: Any, labels: Any, sparse: Any) -> tuple[Any, Any]:
        """The examples and features that a tree sees."""
        fraction = self.params.bagging_fraction
        if fraction < 1.0:
            if sparse is not None:
                raise NotImplementedError("bagging_fraction of sparse features is not supported: use 1.0")
            count = tf.slice(tf.shape(data), [0], [1])
            kept = tf.where(tf.less_equal(tf.random_uniform(count), fraction))[:, 0]
            data, labels = tf.gather(data, kept), tf.gather(labels, kept)
        if self.params.bagged_features:
            if sparse is not None:
                raise NotImplementedError(_NO_SPARSE_BAGS)
            data = self._bag_features(tree, data)
        return data, labels

    def training_graph(
        self,
        input_data: Any,
        input_labels: Any,
        num_trainers: int = 1,
        trainer_id: int = 0,
        **tree_kwargs: Any,
    ) -> Any:
        """The operation that trains the forest with a batch.

        Args:
            input_data: features: a tensor [examples, features], a SparseTensor, or a dictionary of these.
            input_labels: classes [examples], or numbers.
            num_trainers, trainer_id: of several trainers each trains its part of the trees.
            **tree_kwargs: for `training_graph` of a tree.
        """
        dense, sparse, spec = data_ops.ParseDataTensorOrDict(input_data)
        labels = data_ops.ParseLabelTensorOrDict(input_labels)
        spec = tree_kwargs.pop("data_spec", None) or spec
        each = self.params.num_trees / num_trainers
        first, last = round(trainer_id * each), round((trainer_id + 1) * each)
        steps = []
        for i in range(first, last):
            with tf.device(self.variables.device_dummies[i].device):
                seed = self.params.base_random_seed
                data, targets = self._bagged(i, dense, labels, sparse)
                steps.append(
                    self.trees[i].training_graph(
                        data,
                        targets,
                        seed + i if seed else 0,
                        data_spec=spec,
                        sparse_features=sparse,
                        **tree_kwargs,
                    )
                )
        return tf.group(*steps, name="train")

    def inference_graph(self, input_data: Any, **inference_args: Any) -> tuple[Any, Any, Any]:
        """(means, paths, variances) of what the trees say of the features.

        Means are float32 [examples, outputs], probabilities of classes or numbers, and so are the variances;
        paths are texts of messages TreePath [examples, trees].
        """
        dense, sparse, spec = data_ops.ParseDataTensorOrDict(input_data)
        predictions, paths = [], []
        for i, tree in enumerate(self.trees):
            with tf.device(self.variables.device_dummies[i].device):
                data = dense
                if self.params.bagged_features:
                    if sparse is not None:
                        raise NotImplementedError(_NO_SPARSE_BAGS)
                    data = self._bag_features(i, dense)
                said, path = tree.inference_graph(data, spec, sparse_features=sparse, **inference_args)
                predictions.append(said)
                paths.append(path)
        with tf.device(self.variables.device_dummies[0].device):
            said_by_all = tf.stack(predictions)
            trees = float(self.params.num_trees)
            means = tf.divide(tf.reduce_sum(said_by_all, 0), trees, name="probabilities")
            squares = tf.divide(tf.reduce_sum(said_by_all * said_by_all, 0), trees)
            variances = tf.maximum(0.0, squares - means * means)
            return means, tf.stack(paths, axis=1), variances

    def average_size(self) -> Any:
        """The mean number of nodes of a tree: float32, []."""
        sizes = []
        for i, tree in enumerate(self.trees):
            with tf.device(self.variables.device_dummies[i].device):
                sizes.append(tree.size())
        return tf.reduce_mean(tf.to_float(tf.stack(sizes)))

    def training_loss(self, features: Any, labels: Any, name: str = "training_loss") -> Any:
        """Less the more nodes trees have: the negative average size."""
        return tf.negative(self.average_size(), name=name)

    def validation_loss(self, features: Any, labels: Any) -> Any:
        """The negative average size."""
        return tf.negative(self.average_size())

    def average_impurity(self) -> Any:
        """The mean of `average_impurity` of the trees' graphs, for classes of trees that have it."""
        impurities = []
        for i, tree in enumerate(self.trees):
            with tf.device(self.variables.device_dummies[i].device):
                impurities.append(tree.average_impurity())
        return tf.reduce_mean(tf.stack(impurities))

    def feature_importances(self) -> Any:
        """Of all nodes with a test, the part that tests each feature: float32, [features]."""
        counts = []
        for i, tree in enumerate(self.trees):
            with tf.device(self.variables.device_dummies[i].device):
                counts.append(tf.to_float(tree.feature_usage_counts()))
        total = tf.reduce_sum(tf.stack(counts), 0)
        return total / tf.reduce_sum(total)


def get_epoch_variable() -> Any:
    """The local variable "epochs", which input pipelines count: int32, [1]."""
    return tf.get_variable(
        "epochs",
        shape=[1],
        dtype=tf.int32,
        initializer=tf.constant_initializer(0),
        collections=[tf.GraphKeys.LOCAL_VARIABLES],
        trainable=False,
        use_resource=False,
    )


# What TensorFlow 1.4 called them.
ForestTrainingVariables = ForestVariables
TreeTrainingVariables = TreeVariables
