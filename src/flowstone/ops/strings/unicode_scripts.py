"""The script that a character belongs to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.strings.elementwise_strings import same_shape
from flowstone.ops.strings.unicode_script_runs import RUNS

unicode_script_op = op("UnicodeScript", "input: int32 -> output: int32", by_element=True)
unicode_script_op.infer(same_shape)
unicode_script_op.no_gradient()


@cache
def scripts() -> np.ndarray[Any, Any]:
    """The number of the script of every code point: uint8."""
    runs = [run.split(".") for run in RUNS.split()]
    numbers, lengths = [int(script, 16) for _, script in runs], [int(length, 16) for length, _ in runs]
    return np.repeat(np.array(numbers, np.uint8), lengths)


@unicode_script_op.kernel(CPU)  # the table is in host memory
def _(node: Node, env: Environment) -> Callable[[torch.Tensor], torch.Tensor]:
    table = torch.from_numpy(scripts()).to(torch.int32)

    def look_up(points: torch.Tensor) -> torch.Tensor:
        found = table[points.clamp(0, len(table) - 1).to(torch.int64)]
        return torch.where((points >= 0) & (points < len(table)), found, -1)

    return look_up


@dispatched("unary")
def unicode_script(input: Any, name: str | None = None) -> Tensor:
    """The script of each code point (int32) as ICU numbers them: 25 is Latin; -1 where there is no such code
    point.
    """
    return unicode_script_op(input, name=name)
