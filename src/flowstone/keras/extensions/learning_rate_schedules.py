"""`tf.keras.optimizers.schedules`: learning rates as functions of the number of steps made.

Those with cosines are `tf.keras.experimental`'s. Sources: Loshchilov and Hutter (2016), arXiv 1608.03983;
Bello et al. (2017), arXiv 1709.07417.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "LinearCosineDecay",
    "NoisyLinearCosineDecay",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
    "deserialize",
    "serialize",
]


class LearningRateSchedule:
    """The base class: `schedule(step)` is the rate of a step; `get_config()` says what it is made of."""

    def __call__(self, step: Any) -> Any:
        """The learning rate of this step."""
        raise NotImplementedError("Learning rate schedule must override __call__")

    def get_config(self) -> dict[str, Any]:
        """What it is made of."""
        raise NotImplementedError("Learning rate schedule must override get_config")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A schedule of this configuration."""
        return cls(**config)


class _Decay(LearningRateSchedule):
    """A schedule that is a function of `tf.train` with the arguments that the constructor got."""

    _FUNCTION: str

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Makes the constructor's arguments, its `vars()`, attributes."""
        self._arguments = {name: value for name, value in arguments.items() if name != "self"}
        vars(self).update(self._arguments)

    def __call__(self, step: Any) -> Any:
        """The learning rate of this step."""
        given = {key: value for key, value in self._arguments.items() if key != "initial_learning_rate"}
        return getattr(tf.train, self._FUNCTION)(self._arguments["initial_learning_rate"], step, **given)

    def get_config(self) -> dict[str, Any]:
        """What it is made of."""
        return dict(self._arguments)


class _DecayByRate(_Decay):
    """A schedule by the quotient step / decay_steps; `staircase`: by the whole quotient."""

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        self._keep(vars())


class ExponentialDecay(_DecayByRate):
    """initial_learning_rate · decay_rate ^ (step / decay_steps); `staircase`: of the whole quotient."""

    _FUNCTION = "exponential_decay"


class InverseTimeDecay(_DecayByRate):
    """initial_learning_rate / (1 + decay_rate · step / decay_steps)."""

    _FUNCTION = "inverse_time_decay"


class PolynomialDecay(_Decay):
    """From initial_learning_rate to end_learning_rate in decay_steps; `cycle`: again and again."""

    _FUNCTION = "polynomial_decay"

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        end_learning_rate: Any = 0.0001,
        power: Any = 1.0,
        cycle: bool = False,
        name: str | None = None,
    ) -> None:
        self._keep(vars())


class CosineDecay(_Decay):
    """From initial_learning_rate to alpha times it in decay_steps, along half a cosine."""

    _FUNCTION = "cosine_decay"

    def __init__(
        self, initial_learning_rate: Any, decay_steps: Any, alpha: Any = 0.0, name: str | None = None
    ) -> None:
        self._keep(vars())


class CosineDecayRestarts(_Decay):
    """Half a cosine in first_decay_steps, then again, each t_mul times as long and m_mul times as high."""

    _FUNCTION = "cosine_decay_restarts"

    def __init__(
        self,
        initial_learning_rate: Any,
        first_decay_steps: Any,
        t_mul: Any = 2.0,
        m_mul: Any = 1.0,
        alpha: Any = 0.0,
        name: str | None = None,
    ) -> None:
        self._keep(vars())


class LinearCosineDecay(_Decay):
    """initial_learning_rate · ((alpha + 1 - t) · (1 + cos(2π num_periods t)) / 2 + beta).

    t = step / decay_steps, 1 at most.
    """

    _FUNCTION = "linear_cosine_decay"

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        num_periods: Any = 0.5,
        alpha: Any = 0.0,
        beta: Any = 0.001,
        name: str | None = None,
    ) -> None:
        self._keep(vars())


class NoisyLinearCosineDecay(_Decay):
    """`LinearCosineDecay` with normal noise of variance initial_variance / (1 + step) ^ variance_decay."""

    _FUNCTION = "noisy_linear_cosine_decay"

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        initial_variance: Any = 1.0,
        variance_decay: Any = 0.55,
        num_periods: Any = 0.5,
        alpha: Any = 0.0,
        beta: Any = 0.001,
        name: str | None = None,
    ) -> None:
        self._keep(vars())


class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i] up to the step boundaries[i], the last value after them."""

    def __init__(self, boundaries: Any, values: Any, name: str | None = None) -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError("The length of boundaries should be 1 less than the length of values")
        self.boundaries, self.values, self.name = boundaries, values, name

    def __call__(self, step: Any) -> Any:
        """The learning rate of this step."""
        step = tf.convert_to_tensor(step)
        limits = [tf.cast(tf.convert_to_tensor(limit), step.dtype.base_dtype) for limit in self.boundaries]
        return tf.train.piecewise_constant(step, limits, [tf.convert_to_tensor(v) for v in self.values])

    def get_config(self) -> dict[str, Any]:
        """What it is made of."""
        return {"boundaries": self.boundaries, "values": self.values, "name": self.name}


def serialize(learning_rate_schedule: Any) -> dict[str, Any]:
    """The class and the configuration of a schedule."""
    name = type(learning_rate_schedule).__name__
    return {"class_name": name, "config": learning_rate_schedule.get_config()}


def deserialize(config: dict[str, Any], custom_objects: Any = None) -> Any:
    """The schedule that `serialize` gave `config` for; ValueError for an unknown class."""
    name = config["class_name"]
    made = (custom_objects or {}).get(name, globals().get(name))
    if made is None:
        raise ValueError(f"Unknown decay: {name}")
    return made.from_config(config["config"])
