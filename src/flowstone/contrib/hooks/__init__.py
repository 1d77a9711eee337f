"""`tf.contrib.hooks`: the hook that writes timelines, now `tf.train.ProfilerHook`."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(globals(), {"flowstone.training.hooks.summary_hooks": "ProfilerHook"})
