"""What `tf.contrib.learn` calls modes, tasks, problems and predictions."""

from __future__ import annotations

__all__ = ["ModeKeys", "NotFittedError", "PredictionKey", "ProblemType", "TaskType"]


class ModeKeys:
    """What a model is built for."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for what is no mode."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")


class TaskType:
    """What a task of a cluster does."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"


class ProblemType:
    """What a model predicts."""

    UNSPECIFIED = 0
    CLASSIFICATION = 1
    LINEAR_REGRESSION = 2
    LOGISTIC_REGRESSION = 3


class PredictionKey:
    """The names of what a model predicts."""

    CLASSES = "classes"
    PROBABILITIES = "probabilities"
    LOGITS = "logits"
    LOGISTIC = "logistic"
    SCORES = "scores"
    TOP_K = "top_k"
    GENERIC = "output"


class NotFittedError(ValueError, AttributeError):
    """An estimator is used before it has been fitted."""
