"""`tensorflow.python.training.evaluation`: the hook that ends an evaluation."""

from __future__ import annotations

from flowstone.contrib.training.evaluation import StopAfterNEvalsHook

__all__ = ["_StopAfterNEvalsHook"]

_StopAfterNEvalsHook = StopAfterNEvalsHook
