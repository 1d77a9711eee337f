"""Programs on ensembles of `tf.contrib.boosted_trees`; see `tree_programs`."""

import numpy as np

FULL_HESSIAN = 2
LAYER_BY_LAYER, WHOLE_TREE, PRE_PRUNE, POST_PRUNE = 2, 1, 1, 2


def programs(messages):
    """The programs by name; `messages` has the classes of the messages, as attributes."""
    found = {}
    for growing in (LAYER_BY_LAYER, WHOLE_TREE):
        for pruning in (0, PRE_PRUNE, POST_PRUNE):
            found[f"growing {growing} {pruning}"] = _growing(messages, growing, pruning)
        found[f"dropout {growing}"] = _dropout(messages, growing)
        found[f"growing of layers {growing}"] = _growing_layers(messages, growing)
    found["bias"] = _bias(messages)
    found["predictions"] = _predictions(messages)
    return found


def _config(messages, **fields):
    config = messages.LearnerConfig(num_classes=2, multi_class_strategy=FULL_HESSIAN, **fields)
    return config.SerializeToString()


def _split(messages, column, threshold, left, right):
    split = messages.SplitInfo()
    question = split.split_node.dense_float_binary_split
    question.feature_column, question.threshold = column, threshold
    for leaf, values in ((split.left_child, left), (split.right_child, right)):
        leaf.vector.value.extend(values)
    return split.SerializeToString()


class Ensemble:
    """An ensemble in the making, and what was found of it."""

    def __init__(self, call, run, name, message):
        self.call, self.run, self.found, self.stamp = call, run, [], 0
        self.handle = call("DecisionTreeEnsembleResourceHandleOp", container="", shared_name=name)
        self.one = {"tree_ensemble_handle": self.handle}
        run(
            call(
                "CreateTreeEnsembleVariable",
                stamp_token=0,
                tree_ensemble_config=message.SerializeToString(),
                **self.one,
            )
        )

    def look(self):
        """Notes what the ensemble is."""
        self.found.append(self.run(self.call("TreeEnsembleSerialize", **self.one)))
        self.found.append(self.run(self.call("TreeEnsembleStats", stamp_token=self.stamp, **self.one)))
        used = self.call("TreeEnsembleUsedHandlers", stamp_token=self.stamp, num_all_handlers=3, **self.one)
        self.found.append(self.run(used))

    def grow(self, config, *handlers, depth=2, seed=1, bias=False, oblivious=0):
        """A layer by what the handlers found: (nodes, gains, splits) each."""
        nodes, gains, splits = zip(*handlers) if handlers else ((), (), ())
        self.run(
            self.call(
                "GrowTreeEnsemble",
                stamp_token=self.stamp,
                next_stamp_token=self.stamp + 1,
                learning_rate=0.3,
                dropout_seed=seed,
                max_tree_depth=depth,
                weak_learner_type=oblivious,
                partition_ids=[np.array(each, np.int32) for each in nodes],
                gains=[np.array(each, np.float32) for each in gains],
                splits=[np.array(each, object) for each in splits],
                learner_config=config,
                center_bias=bias,
                **self.one,
            )
        )
        self.stamp += 1
        self.look()


def _growing(messages, growing, pruning):
    def program(call, run):
        config = _config(
            messages,
            growing_mode=growing,
            pruning_mode=pruning,
            constraints=messages.TreeConstraintsConfig(max_number_of_unique_feature_columns=2),
        )
        name = f"growing {growing} {pruning}"
        ensemble = Ensemble(call, run, name, messages.DecisionTreeEnsembleConfig())
        a, b, c = (_split(messages, k, 0.1 * k, [k + 1.0], [k - 2.5]) for k in range(3))
        ensemble.grow(config, ([0], [1.0], [a]), ([0], [1.0], [b]))
        ensemble.grow(config, ([1, 2], [1.0, -0.5], [a, c]), ([1], [2.0], [b]))
        ensemble.grow(config)
        ensemble.grow(config, ([0], [-1.0], [a]), depth=1)
        ensemble.grow(config, ([0], [0.0], [c]), depth=1)
        ensemble.grow(config, ([0], [-0.2], [c]), ([0], [0.5], [b]), depth=3)
        ensemble.grow(config, ([1, 2], [-0.2, -0.1], [c, b]), depth=3)
        nodes = [1, 2] if pruning == PRE_PRUNE else [3, 4, 5, 6]
        ensemble.grow(
            config, (nodes, [-1.0, 0.5, -1.0, 1.0][: len(nodes)], [a, b, b, c][: len(nodes)]), depth=3
        )
        return ensemble.found

    return program


def _layer_split(messages, column, parents, values):
    split = messages.ObliviousSplitInfo()
    question = split.split_node.oblivious_dense_float_binary_split
    question.feature_column, question.threshold = column, 0.25 * column
    split.children_parent_id.extend(parents)
    for value in values:
        split.children.add().vector.value.append(value)
    return split.SerializeToString()


def _growing_layers(messages, growing):
    def program(call, run):
        config = _config(messages, growing_mode=growing, pruning_mode=PRE_PRUNE)
        ensemble = Ensemble(call, run, f"layers {growing}", messages.DecisionTreeEnsembleConfig())
        first, second = (_layer_split(messages, k, [0], [1.0 + k, 2.0 + k]) for k in range(2))
        ensemble.grow(config, ([0], [1.0], [first]), ([0], [1.0], [second]), depth=3, oblivious=1)
        split = _layer_split(messages, 1, [1, 2], [10.0, 20.0, 30.0, 40.0])
        ensemble.grow(config, ([1, 2], [3.0], [split]), depth=3, oblivious=1)
        ensemble.grow(
            config, ([5], [1.0], [_layer_split(messages, 2, [5], [7.0, 8.0])]), depth=3, oblivious=1
        )
        return ensemble.found

    return program


def _stumps(messages, weights, updates, growing=False):
    message = messages.DecisionTreeEnsembleConfig()
    for number, (weight, update) in enumerate(zip(weights, updates)):
        message.trees.add().nodes.add().leaf.vector.value.append(10.0**number)
        message.tree_weights.append(weight)
        message.tree_metadata.add(num_layers_grown=1, num_tree_weight_updates=update, is_finalized=True)
    if growing:
        message.tree_metadata[-1].is_finalized = False
    return message


def _dropout(messages, growing):
    def program(call, run):
        found = []
        tuner = messages.LearningRateConfig()
        tuner.dropout.dropout_probability, tuner.dropout.learning_rate = 0.5, 0.1
        config = _config(messages, growing_mode=growing, learning_rate_tuner=tuner)
        tuner.dropout.probability_of_skipping_dropout = 0.4
        skipping = _config(messages, growing_mode=growing, learning_rate_tuner=tuner)
        split = _split(messages, 0, 0.5, [1.0], [2.0])
        for seed in range(4):
            for bias in (False, True):
                name = f"dropout {growing} {seed} {bias}"
                message = _stumps(messages, [1.0, 2.0, 3.0, 0.4, 5.0], [1, 2, 3, 3, 1])
                ensemble = Ensemble(call, run, name, message)
                for each in (config, skipping):
                    found.append(_predict(ensemble, each, seed=seed, dropout=True, bias=bias)[:2])
                ensemble.grow(config, ([0], [1.0], [split]), depth=1, seed=seed, bias=bias)
                found.extend(ensemble.found)
        return found

    return program


def _bias(messages):
    def program(call, run):
        config = _config(messages, growing_mode=LAYER_BY_LAYER)
        ensemble = Ensemble(call, run, "bias", messages.DecisionTreeEnsembleConfig())
        for delta in ([1.0, 2.0], [0.0, 0.5], [0.005, -0.005], [0.1, 0.0], [0.0, 0.0]):
            more = run(
                call(
                    "CenterTreeEnsembleBias",
                    stamp_token=ensemble.stamp,
                    next_stamp_token=ensemble.stamp + 1,
                    delta_updates=np.array(delta, np.float32),
                    learner_config=config,
                    centering_epsilon=0.01,
                    **ensemble.one,
                )
            )
            ensemble.stamp += 1
            ensemble.found.append(more)
            ensemble.look()
        ensemble.grow(config, ([0], [1.0], [_split(messages, 0, 0.5, [1.0, 2.0], [3.0, 4.0])]), bias=True)
        return ensemble.found

    return program


_NO_COLUMNS = {
    f"sparse_{kind}_feature_{part}": []
    for kind in ("float", "int")
    for part in ("indices", "values", "shapes")
}


def _predict(
    ensemble, config, features=None, seed=0, dropout=False, averaging=False, bias=False, reduce=True
):
    features = dict(
        _NO_COLUMNS, **(features or {"dense_float_features": [np.float32([[0.1], [0.5], [0.9]])]})
    )
    op = ensemble.call(
        "GradientTreesPrediction",
        seed=seed,
        learner_config=config,
        use_locking=False,
        apply_dropout=dropout,
        apply_averaging=averaging,
        center_bias=bias,
        reduce_dim=reduce,
        **features,
        **ensemble.one,
    )
    partitions = ensemble.call(
        "GradientTreesPartitionExamples", use_locking=False, **features, **ensemble.one
    )
    return [*ensemble.run(op), ensemble.run(partitions)]


def _predictions(messages):
    def program(call, run):
        found = []
        stumps = _stumps(messages, [1.0, 2.0, 3.0, 0.4, 5.0], [1, 2, 3, 3, 1], growing=True)
        ensemble = Ensemble(call, run, "averages", stumps)
        for growing in (LAYER_BY_LAYER, WHOLE_TREE):
            found.append(_predict(ensemble, _config(messages, growing_mode=growing)))
            for kind, value in (("last_n", 3), ("last_n", 9), ("last_percent", 0.45), ("last_percent", 0.1)):
                averaging = messages.AveragingConfig(**{f"average_{kind}_trees": value})
                config = _config(messages, growing_mode=growing, averaging_config=averaging)
                found.append(_predict(ensemble, config, averaging=True))
        questions = _questions(messages)
        columns = {
            "dense_float_features": [np.float32([[0.1], [0.5], [0.9], [0.6], [0.2]])],
            "sparse_float_feature_indices": [np.int64([[0, 0], [0, 1], [1, 0], [2, 1], [3, 0]])],
            "sparse_float_feature_values": [np.float32([0.9, 0.5, 0.4, 0.1, 0.8])],
            "sparse_float_feature_shapes": [np.int64([5, 2])],
            "sparse_int_feature_indices": [np.int64([[0, 0], [0, 1], [1, 0], [2, 1], [3, 0]])],
            "sparse_int_feature_values": [np.int64([7, 3, 4, 3, 5])],
            "sparse_int_feature_shapes": [np.int64([5, 2])],
        }
        ensemble = Ensemble(call, run, "questions", questions)
        config = messages.LearnerConfig(num_classes=3, growing_mode=LAYER_BY_LAYER).SerializeToString()
        for reduce in (True, False):
            found.append(_predict(ensemble, config, columns, reduce=reduce))
        return found

    return program


def _questions(messages):
    """Trees of every kind of question, one tree each, and one whose layers ask one question each."""
    message = messages.DecisionTreeEnsembleConfig()
    thresholds = {"feature_column": 0, "threshold": 0.5, "left_id": 1, "right_id": 2}
    kinds = {
        "dense_float_binary_split": thresholds,
        "sparse_float_binary_split_default_left": {"split": dict(thresholds, dimension_id=1)},
        "sparse_float_binary_split_default_right": {"split": thresholds},
        "categorical_id_binary_split": {"feature_column": 0, "feature_id": 3, "left_id": 1, "right_id": 2},
        "categorical_id_set_membership_binary_split": {
            "feature_column": 0,
            "feature_ids": [4, 7],
            "left_id": 1,
            "right_id": 2,
        },
    }
    for number, (kind, fields) in enumerate(kinds.items()):
        tree = message.trees.add()
        tree.nodes.add(**{kind: fields})
        tree.nodes.add().leaf.vector.value.extend([10.0**number, number])
        sparse = tree.nodes.add().leaf.sparse_vector
        sparse.index.append(1)
        sparse.value.append(0.25 * number)
    tree = message.trees.add()
    tree.nodes.add().oblivious_dense_float_binary_split.threshold = 0.5
    tree.nodes.add().oblivious_categorical_id_binary_split.feature_id = 3
    for leaf in range(4):
        tree.nodes.add().leaf.vector.value.extend([1000.0 * leaf, 1.0])
    for _ in message.trees:
        message.tree_weights.append(0.5)
        message.tree_metadata.add(is_finalized=True)
    message.tree_metadata[-1].is_finalized = False
    return message
