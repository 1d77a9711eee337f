"""Areas under curves from all predictions, for TensorFlow and for flowstone.

It keeps to Python 3.7, on which TensorFlow 1.15 runs.
"""

import numpy as np

_RANDOM = np.random.RandomState(0)
DRAWN = (_RANDOM.randint(0, 2, 30).tolist(), _RANDOM.rand(30).round(1).tolist(), _RANDOM.rand(30).tolist())
FIVE, TWO = ([0, 1, 0, 1, 1], [0.1, 0.9, 0.5, 0.5, 0.3]), ([1, 0], [0.6, 0.2])
BATCHES = {
    "five": [FIVE],
    "two_batches": [FIVE, TWO],
    "ties": [([0, 1, 0, 1], [0.5] * 4)],
    "all_true": [([1, 1], [0.2, 0.8])],
    "all_false": [([0, 0], [0.2, 0.8])],
    "perfect": [([1, 1, 0, 0], [0.6, 0.7, 0.2, 0.1])],
    "wrong": [([0, 0, 1, 1], [0.6, 0.7, 0.2, 0.1])],
    "drawn": [DRAWN[:2]],
    "drawn_weighted": [DRAWN],
    "weighted": [([0, 1, 0, 1, 1], [0.1, 0.9, 0.5, 0.5, 0.3], [1.0, 0.5, 2.0, 3.0, 1.0])],
    "light": [([1, 1, 0, 0], [0.6, 0.1, 0.2, 0.1], [0.3, 0.2, 0.1, 0.2])],
}


def metrics(tf):
    of = tf.contrib.metrics
    return {
        "ROC": lambda labels, scores, weights: of.streaming_dynamic_auc(labels, scores, weights=weights),
        "PR": lambda labels, scores, weights: of.streaming_dynamic_auc(labels, scores, "PR", weights=weights),
        "interval": of.auc_with_confidence_intervals,
        "interval_80": lambda *args: of.auc_with_confidence_intervals(*args, alpha=0.8),
        "interval_plain": lambda *args: of.auc_with_confidence_intervals(*args, logit_transformation=False),
    }


def answer(tf, metric, batches):
    with tf.Graph().as_default(), tf.Session() as session:
        labels, scores = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None])
        weights = tf.placeholder(tf.float32, [None]) if len(batches[0]) > 2 else None
        value, update = metrics(tf)[metric](labels, scores, weights)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for batch in batches:
            given = [labels, scores] + ([] if weights is None else [weights])
            feeds = dict(zip(given, batch))
            session.run(update, feeds)
        return np.asarray(session.run(value, feeds)).tolist()


def answers(tf):
    return {
        metric: {name: answer(tf, metric, batches) for name, batches in BATCHES.items()}
        for metric in metrics(tf)
    }
