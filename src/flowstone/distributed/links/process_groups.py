"""The process groups of torch.distributed that exchange large values of collective operations.

Gloo's are for all members; values on GPUs go through the host. NCCL's are for members that ask for them
(``communication_hint="nccl"``) and have a GPU each: values go from GPU to GPU. NCCL knows no failures, so
`finish` asks it until the work is done, the other side has failed, or the patience is at an end.

>>> backend_for(["GPU-1", "GPU-2"]), backend_for(["GPU-1", "GPU-1"]), backend_for(["GPU-1", ""])
('nccl', 'gloo', 'gloo')
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed

from flowstone.framework import flags

__all__ = ["GLOO", "NCCL", "backend_for", "finish", "has_gloo", "has_nccl", "process_group"]

dist: Any = torch.distributed  # whose annotations lack much of what it has

GLOO, NCCL = "gloo", "nccl"
_PATIENCE = datetime.timedelta(seconds=300)
_POLL_S = 5e-5


def has_gloo() -> bool:
    """Whether torch can form process groups of Gloo."""
    return bool(dist.is_available() and dist.is_gloo_available())


def has_nccl() -> bool:
    """Whether torch can form process groups of NCCL."""
    return bool(dist.is_available() and dist.is_nccl_available())


def backend_for(gpus: Sequence[str]) -> str:
    """NCCL for members that have a GPU each, no two the same one, which NCCL refuses; else Gloo."""
    return NCCL if all(gpus) and len(set(gpus)) == len(gpus) else GLOO


def process_group(backend: str, store: Any, rank: int, size: int, host: str) -> Any:
    """The group of `size` members that find each other at the store; it waits for them. `host`: the address
    of this one."""
    if backend == NCCL:
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = _PATIENCE
        with flags.failed_nccl_raises():
            return dist.ProcessGroupNCCL(store, rank, size, options)
    options = dist.ProcessGroupGloo._Options()
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=host)]
    options._timeout = _PATIENCE
    return dist.ProcessGroupGloo(store, rank, size, options)


def finish(group: Any, backend: str, work: Any, is_over: Callable[[], bool]) -> None:
    """Returns when the work is done: of NCCL, also when the GPU has done it. TimeoutError, RuntimeError if it
    is not, or if it `is_over` before; then NCCL's group is of no more use."""
    if backend != NCCL:
        work.wait()
        return
    deadline = time.monotonic() + _PATIENCE.total_seconds()
    while not work.is_completed():
        if is_over() or time.monotonic() > deadline:
            group.abort()
            raise TimeoutError("a member did not come, or is gone")
        time.sleep(_POLL_S)
    work.wait()  # raises what went wrong; what runs on this stream from now on comes after it
