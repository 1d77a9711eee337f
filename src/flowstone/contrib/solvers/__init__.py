"""`tf.contrib.solvers`: linear systems by Krylov's methods, of operators that are functions."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(globals(), {}, "lanczos least_squares linear_equations util")
