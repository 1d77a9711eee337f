"""Who the threads of a parallel region are: machine code that has them all arrive, and says their system ids.

``gather(ptr a)`` of an array of whole numbers: how many threads have arrived, how many rounds a thread waits
for the others at most, and, by their number in the team, the ids. No thread sleeps while it waits, so that
all are awake afterwards. The code is compiled on a thread when it is first asked for; until then, and where
there is no native tier or no team, `team_members` is None. It is made before all other code that waits.
"""

from __future__ import annotations

import ctypes
import math
import platform

from flowstone.native.codegen import compiler, host
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code

__all__ = ["MOST", "TeamMembers", "members_code", "team_members"]

MOST = 1024
"""Threads of a team that ids are asked of."""
_ROUNDS = 1 << 14  # about a millisecond
_WAIT = {"x86_64": ("llvm.x86.sse2.pause", ""), "aarch64": ("llvm.aarch64.hint", "i32 1")}


def members_code() -> str:
    """LLVM's text."""
    declarations = {
        "GOMP_parallel": "declare void @GOMP_parallel(ptr, ptr, i32, i32)",
        **{
            name: f"declare i32 @{name}()" for name in ("omp_get_thread_num", "omp_get_num_threads", "gettid")
        },
    }
    one = Code("arrive", ["ptr a"], 1, declarations)
    me, count, identity = (
        one.let(f"sext i32 {one.let(f'call i32 @{name}()')} to i64")
        for name in ("omp_get_thread_num", "omp_get_num_threads", "gettid")
    )
    with one.when(one.within(me, MOST)):
        one.set("i64", one.at("%a", one.add(me, 2), "i64"), identity)
    one.do("%counted = atomicrmw add ptr %a, i64 1 seq_cst")
    rounds = one.variable("i64", one.word("%a", 1))
    with one.repeat() as leave:
        leave(one.let(f"icmp sge i64 {one.let('load atomic i64, ptr %a seq_cst, align 8')}, {count}"))
        left = one.sub(one.get("i64", rounds), 1)
        one.set("i64", rounds, left)
        leave(one.let(f"icmp slt i64 {left}, 0"))
        if platform.machine() in _WAIT:
            name, argument = _WAIT[platform.machine()]
            declarations[name] = f"declare void @{name}({argument[:3]})"
            one.do(f"call void @{name}({argument})")
    all_of_them = Code("gather", ["ptr a"], 1, declarations, is_public=True)
    all_of_them.do("call void @GOMP_parallel(ptr @arrive, ptr %a, i32 0, i32 0)")
    return "\n".join([*declarations.values(), one.text(), all_of_them.text()])


class TeamMembers:
    """Asks for the ids of the threads of the caller's next parallel region, its own first."""

    def __init__(self) -> None:
        self._module = compiler.compiled(members_code(), ["gather"])
        self._gather = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self._module.address("gather"))

    def __call__(self) -> list[int]:
        """The ids; none of a team that is too large."""
        numbers = (ctypes.c_int64 * (MOST + 2))(0, _ROUNDS)
        self._gather(numbers)
        return list(numbers[2 : 2 + numbers[0]]) if numbers[0] <= MOST else []


def _made() -> TeamMembers | None:
    return TeamMembers() if host.has("GOMP_parallel") and host.has("gettid") else None


team_members = when_asked(_made, math.inf)
"""What asks, if it is there by now."""
