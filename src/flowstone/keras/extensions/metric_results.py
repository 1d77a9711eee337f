"""Results of metrics in the code of several replicas: one value, of all replicas together."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from flowstone.ops.variables.replicas import current_replica

__all__ = ["extend"]


def _changed_wrapper(published: Callable[..., Any]) -> Callable[..., Any]:
    def result_wrapper(result_fn: Callable[..., Any]) -> Callable[..., Any]:
        """The method `result` of a metric; what each replica counted in is part of it."""

        def of_all(*arguments: Any, **keywords: Any) -> Any:
            replica = current_replica()
            if replica is None:
                return result_fn(*arguments, **keywords)
            return replica.merge_call(lambda strategy: result_fn(*arguments, **keywords))

        wrapped: Callable[..., Any] = published(of_all)
        return wrapped

    return result_wrapper


def extend(module: ModuleType) -> None:
    """Changes `result_wrapper` of `keras.utils.metrics_utils`."""
    names = vars(module)
    names["result_wrapper"] = _changed_wrapper(names["result_wrapper"])
