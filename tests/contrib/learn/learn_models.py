"""Models of `tf.contrib.learn` and cases of heads, for TensorFlow and for flowstone: each takes the module.

It keeps to Python 3.7, on which TensorFlow 1.15 runs.
"""

import numpy as np

X = np.arange(24, dtype=np.float32).reshape(8, 3) / 10
TEXTS = ["u", "v", "w", "u", "v", "w", "u", "v"]
TWO, THREE = np.array([0, 1, 0, 1, 1, 0, 1, 0]), np.array([0, 1, 2, 1, 2, 0, 1, 0])
NUMBERS = X.sum(1).astype(np.float32)
ONE, SEVERAL = [[1.0], [-2.0], [0.5]], [[1.0, 2.0, 0.0], [0.0, -1.0, 2.0], [0.5, 0.1, 0.2]]
WEIGHTS = {"w": [[1.0], [2.0], [0.5]]}

NAMES = (
    "linear_classifier", "linear_joint", "linear_regressor", "dnn_classifier", "dnn_regressor",
    "combined_classifier", "combined_regressor",
)  # fmt: skip


def input_fn(tf, labels):
    def get():
        texts = tf.SparseTensor([[row, 0] for row in range(8)], TEXTS, [8, 1])
        return {"a": tf.constant(X[:, :2]), "s": texts, "w": tf.constant(X[:, 2:])}, tf.constant(labels)

    return get


def model(tf, name, model_dir):
    """The Estimator and its labels."""
    learn, layers = tf.contrib.learn, tf.contrib.layers
    numbers = layers.real_valued_column("a", dimension=2)
    texts = layers.sparse_column_with_hash_bucket("s", 10)
    keys = layers.sparse_column_with_keys("s", ["u", "v"])
    dense = [numbers, layers.embedding_column(texts, 4)]
    shared = {"model_dir": model_dir, "config": learn.RunConfig(tf_random_seed=1)}
    wide_and_deep = dict(
        shared, linear_feature_columns=[numbers, texts], dnn_feature_columns=dense, dnn_hidden_units=[4, 3]
    )
    makers = {
        "linear_classifier": lambda: learn.LinearClassifier(
            [numbers, texts], weight_column_name="w", enable_centered_bias=True, **shared
        ),
        "linear_joint": lambda: learn.LinearClassifier(
            [texts, keys], n_classes=3, _joint_weight=True, **shared
        ),
        "linear_regressor": lambda: learn.LinearRegressor([numbers, texts], gradient_clip_norm=1.0, **shared),
        "dnn_classifier": lambda: learn.DNNClassifier(
            [4, 3], dense, n_classes=3, dropout=0.5, enable_centered_bias=True, **shared
        ),
        "dnn_regressor": lambda: learn.DNNRegressor(
            [4], dense, embedding_lr_multipliers={dense[1]: 2.0}, **shared
        ),
        "combined_classifier": lambda: learn.DNNLinearCombinedClassifier(**wide_and_deep),
        "combined_regressor": lambda: learn.DNNLinearCombinedRegressor(
            fix_global_step_increment_bug=True, **wide_and_deep
        ),
    }
    others = {"linear_joint": THREE, "dnn_classifier": THREE, "linear_classifier": TWO[:, None]}
    labels = others.get(name, NUMBERS if "regressor" in name else TWO)
    return makers[name](), labels


def plain(value):
    """The value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, bytes):
        return value.decode()
    array = np.asarray(value)
    return [plain(each) for each in array] if array.ndim else array.item()


def answers(tf, trained, labels):
    get = input_fn(tf, labels)
    scores = ["scores"] if labels is NUMBERS else ["classes", "probabilities", "logits"]
    return {
        "variables": {n: list(trained.get_variable_value(n).shape) for n in trained.get_variable_names()},
        "evaluation": plain(trained.evaluate(input_fn=get, steps=1)),
        "predictions": plain(trained.predict(input_fn=get, outputs=scores, as_iterable=False)),
    }


def head_cases(tf):
    """Each head, its logits, labels and features."""
    learn = tf.contrib.learn
    rows, indicators = [[0], [1], [1]], [[0, 1, 1], [1, 0, 0], [0, 0, 1]]
    column = [[0.0], [1.0], [1.0]]
    named = {"label_name": "l", "weight_column_name": "w", "thresholds": (0.3, 0.7), "head_name": "hh"}
    pair = [
        learn.multi_class_head(3, label_name="a", head_name="ha"),
        learn.regression_head(label_name="b", head_name="hb"),
    ]
    joined = np.concatenate([SEVERAL, ONE], 1).astype(np.float32)
    return {
        "two": (learn.multi_class_head(2), ONE, rows, {}),
        "two_named": (learn.multi_class_head(2, enable_centered_bias=True, **named), ONE, {"l": rows},
        WEIGHTS), "three": (learn.multi_class_head(3), SEVERAL, [0, 2, 1], {}),
        "three_weighted": (
            learn.multi_class_head(3, weight_column_name="w", metric_class_ids=[0, 2]), SEVERAL, [[0], [2],
            [1]], WEIGHTS,
        ),
        "three_texts": (
            learn.multi_class_head(3, label_keys=["x", "y", "z"]), SEVERAL, [["x"], ["z"], ["y"]], {},
        ),
        "margin": (learn.binary_svm_head(), ONE, rows, {}),
        "margin_weighted": (
            learn.binary_svm_head(weight_column_name="w", enable_centered_bias=True), ONE, rows, WEIGHTS,
        ),
        "number": (learn.regression_head(weight_column_name="w"), ONE, column, WEIGHTS),
        "numbers": (
            learn.regression_head(label_dimension=3, head_name="rr", enable_centered_bias=True), SEVERAL,
            SEVERAL[::-1], {},
        ),
        "link": (learn.regression_head(link_fn=tf.exp), ONE, column, {}),
        "counts": (learn.poisson_regression_head(), ONE, [[3.0], [1.0], [5.0]], {}),
        "labels": (learn.multi_label_head(3), SEVERAL, indicators, {}),
        "labels_weighted": (
            learn.multi_label_head(3, weight_column_name="w", metric_class_ids=[1]), SEVERAL, indicators,
        WEIGHTS, ),
        "several": (learn.multi_head(pair, [1.0, 2.0]), joined, {"a": [0, 2, 1], "b": column}, {}),
        "no_labels": (learn.head.loss_only_head(lambda: tf.constant(3.0)), ONE, None, {}),
    }  # fmt: skip


def head_answer(tf, name, mode):
    """What a head makes in a mode: names of tensors, and their values."""
    with tf.Graph().as_default():
        tf.train.create_global_step()
        head, logits, labels, features = head_cases(tf)[name]
        given = {k: tf.constant(v) for k, v in labels.items()} if isinstance(labels, dict) else labels
        if labels is not None and not isinstance(labels, dict):
            given = tf.constant(labels)
        outputs = tf.Variable(logits, name="outputs")
        ops = head.create_model_fn_ops(
            {key: tf.constant(value) for key, value in features.items()},
            mode,
            None if mode == "infer" else given,
            lambda loss: tf.train.GradientDescentOptimizer(0.1).minimize(
                loss, tf.train.get_global_step(), [outputs]
            ),
            logits=outputs,
        )
        found = {
            "loss": ops.loss.name if ops.loss is not None else None,
            "train": ops.train_op.name if ops.train_op is not None else None,
            "variables": [each.name for each in tf.global_variables()],
            "summaries": [each.name for each in tf.get_collection("summaries")],
        }
        with tf.Session() as session:
            session.run(
                [tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()]
            )
            if mode == "infer":
                found["predictions"] = plain(session.run(ops.predictions)) if ops.predictions else {}
                found["alternatives"] = {
                    str(key): [kind, plain(session.run(tensors))]
                    for key, (kind, tensors) in (ops.output_alternatives or {}).items()
                }
            else:
                found["value"] = plain(session.run(ops.loss))
                session.run([update for _, update in ops.eval_metric_ops.values()])
                found["metrics"] = plain(session.run({k: v[0] for k, v in ops.eval_metric_ops.items()}))
            if mode == "train":
                session.run(ops.train_op)
                changed = tf.global_variables()
                if any("bias" in each.name for each in changed):  # steps of the bias and the rest race
                    changed = [each for each in changed if "bias" in each.name]
                found["after"] = plain(session.run({each.name: each for each in changed}))
    return found


def head_answers(tf):
    return {
        name: {
            mode: head_answer(tf, name, mode)
            for mode in ("eval" if name == "no_labels" else "train", "infer")
        }
        for name in head_cases(tf)
    }
