"""Short trainings, written for TensorFlow and Flowstone alike: what the golden values are made of and
compared with.

Each function takes the library as `tf` and builds in the default graph. A trajectory is a list with, for
the start and after each step, the values of variables and slots by name. `optimizers` gives the optimisers
by case name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 5
DENSE = "dense"
SPARSE = "sparse"  # slices with repeated indices
LOSS = "loss"  # the gradient of an embedding's loss
KINDS = {"reference": False, "resource": True}
ROWS, COLUMNS = 4, 3


def optimizers(tf: Any) -> dict[str, Callable[[], Any]]:
    """Constructors by case name: the defaults and what each has as variants."""
    train = tf.train

    def dual_averaging(**keywords: Any) -> Any:
        return train.AdagradDAOptimizer(0.3, train.get_or_create_global_step(), **keywords)

    return {
        "gradient_descent": lambda: train.GradientDescentOptimizer(0.1),
        "gradient_descent_locked": lambda: train.GradientDescentOptimizer(
            0.1, use_locking=True, name="Descend"
        ),
        "momentum": lambda: train.MomentumOptimizer(0.1, 0.9),
        "momentum_nesterov": lambda: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "momentum_callable": lambda: train.MomentumOptimizer(lambda: 0.1, lambda: 0.5),
        "adagrad": lambda: train.AdagradOptimizer(0.3),
        "adagrad_start": lambda: train.AdagradOptimizer(0.3, initial_accumulator_value=1.5),
        "adagrad_da": dual_averaging,
        "adagrad_da_regularised": lambda: dual_averaging(
            l1_regularization_strength=0.01, l2_regularization_strength=0.02
        ),
        "adadelta": lambda: train.AdadeltaOptimizer(),
        "adadelta_fast": lambda: train.AdadeltaOptimizer(1.0, rho=0.8, epsilon=1e-3),
        "adam": lambda: train.AdamOptimizer(),
        "adam_fast": lambda: train.AdamOptimizer(0.05, beta1=0.7, beta2=0.95, epsilon=0.1),
        "rms_prop": lambda: train.RMSPropOptimizer(0.05),
        "rms_prop_momentum": lambda: train.RMSPropOptimizer(0.05, decay=0.8, momentum=0.9, epsilon=1e-3),
        "rms_prop_centered": lambda: train.RMSPropOptimizer(0.05, momentum=0.5, centered=True),
        "ftrl": lambda: train.FtrlOptimizer(0.3),
        "ftrl_regularised": lambda: train.FtrlOptimizer(
            0.3, l1_regularization_strength=0.01, l2_regularization_strength=0.02, beta=0.5
        ),
        "ftrl_shrinkage": lambda: train.FtrlOptimizer(
            0.3,
            learning_rate_power=-0.6,
            l2_shrinkage_regularization_strength=0.1,
            accum_name="a",
            linear_name="l",
        ),
        "proximal_gradient_descent": lambda: train.ProximalGradientDescentOptimizer(
            0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02
        ),
        "proximal_adagrad": lambda: train.ProximalAdagradOptimizer(0.3),
        "proximal_adagrad_regularised": lambda: train.ProximalAdagradOptimizer(
            0.3, l1_regularization_strength=0.01, l2_regularization_strength=0.02
        ),
    }


def cases() -> list[tuple[str, str, str, str]]:
    """(optimiser, kind of variable, kind of gradient, element type) of each trajectory."""
    names = list(optimizers(_Anything()))
    full = [(name, kind, how, "float32") for name in names for kind in KINDS for how in (DENSE, SPARSE)]
    # TensorFlow gives the proximal optimisers' float32 rates to any variable, and fails.
    taken = [name for name in names if not name.startswith("proximal")]
    wide = [(name, kind, how, "float64") for name in taken for kind in KINDS for how in (DENSE, SPARSE)]
    return full + wide + [(name, kind, LOSS, "float32") for name in names for kind in KINDS]


class _Anything:
    """Stands for a library where only the names of cases are asked."""

    def __getattr__(self, name: str) -> Any:
        return self


def initial_value(dtype: str) -> np.ndarray:
    return (np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) / 7.0 - 0.8).astype(dtype)


def gradient_value(step: int, dtype: str) -> np.ndarray:
    return np.sin(np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) * 0.7 + step).astype(dtype)


def build(tf: Any, case: tuple[str, str, str, str]) -> tuple[Any, Any, Any]:
    """The graph of one case: (optimiser, train operation, the feed of a step as a function of its number)."""
    name, kind, how, dtype = case
    start = initial_value(dtype)
    w = tf.get_variable("w", initializer=tf.constant(start), use_resource=KINDS[kind])
    b = tf.get_variable("scope/b", initializer=tf.constant(start[0]), use_resource=KINDS[kind])
    optimizer = optimizers(tf)[name]()
    step = tf.train.get_or_create_global_step()
    if how == LOSS:
        ids = tf.placeholder(tf.int32, [3], name="ids")
        rows = tf.gather(w, ids)
        loss = tf.reduce_sum(tf.square(rows * b - 0.3))
        train = optimizer.minimize(loss, global_step=step)
        return optimizer, train, lambda i: {ids: [i % ROWS, 1, 1]}
    bias_gradient = tf.placeholder(dtype, [COLUMNS], name="gb")
    if how == DENSE:
        gradient = given = tf.placeholder(dtype, [ROWS, COLUMNS], name="gw")
    else:
        given = tf.placeholder(dtype, [3, COLUMNS], name="gw")
        gradient = tf.IndexedSlices(given, tf.constant([2, 0, 2]), tf.constant([ROWS, COLUMNS]))
    train = optimizer.apply_gradients([(gradient, w), (bias_gradient, b)], global_step=step)

    def feed(i: int) -> dict[Any, Any]:
        value = gradient_value(i, dtype)
        return {given: value if how == DENSE else value[:3], bias_gradient: value[3]}

    return optimizer, train, feed


def run(tf: Any, case: tuple[str, str, str, str]) -> list[dict[str, np.ndarray]]:
    """The trajectory of one case, in a graph of its own."""
    with tf.Graph().as_default(), tf.Session() as session:
        _, train, feed = build(tf, case)
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        session.run(tf.global_variables_initializer())
        values = [session.run(variables)]
        for i in range(STEPS):
            session.run(train, feed(i))
            values.append(session.run(variables))
    return values


def node_lines(tf: Any, case: tuple[str, str, str, str]) -> list[str]:
    """The nodes that `apply_gradients` adds: name, type, inputs, control inputs and colocation."""
    with tf.Graph().as_default() as graph:
        optimizer, _, _ = build(tf, case)
        prefix = optimizer.get_name()
        lines = []
        for op in graph.get_operations():
            if op.name.split("/")[0] == prefix or f"/{prefix}" in op.name or "_power" in op.name:
                inputs = [tensor.name for tensor in op.inputs] + sorted(
                    "^" + c.name for c in op.control_inputs
                )
                group = sorted(g.decode() for g in op.colocation_groups())
                lines.append(f"{op.name} {op.type}({', '.join(inputs)}) {' '.join(group)}")
    return sorted(lines)


def schedules(tf: Any) -> dict[str, Callable[[Any], Any]]:
    """Learning-rate schedules by case name, as functions of the global step."""
    train = tf.train
    return {
        "exponential": lambda s: train.exponential_decay(0.1, s, 10, 0.9),
        "exponential_staircase": lambda s: train.exponential_decay(
            0.1, s, 10, 0.9, staircase=True, name="rate"
        ),
        "natural": lambda s: train.natural_exp_decay(0.1, s, 10, 0.5),
        "natural_staircase": lambda s: train.natural_exp_decay(0.1, s, 10, 0.5, staircase=True),
        "inverse": lambda s: train.inverse_time_decay(0.1, s, 10, 0.5),
        "inverse_staircase": lambda s: train.inverse_time_decay(0.1, s, 10, 0.5, staircase=True),
        "polynomial": lambda s: train.polynomial_decay(0.1, s, 30),
        "polynomial_root": lambda s: train.polynomial_decay(0.1, s, 30, end_learning_rate=0.01, power=0.5),
        "polynomial_cycle": lambda s: train.polynomial_decay(0.1, s, 10, power=2.0, cycle=True),
        "piecewise": lambda s: train.piecewise_constant(s, [5, 20], [1.0, 0.5, 0.1]),
        "piecewise_two": lambda s: train.piecewise_constant(s, [5], [1, 2], name="pieces"),
        "cosine": lambda s: train.cosine_decay(0.1, s, 30),
        "cosine_alpha": lambda s: train.cosine_decay(0.1, s, 30, alpha=0.2),
        "restarts": lambda s: train.cosine_decay_restarts(0.1, s, 7),
        "restarts_equal": lambda s: train.cosine_decay_restarts(0.1, s, 7, t_mul=1.0, m_mul=0.8, alpha=0.1),
        "linear_cosine": lambda s: train.linear_cosine_decay(0.1, s, 30),
        "linear_cosine_all": lambda s: train.linear_cosine_decay(
            0.1, s, 30, num_periods=1.5, alpha=0.1, beta=0.01
        ),
    }


SCHEDULE_STEPS = (0, 1, 4, 5, 6, 7, 10, 13, 20, 21, 22, 30, 47)


def schedule_values(tf: Any, name: str) -> tuple[list[float], list[str]]:
    """A schedule's rates at `SCHEDULE_STEPS`, and its nodes as ``name type``."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        step = tf.placeholder(tf.int64, [], name="step")
        rate = schedules(tf)[name](step)
        nodes = [f"{op.name} {op.type}" for op in graph.get_operations()]
        return [float(session.run(rate, {step: i})) for i in SCHEDULE_STEPS], nodes


AVERAGES = {
    "plain": {},
    "counted": {"num_updates": 3},
    "debiased": {"zero_debias": True},
    "named": {"name": "shadow"},
}


def average_values(tf: Any, case: str, kind: str) -> tuple[list[dict[str, np.ndarray]], list[str]]:
    """Three updates of the averages of a variable and a tensor: values of all variables, and the nodes."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        v = tf.get_variable("v", initializer=tf.constant([1.0, 2.0]), use_resource=KINDS[kind])
        fed = tf.placeholder(tf.float32, [2], name="fed")
        t = tf.multiply(fed, 2.0, name="t")
        averages = tf.train.ExponentialMovingAverage(0.9, **AVERAGES[case])
        update = averages.apply([v, t])
        nodes = sorted(
            f"{op.name} {op.type}"
            for op in graph.get_operations()
            if op.name.startswith((averages.name, "t/"))
        )
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        assign = v.assign(v * 1.5)
        session.run(tf.global_variables_initializer())
        values = [session.run(variables)]
        for i in range(3):
            session.run(assign)
            session.run(update, {fed: [i, 1.0]})
            values.append(session.run(variables))
    return values, nodes
