"""Which trees of an ensemble are left out while the next is grown, and what all weigh afterwards.

Algorithm: K. V. Rashmi, R. Gilad-Bachrach, "DART: Dropouts meet Multiple Additive Regression Trees" (2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.randomness.philox import State, words

__all__ = ["dropped_trees", "weights_after"]

_CPU = torch.device("cpu")
_HIGH = 0xFFFFF  # the bits of the first of two words that are a number of [0, 1) with the second


def dropped_trees(config: Any, seed: int, bias: bool, trees: int) -> list[int]:
    """The numbers of the trees that this seed leaves out; never the first, if that is the bias.

    InvalidArgumentError for probabilities that are none.
    """
    chances = config.dropout_probability, config.probability_of_skipping_dropout
    if not all(0 <= chance <= 1 for chance in chances):
        raise invalid(f"dropout_probability and probability_of_skipping_dropout are {chances}, not in [0, 1]")
    drawn = words(State(seed % (1 << 64), 0), 2 * trees + 2, _CPU).reshape(-1, 2)
    numbers = (((drawn[:, 0] & _HIGH) << 32 | drawn[:, 1]).double() / (1 << 52)).tolist()
    if chances[1]:
        if numbers[0] < chances[1]:
            return []
        numbers = numbers[1:]
    first = 1 if bias else 0
    below = np.asarray(numbers[: max(trees - first, 0)]) < chances[0]
    return [int(at) + first for at in np.flatnonzero(below)]


def weights_after(weights: Sequence[float], dropped: Sequence[int]) -> list[float]:
    """What the trees weigh once a tree was grown without the dropped ones; it is the last of them.

    The new tree and those that it was grown to replace share what these weighed.
    """
    found = np.asarray(weights, np.float32)
    places = list(dropped)
    count = np.float32(len(places))
    lost = np.float32(0)
    for place in places:
        lost += found[place]
    found[places] *= count / (count + 1)
    found[-1] = lost / (count + 1)
    return [float(weight) for weight in found]
