"""What later tests ask of the machine, and how their benchmarks run."""

from __future__ import annotations

import platform
from typing import Any

from flowstone.framework.types.tensor_proto import messages

__all__ = ["benchmark_config", "is_cpu_target_available", "with_eager_op_as_function"]

_OFF = 2  # RewriterConfig.Toggle
_MACHINES = {"x86": ("x86_64", "AMD64", "i386", "i686"), "arm": ("aarch64", "arm64"), "ppc": ("ppc64le",)}
_OTHER_NAMES = {"aarch64": "arm", "systemz": "s390"}


def benchmark_config() -> Any:
    """A ConfigProto for benchmarks: what a step computes for nobody is not dropped."""
    config = messages("config_pb2").ConfigProto()
    config.graph_options.rewrite_options.dependency_optimization = _OFF
    return config


def is_cpu_target_available(target: str) -> bool:
    """Whether this machine's processor is of a family: "x86", "arm" (or "aarch64"), "ppc", "systemz".

    AssertionError for other names.
    """
    family = _OTHER_NAMES.get(target, target)
    if family not in (*_MACHINES, "s390"):
        raise AssertionError(f"Unknown CPU target: {target}")
    return platform.machine() in _MACHINES.get(family, ("s390x",))


def with_eager_op_as_function(cls: Any = None, only_as_function: bool = False) -> Any:
    """Decorator of a test class, which it leaves as it is: there is no eager execution to vary."""
    return (lambda each: each) if cls is None else cls
