"""Kernels of clusters: functions that compute by machine code, and at first perhaps by ATen.

``kernel_of(cluster, otherwise)`` gives a `NativeKernel`, which may be called. Its first call loads its
machine code from the cache on disk, or makes it. Where a first run shall not wait for that, the plan calls
`begin_by_aten`: then the first calls are calls of `otherwise`, a function of Python that computes the cluster
by ATen's operations (within a few units in the last place of the code's results): as many as take about as
long as making code, 30 at most. So what computes depends on the program and on how often the kernel was
called, never on time.

Code that the first call needs is begun on threads when a plan is made (`prepare`), other code from the second
call on, that of all kernels of a plan at once where it is needed then (`begin_together`). What is not there
when it is needed is made quickly (`compiler.py`), but for kernels that had calls by ATen and are much work,
whose best code is waited for; better code gives the same results whenever it comes (`making.py`). The best
code is put, as a built-in function, into the globals of the generated code (`NativeKernel.replace_in`), so
that no step asks what is to be called. Equal clusters are compiled once a process.

Arguments that are not contiguous, as pieces of a split and transposed matrices, have other code made when
they first come; what code cannot walk well is copied. ``FLOWSTONE_NATIVE=2`` compiles at plan time, 0 never.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import traceback
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.clusters import layouts
from flowstone.native.clusters.clusters import Array, Cluster
from flowstone.native.clusters.entry_points import builtin, entry_code, overwriting
from flowstone.native.clusters.schedules import schedule_of
from flowstone.native.clusters.team_code import loop_code, within_code
from flowstone.native.codegen import compiler, host, making
from flowstone.native.codegen.loaded_modules import LoadedModules

__all__ = ["Code", "NativeKernel", "begin_together", "is_on", "kernel_of", "overwritable", "source_of"]

_MOST_LAYOUTS = 8  # of arguments that code is compiled for
_ATEN_CALLS = 30  # at most, before code is waited for, where a plan's steps take long
_ATEN_WORK = 100  # how many calls of much work are made by ATen
_NEW = "new"  # the function whose results are all new


def is_on() -> bool:
    """Whether clusters are compiled in this process."""
    return flags.NATIVE > 0 and not host.reason()


class Code(NamedTuple):
    """What is compiled: the function `name` of the functions `names` of a text, of which the `key` is all
    that it depends on; see `compiler.compiled`. It calls the functions that its `parts` are."""

    key: Hashable
    text: Callable[[], str]
    names: Sequence[str]
    name: str
    is_rough: bool = False
    parts: Callable[[], Sequence[Code]] = tuple
    runs_once: bool = False


class NativeKernel:
    """A function of the cluster's inputs, and what it becomes."""

    def __init__(self, cluster: Cluster, otherwise: Callable[..., Any], overwritten: int | None) -> None:
        self.cluster, self.otherwise, self.overwritten = cluster, otherwise, overwritten
        self.__name__ = "native"
        self._current = otherwise
        self._places: list[tuple[dict[str, Any], str]] = []
        self._calls = self._misfits = 0
        self._aten_calls = 0.0  # how many of the first calls are calls of `otherwise`
        self._begins_at = 0  # the call from which on code is made for the first one that needs it
        self._awaits_best = False  # no code is made quickly
        self._is_quick = False  # better code may come
        self._together: list[NativeKernel] = []  # kernels whose code is made from this one's first need on

    @property
    def is_compiled(self) -> bool:
        """Whether it runs machine code."""
        return self._current is not self.otherwise

    def __call__(self, *inputs: Any) -> Any:
        """The tuple of outputs."""
        self._calls += 1
        if self._calls > self._aten_calls:
            self._go_on()
        elif self._calls == self._begins_at:
            self._begin()
        return self._current(*inputs)

    def prepare(self) -> None:
        """Has the code of the first call made on a thread, unless that call is one of `otherwise`."""
        if flags.NATIVE == 1 and not self._aten_calls and not self.is_compiled:
            making.in_background(lambda: _module_of(self._code(), quickly=True))

    def begin_by_aten(self, calls: int = 0, turn: int = 0) -> None:
        """Has the first calls be calls of `otherwise`, if it is not compiled yet: at least so many, if these
        are not much slower. Half of them later its code is looked for; so many calls after that, since a step
        shall look for that of one kernel."""
        much = machine.current().profile.cluster_much
        fewest = min(_ATEN_CALLS, max(1, _ATEN_WORK * much // max(self.work, 1)))
        self._aten_calls = max(fewest, calls) if self.work < math.inf else fewest
        self._begins_at = max(2, int(min(self._aten_calls // 2 + turn, self._aten_calls)))
        self._awaits_best = self.is_much or self._aten_calls > fewest

    def _begin(self) -> None:
        """Loads the code, or has it made: for steps that come after some more."""
        code = self._code()
        text = code.text()
        if _kept(code, text) is None:
            code = code._replace(text=lambda: text)
            making.in_background(lambda: _module_of(code, quickly=not self._awaits_best))

    @property
    def begins_late(self) -> bool:
        """Whether nobody begins to make its code before a call needs it."""
        return self._begins_at > self._aten_calls > 0

    def begin_by_best(self) -> None:
        """Has the best code made soon, for which the first call waits."""
        if flags.NATIVE == 1 and not self.is_compiled:
            self._awaits_best = True
            making.later(self.make_better, self.work)

    @property
    def work(self) -> float:
        """About how many additions a call takes as long as."""
        return self.cluster.work

    @property
    def is_much(self) -> bool:
        """Whether it is so much that its best code is waited for."""
        return machine.current().profile.cluster_much <= self.work < math.inf

    def replace_in(self, names: dict[str, Any], name: str) -> None:
        """Has the machine code stand for itself under this name, once it is the best there is."""
        with _places_lock:
            self._places.append((names, name))
            if self.is_compiled and not self._is_quick:
                names[name] = self._current

    def _code(self) -> Code:
        """What it is compiled from."""
        cluster = self.cluster
        overwritten = self.overwritten if self.overwritten in overwritable(cluster) else None
        names = [_NEW, *map(overwriting, overwritable(cluster))]
        name = _NEW if overwritten is None else overwriting(overwritten)
        return Code(("cluster", cluster), lambda: source_of(cluster), names, name)

    def compile(self, quickly: bool = False) -> None:
        """Compiles the cluster now."""
        code = self._code()
        module = _module_of(code, quickly)
        function = builtin(self.__name__, module, code.name, self._other())
        with _places_lock:
            replaced = [self._current] if module.is_quick else [self, self._current]
            self._current, self._is_quick = function, module.is_quick
            for names, place in self._places:
                if names.get(place) in replaced:
                    names[place] = function

    def make_better(self) -> None:
        """Makes the best code, and takes it if it has code already."""
        _module_of(self._code(), quickly=False)
        if self.is_compiled:
            self.compile()

    def _go_on(self) -> None:
        """Makes sure of machine code, and at a later call of better code."""
        if not self.is_compiled:
            self._begin_together()
            try:
                self.compile(quickly=not self._awaits_best)
            except Exception:
                traceback.print_exc(file=sys.stderr)
                self._aten_calls = math.inf  # the step goes on by ATen
        elif self._is_quick:
            self._is_quick = False
            making.later(self.make_better, self.work)

    def _begin_together(self) -> None:
        """Has the code of all that this step needs as well made on threads. Texts are written here: threads
        that write several wait for the interpreter's lock."""
        needed, self._together[:] = list(self._together), []
        for each in needed:
            if not each.is_compiled:
                each._begin()

    def _other(self) -> Callable[..., Any]:
        """What the machine code calls for arguments that it is not for."""
        return self._misfit

    def _misfit(self, *inputs: Any) -> Any:
        self._misfits += 1
        other = self._laid_out(inputs) if self._misfits <= _MOST_LAYOUTS else self._of_copies()
        if other is not None:
            self.cluster = other
            self.compile(quickly=flags.NATIVE == 1)
            if self._is_quick:
                making.later(self.make_better, self.work)
            return self._current(*inputs)
        copies = self._copied(inputs)
        return self.otherwise(*inputs) if copies is None else self._current(*copies)

    def _laid_out(self, inputs: Sequence[Any]) -> Any:
        """What takes arguments that are laid out as these; None if there is nothing."""
        return layouts.laid_out_for(self.cluster, inputs) if isinstance(self.cluster, Cluster) else None

    def _of_copies(self) -> Any:
        """What takes copies of arguments; None if that is what there is."""
        plain = layouts.without_strides(self.cluster) if isinstance(self.cluster, Cluster) else self.cluster
        return None if plain == self.cluster else plain

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


def begin_together(kernels: Iterable[NativeKernel]) -> None:
    """Of kernels of a plan that begin late: has the first that needs its code begin that of all."""
    together = list(dict.fromkeys(each for each in kernels if each.begins_late))
    for each in together:
        each._together = together


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

_places_lock = threading.Lock()  # guards kernels' functions and the places where they stand
_modules = LoadedModules()
_locks = making.Locks()  # one of two threads that want the same module makes it


def source_of(cluster: Cluster) -> str:
    """LLVM's text of the cluster's functions: ``new``, and ``over0`` … that overwrite an input."""
    declarations: dict[str, str] = {}
    profile = machine.current().profile
    outputs, checks = cluster.given(), bool(cluster.bounds)
    parts = [loop_code(cluster, profile.native_team, declarations)]
    if checks:
        parts.append(within_code(cluster))
    frees_lock = cluster.work >= profile.native_unlocked
    arguments = cluster.inputs, outputs, overwritable(cluster), frees_lock, declarations, checks
    parts.append(entry_code(_NEW, *arguments, lead=cluster.lead))
    return "\n".join([*declarations.values(), *parts])


def _module_of(code: Code, quickly: bool) -> compiler.Module:
    found = _modules.found(code.key, quickly)
    if found is None:
        with _locks.of((code.key, quickly)):
            found = _modules.found(code.key, quickly)
            if found is None:
                parts = {part.name: _module_of(part, quickly) for part in code.parts()}
                more = quickly, parts, code.runs_once
                made = compiler.compiled(code.text(), code.names, code.is_rough, *more)
                found = _modules.kept(code.key, made)
    return found


def _kept(code: Code, text: str) -> compiler.Module | None:
    """The best code, with its parts', where none of it must be made."""
    found = _modules.found(code.key, False)
    if found is None:
        parts: dict[str, compiler.Module] = {}
        for part in code.parts():
            module = _kept(part, part.text())
            if module is None:
                return None
            parts[part.name] = module
        found = compiler.kept(text, code.names, code.is_rough, parts)
        if found is not None:
            found = _modules.kept(code.key, found)
    return found


def _begin_anew() -> None:
    """In a child, where nobody holds what others may have held."""
    global _places_lock
    _places_lock = threading.Lock()
    _modules.open()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
