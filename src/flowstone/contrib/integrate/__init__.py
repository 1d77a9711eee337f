"""`tf.contrib.integrate`: solutions of ordinary differential equations."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(globals(), {"flowstone.contrib.integrate.odes": "odeint odeint_fixed"})
