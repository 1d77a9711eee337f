"""`tf.contrib.hooks` and `tf.contrib.checkpoint`: names that have become public ones."""

from __future__ import annotations

import flowstone as tf


def test_the_public_classes() -> None:
    assert tf.contrib.hooks.ProfilerHook is tf.train.ProfilerHook
    assert tf.contrib.checkpoint.CheckpointManager is tf.train.CheckpointManager
