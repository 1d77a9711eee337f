"""Calls of the functions of `tf.losses` and `tf.metrics`; a metric's update is run twice, then its value."""

from class_calls import ClassCalls

LOSS_VALUES = """
p = tf.constant([[0.5, 2.0, -1.0], [0.25, 1.0, 3.0]])
y = tf.constant([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
rows = tf.constant([[2.0], [0.5]])
none = tf.losses.Reduction.NONE
total = tf.losses.Reduction.SUM
unit = tf.nn.l2_normalize(p, 1)
def alone(make):
    with tf.Graph().as_default():
        return run(make())
def kept(name):
    return [each.op.name for each in tf.get_collection(name)]
def several():
    tf.losses.mean_squared_error([1.0, 2.0], [2.0, 4.0])
    with tf.name_scope('inner'):
        tf.losses.add_loss(tf.constant(3.0))
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(0.5, name='outer/r'))
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(0.25, name='other/r'))
"""
PAIRS = {
    name: (
        f"[tf.losses.{name}({first}, weights=rows, scope='{name}', loss_collection='c', reduction=none),"
        f" tf.losses.{name}({first}, 2.0, loss_collection=None, reduction=total), tf.losses.{name}({first}),"
        " kept('c')[-1:]]"
    )
    for name, first in {
        "absolute_difference": "y, p",
        "hinge_loss": "y, p",
        "log_loss": "y, tf.sigmoid(p)",
        "mean_squared_error": "y, p",
        "sigmoid_cross_entropy": "y, p",
    }.items()
}
LOSSES = {
    "Reduction": "sorted(name for name in vars(tf.losses.Reduction) if name.isupper())",
    "Reduction.all": "tf.losses.Reduction.all()",
    "Reduction.validate": "tf.losses.Reduction.validate(none)",
    **{
        f"Reduction.{name}": f"tf.losses.Reduction.{name}"
        for name in (
            "MEAN",
            "NONE",
            "SUM",
            "SUM_BY_NONZERO_WEIGHTS",
            "SUM_OVER_BATCH_SIZE",
            "SUM_OVER_NONZERO_WEIGHTS",
        )
    },
    **PAIRS,
    "add_loss": (
        "[tf.losses.add_loss(p[0, 0]), tf.losses.add_loss(p[0, 1], 'd'), len(tf.get_collection('d'))]"
    ),
    "compute_weighted_loss": (
        "[tf.losses.compute_weighted_loss(p, rows, 'a', 'e', none), tf.losses.compute_weighted_loss(p, y),"
        " tf.losses.compute_weighted_loss(p, y, reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE),"
        " kept('e')]"
    ),
    "cosine_distance": (
        "[tf.losses.cosine_distance(y, unit, 1, rows, 'a', None, none), tf.losses.cosine_distance(y,"
        " unit, dim=1)]"
    ),
    "get_losses": (
        "alone(lambda: [several(), tf.stack(tf.losses.get_losses()),"
        " tf.stack(tf.losses.get_losses('inner'))][1:])"
    ),
    "get_regularization_loss": (
        "alone(lambda: [several(), tf.losses.get_regularization_loss(),"
        " tf.losses.get_regularization_loss('outer', 'a')][1:])"
    ),
    "get_regularization_losses": "alone(lambda: [several(), tf.losses.get_regularization_losses()][1])",
    "get_total_loss": (
        "alone(lambda: [several(), tf.losses.get_total_loss(), tf.losses.get_total_loss(False, 'a')][1:])"
    ),
    "huber_loss": "[tf.losses.huber_loss(y, p, rows, 0.5, 'a', None, none), tf.losses.huber_loss(y, p)]",
    "mean_pairwise_squared_error": (
        "[tf.losses.mean_pairwise_squared_error(y, p, rows, 'a', None),"
        " tf.losses.mean_pairwise_squared_error(y, p)]"
    ),
    "softmax_cross_entropy": (
        "[tf.losses.softmax_cross_entropy(y, p, [2.0, 0.5], 0.1, 'a', None, none),"
        " tf.losses.softmax_cross_entropy(y, p)]"
    ),
    "sparse_softmax_cross_entropy": (
        "[tf.losses.sparse_softmax_cross_entropy([2, 0], p, [2.0, 0.5], 'a', None, none),"
        " tf.losses.sparse_softmax_cross_entropy([[2], [0]], p)]"
    ),
}
METRIC_VALUES = """
guess = tf.constant([1, 0, 2, 2, 1])
truth = tf.constant([1, 2, 2, 1, 0])
yes = tf.constant([True, False, True, True, False])
no = tf.constant([True, True, False, True, False])
p = tf.constant([0.9, 0.4, 0.6, 0.2, 0.55])
q = tf.constant([1.0, 0.5, 0.25, 0.5, 1.5])
w = tf.constant([1.0, 0.5, 2.0, 1.0, 0.0])
rows = tf.constant([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
best = tf.constant([[2], [1], [0]], tf.int64)
two = tf.constant([[2, 0], [0, 1], [1, 2]], tf.int64)
def measured(pair):
    return [run(pair[1]), run(pair[1], pair[1], pair[0])]
def kept(make):
    tf.get_default_graph().clear_collection('m')
    tf.get_default_graph().clear_collection('u')
    found = measured(make('m', 'u'))
    return [found, len(tf.get_collection('m')), len(tf.get_collection('u'))]
"""


def pair_calls(first: str, last: str = "", middle: str = "", weights: str = "w") -> str:
    """A metric with weights, collections and a name, and with none of them, in a text with `NAME` in it."""
    given = f"{first}, {middle}, " if middle else f"{first}, "
    return (
        f"[kept(lambda m, u: tf.metrics.NAME({given}{weights}, [m], [u]{last}, name='a')),"
        f" measured(tf.metrics.NAME({given}))]"
    )


METRICS = {
    name: call.replace("NAME", name)
    for name, call in {
        "accuracy": pair_calls("truth, guess"),
        "auc": (
            "[kept(lambda m, u: tf.metrics.auc(yes, p, w, 20, [m], [u], 'PR', 'a', 'careful_interpolation')),"
            " measured(tf.metrics.auc(yes, p)), measured(tf.metrics.auc(yes, p,"
            " summation_method='minoring'))]"
        ),
        "false_negatives": pair_calls("yes, no"),
        "false_negatives_at_thresholds": pair_calls("yes, p", middle="[0.3, 0.5]"),
        "false_positives": pair_calls("yes, no"),
        "false_positives_at_thresholds": pair_calls("yes, p", middle="[0.3, 0.5]"),
        "mean": pair_calls("p"),
        "mean_absolute_error": pair_calls("q, p"),
        "mean_cosine_distance": pair_calls("rows[::-1], rows", middle="1", weights="[[1.0], [2.0], [0.0]]"),
        "mean_iou": pair_calls("truth, guess", middle="3"),
        "mean_per_class_accuracy": pair_calls("truth, guess", middle="3"),
        "mean_relative_error": pair_calls("q, p", middle="q"),
        "mean_squared_error": pair_calls("q, p"),
        "mean_tensor": pair_calls("p"),
        "percentage_below": pair_calls("p", middle="0.5"),
        "precision": pair_calls("yes, no"),
        "precision_at_thresholds": pair_calls("yes, p", middle="[0.3, 0.5]"),
        "precision_at_top_k": (
            "[kept(lambda m, u: tf.metrics.NAME(best, two, 2, 1, [1.0, 2.0, 1.0], [m], [u], 'a')),"
            " measured(tf.metrics.NAME(best, two, 2))]"
        ),
        "recall": pair_calls("yes, no"),
        "recall_at_k": (
            "[kept(lambda m, u: tf.metrics.NAME(best, rows, 2, 1, [1.0, 2.0, 1.0], [m], [u], 'a')),"
            " measured(tf.metrics.NAME(best, rows, 1))]"
        ),
        "recall_at_thresholds": pair_calls("yes, p", middle="[0.3, 0.5]"),
        "root_mean_squared_error": pair_calls("q, p"),
        "sensitivity_at_specificity": (
            "[kept(lambda m, u: tf.metrics.NAME(yes, p, 0.5, w, 20, [m], [u], 'a')),"
            " measured(tf.metrics.NAME(yes, p, 0.6))]"
        ),
        "sparse_average_precision_at_k": (
            "[kept(lambda m, u: tf.metrics.NAME(best, rows, 2, [1.0, 2.0, 1.0], [m], [u], 'a')),"
            " measured(tf.metrics.NAME(best, rows, 3))]"
        ),
        "sparse_precision_at_k": (
            "[kept(lambda m, u: tf.metrics.NAME(best, rows, 2, 1, [1.0, 2.0, 1.0], [m], [u], 'a')),"
            " measured(tf.metrics.NAME(best, rows, 1))]"
        ),
        "specificity_at_sensitivity": (
            "[kept(lambda m, u: tf.metrics.NAME(yes, p, 0.5, w, 20, [m], [u], 'a')),"
            " measured(tf.metrics.NAME(yes, p, 0.6))]"
        ),
        "true_negatives_at_thresholds": pair_calls("yes, p", middle="[0.3, 0.5]"),
        "true_positives": pair_calls("yes, no"),
        "true_positives_at_thresholds": pair_calls("yes, p", middle="[0.3, 0.5]"),
    }.items()
}
TABLES = [ClassCalls("tf.losses", LOSS_VALUES, LOSSES), ClassCalls("tf.metrics", METRIC_VALUES, METRICS)]
