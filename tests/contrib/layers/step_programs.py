"""Steps that `optimize_loss` makes, for flowstone and, for the golden files, TensorFlow 1.15."""

from __future__ import annotations

from typing import Any


def cases(tf: Any) -> dict[str, dict[str, Any]]:
    """The arguments beside the loss, the step and the rate."""
    summaries = tf.contrib.layers.OPTIMIZER_SUMMARIES

    def halved(rate: Any, step: Any) -> Any:
        return tf.train.exponential_decay(rate, step, 1, 0.5)

    return {
        "name": {"optimizer": "SGD"},
        "summaries": {"optimizer": "Adam", "summaries": summaries},
        "class": {
            "optimizer": tf.train.GradientDescentOptimizer,
            "clip_gradients": 1.0,
            "summaries": ["gradients", "gradient_norm", "loss"],
        },
        "function": {
            "optimizer": lambda rate: tf.train.MomentumOptimizer(rate, 0.5),
            "gradient_multipliers": {"x:0": 2.0},
        },
        "instance": {"optimizer": tf.train.AdagradOptimizer(0.3), "learning_rate": None},
        "decay": {"optimizer": "RMSProp", "learning_rate_decay_fn": halved, "summaries": ["learning_rate"]},
        "uncounted": {"optimizer": "Momentum", "increment_global_step": False, "name": "opt"},
        "clip": {
            "optimizer": "SGD",
            "clip_gradients": lambda pairs: [(gradient * 0.5, variable) for gradient, variable in pairs],
        },
    }


def answers(tf: Any) -> dict[str, Any]:
    """Variables, summaries, and the values of the variables after three steps."""
    found = {}
    for name in cases(tf):
        with tf.Graph().as_default(), tf.Session() as session:
            keywords = dict(cases(tf)[name])
            x = tf.get_variable("x", [2], initializer=tf.constant_initializer([3.0, 4.0]))
            y = tf.get_variable("y", [1], initializer=tf.ones_initializer())
            loss = tf.reduce_sum(x * x) + tf.reduce_sum(y)
            step = tf.train.get_or_create_global_step()
            rate = keywords.pop("learning_rate", 0.1)
            train = tf.contrib.layers.optimize_loss(loss, step, rate, **keywords)
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            values = session.run([x, y, step])
            found[name] = {
                "op": train.name,
                "variables": [variable.op.name for variable in tf.global_variables()],
                "summaries": [summary.name for summary in tf.get_collection("summaries")],
                "values": [value.round(5).tolist() for value in values],
            }
    return found
