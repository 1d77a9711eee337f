"""`tf.contrib.compiler`: what asked for XLA. Here every plan is compiled for its processor."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(globals(), {}, "jit xla")
