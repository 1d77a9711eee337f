"""Estimators of `tf.contrib.boosted_trees`, which TensorFlow 1.4 and Flowstone both train.

`train` trains one in a folder, and gives losses, metrics, predictions and the text of the ensemble.
"""

import numpy as np

EXAMPLES = 300  # of which nodes have many: no two splits part them alike


def _features(tf, kind):
    draws = np.random.RandomState(0)
    x = draws.randn(EXAMPLES, 3).astype(np.float32)
    numbers = draws.randn(EXAMPLES // 2).astype(np.float32)
    ids = draws.randint(0, 5, EXAMPLES // 3)
    features = {"x": tf.constant(x[:, :2]), "z": tf.constant(x[:, 2:])}
    target = x[:, 0] - x[:, 1] ** 2 + 0.3 * x[:, 2]
    target[::2] += 0.8 * numbers
    target[::3] += 1.5 * (ids == 2)
    if kind == "dense":
        return features, target
    rows = np.array([[row, 0] for row in range(0, EXAMPLES, 2)])
    features["numbers"] = tf.SparseTensor(rows, tf.constant(numbers), [EXAMPLES, 1])
    rows = np.array([[row, row % 3] for row in range(0, EXAMPLES, 3)])
    features["ids"] = tf.SparseTensor(rows, tf.constant(ids.astype(np.int64)), [EXAMPLES, 3])
    return features, target


def cases():
    """(kind of estimator, of features, the configuration as text, arguments) by name."""
    fixed = "learning_rate_tuner { fixed { learning_rate: 0.3 } } regularization { l2: 0.01 }"
    shallow = "constraints { max_tree_depth: 2 }"
    return {
        "classes": ("Classifier", "dense", f"{fixed} {shallow}", {"center_bias": True}),
        "classes of sparse": ("Classifier", "sparse", f"{fixed} {shallow}", {"center_bias": True}),
        "whole trees": (
            "Regressor",
            "sparse",
            f"{fixed} {shallow} growing_mode: WHOLE_TREE",
            {"center_bias": False},
        ),
        "numbers": (
            "Regressor",
            "sparse",
            f"regularization {{ l1: 0.01 l2: 0.02 tree_complexity: 0.01 }} {shallow} pruning_mode: PRE_PRUNE",
            {"center_bias": True},
        ),
        "fewer features": (
            "Regressor",
            "dense",
            f"{fixed} {shallow} feature_fraction_per_level: 0.6",
            {"center_bias": False},
        ),
        "averages": (
            "Regressor",
            "dense",
            f"{fixed} {shallow} averaging_config {{ average_last_n_trees: 2 }}",
            {"center_bias": False},
        ),
    }


def train(tf, estimators, config, case, folder):
    """What the estimator of a case has found; `estimators` has the classes, `config` reads a text."""
    kind, features, text, arguments = case

    def input_fn():
        given, target = _features(tf, features)
        labels = (target > 0).astype(np.int64) if kind == "Classifier" else target.astype(np.float32)
        return given, tf.constant(labels[:, np.newaxis])

    make = getattr(estimators, f"GradientBoostedDecisionTree{kind}")
    estimator = make(config(text), examples_per_layer=EXAMPLES, num_trees=3, model_dir=folder, **arguments)
    estimator.fit(input_fn=input_fn, steps=30)
    metrics = estimator.evaluate(input_fn=input_fn, steps=1)
    outputs = {"Classifier": ["probabilities", "logits"], "Regressor": ["scores"]}[kind]
    said = list(estimator.predict(input_fn=input_fn, outputs=outputs))
    return {
        "metrics": {name: float(value) for name, value in metrics.items()},
        "predictions": [[np.asarray(each[name]).tolist() for name in outputs] for each in said[:40]],
        "ensemble": estimator.get_variable_value("ensemble_model:0_config"),
        "variables": sorted(estimator.get_variable_names()),
    }
