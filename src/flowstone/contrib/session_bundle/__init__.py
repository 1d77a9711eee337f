"""`tf.contrib.session_bundle`: exports of models as TensorFlow Serving read them before SavedModels."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(globals(), {}, "constants exporter gc manifest_pb2 session_bundle")
