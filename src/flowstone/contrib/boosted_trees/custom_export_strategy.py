"""`tf.contrib.boosted_trees.estimator_batch.custom_export_strategy`: what is not here, and what to use."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["convert_to_universal_format", "make_custom_export_strategy"]

_REFUSAL = (
    "flowstone does not write boosted trees of tf.contrib as generic trees: use export_savedmodel, or"
    " tf.estimator.BoostedTreesClassifier"
)


def make_custom_export_strategy(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError(_REFUSAL)


def convert_to_universal_format(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError(_REFUSAL)
