"""A compiled addition from and to a Python number in JAX."""

import jax
import shapes  # noqa: F401 - makes `measuring` importable

from measuring import median_of_many, report

add = jax.jit(lambda x: x + 1.0)
report("add", median_of_many(lambda: float(add(2.0))) * 1e6, "us")
