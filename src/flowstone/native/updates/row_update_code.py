"""LLVM's text of a `RowUpdate`: one step of an optimiser on the rows of variables that indices name.

    rows(variable, slots …, gradient rows, indices, numbers …)

does what an `Update` (`updates.py`) does to each of these rows. An index that repeats is applied once for
each time, in order, or (`summed`) once with the sum of its rows, in order, which a hash table of the indices
finds. Rows that are narrower than a vector, and do not repeat, are put together first and taken apart after;
so are all where the rows that no index names change, too (`rest`): between the two all rows do as those.
The indices may be a column of a matrix, and the gradient columns of a wider one. An index that is out of
range, and arguments that are not what the code is for, go to the other function before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.machine import machine
from flowstone.native.clusters.entry_points import DECLARATIONS, TYPE_CODES
from flowstone.native.clusters.machine_functions import MachineFunction
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.updates.row_sums_code import index_at, row_at, sums_code
from flowstone.native.updates.update_code import (
    MORE,
    arguments_code,
    numbers_code,
    part_code,
    shared_numbers,
    tables_code,
    team_code,
)
from flowstone.native.updates.updates import RowUpdate, Update

__all__ = ["row_update_code", "row_update_kernel"]

_AHEAD = 8  # rows that memory is asked for before they are updated
_FUNCTIONS = {
    "malloc": "declare ptr @malloc(i64)",
    "free": "declare void @free(ptr)",
    "llvm.memset.p0.i64": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "llvm.prefetch.p0": "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    "llvm.ctlz.i64": "declare i64 @llvm.ctlz.i64(i64, i1)",
}


def row_update_kernel(update: RowUpdate, otherwise: Callable[..., Any]) -> MachineFunction:
    """The function that does an update, writes into the variables' tensors and returns None."""
    return MachineFunction("rows", update, lambda: row_update_code(update), otherwise)


def row_update_code(update: RowUpdate) -> str:
    """The text of the module, whose function is ``rows``."""
    declarations = {**DECLARATIONS, **MORE, **_FUNCTIONS}
    together = _is_together(update)
    # A part is a row, or all elements of rows that are put together, which need vectors and tails either way.
    size = max(update.width, 2) if together else update.width
    part = Update(update.rule, update.dtype, (size,), update.floats)
    table = _table(update)
    parts = [
        tables_code(table),
        part_code(part, declarations),
        arguments_code(table),
        sums_code(update),
        _together(update) if together else _each(update),
        _apply(update),
        _entry(update, part, declarations),
    ]
    if update.rest is not None:
        parts.insert(1, part_code(table, declarations, "rest", shared_numbers(part)))
        parts.insert(2, team_code(table, declarations, "rest"))
    return "\n".join([*declarations.values(), *parts])


def _table(update: RowUpdate) -> Update:
    """What is done to all rows: the rest's rule, if there is one, or nothing."""
    rule = update.rest or update.rule._replace(given=0)
    return Update(rule, update.dtype, (update.rows * update.width,), update.floats)


def _is_together(update: RowUpdate) -> bool:
    """Whether rows are put together."""
    if update.rest is not None:
        return True
    return update.width < host.lanes() and (update.summed or not update.repeats)


def _each(update: RowUpdate) -> str:
    """``all(addresses, numbers, keys, gradients, count)``: row after row."""
    held = range(update.rule.held)
    bases = "\n".join(
        f" %bp{j} = getelementptr ptr, ptr %a, i64 {j}\n %b{j} = load ptr, ptr %bp{j}" for j in held
    )
    ahead = "\n".join(
        row_at(update, f"w{j}", f"%b{j}", "%kn")
        + f"\n call void @llvm.prefetch.p0(ptr %w{j}, i32 1, i32 3, i32 1)"
        for j in held
    )
    places = "\n".join(
        f"{row_at(update, f'r{j}', f'%b{j}', '%k')}\n %op{j} = getelementptr ptr, ptr %own, i64 {j}\n"
        f" store ptr %r{j}, ptr %op{j}"
        for j in held
    )
    return f"""define internal void @all(ptr %a, ptr %s, ptr %keys, ptr %g, i64 %gs, i64 %m, ptr %scratch) {{
entry:
 %own = alloca [{update.rule.held + 1} x ptr]
 %gp = getelementptr ptr, ptr %own, i64 {update.rule.held}
 %last = sub i64 %m, 1
{bases}
 br label %head
head:
 %i = phi i64 [0, %entry], [%in, %work]
 %more = icmp slt i64 %i, %m
 br i1 %more, label %work, label %done
work:
 %in = add i64 %i, 1
 %far = add i64 %i, {_AHEAD}
 %fits = icmp slt i64 %far, %last
 %fi = select i1 %fits, i64 %far, i64 %last
 %knp = getelementptr i64, ptr %keys, i64 %fi
 %kn = load i64, ptr %knp
{ahead}
 %kp = getelementptr i64, ptr %keys, i64 %i
 %k = load i64, ptr %kp
{places}
{row_at(update, "own_g", "%g", "%i", "%gs")}
 store ptr %own_g, ptr %gp
 call void @part(ptr %own, ptr %s, i64 0, i64 {update.width})
 br label %head
done:
 ret void
}}"""


def _together(update: RowUpdate) -> str:
    """The same for rows that are copied behind each other, updated at once and copied back."""
    held, kind, size = range(update.rule.held), KINDS[update.dtype], SIZES[update.dtype]
    is_narrow = update.width < host.lanes()
    lines = [f" %bytes = mul i64 %m, {update.width * size}"]
    for j in held:
        lines += [f" %bp{j} = getelementptr ptr, ptr %a, i64 {j}", f" %b{j} = load ptr, ptr %bp{j}"]
        lines += [f" %zo{j} = mul i64 %bytes, {j}", f" %z{j} = getelementptr i8, ptr %scratch, i64 %zo{j}"]
        lines += [f" %op{j} = getelementptr ptr, ptr %own, i64 {j}", f" store ptr %z{j}, ptr %op{j}"]

    def moves(loop: str, is_back: bool) -> str:
        text = []
        for j in held:
            text += [
                row_at(update, f"{loop}r{j}", f"%b{j}", f"%{loop}k"),
                row_at(update, f"{loop}c{j}", f"%z{j}", f"%{loop}i"),
            ]
            if not is_narrow:
                to, of = (f"%{loop}r{j}", f"%{loop}c{j}") if is_back else (f"%{loop}c{j}", f"%{loop}r{j}")
                count = f"i64 {update.width * size}, i1 false"
                text.append(f" call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, {count})")
            for x in range(update.width if is_narrow else 0):
                name = f"{loop}{j}x{x}"
                text += [f" %{name}p = getelementptr {kind}, ptr %{loop}r{j}, i64 {x}",
                         f" %{name}q = getelementptr {kind}, ptr %{loop}c{j}, i64 {x}"]  # fmt: skip
                source, target = ("q", "p") if is_back else ("p", "q")
                text += [f" %{name}v = load {kind}, ptr %{name}{source}, align {size}",
                         f" store {kind} %{name}v, ptr %{name}{target}, align {size}"]  # fmt: skip
        return f"""{loop}:
 %{loop}i = phi i64 [0, %{"entry" if not is_back else "update"}], [%{loop}n, %{loop}d]
 %{loop}m = icmp slt i64 %{loop}i, %m
 br i1 %{loop}m, label %{loop}d, label %{loop}x
{loop}d:
 %{loop}n = add i64 %{loop}i, 1
 %{loop}kp = getelementptr i64, ptr %keys, i64 %{loop}i
 %{loop}k = load i64, ptr %{loop}kp
{chr(10).join(text)}
 br label %{loop}
{loop}x:"""

    rest = "" if update.rest is None else "\n call void @run(ptr %a)"
    return f"""define internal void @all(ptr %a, ptr %s, ptr %keys, ptr %g, i64 %gs, i64 %m, ptr %scratch) {{
entry:
 %own = alloca [{update.rule.held + 1} x ptr]
 %gp = getelementptr ptr, ptr %own, i64 {update.rule.held}
 store ptr %g, ptr %gp
{chr(10).join(lines)}
 br label %in
{moves("in", False)}
 br label %update
update:
 %elements = mul i64 %m, {update.width}
 call void @part(ptr %own, ptr %s, i64 0, i64 %elements){rest}
 br label %back
{moves("back", True)}
 ret void
}}"""


def _apply(update: RowUpdate) -> str:
    """``apply(addresses, numbers, gradient, indices, count)``: whether it could be done."""
    width = update.width * SIZES[update.dtype]
    # For each row: its index; its sum, and two to four places in the table; its copies.
    copies = width * update.rule.held * _is_together(update)
    a_row = 8 + (width + 4 * 4) * update.summed + copies
    if update.summed:
        arguments = "ptr %g, i64 %gs, ptr %ix, i64 %ixs, i64 %m, ptr %block, ptr %sums, ptr %tp, i64 %shift"
        rows = f""" %tp = getelementptr i8, ptr %copies, i64 %cb
 %tb = shl i64 4, %shift
 call void @llvm.memset.p0.i64(ptr %tp, i8 0, i64 %tb, i1 false)
 %u = call i64 @gathered({arguments})
 call void @all(ptr %a, ptr %s, ptr %block, ptr %sums, i64 {update.width}, i64 %u, ptr %copies)"""
    else:
        rows = " call void @all(ptr %a, ptr %s, ptr %block, ptr %g, i64 %gs, i64 %m, ptr %copies)"
    nothing = "" if update.rest is None else "\n call void @run(ptr %a)"
    return f"""define internal i1 @apply(ptr %a, ptr %s, ptr %g, i64 %gs, ptr %ix, i64 %ixs, i64 %m) {{
entry:
 %none = icmp eq i64 %m, 0
 br i1 %none, label %empty, label %some
empty:{nothing}
 br label %done
some:
 %less = sub i64 %m, 1
 %or1 = or i64 %less, 1
 %zeros = call i64 @llvm.ctlz.i64(i64 %or1, i1 true)
 %shift = sub i64 65, %zeros
 %need = mul i64 %m, {a_row}
 %need1 = add i64 %need, 256
 %block = call ptr @malloc(i64 %need1)
 %there = icmp ne ptr %block, null
 br i1 %there, label %head, label %fail
head:
 %i = phi i64 [0, %some], [%in, %good]
 %more = icmp slt i64 %i, %m
 br i1 %more, label %look, label %run
look:
 %in = add i64 %i, 1
{index_at(update, "k", "%i")}
 %inside = icmp ult i64 %k, {update.rows}
 br i1 %inside, label %good, label %wrong
good:
 %np = getelementptr i64, ptr %block, i64 %i
 store i64 %k, ptr %np
 br label %head
run:
 %sums = getelementptr i64, ptr %block, i64 %m
 %sb = mul i64 %m, {width * update.summed}
 %copies = getelementptr i8, ptr %sums, i64 %sb
 %cb = mul i64 %m, {copies}
{rows}
 call void @free(ptr %block)
 br label %done
done:
 ret i1 true
wrong:
 call void @free(ptr %block)
 br label %fail
fail:
 ret i1 false
}}"""


def _entry(update: RowUpdate, part: Update, declarations: dict[str, str]) -> str:
    held, kind, together = update.rule.held, KINDS[update.dtype], _is_together(update)
    shared, profile = max(1, len(shared_numbers(part))), machine.current().profile
    always = update.rest is not None and _table(update).work >= profile.native_unlocked
    return "\n".join([
        "define ptr @rows(ptr %self, ptr %args, i64 %n) {",
        "entry:",
        f" %a = alloca [{held + 1} x ptr]",
        f" %s = alloca [{shared} x {kind}]",
        " %place = alloca ptr",
        " %long = alloca i64",
        " %short = alloca i32",
        " %flag = alloca i8",
        f" %sp = getelementptr ptr, ptr %a, i64 {held}",
        " store ptr %s, ptr %sp",
        " %found = call i1 @arguments(ptr %args, ptr %a)",
        " br i1 %found, label %go, label %other",
        "go:",
        *numbers_code(part, declarations, held + 2),
        *_tensor("ix", held + 1, TYPE_CODES[update.indices]),
        *_tensor("gr", held, TYPE_CODES[update.dtype], update),
        f" %elements = mul i64 %ixn, {update.width}",
        " %agree = icmp eq i64 %elements, %grn",
        f" %packed = icmp eq i64 %grs, {update.width}",
        f" %suits = or i1 %packed, {'false' if together and not update.summed else 'true'}",
        " %fine = and i1 %agree, %suits",
        " br i1 %fine, label %start, label %other",
        "start:",
        f" %frees = icmp sgt i64 %elements, {-1 if always else profile.native_update_unlocked}",
        " br i1 %frees, label %long_one, label %short_one",
        "long_one:",
        " %state = call ptr @PyEval_SaveThread()",
        " %r0 = call i1 @apply(ptr %a, ptr %s, ptr %gr, i64 %grs, ptr %ix, i64 %ixs, i64 %ixn)",
        " call void @PyEval_RestoreThread(ptr %state)",
        " br label %end",
        "short_one:",
        " %r1 = call i1 @apply(ptr %a, ptr %s, ptr %gr, i64 %grs, ptr %ix, i64 %ixs, i64 %ixn)",
        " br label %end",
        "end:",
        " %r = phi i1 [%r0, %long_one], [%r1, %short_one]",
        " br i1 %r, label %finished, label %other",
        "finished:",
        " call void @Py_IncRef(ptr @flowstone_none)",
        " ret ptr @flowstone_none",
        "other:",
        " %fallback = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %n, ptr null)",
        " ret ptr %fallback",
        "}",
    ])  # fmt: skip


def _tensor(name: str, argument: int, code: int, rows_of: RowUpdate | None = None) -> list[str]:
    """The data of an argument, `%name`, how many elements it has, `%namen`, and the step from one index, or
    row, to the next, `%names`."""
    lines = [
        f" %{name}ap = getelementptr ptr, ptr %args, i64 {argument}",
        f" %{name}o = load ptr, ptr %{name}ap",
        f" %{name}yp = getelementptr i8, ptr %{name}o, i64 8",
        f" %{name}y = load ptr, ptr %{name}yp",
        f" %{name}t = icmp eq ptr %{name}y, @flowstone_tensor_type",
        f" br i1 %{name}t, label %{name}is, label %other",
        f"{name}is:",
        f" %{name}w = getelementptr i8, ptr %{name}o, i64 {host.HANDLE_OFFSET}",
        f" %{name}e0 = call i32 @aoti_torch_get_numel(ptr %{name}w, ptr %long)",
        f" %{name}n = load i64, ptr %long",
        f" %{name}e1 = call i32 @aoti_torch_get_dtype(ptr %{name}w, ptr %short)",
        f" %{name}d = load i32, ptr %short",
        f" %{name}dq = icmp eq i32 %{name}d, {code}",
        f" %{name}e2 = call i32 @aoti_torch_is_contiguous(ptr %{name}w, ptr %flag)",
        f" %{name}c = load i8, ptr %flag",
        f" %{name}cq = icmp eq i8 %{name}c, 1",
    ]
    if rows_of is None:
        lines += [
            f" %{name}e4 = call i32 @aoti_torch_get_strides(ptr %{name}w, ptr %place)",
            f" %{name}sp = load ptr, ptr %place",
            f" %{name}s = load i64, ptr %{name}sp",
            f" %{name}q = and i1 %{name}dq, true",
        ]
    elif rows_of.is_matrix:
        lines += [
            f" %{name}e4 = call i32 @aoti_torch_get_strides(ptr %{name}w, ptr %place)",
            f" %{name}sp = load ptr, ptr %place",
            f" %{name}s0 = load i64, ptr %{name}sp",
            f" %{name}s1p = getelementptr i64, ptr %{name}sp, i64 1",
            f" %{name}s1 = load i64, ptr %{name}s1p",
            f" %{name}near = icmp eq i64 %{name}s1, 1",
            f" %{name}row = or i1 %{name}cq, %{name}near",
            f" %{name}s = select i1 %{name}cq, i64 {rows_of.width}, i64 %{name}s0",
            f" %{name}e5 = call i32 @aoti_torch_get_sizes(ptr %{name}w, ptr %place)",
            f" %{name}zp = load ptr, ptr %place",
            f" %{name}z = load i64, ptr %{name}zp",
            f" %{name}zq = icmp eq i64 %{name}z, %ixn",
            f" %{name}l = and i1 %{name}row, %{name}zq",
            f" %{name}q = and i1 %{name}dq, %{name}l",
        ]
    else:
        lines.append(f" %{name}q = and i1 %{name}dq, %{name}cq")
        lines.append(f" %{name}s = add i64 0, {rows_of.width}")
    return [
        *lines,
        f" br i1 %{name}q, label %{name}ok, label %other",
        f"{name}ok:",
        f" %{name}e3 = call i32 @aoti_torch_get_data_ptr(ptr %{name}w, ptr %place)",
        f" %{name} = load ptr, ptr %place",
    ]
