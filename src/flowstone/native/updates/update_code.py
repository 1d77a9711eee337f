"""LLVM's text of an `Update`: the built-in function, and its loops over parameters and their elements.

The function reads where its arguments lie, by tables of what they must be; goes to the other function if one
is not that; computes what depends on numbers alone; and runs. All parameters' elements are one range, counted
in vectors, of which each thread of a team gets a part where the work pays for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.machine import machine
from flowstone.native.clusters.entry_points import DECLARATIONS, TYPE_CODES
from flowstone.native.clusters.machine_functions import MachineFunction
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import KINDS, SIZES, Emitter
from flowstone.native.codegen.parts import by_team, has_teams
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.updates.updates import Operand, Update

__all__ = [
    "MORE",
    "arguments_code",
    "numbers_code",
    "part_code",
    "shared_numbers",
    "tables_code",
    "team_code",
    "update_code",
    "update_kernel",
]

MORE = {
    "PyFloat_AsDouble": "declare double @PyFloat_AsDouble(ptr)",
    "flowstone_variable_type": "@flowstone_variable_type = external global i8",
    "flowstone_none": "@flowstone_none = external global i8",
}


def update_kernel(update: Update, otherwise: Callable[..., Any]) -> MachineFunction:
    """The function that does an update.

    It takes the variables of all parameters, or their tensors (all first ones, then all second ones …), then
    all given arrays in the same order, then the numbers, as tensors of one element or as floats of Python. It
    writes into the variables' tensors, and returns None. All must be contiguous.
    """
    return MachineFunction("update", update, lambda: update_code(update), otherwise)


def update_code(update: Update) -> str:
    """The text of the module, whose function is ``update``."""
    declarations = {**DECLARATIONS, **MORE}
    parts = [
        tables_code(update),
        part_code(update, declarations),
        team_code(update, declarations),
        arguments_code(update),
        _entry(update, declarations),
    ]
    return "\n".join([*declarations.values(), *parts])


def _lanes(update: Update) -> int:
    return host.lanes() if max(update.sizes) > 1 else 1


def _units(update: Update) -> list[int]:
    """How many vectors the elements before each parameter fill; the last: all of them."""
    lanes, result = _lanes(update), [0]
    for size in update.sizes:
        result.append(result[-1] + -(-size // lanes))
    return result


def tables_code(update: Update) -> str:
    """Constants: for each argument its size and its place among the addresses; for each parameter its size
    and its first unit."""
    rule, count = update.rule, len(update.sizes)
    arrays = rule.held + rule.given
    tables = {
        "sizes": list(update.sizes),
        "units": _units(update),
        "numels": [size for _ in range(arrays) for size in update.sizes],
        "places": [p * arrays + i for i in range(arrays) for p in range(count)],
    }
    return "\n".join(
        f"@{name} = internal constant [{len(numbers)} x i64] [{', '.join(f'i64 {n}' for n in numbers)}]"
        for name, numbers in tables.items()
    )


# ---- elements


def shared_numbers(update: Update) -> list[str]:
    """The numbers that the steps on elements take, by name."""
    known = update.rule.of_numbers()
    taken = {x: None for x in update.rule.results if isinstance(x, str) and update.rule.is_number(x, known)}
    for i, (_, operands) in enumerate(update.rule.steps):
        if not known[i]:
            for each in operands:
                if isinstance(each, str) and update.rule.is_number(each, known):
                    taken.setdefault(each)
    return list(taken)


def part_code(
    update: Update, declarations: dict[str, str], name: str = "part", numbers: Sequence[str] | None = None
) -> str:
    """``part(addresses of a parameter's arrays, numbers, first element, end)``; `numbers`: which there are,
    where they are more than the rule takes."""
    rule, lanes = update.rule, _lanes(update)
    kind, size = KINDS[update.dtype], SIZES[update.dtype]
    lines = [f"define internal void @{name}(ptr noalias %a, ptr noalias %s, i64 %c0, i64 %c1) {{", "entry:"]
    for i in range(rule.held + rule.given):
        lines += [f" %q{i} = getelementptr ptr, ptr %a, i64 {i}", f" %b{i} = load ptr, ptr %q{i}"]
    first = Emitter(lanes, declarations, "w")
    fixed: dict[Operand, str] = {}
    for i, number in enumerate(shared_numbers(update) if numbers is None else numbers):
        place = first.let(f"getelementptr {kind}, ptr %s, i64 {i}")
        value = first.let(f"load {kind}, ptr {place}, align {size}")
        fixed[number] = _everywhere(first, kind, value)
    lines += first.lines
    if lanes == 1:
        body = _body(update, Emitter(1, declarations, "v"), fixed, "%c0", "")
        return "\n".join([*lines, *body, " ret void", "}"])
    tail = Emitter(lanes, declarations, "t")
    left = tail.let("sub i64 %c1, %c")
    counts = _everywhere(tail, "i64", left)
    places = ", ".join(f"i64 {i}" for i in range(lanes))
    mask = tail.let(f"icmp slt {tail.vector('i64')} <{places}>, {counts}")
    return "\n".join([
        *lines,
        f" %full = sub i64 %c1, {lanes}",
        " br label %column",
        "column:",
        " %c = phi i64 [%c0, %entry], [%cn, %vector]",
        " %fits = icmp sle i64 %c, %full",
        " br i1 %fits, label %vector, label %rest",
        "vector:",
        *_body(update, Emitter(lanes, declarations, "v"), fixed, "%c", ""),
        f" %cn = add i64 %c, {lanes}",
        " br label %column",
        "rest:",
        " %more = icmp slt i64 %c, %c1",
        " br i1 %more, label %tail, label %over",
        "tail:",
        *_body(update, tail, fixed, "%c", mask),
        " br label %over",
        "over:",
        " ret void",
        "}",
    ])  # fmt: skip


def _everywhere(e: Emitter, kind: str, value: str) -> str:
    """A vector that has the value in all lanes."""
    if e.lanes == 1:
        return value
    vector = e.vector(kind)
    one = e.let(f"insertelement {vector} poison, {kind} {value}, i32 0")
    zeros = f"<{e.lanes} x i32> zeroinitializer"
    return e.let(f"shufflevector {vector} {one}, {vector} poison, {zeros}")


def _body(update: Update, e: Emitter, fixed: dict[Operand, str], column: str, mask: str) -> list[str]:
    """The steps on the vector that begins at this element."""
    rule, known = update.rule, update.rule.of_numbers()
    names = [f"h{i}" for i in range(rule.held)] + [f"x{i}" for i in range(rule.given)]
    values = dict(fixed)
    places = []
    for i, name in enumerate(names):
        places.append(e.let(f"getelementptr {KINDS[update.dtype]}, ptr %b{i}, i64 {column}"))
        values[name] = _load(e, update.dtype, places[i], mask)
    for i, (name, operands) in enumerate(rule.steps):
        if not known[i]:
            values[f"t{i}"] = _step(e, update.dtype, name, operands, values)
    for place, result in zip(places, rule.results):
        _store(e, update.dtype, place, values[result], mask)
    return e.lines


def _step(e: Emitter, dtype: str, name: str, operands: Sequence[Operand], values: dict[Operand, str]) -> str:
    words = [values[each] if isinstance(each, str) else e.constant(dtype, each) for each in operands]
    return ELEMENTS[name].emit(e, dtype, words, {})


def _load(e: Emitter, dtype: str, place: str, mask: str) -> str:
    kind, vector = KINDS[dtype], e.vector(KINDS[dtype])
    if not mask:
        return e.let(f"load {vector}, ptr {place}, align {SIZES[dtype]}")
    name = f"llvm.masked.load.v{e.lanes}{'f32' if kind == 'float' else 'f64'}.p0"
    e.declarations[name] = f"declare {vector} @{name}(ptr, {e.vector('i1')}, {vector})"
    where = f"ptr align {SIZES[dtype]} {place}"
    return e.let(f"call {vector} @{name}({where}, {e.vector('i1')} {mask}, {vector} zeroinitializer)")


def _store(e: Emitter, dtype: str, place: str, value: str, mask: str) -> None:
    kind, vector = KINDS[dtype], e.vector(KINDS[dtype])
    if not mask:
        e.do(f"store {vector} {value}, ptr {place}, align {SIZES[dtype]}")
        return
    name = f"llvm.masked.store.v{e.lanes}{'f32' if kind == 'float' else 'f64'}.p0"
    e.declarations[name] = f"declare void @{name}({vector}, ptr, {e.vector('i1')})"
    e.do(f"call void @{name}({vector} {value}, ptr align {SIZES[dtype]} {place}, {e.vector('i1')} {mask})")


# ---- parameters and threads


def team_code(update: Update, declarations: dict[str, str], part: str = "part") -> str:
    """``run(addresses, and that of the numbers)``: all parameters by ``part``, on a team where that pays."""
    has_team = update.work >= machine.current().profile.update_team and has_teams()
    return f"{_range(update, part)}\n{_run(update, declarations if has_team else None)}"


def _range(update: Update, part: str) -> str:
    """``range(addresses, first unit, end)``: a part of what all parameters have."""
    count, lanes = len(update.sizes), _lanes(update)
    arrays = update.rule.held + update.rule.given
    return f"""define internal void @range(ptr %a, i64 %u0, i64 %u1) {{
entry:
 %sp = getelementptr ptr, ptr %a, i64 {arrays * count}
 %s = load ptr, ptr %sp
 br label %head
head:
 %p = phi i64 [0, %entry], [%pn, %next]
 %inside = icmp slt i64 %p, {count}
 br i1 %inside, label %look, label %done
look:
 %pn = add i64 %p, 1
 %fp = getelementptr i64, ptr @units, i64 %p
 %f = load i64, ptr %fp
 %lp = getelementptr i64, ptr @units, i64 %pn
 %l = load i64, ptr %lp
 %m0 = icmp sgt i64 %u0, %f
 %x0 = select i1 %m0, i64 %u0, i64 %f
 %m1 = icmp slt i64 %u1, %l
 %x1 = select i1 %m1, i64 %u1, i64 %l
 %any = icmp slt i64 %x0, %x1
 br i1 %any, label %work, label %next
work:
 %y0 = sub i64 %x0, %f
 %y1 = sub i64 %x1, %f
 %c0 = mul i64 %y0, {lanes}
 %c1 = mul i64 %y1, {lanes}
 %np = getelementptr i64, ptr @sizes, i64 %p
 %n = load i64, ptr %np
 %m2 = icmp slt i64 %c1, %n
 %c2 = select i1 %m2, i64 %c1, i64 %n
 %o = mul i64 %p, {arrays}
 %b = getelementptr ptr, ptr %a, i64 %o
 call void @{part}(ptr %b, ptr %s, i64 %c0, i64 %c2)
 br label %next
next:
 br label %head
done:
 ret void
}}"""


def _run(update: Update, declarations: dict[str, str] | None) -> str:
    """``run(addresses)``: all of it, on a team if there are its declarations."""
    total = _units(update)[-1]
    if declarations is None:
        call = f" call void @range(ptr %a, i64 0, i64 {total})"
        return f"define internal void @run(ptr %a) {{\n{call}\n ret void\n}}"
    return f"""define internal void @share(ptr %a, i64 %t, i64 %n) {{
 %t1 = add i64 %t, 1
 %m0 = mul i64 %t, {total}
 %u0 = udiv i64 %m0, %n
 %m1 = mul i64 %t1, {total}
 %u1 = udiv i64 %m1, %n
 call void @range(ptr %a, i64 %u0, i64 %u1)
 ret void
}}
define internal void @run(ptr %a) {{
 call void @{by_team("share", declarations)}(ptr %a, i32 0)
 ret void
}}"""


# ---- the built-in


def arguments_code(update: Update) -> str:
    """``arguments(args, addresses)``: finds the arrays; whether all are what the code is for."""
    rule, count = update.rule, len(update.sizes)
    arrays = (rule.held + rule.given) * count
    return f"""define internal i1 @arguments(ptr %args, ptr %a) {{
entry:
 %long = alloca i64
 %short = alloca i32
 %flag = alloca i8
 br label %head
head:
 %i = phi i64 [0, %entry], [%in, %good]
 %inside = icmp slt i64 %i, {arrays}
 br i1 %inside, label %look, label %done
look:
 %in = add i64 %i, 1
 %p = getelementptr ptr, ptr %args, i64 %i
 %o = load ptr, ptr %p
 %oyp = getelementptr i8, ptr %o, i64 8
 %oy = load ptr, ptr %oyp
 %is_held = icmp eq ptr %oy, @flowstone_variable_type
 br i1 %is_held, label %slot, label %object
slot:
 %vp = getelementptr i8, ptr %o, i64 {host.variable_offset()}
 %v = load ptr, ptr %vp
 %unset = icmp eq ptr %v, null
 br i1 %unset, label %bad, label %object
object:
 %x = phi ptr [%o, %look], [%v, %slot]
 %yp = getelementptr i8, ptr %x, i64 8
 %y = load ptr, ptr %yp
 %ist = icmp eq ptr %y, @flowstone_tensor_type
 br i1 %ist, label %tensor, label %bad
tensor:
 %w = getelementptr i8, ptr %x, i64 {host.HANDLE_OFFSET}
 %e0 = call i32 @aoti_torch_get_numel(ptr %w, ptr %long)
 %n = load i64, ptr %long
 %np = getelementptr i64, ptr @numels, i64 %i
 %nw = load i64, ptr %np
 %nq = icmp eq i64 %n, %nw
 %e1 = call i32 @aoti_torch_get_dtype(ptr %w, ptr %short)
 %d = load i32, ptr %short
 %dq = icmp eq i32 %d, {TYPE_CODES[update.dtype]}
 %e2 = call i32 @aoti_torch_is_contiguous(ptr %w, ptr %flag)
 %c = load i8, ptr %flag
 %cq = icmp eq i8 %c, 1
 %q0 = and i1 %nq, %dq
 %q = and i1 %q0, %cq
 br i1 %q, label %good, label %bad
good:
 %pp = getelementptr i64, ptr @places, i64 %i
 %pl = load i64, ptr %pp
 %ap = getelementptr ptr, ptr %a, i64 %pl
 %e3 = call i32 @aoti_torch_get_data_ptr(ptr %w, ptr %ap)
 br label %head
bad:
 ret i1 false
done:
 ret i1 true
}}"""


def _entry(update: Update, declarations: dict[str, str]) -> str:
    rule, kind = update.rule, KINDS[update.dtype]
    arrays, shared = (rule.held + rule.given) * len(update.sizes), shared_numbers(update)
    frees = update.work >= machine.current().profile.native_unlocked
    return "\n".join([
        "define ptr @update(ptr %self, ptr %args, i64 %n) {",
        "entry:",
        f" %a = alloca [{arrays + 1} x ptr]",
        f" %s = alloca [{max(1, len(shared))} x {kind}]",
        " %place = alloca ptr",
        " %long = alloca i64",
        " %short = alloca i32",
        f" %sp = getelementptr ptr, ptr %a, i64 {arrays}",
        " store ptr %s, ptr %sp",
        " %found = call i1 @arguments(ptr %args, ptr %a)",
        " br i1 %found, label %go, label %other",
        "go:",
        *numbers_code(update, declarations, arrays),
        *([" %state = call ptr @PyEval_SaveThread()"] if frees else []),
        " call void @run(ptr %a)",
        *([" call void @PyEval_RestoreThread(ptr %state)"] if frees else []),
        " call void @Py_IncRef(ptr @flowstone_none)",
        " ret ptr @flowstone_none",
        "other:",
        " %fallback = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %n, ptr null)",
        " ret ptr %fallback",
        "}",
    ])  # fmt: skip


def numbers_code(update: Update, declarations: dict[str, str], first: int) -> list[str]:
    """Computes what depends on numbers alone, into ``%s``; `first`: the argument that is the first number."""
    rule, kind, size = update.rule, KINDS[update.dtype], SIZES[update.dtype]
    e = Emitter(1, declarations, "v")
    values: dict[Operand, str] = {}
    for i in range(rule.numbers):
        values[f"n{i}"] = _number(e, update, i, first + i)
    known = rule.of_numbers()
    for i, (name, operands) in enumerate(rule.steps):
        if known[i]:
            values[f"t{i}"] = _step(e, "float64", name, operands, values)
    for i, each in enumerate(shared_numbers(update)):
        place = e.let(f"getelementptr {kind}, ptr %s, i64 {i}")
        value = e.convert(values[each], "float64", update.dtype)
        e.do(f"store {kind} {value}, ptr {place}, align {size}")
    return e.lines


def _number(e: Emitter, update: Update, i: int, argument: int) -> str:
    """The value of number i in float64."""
    place = e.let(f"getelementptr ptr, ptr %args, i64 {argument}")
    found = e.let(f"load ptr, ptr {place}")
    if update.floats[i]:
        return e.let(f"call double @PyFloat_AsDouble(ptr {found})")
    type_place = e.let(f"getelementptr i8, ptr {found}, i64 8")
    its_type = e.let(f"load ptr, ptr {type_place}")
    _unless(e, e.let(f"icmp eq ptr {its_type}, @flowstone_tensor_type"), f"t{i}")
    handle = e.let(f"getelementptr i8, ptr {found}, i64 {host.HANDLE_OFFSET}")
    e.let(f"call i32 @aoti_torch_get_numel(ptr {handle}, ptr %long)")
    _unless(e, e.let(f"icmp eq i64 {e.let('load i64, ptr %long')}, 1"), f"n{i}")
    e.let(f"call i32 @aoti_torch_get_dtype(ptr {handle}, ptr %short)")
    code = TYPE_CODES[update.dtype]
    _unless(e, e.let(f"icmp eq i32 {e.let('load i32, ptr %short')}, {code}"), f"d{i}")
    e.let(f"call i32 @aoti_torch_get_data_ptr(ptr {handle}, ptr %place)")
    address = e.let("load ptr, ptr %place")
    value = e.let(f"load {KINDS[update.dtype]}, ptr {address}, align {SIZES[update.dtype]}")
    return e.convert(value, update.dtype, "float64")


def _unless(e: Emitter, condition: str, label: str) -> None:
    """Goes on if the condition holds; else the other function does the work."""
    e.lines += [f" br i1 {condition}, label %go_{label}, label %other", f"go_{label}:"]
