"""Rules that ATen computes are known by their structure, and others are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowstone.lowering.updates.known_rules import exact_share, known_rule
from flowstone.lowering.updates.update_programs import written

CONSTANTS = {
    "n0": np.float32(0.9), "n1": np.float32(0.1), "n2": np.float32(0.999), "n3": np.float32(0.001),
    "n4": np.float32(0.3), "n5": np.float32(1e-7), "n6": np.float32(0), "n7": np.float32(np.inf),
}  # fmt: skip
SQUARE = ("square", "x0")


def average(variable: str, kept: str, share: str, x: Any) -> Any:
    return ("add", ("mul", kept, variable), ("mul", share, x))


MEAN, SQUARES = average("h0", "n0", "n1", "x0"), average("h1", "n2", "n3", SQUARE)
CLIPPED = ("maximum", ("minimum", SQUARES, "n7"), "n6")


def adam(mean: Any, squares: Any, root: Any) -> dict[str, Any]:
    step = ("div", ("mul", "n4", mean), ("add", ("sqrt", root), "n5"))
    return {"h0": mean, "h1": squares, "h2": ("sub", "h2", step)}


def known(results: Any, constants: Any = CONSTANTS, complements: Any = ()) -> Any:
    return known_rule(written(results), constants, set(complements))


def test_adam_is_known_with_and_without_clipping() -> None:
    use = known(adam(MEAN, SQUARES, SQUARES))
    assert not use.is_clipped
    words = {"m": "h0", "v": "h1", "p": "h2", "g": "x0", "b": "n0", "c": "n1", "d": "n2", "f": "n3"}
    assert use.names == {**words, "r": "n4", "e": "n5"}
    assert known(adam(MEAN, SQUARES, CLIPPED)).is_clipped


def test_numbers_of_an_average_add_up() -> None:
    others = {name: value for name, value in CONSTANTS.items() if name not in ("n0", "n1")}
    assert known(adam(MEAN, SQUARES, SQUARES), others) is None
    assert known(adam(MEAN, SQUARES, SQUARES), others, [("n0", "n1")]) is not None
    assert known(adam(MEAN, SQUARES, SQUARES), {**CONSTANTS, "n1": np.float32(0.2)}) is None


def test_the_bounds_of_clipping_are_known_values() -> None:
    assert known(adam(MEAN, SQUARES, CLIPPED), {**CONSTANTS, "n6": np.float32(0.1)}) is None
    assert known(adam(MEAN, SQUARES, CLIPPED), {**CONSTANTS, "n7": np.float32(10)}) is None


@pytest.mark.parametrize(
    ("results", "is_known"),
    [
        ({"h0": ("add", SQUARE, "h0"), "h1": ("sub", "h1", ("div", ("mul", "n4", "x0"),
          ("add", "n5", ("sqrt", ("add", SQUARE, "h0")))))}, True),
        ({"h0": ("sub", ("mul", "n4", "h0"), ("mul", "n5", "x0")),
          "h1": ("add", ("sub", ("mul", "n4", "h0"), ("mul", "n5", "x0")), "h1")}, True),
        ({"h0": ("sub", ("mul", "n4", "h0"), ("mul", "n5", "x0")),
          "h1": ("sub", "h1", ("sub", ("mul", "n4", "h0"), ("mul", "n5", "x0")))}, False),
        ({"h0": ("add", ("mul", "n4", "h0"), "x0"),
          "h1": ("sub", "h1", ("mul", "n5", ("add", ("mul", "n4", "h0"), "x0")))}, True),
        ({"h0": ("sub", "h0", ("mul", "n4", "x0"))}, False),
    ],
)  # fmt: skip
def test_sums_and_momentum_are_known(results: Any, is_known: bool) -> None:
    assert (known(results) is not None) is is_known


@pytest.mark.parametrize(("kept", "share"), [(0.999, 0.001), (0.9, 0.1), (0.5, 0.5)])
def test_shares_are_exact_to_the_last_place(kept: float, share: float) -> None:
    kept, share = float(np.float32(kept)), float(np.float32(share))
    found = exact_share(kept, share)
    assert np.float32(found) == np.float32(kept) and np.float32(1 - found) == np.float32(share)
