"""Losses whose gradients are those of expectations over draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = [
    "get_mean_baseline",
    "get_score_function_with_advantage",
    "get_score_function_with_baseline",
    "get_score_function_with_constant_baseline",
    "score_function",
]


LossFunction = Callable[..., Any]


def score_function(
    stochastic_tensor: Any, value: Any, loss: Any, baseline: Any = None, name: str = "ScoreFunction"
) -> Any:
    """log p(value) (loss - baseline), whose gradient is that of the expected loss by p's parameters.

    Args:
        stochastic_tensor: has the distribution p.
        value: a draw.
        loss: at the draw.
        baseline: what does not depend on the draw, to lower the variance; 0 by default.
        name: the scope of its operations.

    No gradient flows through the loss (Williams, "Simple statistical gradient-following algorithms", 1992).
    """
    with tf.name_scope(name):
        advantage = tf.stop_gradient(loss if baseline is None else loss - baseline)
        return stochastic_tensor.distribution.log_prob(value) * advantage


def get_score_function_with_constant_baseline(baseline: Any, name: str = "ScoreFunction") -> LossFunction:
    """`score_function` with this baseline."""

    def with_constant_baseline(stochastic_tensor: Any, value: Any, loss: Any) -> Any:
        return score_function(stochastic_tensor, value, loss, baseline, name)

    return with_constant_baseline


def get_score_function_with_baseline(baseline_fn: Any = None, name: str = "ScoreFunction") -> LossFunction:
    """`score_function` with the baseline ``baseline_fn(stochastic_tensor, loss)``, the mean by default."""
    baseline_fn = baseline_fn or get_mean_baseline()

    def with_baseline(stochastic_tensor: Any, value: Any, loss: Any) -> Any:
        with tf.name_scope(name):
            return score_function(stochastic_tensor, value, loss, baseline_fn(stochastic_tensor, loss))

    return with_baseline


def get_score_function_with_advantage(
    advantage_fn: Any = None, name: str = "ScoreFunctionWithAdvantage"
) -> LossFunction:
    """log p(value) times ``advantage_fn(stochastic_tensor, loss)``, by default the loss less its mean."""
    mean = get_mean_baseline()

    def of_mean(stochastic_tensor: Any, loss: Any) -> Any:
        return loss - mean(stochastic_tensor, loss)

    def with_advantage(stochastic_tensor: Any, value: Any, loss: Any) -> Any:
        with tf.name_scope(name):
            advantage = tf.stop_gradient((advantage_fn or of_mean)(stochastic_tensor, loss))
            return stochastic_tensor.distribution.log_prob(value) * advantage

    return with_advantage


def get_mean_baseline(ema_decay: float = 0.99, name: str | None = None) -> Callable[[Any, Any], Any]:
    """A baseline: the moving mean of the loss, with this decay, kept in variables that are not trained."""

    def mean_baseline(_: Any, loss: Any) -> Any:
        with tf.variable_scope(name, default_name="MeanBaseline"):
            mean = tf.reduce_mean(loss)
            average = tf.train.ExponentialMovingAverage(decay=ema_decay, zero_debias=True)
            update = average.apply([mean])
            with tf.control_dependencies([update]):
                # The mean that was kept before this loss is added has no gradient.
                return tf.stop_gradient(tf.identity(average.average(mean)))

    return mean_baseline
