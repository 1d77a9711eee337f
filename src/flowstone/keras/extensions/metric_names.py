"""Names of metrics in logs: `acc` for accuracies, for others the function's own, `mean_absolute_error`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

__all__ = ["extend"]

_SHORT = {"accuracy": "acc", "acc": "acc", "crossentropy": "ce", "ce": "ce"}


def extend(module: ModuleType) -> None:
    """Gives `get_metric_name` of `keras.engine.training_utils` TensorFlow 1's names."""
    names = vars(module)
    metrics = names.get("metrics_module")

    def get_metric_name(metric: Any, weighted: bool = False) -> str:
        """The name of a metric; of a weighted one behind "weighted_"."""
        prefix = "weighted_" if weighted else ""
        if isinstance(metric, str) and metric in _SHORT:
            return prefix + _SHORT[metric]
        found: Any = metrics.get(metric) if metrics is not None else metric
        return prefix + str(found.name if hasattr(found, "name") else found.__name__)

    if "get_metric_name" in names:
        names["get_metric_name"] = get_metric_name
