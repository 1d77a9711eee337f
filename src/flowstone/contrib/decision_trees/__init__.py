"""`tf.contrib.decision_trees`: the messages of trees, `proto.generic_tree_model_pb2`."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(globals(), {})
