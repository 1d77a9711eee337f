"""Which exports are kept; see `tf.contrib.learn.utils.gc`."""

from __future__ import annotations

from flowstone.contrib.learn.utils.gc import (
    Path,
    get_paths,
    largest_export_versions,
    mod_export_version,
    negation,
    one_of_every_n_export_versions,
    union,
)

__all__ = [
    "Path",
    "get_paths",
    "largest_export_versions",
    "mod_export_version",
    "negation",
    "one_of_every_n_export_versions",
    "union",
]
