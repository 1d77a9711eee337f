"""Runge-Kutta methods for dy/dt = f(y, t), with steps that adapt or are given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import flowstone as tf
from flowstone.framework.tensors.node import static_value

__all__ = ["odeint", "odeint_fixed"]

# Dormand and Prince, "A family of embedded Runge-Kutta formulae", 1980.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERRORS = (
    35 / 384 - 1951 / 21600,
    0.0,
    500 / 1113 - 22642 / 50085,
    125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400,
    11 / 84 - 649 / 6300,
    -1 / 60,
)
# The solution in the middle of a step: Shampine, "Some practical Runge-Kutta formulas", 1986.
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0.0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)


def odeint(
    func: Callable[[Any, Any], Any],
    y0: Any,
    t: Any,
    rtol: float = 1e-6,
    atol: float = 1e-12,
    method: str | None = None,
    options: dict[str, Any] | None = None,
    full_output: bool = False,
    name: str | None = None,
) -> Any:
    """Solves dy/dt = func(y, t) by Dormand and Prince's method of fifth order, with steps that adapt.

    Args:
        func: gives dy/dt, of y's shape and type; t is a float64 scalar by default.
        y0: y at the first time, floating or complex, of any shape.
        t: the times of the solution, a growing vector.
        rtol, atol: a step's error is at most atol + rtol |y|.
        method: ``dopri5``.
        options: with the method: ``first_step`` (1.0), ``safety`` (0.9), the most factor from one step to the
            next ``ifactor`` (10.0), the least ``dfactor`` (0.2), ``max_num_steps`` (1000).
        full_output: also returns ``num_func_evals``, ``integrate_points`` and ``error_ratio`` in a dict.
        name: the scope of its operations, ``odeint`` by default.

    Returns y at the times, [len(t), ...]. TypeError for y of another type, ValueError for another method or
    options without one; InvalidArgumentError of the step if times do not grow or steps are too many.
    """
    if method is not None and method != "dopri5":
        raise ValueError(f"invalid method: {method!r}")
    if options is not None and method is None:
        raise ValueError("cannot supply `options` without specifying `method`")
    with tf.name_scope(name or "odeint"):
        y0 = tf.convert_to_tensor(y0, name="y0")
        if not (y0.dtype.is_floating or y0.dtype.is_complex):
            raise TypeError("`y0` must have a floating point or complex floating point dtype")
        t = tf.convert_to_tensor(t, preferred_dtype=tf.float64, name="t")
        increasing = tf.Assert(tf.reduce_all(t[1:] > t[:-1]), ["`t` must be monotonic increasing"])
        with tf.control_dependencies([increasing]):
            t = tf.identity(t)
        solver = _Solver(func, y0, t, rtol, atol, **(options or {}))
        return solver.solve(full_output)


class _Solver:
    """A solution with steps that adapt: its state is a tuple of tensors that loops pass on."""

    def __init__(
        self,
        func: Callable[[Any, Any], Any],
        y0: Any,
        t: Any,
        rtol: float,
        atol: float,
        first_step: Any = None,
        safety: float = 0.9,
        ifactor: float = 10.0,
        dfactor: float = 0.2,
        max_num_steps: int = 1000,
    ) -> None:
        self.func, self.y0, self.t = func, y0, t
        self.rtol, self.atol = rtol, atol
        self.first_step = tf.cast(1.0 if first_step is None else first_step, t.dtype)
        self.safety, self.ifactor, self.dfactor = safety, ifactor, dfactor
        self.max_num_steps = max_num_steps

    def solve(self, full_output: bool) -> Any:
        y0, t = self.y0, self.t
        count = tf.size(t)
        f0 = tf.convert_to_tensor(self.func(y0, t[0]), dtype=y0.dtype)
        # The value, its derivative, the ends of the step, its length, and the polynomial within it.
        state = (y0, f0, t[0], t[0], self.first_step, *[y0] * 5)
        solution = tf.TensorArray(y0.dtype, size=count, element_shape=y0.shape).write(0, y0)
        history = tuple(
            tf.TensorArray(kind, size=0, dynamic_size=True, element_shape=[])
            for kind in (t.dtype, self._real())
        )
        tried = tf.constant(0)

        def advance(index: Any, solution: Any, tried: Any, history: Any, state: Any) -> Any:
            state, tried, history = self._integrate(state, tried, history, t[index])
            return index + 1, solution.write(index, self._interpolate(state, t[index])), tried, history, state

        _, solution, tried, history, _ = tf.while_loop(
            lambda index, *_: index < count,
            advance,
            (tf.constant(1), solution, tried, history, state),
            parallel_iterations=1,
        )
        result = solution.stack()
        known = static_value(count)
        result.set_shape(tf.TensorShape([None if known is None else int(known)]).concatenate(y0.shape))
        if not full_output:
            return result
        points, ratios = history
        info = {
            "num_func_evals": 6 * tried + 1,
            "integrate_points": points.stack(),
            "error_ratio": ratios.stack(),
        }
        return result, info

    def _real(self) -> Any:
        return self.y0.dtype.real_dtype

    def _integrate(self, state: Any, tried: Any, history: Any, until: Any) -> Any:
        """Steps until the end of a step is not before the time."""

        def step(state: Any, tried: Any, history: Any, count: Any) -> Any:
            state, point, ratio = self._step(state, count)
            points, ratios = history
            history = (points.write(tried, point), ratios.write(tried, ratio))
            return state, tried + 1, history, count + 1

        state, tried, history, _ = tf.while_loop(
            lambda state, *_: until > state[3],
            step,
            (state, tried, history, tf.constant(0)),
            parallel_iterations=1,
        )
        return state, tried, history

    def _step(self, state: Any, count: Any) -> Any:
        """One step that is tried: the state after it, the time it would reach, and the ratio of its error."""
        y0, f0, _, t0, dt = state[:5]
        checks = [
            tf.Assert(t0 + dt > t0, ["underflow in dt", dt]),
            tf.Assert(count < self.max_num_steps, ["max_num_steps exceeded"]),
        ]
        with tf.control_dependencies(checks):
            length = tf.cast(dt, y0.dtype)
            y1, slopes = _stages(self.func, y0, f0, t0, dt, length)
        error = length * _weighted(_ERRORS, slopes)
        tolerance = self.atol + self.rtol * tf.maximum(tf.abs(y0), tf.abs(y1))
        ratio = tf.sqrt(tf.reduce_mean(tf.square(tf.abs(error) / tolerance)))
        accepted = ratio <= 1
        new = _polynomial(y0, y1, y0 + length * _weighted(_MIDDLE, slopes), f0, slopes[-1], length)
        after = (y1, slopes[-1], t0, t0 + dt, *new)
        before = (y0, f0, state[2], t0, *state[5:])
        chosen = [tf.where(accepted, ours, old) for ours, old in zip(after, before)]
        for value, old in zip(chosen, before):
            value.set_shape(old.shape)
        state = (*chosen[:4], self._next_length(dt, ratio), *chosen[4:])
        return state, t0 + dt, ratio

    def _next_length(self, dt: Any, ratio: Any) -> Any:
        """The length with which the error would be just below what is allowed."""
        factor = tf.cast(ratio, dt.dtype) ** (1.0 / 5.0) / self.safety
        factor = tf.maximum(tf.minimum(factor, 1.0 / self.dfactor), 1.0 / self.ifactor)
        return dt / factor

    def _interpolate(self, state: Any, time: Any) -> Any:
        start, end = state[2], state[3]
        place = tf.cast((time - start) / (end - start), self.y0.dtype)
        value = state[5]
        for coefficient in state[6:]:
            value = value * place + coefficient
        return value


def _weighted(weights: Any, slopes: Any) -> Any:
    terms = [slope * weight for weight, slope in zip(weights, slopes) if weight]
    return tf.add_n(terms)


def _stages(func: Any, y0: Any, f0: Any, t0: Any, dt: Any, length: Any) -> Any:
    """The value after a step, and the slopes at its seven stages."""
    slopes, y = [f0], y0
    for time, weights in zip(_TIMES, _STAGES):
        y = y0 + length * _weighted(weights, slopes)
        slopes.append(tf.convert_to_tensor(func(y, t0 + time * dt), dtype=y0.dtype))
    return y, slopes


def _polynomial(y0: Any, y1: Any, middle: Any, f0: Any, f1: Any, length: Any) -> Any:
    """The coefficients of the polynomial of degree 4 with these values and slopes, the highest first."""
    first, last = length * f0, length * f1
    return (
        2.0 * (last - first) - 8.0 * (y1 + y0) + 16.0 * middle,
        5.0 * first - 3.0 * last + 18.0 * y0 + 14.0 * y1 - 32.0 * middle,
        last - 4.0 * first - 11.0 * y0 - 5.0 * y1 + 16.0 * middle,
        first,
        y0,
    )


def odeint_fixed(
    func: Callable[[Any, Any], Any],
    y0: Any,
    t: Any,
    dt: Any = None,
    method: str = "rk4",
    name: str | None = None,
) -> Any:
    """Solves dy/dt = func(y, t) with steps of a given length.

    Args:
        func: gives dy/dt, of y's shape and type.
        y0: y at the first time, floating or complex, of any shape.
        t: the times of the solution, a vector.
        dt: the longest step, a number or one for each interval: an interval is divided evenly. One step an
            interval by default.
        method: ``midpoint`` or ``rk4``.
        name: the scope of its operations, ``odeint_fixed`` by default.

    Returns y at the times, [len(t), ...]. ValueError for another method or unlike lengths.
    """
    if method not in ("midpoint", "rk4"):
        raise ValueError(f"method not supported: {method}")
    with tf.name_scope(name or "odeint_fixed"):
        t = tf.convert_to_tensor(t, preferred_dtype=tf.float64, name="t")
        if t.shape.ndims not in (None, 1):
            raise ValueError("t must be a 1D tensor")
        y0 = tf.convert_to_tensor(y0, name="y0")
        intervals = t[1:] - t[:-1]
        lengths = intervals if dt is None else tf.convert_to_tensor(dt, dtype=t.dtype, name="dt")
        if lengths.shape.ndims == 1 and not lengths.shape.is_compatible_with(intervals.shape):
            raise ValueError("t and dt have incompatible lengths, must be N and N-1")
        steps = tf.cast(tf.ceil(intervals / lengths), tf.int32)

        advance = partial(_advance, func, _midpoint if method == "midpoint" else _rk4)
        values = tf.scan(advance, (t[:-1], intervals, steps), initializer=y0)
        result = tf.concat([y0[None], values], axis=0)
        result.set_shape(t.shape.concatenate(y0.shape))
        return result


def _advance(func: Any, increment: Any, value: Any, interval: Any) -> Any:
    """y at the end of an interval, (start, length, count of steps), given y at its start."""
    start, length, count = interval
    step = length / tf.cast(count, length.dtype)

    def body(index: Any, y: Any) -> Any:
        time = start + tf.cast(index, length.dtype) * step
        return index + 1, y + increment(func, y, time, step)

    return tf.while_loop(lambda index, _: index < count, body, (tf.constant(0), value))[1]


def _midpoint(func: Any, y: Any, time: Any, step: Any) -> Any:
    length = tf.cast(step, y.dtype)
    return length * func(y + func(y, time) * length / 2, time + step / 2)


def _rk4(func: Any, y: Any, time: Any, step: Any) -> Any:
    length = tf.cast(step, y.dtype)
    k1 = func(y, time)
    k2 = func(y + length * k1 / 2, time + step / 2)
    k3 = func(y + length * k2 / 2, time + step / 2)
    k4 = func(y + length * k3, time + step)
    return length * (k1 + 2 * k2 + 2 * k3 + k4) / 6
