"""LLVM's text of ``run(ptr addresses)``: a cluster's loops on one thread, or on torch's team where that pays.

Threads share the rows or, of few, the columns. Reductions over more than a row are accumulated in a slot of
memory a thread (`accumulators.py`), joined and written by the thread that began. ``within(ptr addresses)``
tells whether all indices are in their bounds; it comes before `run`.
"""

from __future__ import annotations

import math

from flowstone.native.clusters import accumulators, short_rows_code
from flowstone.native.clusters.clusters import OPEN, Cluster
from flowstone.native.clusters.loop_code import lanes_of, rows_code
from flowstone.native.codegen.emitter import Emitter, kind_of
from flowstone.native.codegen.parts import by_team, has_teams
from flowstone.native.codegen.vector_memory import lane_mask, store, store_one

__all__ = ["loop_code", "within_code"]

_FEW_ROWS = 8  # of so many, each of the team's threads gets whole rows
_MANY_THREADS = 64  # of a team, at most: slots lie on the stack
_SLOTS = 1 << 18  # bytes of all slots


def loop_code(cluster: Cluster, team_work: float, declarations: dict[str, str]) -> str:
    """The text of ``run`` and what it calls; a team of threads shares work of `team_work` additions or
    more."""
    writer = short_rows_code.short_rows_code if short_rows_code.suits(cluster) else rows_code
    text, loops = writer(cluster, declarations), cluster.loops()
    slot = accumulators.Slot(cluster, lanes_of(cluster))
    has_team = (cluster.is_open or cluster.work >= team_work) and has_teams()
    threads = max(1, min(_MANY_THREADS, _SLOTS // max(slot.size, 1))) if has_team else 1
    texts = [text]
    if slot.size:
        texts += [_begin(cluster, slot, declarations), _finish(cluster, slot, declarations)]
        if threads > 1:
            texts.append(_join(cluster, slot, declarations))
    if has_team and threads > 1:
        texts.append(_share(cluster, slot.size, declarations))
        by_team("share", declarations)
    lines = ["define internal void @run(ptr %a) {", *_rows(cluster)]
    if slot.size:
        lines.append(f" %slots = alloca [{threads} x [{slot.size} x i8]], align 64")
        lines += [f" %slot{t} = getelementptr i8, ptr %slots, i64 {t * slot.size}" for t in range(threads)]
    first = "%slots" if slot.size else "null"
    alone = [" call void @begin(ptr %slots)"] if slot.size else []
    alone.append(f" call void @rows(ptr %a, i64 0, i64 %rows, i64 0, i64 {loops.columns}, ptr {first})")
    alone += [" call void @finish(ptr %a, ptr %slots)"] if slot.size else []
    if threads == 1:
        lines += alone
    elif cluster.is_open:
        lines += [f" %big = icmp sge i64 %size, {math.ceil(team_work / cluster.work)}"]
        lines += [" br i1 %big, label %many, label %alone", "alone:", *alone, " ret void", "many:"]
        lines += _by_team(slot.size, threads, "%many")
    else:
        lines += _by_team(slot.size, threads, "%0")
    return "\n".join([*texts, *lines, " ret void", "}"])


def _rows(cluster: Cluster) -> list[str]:
    """How many rows there are, ``%rows``, and the open ``%size``."""
    if not cluster.is_open:
        return [f" %rows = add i64 0, {cluster.loops().rows}"]
    return [
        f" %sized = getelementptr i64, ptr %a, i64 {cluster.size_place}",
        " %size = load i64, ptr %sized",
        f" %rows = mul i64 %size, {cluster.loops().rows}",
    ]


def _by_team(size: int, threads: int, before: str) -> list[str]:
    """The lines that share the work, and join what threads accumulated; `before`: the block they follow."""
    if not size:
        return [" call void @share_by_team(ptr %a, i32 0)"]
    lines = [
        " %both = alloca [2 x ptr]",
        " store ptr %a, ptr %both",
        " %second = getelementptr ptr, ptr %both, i64 1",
        " store ptr %slots, ptr %second",
        " %most = call i32 @omp_get_max_threads()",
        f" %fewer = icmp slt i32 %most, {threads}",
        f" %team = select i1 %fewer, i32 %most, i32 {threads}",
        " br label %each",
        "each:",
        f" %t = phi i32 [0, {before}], [%tn, %each]",
        " %t64 = zext i32 %t to i64",
        f" %to = mul i64 %t64, {size}",
        " %at = getelementptr i8, ptr %slots, i64 %to",
        " call void @begin(ptr %at)",
        " %tn = add i32 %t, 1",
        " %again = icmp slt i32 %tn, %team",
        " br i1 %again, label %each, label %go",
        "go:",
        " call void @share_by_team(ptr %both, i32 %team)",
        " br label %joins",
        "joins:",
        " %u = phi i32 [1, %go], [%un, %joining]",
        " %left = icmp slt i32 %u, %team",
        " br i1 %left, label %joining, label %end",
        "joining:",
        " %u64 = zext i32 %u to i64",
        f" %uo = mul i64 %u64, {size}",
        " %from = getelementptr i8, ptr %slots, i64 %uo",
        " call void @join(ptr %slots, ptr %from)",
        " %un = add i32 %u, 1",
        " br label %joins",
        "end:",
        " call void @finish(ptr %a, ptr %slots)",
    ]
    return lines


def _share(cluster: Cluster, slot_size: int, declarations: dict[str, str]) -> str:
    """One thread's part: some of the rows or, of few, some of the columns of each."""
    loops, lanes = cluster.loops(), lanes_of(cluster)
    needs_rows = any(step.over == "row" or ("of", "rows") in step.attributes for step in cluster.steps)
    by_rows = cluster.is_open or loops.rows >= _FEW_ROWS or needs_rows
    units = "%rows" if by_rows else str(-(-loops.columns // lanes))
    lines = ["define internal void @share(ptr %data, i64 %t, i64 %n) {"]
    a, slot = ("%a", "%slot") if slot_size else ("%data", "null")
    if slot_size:
        lines.append(" %a = load ptr, ptr %data")
    lines += [line.replace("%a,", f"{a},") for line in _rows(cluster)]
    lines += [
        " %t1 = add i64 %t, 1",
        f" %m0 = mul i64 %t, {units}",
        " %u0 = udiv i64 %m0, %n",
        f" %m1 = mul i64 %t1, {units}",
        " %u1 = udiv i64 %m1, %n",
    ]
    if slot_size:
        lines += [
            " %second = getelementptr ptr, ptr %data, i64 1",
            " %slots = load ptr, ptr %second",
            f" %own = mul i64 %t, {slot_size}",
            " %slot = getelementptr i8, ptr %slots, i64 %own",
        ]
    if by_rows:
        lines.append(f" call void @rows(ptr {a}, i64 %u0, i64 %u1, i64 0, i64 {loops.columns}, ptr {slot})")
    else:
        lines += [
            f" %c0 = mul i64 %u0, {lanes}",
            f" %c1 = mul i64 %u1, {lanes}",
            f" %over = icmp sgt i64 %c1, {loops.columns}",
            f" %end = select i1 %over, i64 {loops.columns}, i64 %c1",
            f" call void @rows(ptr {a}, i64 0, i64 %rows, i64 %c0, i64 %end, ptr {slot})",
        ]
    return "\n".join([*lines, " ret void", "}"])


# ---- slots


def _begin(cluster: Cluster, slot: accumulators.Slot, declarations: dict[str, str]) -> str:
    """``begin(ptr slot)``: as nothing is accumulated."""
    writer = _Loops("begin", "ptr %slot", slot.lanes, declarations)
    for step in slot.places:
        with writer.over(slot, step) as (e, column):
            slot.write(e, "%slot", step, accumulators.start(e, cluster, step), column)
    return writer.text()


def _join(cluster: Cluster, slot: accumulators.Slot, declarations: dict[str, str]) -> str:
    """``join(ptr to, ptr from)``: takes what is in another slot."""
    writer = _Loops("join", "ptr %to, ptr %from", slot.lanes, declarations)
    for step in slot.places:
        reduction, dtype, _ = accumulators.reduction_of(cluster, step)
        with writer.over(slot, step) as (e, column):
            parts = reduction.join(
                e, dtype, slot.read(e, "%to", step, column), slot.read(e, "%from", step, column)
            )
            slot.write(e, "%to", step, parts, column)
    return writer.text()


def _finish(cluster: Cluster, slot: accumulators.Slot, declarations: dict[str, str]) -> str:
    """``finish(ptr addresses, ptr slot)``: writes the outputs."""
    writer = _Loops("finish", "ptr %a, ptr %slot", slot.lanes, declarations)
    writer.lines += [*_rows(cluster), " %count = sitofp i64 %size to double"] if cluster.is_open else []
    columns = cluster.loops().columns
    for step in slot.places:
        reduction, dtype, attributes = accumulators.reduction_of(cluster, step)
        outputs = [i for i, array in enumerate(cluster.outputs, len(cluster.inputs)) if array == step]
        with writer.over(slot, step) as (e, column):
            parts = slot.read(e, "%slot", step, column)
            if (divisor := attributes.get("divisor", 1)) < 0:
                attributes = {**attributes, "divisor": e.let(f"fmul double %count, {-divisor}.0")}
            by_column = attributes["over"] == "columns"
            if by_column:
                value = reduction.give(e, dtype, parts, attributes)
                mask = lane_mask(e, e.let(f"sub i64 {columns}, {column}")) if columns % slot.lanes else ""
            else:
                value = accumulators.folded(e, cluster, step, parts, attributes)
            for i in outputs:
                address = e.let(f"load ptr, ptr {e.let(f'getelementptr ptr, ptr %a, i64 {i}')}")
                if by_column:
                    store(e, cluster.dtype(step), value, address, column, mask)
                else:
                    store_one(e, cluster.dtype(step), value, address, "0")
    return writer.text()


class _Loops:
    """A function of loops over the vectors of slots."""

    def __init__(self, name: str, arguments: str, lanes: int, declarations: dict[str, str]) -> None:
        self.lines = [f"define internal void @{name}({arguments}) {{", "entry:"]
        self.lanes, self.declarations, self.number = lanes, declarations, 0

    def over(self, slot: accumulators.Slot, step: int) -> _Loop:
        """The loop over the vectors of a reduction."""
        self.number += 1
        return _Loop(self, self.number, slot.places[step][0].vectors)

    def text(self) -> str:
        return "\n".join([*self.lines, " ret void", "}"])


class _Loop:
    def __init__(self, owner: _Loops, number: int, vectors: int) -> None:
        self.owner, self.number, self.vectors = owner, number, vectors

    def __enter__(self) -> tuple[Emitter, str]:
        n = self.number
        e = Emitter(self.owner.lanes, self.owner.declarations, f"x{n}x")
        e.lines = self.owner.lines
        if self.vectors > 1:
            e.lines += [f" br label %begin{n}", f"begin{n}:", f" br label %loop{n}", f"loop{n}:"]
            e.lines.append(f" %c{n} = phi i64 [0, %begin{n}], [%cn{n}, %loop{n}]")
        return e, f"%c{n}" if self.vectors > 1 else "0"

    def __exit__(self, *error: object) -> None:
        n, end = self.number, self.vectors * self.owner.lanes
        if self.vectors > 1:
            self.owner.lines += [
                f" %cn{n} = add i64 %c{n}, {self.owner.lanes}",
                f" %go{n} = icmp slt i64 %cn{n}, {end}",
                f" br i1 %go{n}, label %loop{n}, label %over{n}",
                f"over{n}:",
            ]


# ---- bounds


def within_code(cluster: Cluster) -> str:
    """The text of ``i1 within(ptr addresses)``."""
    lines = [
        "define internal i1 @within(ptr %a) {",
        "entry:",
        *_rows(cluster),
        " br label %start0",
        "start0:",
    ]
    for n, (array, bound) in enumerate(cluster.bounds):
        kind = kind_of(cluster.dtype(array))
        size = str(abs(math.prod(cluster.inputs[array].dims)))
        if cluster.inputs[array].dims[:1] == (OPEN,):
            lines.append(f" %size{n} = mul i64 %size, {size}")
            size = f"%size{n}"
        lines += [
            f" %q{n} = getelementptr ptr, ptr %a, i64 {array}",
            f" %p{n} = load ptr, ptr %q{n}",
            f" br label %loop{n}",
            f"loop{n}:",
            f" %i{n} = phi i64 [0, %start{n}], [%j{n}, %loop{n}]",
            f" %all{n} = phi i1 [true, %start{n}], [%now{n}, %loop{n}]",
            f" %at{n} = getelementptr {kind}, ptr %p{n}, i64 %i{n}",
            f" %x{n} = load {kind}, ptr %at{n}",
            f" %in{n} = icmp ult {kind} %x{n}, {bound}",
            f" %now{n} = and i1 %all{n}, %in{n}",
            f" %j{n} = add i64 %i{n}, 1",
            f" %go{n} = icmp slt i64 %j{n}, {size}",
            f" br i1 %go{n}, label %loop{n}, label %end{n}",
            f"end{n}:",
            f" br i1 %now{n}, label %start{n + 1}, label %no",
            f"start{n + 1}:",
        ]
    return "\n".join([*lines, " ret i1 true", "no:", " ret i1 false", "}"])
