"""Monitors that look at tensors: print, log and keep them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.learn.monitors.base_monitor import BaseMonitor, EveryN, _extract_output

__all__ = ["CaptureVariable", "GraphDump", "LoggingTrainable", "PrintTensor"]


class PrintTensor(EveryN):
    """Logs the values of tensors.

    Args:
        tensor_names: names of tensors, or a dict from what the log calls them to names.
        every_n: how many steps lie between two that are logged.
        first_n: every step up to this one is logged.
    """

    def __init__(
        self, tensor_names: Mapping[str, str] | Iterable[str], every_n: int = 100, first_n: int = 1
    ) -> None:
        super().__init__(every_n, first_n)
        named = tensor_names if isinstance(tensor_names, Mapping) else {name: name for name in tensor_names}
        self._tensor_names = dict(named)

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the tensors."""
        super().every_n_step_begin(step)
        return list(self._tensor_names.values())

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        """Logs those of the tensors that have values."""
        stop = super().every_n_step_end(step, outputs)
        found = [(tag, name) for tag, name in self._tensor_names.items() if name in outputs]
        values = [f"{tag} = {_extract_output(outputs, name)!s}" for tag, name in found]
        tf.logging.info("Step %d: %s", step, ", ".join(values))
        return stop


class LoggingTrainable(EveryN):
    """Logs the values of trainable variables.

    Args:
        scope: the beginning of the variables' names; None logs all.
        every_n: how many steps lie between two that are logged.
        first_n: every step up to this one is logged.
    """

    def __init__(self, scope: str | None = None, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._scope = scope
        self._names: dict[str, Any] = {}

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the variables' values."""
        super().every_n_step_begin(step)
        variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, self._scope)
        if not self._names:  # a resource's value is a new tensor at each call: asked for once
            self._names = {variable.name: variable.value().name for variable in variables}
        return list(self._names.values())

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        """Logs the values, under the variables' names."""
        stop = super().every_n_step_end(step, outputs)
        found = [(name, value) for name, value in self._names.items() if value in outputs]
        values = ", ".join(f"{name} = {_extract_output(outputs, value)!s}" for name, value in found)
        tf.logging.info("Logging Trainable: Step %d: %s", step, values)
        return stop


class CaptureVariable(EveryN):
    """Keeps the values of a variable; `values` has them by step."""

    def __init__(self, var_name: str, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._var_name = var_name
        self._var_values: dict[int, Any] = {}

    @property
    def values(self) -> dict[int, Any]:
        """The values captured so far, by step."""
        return self._var_values

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the variable."""
        super().every_n_step_begin(step)
        return [self._var_name]

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        """Keeps the value."""
        stop = super().every_n_step_end(step, outputs)
        self._var_values[step] = _extract_output(outputs, self._var_name)
        return stop


class GraphDump(BaseMonitor):
    """Keeps the values of all tensors of the graph, of each step.

    Args:
        ignore_ops: the types of op whose tensors are left out; None leaves `IGNORE_OPS` out.
    """

    IGNORE_OPS = ["Const", "Assign", "Identity", "Placeholder", "RandomUniform", "Cast", "RestoreSlice"]

    def __init__(self, ignore_ops: Sequence[str] | None = None) -> None:
        super().__init__()
        self._ignore_ops = ignore_ops or GraphDump.IGNORE_OPS
        self._data: dict[int, dict[Any, Any]] = {}
        self._tensors: list[Any] = []

    @property
    def data(self) -> dict[int, dict[Any, Any]]:
        """The values by step, then by what was asked for."""
        return self._data

    def begin(self, max_steps: int | None = None) -> None:
        """Chooses the tensors: the outputs of the default graph's operations."""
        super().begin(max_steps)
        operations = tf.get_default_graph().get_operations()
        kept = [operation for operation in operations if operation.type not in self._ignore_ops]
        self._tensors = [tensor for operation in kept for tensor in operation.outputs]

    def step_begin(self, step: int) -> list[Any]:
        """Asks for the tensors."""
        super().step_begin(step)
        return self._tensors

    def step_end(self, step: int, output: Mapping[Any, Any]) -> bool:
        """Keeps the values."""
        super().step_end(step, output)
        self._data[step] = dict(output)
        return False

    def compare(
        self, other_dump: GraphDump, step: int, atol: float = 1e-06
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Compares a step of two dumps.

        Returns the keys whose values agree, and for the others the differences, this dump's less the other's.
        Floats may differ by `atol`. Raises ValueError if the other dump lacks a key.
        """
        matched: list[Any] = []
        differences: dict[Any, Any] = {}
        mine, others = self._data.get(step, {}), other_dump.data.get(step, {})
        for key, value in mine.items():
            if key not in others:
                raise ValueError(f"{key} missing at step {step}.")
            ours, theirs = np.asarray(value), np.asarray(others[key])
            if _agree(ours, theirs, atol):
                matched.append(key)
            else:
                differences[key] = ours - theirs
        return matched, differences


def _agree(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], atol: float) -> bool:
    if np.issubdtype(ours.dtype, np.floating):
        return bool(np.allclose(ours, theirs, atol=atol))
    return bool(np.array_equal(ours, theirs))
