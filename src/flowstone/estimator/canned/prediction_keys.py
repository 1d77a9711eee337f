"""The names of the predictions of canned estimators."""

from __future__ import annotations

__all__ = ["PredictionKeys"]


class PredictionKeys:
    """The predictions' names."""

    CLASSES = "classes"
    CLASS_IDS = "class_ids"
    ALL_CLASSES = "all_classes"
    ALL_CLASS_IDS = "all_class_ids"
    LOGISTIC = "logistic"
    LOGITS = "logits"
    PREDICTIONS = "predictions"
    PROBABILITIES = "probabilities"
    TOP_K = "top_k"
