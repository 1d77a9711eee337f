"""`tf.estimator`: models given by a function, which are trained, evaluated, used and exported."""

from __future__ import annotations
