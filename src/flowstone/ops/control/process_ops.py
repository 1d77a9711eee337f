"""The process that runs a step: the time of its clock, its end, and what every process can say for sure."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor

__all__ = ["my_fact", "timestamp"]

timestamp_op = op("Timestamp", "-> ts: float64", stateful=True)
timestamp_op.infer(lambda node: ())
timestamp_op.not_differentiable()
timestamp_op.kernel(CPU)(  # the host's clock
    lambda node, env: lambda: torch.tensor(time.time(), dtype=torch.float64)
)

fact_op = op("Fact", "-> fact: string")
fact_op.infer(lambda node: None)
fact_op.no_gradient()


@fact_op.kernel(CPU)  # text is in host memory
def _(node: Node, env: Environment) -> Kernel:
    return lambda: np.array(b"0! == 1", dtype=object)


abort_op = op(
    "Abort",
    "->",
    "error_msg: string = '' ; exit_without_error: bool = false",
    stateful=True,
)
abort_op.infer(lambda node: None)
abort_op.no_gradient()


@abort_op.kernel(CPU)  # a process is the host's
def _(node: Node, env: Environment) -> Kernel:
    message, is_quiet = node.attributes["error_msg"], node.attributes["exit_without_error"]

    def end() -> Any:
        if is_quiet:
            print("Exiting the process: Abort", message, file=sys.stderr)
        else:
            print("Abort_op intentional failure;", message, file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        if is_quiet:
            os._exit(0)  # a step's thread cannot end the process otherwise
        os.abort()

    return end


def timestamp(name: str | None = None) -> Tensor:
    """The seconds since 1970 (float64, scalar) at the time when the step runs the node."""
    return timestamp_op(name=name)


def my_fact(name: str | None = None) -> Tensor:
    """A fact about factorials: a scalar string. It shows how an op of one's own is declared."""
    return fact_op(name=name)
