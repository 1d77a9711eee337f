"""Short trainings with the optimisers of `tf.contrib.opt`, for TensorFlow 1.15 and flowstone alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 4


def optimizers(tf: Any) -> dict[str, Callable[[], Any]]:
    """Constructors by case name."""
    opt = tf.contrib.opt

    def decay(step: Any) -> Any:
        return 1.0 / (tf.cast(step, tf.float32) + 1.0)

    return {
        "lazy_adam": lambda: opt.LazyAdamOptimizer(0.1),
        "nadam": lambda: opt.NadamOptimizer(0.1, beta1=0.8),
        "ada_max": lambda: opt.AdaMaxOptimizer(0.1),
        "add_sign": lambda: opt.AddSignOptimizer(0.1, alpha=1.5),
        "power_sign": lambda: opt.PowerSignOptimizer(0.1, base=3.0, beta=0.5),
        "power_sign_decayed": lambda: opt.PowerSignOptimizer(0.1, sign_decay_fn=decay),
        "adam_w": lambda: opt.AdamWOptimizer(0.1, learning_rate=0.05),
        "momentum_w": lambda: opt.MomentumWOptimizer(0.1, 0.05, 0.9),
        "adagrad_w": lambda: opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)(
            0.1, learning_rate=0.05
        ),
        "reg_adagrad": lambda: opt.RegAdagradOptimizer(0.3),
        "lars": lambda: opt.LARSOptimizer(0.5, weight_decay=0.01, eeta=0.1),
        "lars_nesterov": lambda: opt.LARSOptimizer(0.5, skip_list=["x"], use_nesterov=True),
        "moving_average": lambda: opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.1), 0.5),
        "multitask": lambda: opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.1, 0.9)),
    }


def cases() -> list[tuple[str, bool, bool]]:
    """(optimiser, resource variable, sparse gradient)."""
    names = list(optimizers(_Anything()))
    kinds = [(resource, sparse) for resource in (False, True) for sparse in (False, True)]
    found = [(n, r, s) for n in names for r, s in kinds]
    # TensorFlow's sign optimisers take no sparse gradient of a resource variable.
    return [(n, r, s) for n, r, s in found if not (r and s and "sign" in n)]


class _Anything:
    def __getattr__(self, name: str) -> Any:
        return self


def trajectory(tf: Any, name: str, resource: bool, sparse: bool) -> dict[str, Any]:
    """The values of all variables by name, after each step."""
    with tf.Graph().as_default(), tf.Session() as session:
        start = np.arange(12, dtype=np.float32).reshape(4, 3) / 6 - 0.7
        x = tf.get_variable("x", initializer=start, use_resource=resource)
        step = tf.train.get_or_create_global_step()
        values = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        dense = np.linspace(1, -2, 12, dtype=np.float32).reshape(4, 3)
        scale = tf.placeholder(tf.float32, [])
        rows = tf.IndexedSlices(values * scale, tf.constant([2, 0]), tf.constant([4, 3]))
        grad = rows if sparse else dense * scale
        optimizer = optimizers(tf)[name]()
        train = optimizer.apply_gradients([(grad, x)], global_step=step)
        session.run(tf.global_variables_initializer())
        variables = {v.op.name: v for v in tf.global_variables()}
        found: dict[str, Any] = {key: [] for key in variables}
        for i in range(STEPS):
            session.run(train, {scale: [1.0, -0.5, 0.0, 2.0][i]})
            for key, value in session.run(variables).items():
                found[key].append(np.round(np.asarray(value, np.float64), 7).tolist())
        return found
