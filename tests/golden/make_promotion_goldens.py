"""The types that operators of NumPy 1 give, for tests/compat/older_python/test_promotion.py.

    python tests/golden/make_promotion_goldens.py     # with NumPy below 2, such as TensorFlow 1.15's

Writes tests/golden/promotion.json.
"""

from __future__ import annotations

import json
import operator
import warnings
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).parent / "promotion.json"
OPERATORS = ("add", "sub", "mul", "truediv", "iadd", "imul")
TYPES = ("bool", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64")
NUMBERS = (True, 3, -1, 300, 70000, 2.5, 1j)


def operands() -> dict[str, Any]:
    """Arrays, arrays without axes, scalars and numbers of Python, by what makes them."""
    found: dict[str, Any] = {}
    for name in TYPES:
        kind = np.dtype(name).type
        found[f"array {name}"] = np.array([1, 2], name)
        found[f"zero {name}"] = np.array(3, name)
        found[f"scalar {name}"] = kind(3)
    found.update({"scalar 300": np.int64(300), "scalar -1": np.int64(-1), "scalar 2.5": np.float64(2.5)})
    found.update({f"number {number}": number for number in NUMBERS})
    return found


def result(name: str, x: Any, y: Any) -> str:
    """The type of an operator's result, or "error"."""
    try:
        found = getattr(operator, name)(x.copy() if isinstance(x, np.ndarray) else x, y)
    except Exception:
        return "error"
    return found.dtype.name if isinstance(found, (np.ndarray, np.generic)) else type(found).__name__


def is_of_numpy_1_alone(name: str, left: str, right: str) -> bool:
    """Cases that stay as in NumPy 2: quotients of two scalars of 8 and 16 bits."""
    small = [f"{form} {kind}" for form in ("scalar", "zero") for kind in ("uint8", "int16")]
    return name == "truediv" and left in small and right in small


def results() -> dict[str, str]:
    """The types by operator and left operand, for the right operands in their order."""
    warnings.simplefilter("ignore")
    table = {}
    for name in OPERATORS:
        for left, x in operands().items():
            if name.startswith("i") and not left.startswith("array"):
                continue
            table[f"{name}: {left}"] = " ".join(
                "-" if is_of_numpy_1_alone(name, left, right) else result(name, x, y)
                for right, y in operands().items()
            )
    return table


if __name__ == "__main__":
    TARGET.write_text(json.dumps(results(), indent=0, sort_keys=True) + "\n")
