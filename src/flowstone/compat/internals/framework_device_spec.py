"""`tensorflow.python.framework.device_spec` of TensorFlow 1.15: the class behind `tf.DeviceSpec`."""

from __future__ import annotations

from flowstone import DeviceSpec

__all__ = ["DeviceSpecV1"]

DeviceSpecV1 = DeviceSpec
