"""What `tf.contrib.learn` calls kinds of problems."""

from __future__ import annotations

from flowstone.contrib.learn.constants import ProblemType

__all__ = ["COLLECTION_DEF_KEY_FOR_INPUT_FEATURE_KEYS", "ProblemType"]

COLLECTION_DEF_KEY_FOR_INPUT_FEATURE_KEYS = "input_feature_keys"
