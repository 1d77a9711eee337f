"""Work in parts: functions that are called once for each part, by a team of threads or by the caller alone.

A function of parts takes an address, the part's number and how many parts there are, as many as threads.
`by_team` writes the function that has all parts done. Usually each thread of the team does one. As long as
somebody has asked to `work_alone`, because other work wants the cores (`runtime/process/team_load.py`,
`making.py`), the caller does one after the other: the same parts, so that no result depends on it. Without a
team there is one part.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable

from flowstone.native.codegen import host

__all__ = ["asked_to_work_alone", "by_team", "has_teams", "work_alone"]

_FUNCTIONS = {
    "GOMP_parallel": "declare void @GOMP_parallel(ptr, ptr, i32, i32)",
    **{
        name: f"declare i32 @{name}()"
        for name in ("omp_get_thread_num", "omp_get_num_threads", "omp_get_max_threads")
    },
}


def has_teams() -> bool:
    """Whether there are teams of threads."""
    return all(map(host.has, _FUNCTIONS))


def work_alone(who: Hashable, wanted: bool) -> None:
    """Has the callers of teams do all parts themselves, as long as anybody wants that."""
    with _lock:
        (_asked.add if wanted else _asked.discard)(who)
        host.ALONE.value = bool(_asked)


def asked_to_work_alone(who: Hashable) -> bool:
    """Whether this one wants that."""
    return who in _asked


def _forget() -> None:
    """In a child after a fork, where nobody is left who asked."""
    global _lock
    _lock = threading.Lock()
    _asked.clear()
    host.ALONE.value = 0


_lock = threading.Lock()
_asked: set[Hashable] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def by_team(name: str, declarations: dict[str, str]) -> str:
    """The name of a function ``(ptr, i32 threads)`` that has all parts of the function `name` done; of 0
    threads there are as many as the caller's regions have. Adds its text to the declarations."""
    own = f"{name}_by_team"
    if not has_teams():
        declarations[own] = _ONE_PART.replace("NAME", name)
        return own
    declarations.update(_FUNCTIONS)
    declarations["flowstone_alone"] = "@flowstone_alone = external global i64"
    declarations[own] = _PARTS.replace("NAME", name)
    return own


_ONE_PART = """define internal void @NAME_by_team(ptr %a, i32 %threads) nounwind {
 call void @NAME(ptr %a, i64 0, i64 1)
 ret void
}"""
_PARTS = """define internal void @NAME_in_team(ptr %a) noinline nounwind {
 %me32 = call i32 @omp_get_thread_num()
 %all32 = call i32 @omp_get_num_threads()
 %me = zext i32 %me32 to i64
 %all = zext i32 %all32 to i64
 call void @NAME(ptr %a, i64 %me, i64 %all)
 ret void
}
define internal void @NAME_by_team(ptr %a, i32 %threads) noinline nounwind {
entry:
 %alone = load volatile i64, ptr @flowstone_alone
 %is_alone = icmp ne i64 %alone, 0
 %is_one = icmp eq i32 %threads, 1
 %is_here = or i1 %is_alone, %is_one
 br i1 %is_here, label %counted, label %together
together:
 call void @GOMP_parallel(ptr @NAME_in_team, ptr %a, i32 %threads, i32 0)
 ret void
counted:
 %most = call i32 @omp_get_max_threads()
 %is_open = icmp eq i32 %threads, 0
 %all32 = select i1 %is_open, i32 %most, i32 %threads
 %all = zext i32 %all32 to i64
 br label %each
each:
 %part = phi i64 [0, %counted], [%next, %each]
 call void @NAME(ptr %a, i64 %part, i64 %all)
 %next = add i64 %part, 1
 %more = icmp slt i64 %next, %all
 br i1 %more, label %each, label %done
done:
 ret void
}"""
