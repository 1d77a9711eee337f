"""Models that end at an optimum, for TensorFlow and for flowstone: clusters, mixtures, margins by dual steps.

It keeps to Python 3.7, on which TensorFlow 1.15 runs.
"""

import numpy as np

POINTS = np.array([[0, 0], [0.1, 0.2], [4, 4], [4.2, 3.9], [0, 0.3], [4, 4.4]], np.float32)
MEANS = np.array([[0, 0.1], [3, 3]], np.float32)


def points(tf):
    return lambda: (tf.constant(POINTS), None)


def named_points(tf):
    return lambda: ({"b": tf.constant(POINTS[:, 1:]), "a": tf.constant(POINTS[:, :1])}, None)


def examples(tf):
    def get():
        places = [[0, 0], [1, 0], [2, 0]]
        features = {
            "id": tf.constant(["1", "2", "3"]),
            "p": tf.constant([[0.6], [0.8], [0.3]]),
            "q": tf.constant([[0.9, 0.1], [0.5, 0.4], [0.2, 0.2]]),
            "w": tf.constant([[3.0], [1.0], [1.0]]),
            "s": tf.SparseTensor(places, ["IT", "US", "GB"], [3, 1]),
            "ws": tf.SparseTensor(places, [0.8, 0.6, 0.3], [3, 1]),
        }
        return features, tf.constant([[1], [0], [1]])

    return get


def columns(tf):
    layers = tf.contrib.layers
    number = layers.real_valued_column("p")
    text = layers.sparse_column_with_hash_bucket("s", 5)
    return {
        "p": number,
        "q": layers.real_valued_column("q", dimension=2),
        "s": text,
        "b": layers.bucketized_column(number, boundaries=[0.5, 0.7]),
        "c": layers.crossed_column([text, text], 10),
        "ws": layers.weighted_sparse_column(text, "ws"),
    }


def clusters(tf):
    """Pairs of a function that makes the Estimator and its input function, by name."""
    learn, mixture = tf.contrib.learn, tf.contrib.factorization.GMM
    found = {}
    for metric in ("squared_euclidean", "cosine"):
        found["kmeans_" + metric] = (
            lambda metric=metric: learn.KMeansClustering(
                2, initial_clusters=MEANS, distance_metric=metric, use_mini_batch=False
            ),
            points(tf),
        )
    found["kmeans_named"] = (
        lambda: learn.KMeansClustering(2, initial_clusters=MEANS, use_mini_batch=False),
        named_points(tf),
    )
    for kind in ("full", "diag"):
        for params in ("wmc", "c", "w"):
            found[f"mixture_{kind}_{params}"] = (
                lambda kind=kind, params=params: mixture(
                    2, initial_clusters=MEANS, covariance_type=kind, params=params
                ),
                points(tf),
            )
    return found


def margins(tf, optimizer):
    """Linear models trained by dual coordinate ascent; `optimizer`: the class SDCAOptimizer."""
    learn, of = tf.contrib.learn, columns(tf)

    def svm(names, **options):
        return lambda: learn.SVM("id", [of[name] for name in names.split()], **options)

    def linear(kind, shards=None, **options):
        by = optimizer("id", num_table_shards=shards, symmetric_l2_regularization=1.5)
        chosen = [of[name] for name in ("p", "s", "ws")]
        return lambda: kind(feature_columns=chosen, optimizer=by, **options)

    makers = {
        "svm_numbers": svm("p q", l2_regularization=1.0),
        "svm_l2": svm("p q", l2_regularization=3.0),
        "svm_l1": svm("p q", l1_regularization=0.5, l2_regularization=3.0),
        "svm_sparse": svm("p s", l2_regularization=1.0),
        "svm_buckets": svm("b s", l2_regularization=1.0),
        "svm_crossed": svm("c", l2_regularization=1.0),
        "svm_weighted_column": svm("ws", l2_regularization=1.0),
        "svm_weighted_examples": svm("p q", weight_column_name="w", l2_regularization=1.0),
        "classifier": linear(learn.LinearClassifier, weight_column_name="w"),
        "classifier_shards": linear(learn.LinearClassifier, 3),
        "regressor": linear(learn.LinearRegressor),
    }
    return {name: (make, examples(tf)) for name, make in makers.items()}


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    return np.asarray(value).tolist()


def answer(make, input_fn, steps):
    """Variables, evaluation and predictions after some steps; of tables of states, the shapes."""
    model = make()
    model.fit(input_fn=input_fn, steps=steps)
    values = {name: model.get_variable_value(name) for name in model.get_variable_names()}
    predictions = list(model.predict(input_fn=input_fn))
    return {
        "variables": {
            name: plain(value) if value.size < 100 else list(value.shape) for name, value in values.items()
        },
        "evaluation": plain(model.evaluate(input_fn=input_fn, steps=1)),
        "predictions": [plain(each) for each in predictions],
    }


def answers(tf, optimizer):
    found = {name: answer(*pair, steps=3) for name, pair in clusters(tf).items()}
    found.update((name, answer(*pair, steps=150)) for name, pair in margins(tf, optimizer).items())
    return found
