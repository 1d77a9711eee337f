"""Layers: functions with variables of their own; recurrent cells, and functions that run them over time.

`flowstone.layers` is also the public namespace.
"""

from flowstone.layers.base import InputSpec, Layer

__all__ = ["InputSpec", "Layer"]
