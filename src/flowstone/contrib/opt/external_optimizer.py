"""Optimisers outside the graph, which ask a session for the loss and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["ExternalOptimizerInterface", "ScipyOptimizerInterface"]


def _nothing(*values: Any) -> None:
    """The callback where none is given."""


class ExternalOptimizerInterface:
    """The base of optimisers outside the graph: variables as one vector, the loss and gradients as functions.

    Args:
        loss: a scalar to minimise.
        var_list: the variables; None for all trainable ones.
        equalities: tensors that shall be 0. inequalities: tensors that shall be at least 0.
        var_to_bounds: for variables, pairs of a lower and an upper bound, of any shape that is broadcast.
        optimizer_kwargs: what the class below takes.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Any = None,
        equalities: Any = None,
        inequalities: Any = None,
        var_to_bounds: Any = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._loss = loss
        self._vars = list(tf.trainable_variables() if var_list is None else var_list)
        self._equalities, self._inequalities = list(equalities or []), list(inequalities or [])
        self._bounds = None if var_to_bounds is None else self._packed_bounds(var_to_bounds)
        self._new_values = [tf.placeholder(var.dtype.base_dtype, var.shape) for var in self._vars]
        self._updates = [var.assign(new).op for var, new in zip(self._vars, self._new_values)]
        self._loss_grads = self._gradients(loss)
        self._equality_grads = [self._gradients(each) for each in self._equalities]
        self._inequality_grads = [self._gradients(each) for each in self._inequalities]
        self._sizes = [int(np.prod(var.shape.as_list(), dtype=np.int64)) for var in self._vars]
        self.optimizer_kwargs = optimizer_kwargs

    def _gradients(self, ys: Any) -> list[Any]:
        found = tf.gradients(ys, self._vars)
        return [
            tf.zeros_like(var) if g is None else tf.convert_to_tensor(g) for g, var in zip(found, self._vars)
        ]

    def _packed_bounds(self, var_to_bounds: Any) -> list[tuple[float, float]]:
        bounds: list[tuple[float, float]] = []
        for var in self._vars:
            low, high = var_to_bounds.get(var, (-np.inf, np.inf))
            shape = var.shape.as_list()
            bounds += zip(np.broadcast_to(low, shape).flat, np.broadcast_to(high, shape).flat)
        return bounds

    def _vector(self, values: Any) -> Any:
        return np.concatenate([np.ravel(value) for value in values]) if values else np.zeros(0)

    def _feeds(self, vector: Any) -> dict[Any, Any]:
        parts = np.split(vector, np.cumsum(self._sizes)[:-1])
        return {
            new: part.reshape(new.shape.as_list()).astype(new.dtype.as_numpy_dtype)
            for new, part in zip(self._new_values, parts)
        }

    def minimize(
        self,
        session: Any = None,
        feed_dict: Any = None,
        fetches: Any = None,
        step_callback: Callable[[Any], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimises the loss, and assigns the variables what was found.

        Args:
            session: None for the default one. feed_dict: fed whenever the loss is computed.
            fetches: tensors computed with the loss, which `loss_callback` gets.
            step_callback: gets the vector of all variables after each step.
            run_kwargs: further arguments of `session.run`.
        """
        session = session or tf.get_default_session()
        feeds, wanted = dict(feed_dict or {}), list(fetches or [])
        seen = loss_callback or _nothing

        def value_of(tensors: list[Any]) -> Callable[[Any], list[Any]]:
            def compute(vector: Any) -> list[Any]:
                session.run(self._updates, self._feeds(vector))
                return session.run(tensors, feeds, **run_kwargs)  # type: ignore[no-any-return]

            return compute

        compute_loss = value_of([self._loss, *self._loss_grads, *wanted])

        def loss_grad_func(vector: Any) -> tuple[Any, Any]:
            values = compute_loss(vector)
            count = len(self._vars)
            seen(*values[1 + count :])
            return values[0], self._vector(values[1 : 1 + count]).astype(np.float64)

        pairs = [
            (value_of([tensor, *grads]), kind)
            for kind, tensors, gradients in (
                ("eq", self._equalities, self._equality_grads),
                ("ineq", self._inequalities, self._inequality_grads),
            )
            for tensor, grads in zip(tensors, gradients)
        ]
        start = self._vector(session.run([var.value() for var in self._vars])).astype(np.float64)
        found = self._minimize(
            initial_val=start,
            loss_grad_func=loss_grad_func,
            constraints=[(kind, compute, self._vector) for compute, kind in pairs],
            packed_bounds=self._bounds,
            step_callback=step_callback or _nothing,
            optimizer_kwargs=self.optimizer_kwargs,
        )
        session.run(self._updates, self._feeds(found))

    def _minimize(self, **arguments: Any) -> Any:
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement _minimize()."
        )


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """`scipy.optimize.minimize`: L-BFGS-B, or SLSQP with constraints, or the `method` that is given.

    Further arguments, such as `options`, are those of SciPy's function. Raises ImportError without SciPy.
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(self, **arguments: Any) -> Any:
        optimize = import_module("scipy.optimize")
        keywords = dict(arguments["optimizer_kwargs"])
        constraints = [
            {
                "type": kind,
                "fun": lambda x, compute=compute: np.asarray(compute(x)[0], np.float64).ravel(),
                "jac": lambda x, compute=compute, vector=vector: vector(compute(x)[1:]).astype(np.float64),
            }
            for kind, compute, vector in arguments["constraints"]
        ]
        method = keywords.pop("method", "SLSQP" if constraints else self._DEFAULT_METHOD)
        more = {"constraints": constraints} if constraints else {}
        result = optimize.minimize(
            arguments["loss_grad_func"],
            arguments["initial_val"],
            jac=True,
            callback=arguments["step_callback"],
            method=method,
            bounds=arguments["packed_bounds"],
            **more,
            **keywords,
        )
        tf.logging.info("Optimization terminated with:\n  Message: %s", result.message)
        return result.x
