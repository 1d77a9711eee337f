"""`tensorflow.python.training.evaluation`: one evaluation of a checkpoint, and the hook that ends it."""

from __future__ import annotations

from flowstone.contrib.training.evaluation import (
    StopAfterNEvalsHook,
    evaluate_once,
    get_or_create_eval_step,
)

__all__ = ["_StopAfterNEvalsHook", "_evaluate_once", "_get_or_create_eval_step"]

_StopAfterNEvalsHook = StopAfterNEvalsHook
_evaluate_once = evaluate_once
_get_or_create_eval_step = get_or_create_eval_step
