"""The environment variables that change how Flowstone works; this is the only file that reads the
environment.

========================== ==================================================================================
variable                   meaning
========================== ==================================================================================
``FLOWSTONE_DEBUG``        0 to 5, one ladder: 1 prints a line for each plan made, 2 the effect of each
                           rewriting pass, 3 the final graph, 4 the generated code, 5 every rewrite with its
                           reason
``FLOWSTONE_CHECK``        1 proves after every pass, and of generated code, that results stay; 2 also runs
                           each step node by node and compares the results
``FLOWSTONE_PASSES``       comma-separated names of rewriting passes, each with a leading ``-`` to switch it
                           off or, for those that are off by default (`OPTIONAL_PASSES`), ``+`` to switch it
                           on
``FLOWSTONE_TF32``         1 lets GPUs round the operands of float32 products and convolutions to TF32
                           (`runtime/process/precision.py`)
``FLOWSTONE_CUDA_GRAPHS``  1 records the kernels of a step on one GPU as a CUDA graph, where shapes are static
                           (`runtime/plans/cuda_graph.py`); a session's ``global_jit_level`` goes before it
``FLOWSTONE_NATIVE``       0 compiles no machine code, 1 (the default) compiles clusters of small operations
                           and loops on small arrays when they run, 2 when a step is planned (`native/`)
``FLOWSTONE_NATIVE_EXACT`` 1 has machine code compute exponential functions and logarithms by SLEEF, to one
                           unit in the last place, in about four times the time of its polynomials
``TF_DETERMINISTIC_OPS``   1 has every run compute in the same way: also first runs wait for machine code
                           (``tf.config.experimental.enable_op_determinism``)
``FLOWSTONE_TUNE_PROCESS`` 0 leaves the process's settings alone (`runtime/process/process.py`)
``FLOWSTONE_CLUSTER_…``    ``TOKEN``, ``SECRETS`` and ``NAME``: who may speak to the tasks of a cluster, and
                           how that is encrypted (`distributed/wire/cluster_security.py`); read when it is
                           needed
``FLOWSTONE_MACHINE``      the profile by which kernels are chosen: its name, or a file of ``flowstone
                           calibrate`` (`framework/machine/machine.py`)
========================== ==================================================================================
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator


def _integer(name: str, default: int = 0) -> int:
    text = os.environ.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the environment variable {name} must be a whole number, not {text!r}") from None


DEBUG: int = _integer("FLOWSTONE_DEBUG")
CHECK: int = _integer("FLOWSTONE_CHECK")
CUDA_GRAPHS: bool = _integer("FLOWSTONE_CUDA_GRAPHS") > 0
NATIVE: int = _integer("FLOWSTONE_NATIVE", 1)
NATIVE_EXACT: bool = _integer("FLOWSTONE_NATIVE_EXACT") > 0
DETERMINISTIC: bool = os.environ.get("TF_DETERMINISTIC_OPS", "").lower() in ("1", "true")
TF32: bool = _integer("FLOWSTONE_TF32") > 0
TUNE_PROCESS: bool = _integer("FLOWSTONE_TUNE_PROCESS", 1) > 0
MACHINE: str = os.environ.get("FLOWSTONE_MACHINE", "")
CACHE: str = os.environ.get("XDG_CACHE_HOME") or "~/.cache"  # where calibrations and machine code are kept
ALLOCATOR_IS_SET: bool = any(name.startswith("MALLOC_") for name in os.environ) or (
    "glibc.malloc." in os.environ.get("GLIBC_TUNABLES", "")
)  # by whoever started the process
ROUNDING_PASSES = frozenset({"multiply_in_bfloat16"})  # they trade exactness for time
OPTIONAL_PASSES = ROUNDING_PASSES | {
    "recompute_activations",
    "recompute_hinted",
    "swap_activations",
    "swap_hinted",
}  # which trade time for memory
_PASSES = os.environ.get("FLOWSTONE_PASSES", "").split(",")
DISABLED_PASSES: frozenset[str] = (
    OPTIONAL_PASSES - {word[1:] for word in _PASSES if word.startswith("+")}
) | frozenset(word[1:] for word in _PASSES if word.startswith("-"))


@contextlib.contextmanager
def without_machine_code() -> Iterator[None]:
    """Plans that are made within the context have ATen's kernels alone."""
    global NATIVE
    before, NATIVE = NATIVE, 0
    try:
        yield
    finally:
        NATIVE = before


# What says how the idle threads of a team wait, in the OpenMP runtimes that torch comes with.
_WAITING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME", "KMP_LIBRARY")


@contextlib.contextmanager
def short_spins() -> Iterator[None]:
    """Has OpenMP's idle threads spin 10,000 rounds before they sleep if torch is first imported within the
    context, instead of 300,000, which take the cores from whoever else wants them and gain nothing (measured
    in docs/design/008).

    The environment is as before afterwards. Does nothing if it says how threads wait, or with
    ``FLOWSTONE_TUNE_PROCESS=0``.
    """
    if not TUNE_PROCESS or "torch" in sys.modules or any(name in os.environ for name in _WAITING):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "10000"
    try:
        yield
    finally:
        os.environ.pop("GOMP_SPINCOUNT", None)


@contextlib.contextmanager
def failed_nccl_raises() -> Iterator[None]:
    """Has a group of NCCL that is made within the context leave the process alive when it fails."""
    name = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
    if name in os.environ:
        yield
        return
    os.environ[name] = "0"
    try:
        yield
    finally:
        os.environ.pop(name, None)


def task_configuration() -> str:
    """The text of ``TF_CONFIG`` now: the cluster, and which task of it this process is, as JSON."""
    return os.environ.get("TF_CONFIG", "")


def cluster_token() -> str | None:
    """The token that messages between tasks come with; None if the environment says nothing of it now."""
    return os.environ.get("FLOWSTONE_CLUSTER_TOKEN")


def cluster_secrets() -> str:
    """The folder of the cluster's secrets, as the environment says now; "" for none."""
    return os.environ.get("FLOWSTONE_CLUSTER_SECRETS", "")


def cluster_name() -> str:
    """The name that all tasks' certificates are for, as the environment says now; "" for their hosts'."""
    return os.environ.get("FLOWSTONE_CLUSTER_NAME", "")


def set_cluster_secrets(folder: str, name: str = "") -> None:
    """Has this process, and those that it starts from now on, use these secrets; "" leaves what is set."""
    if folder:
        os.environ["FLOWSTONE_CLUSTER_SECRETS"] = folder
    if name:
        os.environ["FLOWSTONE_CLUSTER_NAME"] = name


def threads_are_set() -> bool:
    """Whether whoever started the process has said how many threads kernels have."""
    return any(name in os.environ for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"))


def environment() -> dict[str, str]:
    """A copy of all variables now, for processes that are started and for what schedulers say in them."""
    return dict(os.environ)


def show_gpus(numbers: Iterable[int]) -> None:
    """Has only GPUs of these numbers be seen by what is started from now on: CUDA_VISIBLE_DEVICES."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, numbers))
