"""Kernels of clusters: functions that work at once by ATen, and by machine code from the time it is compiled.

``kernel_of(cluster, otherwise)`` gives a `NativeKernel`, which may be called. It calls `otherwise`, a
function of Python that computes the cluster by ATen's operations, until a plan has used it a second time and
a thread of its own has compiled the code. Then the built-in function itself is put into the globals of the
generated code (`NativeKernel.replace_in`), so that no step asks which of the two it is. Equal clusters are
compiled once a process. Arguments whose rows lie apart in memory, as pieces of a split do, have other code
compiled when they first come; those of other layouts are copied. ``FLOWSTONE_NATIVE=2`` compiles at plan
time, 0 never.
"""

from __future__ import annotations

import queue
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework import flags, machine
from flowstone.native import compiler, host, layouts
from flowstone.native.clusters import Array, Cluster
from flowstone.native.entry_points import builtin, entry_code
from flowstone.native.schedules import schedule_of
from flowstone.native.team_code import loop_code, within_code

__all__ = ["NativeKernel", "is_on", "kernel_of", "overwritable", "source_of", "wait_until_compiled"]

_MOST_LAYOUTS = 8  # of arguments that code is compiled for


def is_on() -> bool:
    """Whether clusters are compiled in this process."""
    return flags.NATIVE > 0 and not host.reason()


class NativeKernel:
    """A function of the cluster's inputs, and what it becomes."""

    def __init__(self, cluster: Cluster, otherwise: Callable[..., Any], overwritten: int | None) -> None:
        self.cluster, self.otherwise, self.overwritten = cluster, otherwise, overwritten
        self.__name__ = "native"
        self._current = otherwise
        self._places: list[tuple[dict[str, Any], str]] = []
        self._calls = self._misfits = 0
        self._is_waiting = False  # for code that is for other layouts
        self._lock = threading.Lock()

    @property
    def is_compiled(self) -> bool:
        """Whether it runs machine code."""
        return self._current is not self.otherwise

    def __call__(self, *inputs: Any) -> Any:
        """The tuple of outputs."""
        self._calls += 1
        if self._calls == 2:
            _compile_later(self)
        return self._current(*inputs)

    def replace_in(self, names: dict[str, Any], name: str) -> None:
        """Has the machine code stand for itself under this name, from when it is there."""
        with self._lock:
            self._places.append((names, name))
            if self.is_compiled:
                names[name] = self._current

    def code(self) -> int:
        """The address of its machine code, which is compiled now if it was not."""
        cluster = self.cluster
        overwritten = self.overwritten if self.overwritten in overwritable(cluster) else None
        return _module_of(cluster).address(_entry_name(overwritten))

    def compile(self) -> None:
        """Compiles the cluster now."""
        compiled = builtin("native", self.code(), self._misfit)
        with self._lock:
            before, self._current, self._is_waiting = self._current, compiled, False
            for names, place in self._places:
                if names.get(place) in (self, before):
                    names[place] = compiled

    def _misfit(self, *inputs: Any) -> Any:
        """What the machine code calls for arguments that it is not for."""
        other = None
        if not self._is_waiting:  # what comes until the code is there says nothing about it
            self._misfits += 1
            other = self._laid_out(inputs) if self._misfits <= _MOST_LAYOUTS else None
        if other is not None:
            self.cluster = other
            if flags.NATIVE > 1:
                self.compile()
                return self._current(*inputs)
            self._is_waiting = True
            _compile_later(self)
        copies = self._copied(inputs)
        return self.otherwise(*inputs) if copies is None else self._current(*copies)

    def _laid_out(self, inputs: Sequence[Any]) -> Any:
        """What takes arguments that are laid out as these; None if there is nothing."""
        return layouts.pitched_for(self.cluster, inputs) if isinstance(self.cluster, Cluster) else None

    def _copied(self, inputs: Sequence[Any]) -> list[Any] | None:
        """Copies of arguments that the code is for; None if copies would not help."""
        return layouts.copied(self.cluster, inputs) if isinstance(self.cluster, Cluster) else None


def kernel_of(
    cluster: Cluster, otherwise: Callable[..., Any], overwritten: int | None = None
) -> NativeKernel:
    """A function of Python that computes the cluster; `overwritten`: the input whose memory the first output
    is left in, one of `overwritable`.
    """
    kernel = NativeKernel(cluster, otherwise, overwritten)
    if flags.NATIVE > 1:
        kernel.compile()
    return kernel


def overwritable(cluster: Cluster) -> list[int]:
    """The inputs whose memory the first output may take: no pass reads them after it is stored."""
    first = cluster.given()[0]
    found = [i for i, array in enumerate(cluster.inputs) if array == Array(first.dtype, cluster.dims)]
    if first.transposed or first.dims != cluster.dims or not found:
        return []
    schedule = schedule_of(cluster)
    stored = schedule.stored_in(0)
    return [i for i in found if schedule.last_read(i) <= stored]


# ---- compilation

_modules: dict[Cluster, compiler.Module] = {}
_waiting: queue.Queue[NativeKernel] = queue.Queue()
_thread_lock = threading.Lock()
_threads: list[threading.Thread] = []


def _entry_name(overwritten: int | None) -> str:
    return "new" if overwritten is None else f"over{overwritten}"


def source_of(cluster: Cluster) -> str:
    """LLVM's text of the cluster's functions: ``new``, and ``over0`` … that overwrite an input."""
    declarations: dict[str, str] = {}
    profile = machine.current().profile
    outputs, checks = cluster.given(), bool(cluster.bounds)
    parts = [loop_code(cluster, profile.native_team, declarations)]
    if checks:
        parts.append(within_code(cluster))
    for overwritten in (None, *overwritable(cluster)):
        name, frees_lock = _entry_name(overwritten), cluster.work >= profile.native_unlocked
        parts.append(entry_code(name, cluster.inputs, outputs, overwritten, frees_lock, declarations, checks))
    return "\n".join([*declarations.values(), *parts])


def _module_of(cluster: Cluster) -> compiler.Module:
    def make() -> compiler.Module:
        names = [_entry_name(i) for i in (None, *overwritable(cluster))]
        return compiler.compiled(source_of(cluster), names)

    return compiler.kept(_modules, cluster, make)


def _compile_later(kernel: NativeKernel) -> None:
    _waiting.put(kernel)
    with _thread_lock:
        if not _threads:
            _threads.append(threading.Thread(target=_compile_all, name="flowstone-native", daemon=True))
            _threads[0].start()


def _compile_all() -> None:
    while True:
        kernel = _waiting.get()
        try:
            kernel.compile()
        except Exception:
            traceback.print_exc(file=sys.stderr)  # the step goes on by ATen
        finally:
            _waiting.task_done()


def wait_until_compiled() -> None:
    """Returns when all that has been asked for is compiled."""
    _waiting.join()
