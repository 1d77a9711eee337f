"""The names of what a model predicts."""

from __future__ import annotations

from flowstone.contrib.learn.constants import PredictionKey

__all__ = ["PredictionKey"]
