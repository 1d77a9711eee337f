"""What of a model's metrics and predictions is computed and handed out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flowstone as tf

__all__ = ["chosen", "examples", "split_metrics"]


def split_metrics(metrics: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The operation that updates all metrics, and their values by name."""
    updates: list[Any] = []
    values = {}
    for name in sorted(metrics):
        metric = metrics[name]
        if hasattr(metric, "result") and hasattr(metric, "updates"):
            values[name] = metric.result()
            updates += metric.updates
            known = tf.local_variables()
            for variable in metric.variables:  # which are in no collection: an evaluation begins them anew
                if not any(variable is each for each in known):
                    tf.add_to_collection(tf.GraphKeys.LOCAL_VARIABLES, variable)
        else:
            values[name] = metric[0]
            updates.append(metric[1])
    return tf.group(*updates) if updates else None, values


def chosen(predictions: Any, keys: Any) -> Any:
    if not keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    found = {name: value for name, value in predictions.items() if name in keys}
    if not found:
        raise ValueError(f"Expected to run at least one output from {predictions.keys()}, provided {keys}.")
    return found


def examples(values: Any) -> Iterator[Any]:
    if not isinstance(values, dict):
        yield from values
        return
    count: int | None = None
    for name, value in values.items():
        size = value.shape[0]
        if count not in (None, size):
            raise ValueError(
                f"Batch length of predictions should be same. {name} has different batch length than others."
            )
        count = size
    for index in range(count or 0):
        yield {name: value[index] for name, value in values.items()}
