"""How loops of machine code end before their time: now and then they ask Python.

They ask whether a signal has come (a user's interrupt), and then ``step.check()``, which raises if the step
was cancelled, as by closing its session, or its time is over. The work done since the last question is
counted, so that a question costs nothing beside it.
"""

from __future__ import annotations

from flowstone.native.programs.open_sizes import typical
from flowstone.native.programs.programs import Loop, Statement
from flowstone.native.programs.writer import Writer

__all__ = ["allow_interruptions", "look_for_interruption"]

_UNTIL_A_LOOK = 20_000_000  # additions between two questions


def allow_interruptions(writer: Writer) -> None:
    """Writes, before the loops of a program, what they count with and where the step is."""
    writer.allocate("%ticks", "i64", align=8)
    place = writer.program.inputs + len(writer.program.outputs)
    writer.head += [
        " store i64 0, ptr %ticks",
        f" %step_place = getelementptr ptr, ptr %a, i64 {place}",
        " %step = load ptr, ptr %step_place",
    ]
    writer.declarations.update(_FUNCTIONS)


def look_for_interruption(writer: Writer, loop: Loop) -> None:
    """Writes, at the end of an iteration, the question and the way to ``interrupted``."""
    let, lines = writer.scalars.let, writer.lines
    work = sum(_work(writer, each) for each in (*loop.before, *loop.body)) + 1
    asks, on = writer.label(), writer.label()
    ticks = let("load i64, ptr %ticks")
    ticks = let(f"add i64 {ticks}, {work}")
    lines.append(f" store i64 {ticks}, ptr %ticks")
    late = let(f"icmp sgt i64 {ticks}, {_UNTIL_A_LOOK}")
    lines += [f" br i1 {late}, label %{asks}, label %{on}, !prof !0", f"{asks}:"]
    lines.append(" store i64 0, ptr %ticks")
    goes_on = let("call i1 @flowstone_goes_on(ptr %step)")
    lines += [f" br i1 {goes_on}, label %{on}, label %interrupted", f"{on}:"]


def _work(writer: Writer, each: Statement | Loop) -> int:
    if isinstance(each, Loop):
        return 1
    return max([typical(writer.values[x].size) for x in (*each.results, *each.operands)], default=1)


_FUNCTIONS = {
    "PyGILState_Ensure": "declare i32 @PyGILState_Ensure()",
    "PyGILState_Release": "declare void @PyGILState_Release(i32)",
    "PyErr_CheckSignals": "declare i32 @PyErr_CheckSignals()",
    "PyObject_CallMethod": "declare ptr @PyObject_CallMethod(ptr, ptr, ptr, ...)",
    "Py_DecRef": "declare void @Py_DecRef(ptr)",
    "flowstone_goes_on": """!0 = !{!"branch_weights", i32 1, i32 1000000}
@flowstone_check = internal constant [6 x i8] c"check\\00"
define internal i1 @flowstone_goes_on(ptr %step) noinline {
entry:
 %lock = call i32 @PyGILState_Ensure()
 %signals = call i32 @PyErr_CheckSignals()
 %none = icmp eq i32 %signals, 0
 br i1 %none, label %ask, label %ends
ask:
 %found = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %step, ptr @flowstone_check, ptr null)
 %passes = icmp ne ptr %found, null
 br i1 %passes, label %on, label %ends
on:
 call void @Py_DecRef(ptr %found)
 br label %ends
ends:
 %goes_on = phi i1 [false, %entry], [false, %ask], [true, %on]
 call void @PyGILState_Release(i32 %lock)
 ret i1 %goes_on
}""",
}
