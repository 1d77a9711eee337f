"""`ModeKeys`: what a model function is called for."""

from __future__ import annotations

__all__ = ["ModeKeys"]


class ModeKeys:
    """The names of the three modes.

    `TRAIN`: the loss and the operation that trains. `EVAL`: the loss and metrics. `PREDICT`: predictions.
    """

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"
