"""Tells tests about their machine and process (temporary directories, devices, builds), and runs tests."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
import unittest
from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.framework.process.program_flags import FLAGS
from flowstone.testing.benchmark import run_benchmarks

__all__ = [
    "disable_with_predicate",
    "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_gpu_available",
    "main",
    "test_src_dir_path",
]


@functools.cache
def get_temp_dir() -> str:
    """A temporary directory of this process, removed at its end."""
    path = tempfile.mkdtemp(prefix="flowstone_test_")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def test_src_dir_path(relative_path: str) -> str:
    """The absolute path of a file that is named relative to the running program's directory."""
    program = getattr(sys.modules["__main__"], "__file__", None)
    directory = os.path.dirname(os.path.abspath(program)) if program else os.getcwd()
    return os.path.join(directory, relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]  # its name begins like a test's


def is_built_with_cuda() -> bool:
    """Whether the kernels were built with CUDA."""
    return torch.version.cuda is not None


def is_built_with_rocm() -> bool:
    """Whether the kernels were built with ROCm."""
    return getattr(torch.version, "hip", None) is not None


def is_built_with_gpu_support() -> bool:
    """Whether the kernels were built for GPUs of any kind."""
    return is_built_with_cuda() or is_built_with_rocm()


def is_built_with_xla() -> bool:
    """Whether programs can be compiled by XLA: no."""
    return False


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Whether there is a GPU, of at least this compute capability ``(major, minor)`` if one is given."""
    if not torch.cuda.is_available() or (cuda_only and not is_built_with_cuda()):
        return False
    if min_cuda_compute_capability is None:
        return True
    capabilities = [torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())]
    return any(capability >= tuple(min_cuda_compute_capability) for capability in capabilities)


def gpu_device_name() -> str:
    """The name of the first GPU, "" if there is none."""
    return "/device:GPU:0" if is_gpu_available() else ""


def disable_with_predicate(pred: Callable[[], Any], skip_message: str) -> Callable[[Any], Any]:
    """A decorator that skips a test if `pred()` holds when it is run."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            if pred():
                self.skipTest(skip_message)
            return function(self, *args, **kwargs)

        return wrapped

    return decorate


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the tests of the running program, or with ``--benchmarks=pattern`` its benchmarks, and exits.

    The program's own flags are read first; the rest is `unittest`'s.
    """
    words = list(sys.argv if argv is None else argv)
    pattern = next((word.partition("=")[2] for word in words if word.startswith("--benchmarks=")), None)
    if pattern is not None:
        run_benchmarks(pattern)
        return
    unittest.main(argv=FLAGS(words, known_only=True))
