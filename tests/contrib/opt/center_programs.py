"""Trainings with optimisers of `tf.contrib.opt` that have a center, for TensorFlow 1.15 and flowstone."""

from __future__ import annotations

from typing import Any

STEPS = 7


def _model_average(tf: Any) -> tuple[Any, Any]:
    getter = tf.contrib.opt.ModelAverageCustomGetter(worker_device="")
    sgd = tf.train.GradientDescentOptimizer(0.5)
    return getter, lambda: tf.contrib.opt.ModelAverageOptimizer(sgd, 1, True, getter, interval_steps=3)


def _elastic(tf: Any, **kwargs: Any) -> tuple[Any, Any]:
    getter = tf.contrib.opt.ElasticAverageCustomGetter(worker_device="")
    sgd = tf.train.GradientDescentOptimizer(0.5)
    return getter, lambda: tf.contrib.opt.ElasticAverageOptimizer(
        sgd, 2, getter, communication_period=2, **kwargs
    )


def _agn(tf: Any) -> tuple[Any, Any]:
    getter = tf.contrib.opt.AGNCustomGetter(worker_device="")
    momentum = tf.train.MomentumOptimizer(0.5, 0.9)
    return getter, lambda: tf.contrib.opt.AGNOptimizer(momentum, 2, getter, communication_period=3)


def cases() -> dict[str, Any]:
    """What makes a getter and, once there are variables, the optimiser, by name."""
    return {
        "model_average": _model_average,
        "elastic": _elastic,
        "elastic_rho": lambda tf: _elastic(tf, rho=0.5),
        "elastic_rate": lambda tf: _elastic(tf, moving_rate=0.3),
        "agn": _agn,
    }


def trajectory(tf: Any, name: str) -> dict[str, Any]:
    """The values of all variables by name after each step, and which are local."""
    with tf.Graph().as_default(), tf.Session() as session:
        getter, make = cases()[name](tf)
        with tf.variable_scope("", custom_getter=getter):
            x = tf.get_variable("x", initializer=[1.0, -2.0])
            y = tf.get_variable("y", initializer=0.5)
        step = tf.train.get_or_create_global_step()
        optimizer = make()
        pairs = optimizer.compute_gradients(tf.reduce_sum(tf.square(x - 3.0)) + 0.3 * y, var_list=[x, y])
        train = optimizer.apply_gradients(pairs, step)
        is_average = name == "model_average"
        start = optimizer.get_init_op() if is_average else optimizer.get_init_op(task_index=0)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(start)
        variables = {v.op.name: v for v in tf.global_variables() + tf.local_variables()}
        found: dict[str, Any] = {key: [] for key in variables}
        for _ in range(STEPS):
            session.run(train)
            for key, value in session.run(variables).items():
                found[key].append(value.tolist())
        found["local"] = sorted(v.op.name for v in tf.local_variables())
    return found
