"""LLVM's text of sums of rows with equal indices, for updates of rows (`row_update_code.py`).

A hash table with open places has, for each index that came, the place of its sum. It has twice to four times
as many places as there are indices, a power of two; an index begins at the top bits of its product with 2^64
over the golden ratio, and goes on to the next place until its own or a free one.
"""

from __future__ import annotations

from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.updates.updates import RowUpdate

__all__ = ["index_at", "row_at", "sums_code"]


def row_at(update: RowUpdate, name: str, base: str, row: str, step: str = "") -> str:
    """The address of a row."""
    kind, step = KINDS[update.dtype], step or str(update.width)
    return f" %{name}o = mul i64 {row}, {step}\n %{name} = getelementptr {kind}, ptr {base}, i64 %{name}o"


def sums_code(update: RowUpdate) -> str:
    """The functions ``added`` and ``gathered``."""
    return f"{_added(update)}\n{_gathered(update)}"


def _added(update: RowUpdate) -> str:
    """``added(to, from)``: adds a row to another."""
    kind, size, lanes = KINDS[update.dtype], SIZES[update.dtype], host.lanes()
    vector, whole = f"<{lanes} x {kind}>", update.width // lanes * lanes

    def loop(name: str, first: str, end: int, step: int, type_: str) -> str:
        return f"""{name}:
 %{name}i = phi i64 [{first}], [%{name}n, %{name}d]
 %{name}c = icmp slt i64 %{name}i, {end}
 br i1 %{name}c, label %{name}d, label %{name}x
{name}d:
 %{name}n = add i64 %{name}i, {step}
 %{name}p = getelementptr {kind}, ptr %t, i64 %{name}i
 %{name}q = getelementptr {kind}, ptr %f, i64 %{name}i
 %{name}u = load {type_}, ptr %{name}p, align {size}
 %{name}v = load {type_}, ptr %{name}q, align {size}
 %{name}w = fadd {type_} %{name}u, %{name}v
 store {type_} %{name}w, ptr %{name}p, align {size}
 br label %{name}
{name}x:"""

    return f"""define internal void @added(ptr noalias %t, ptr noalias %f) {{
entry:
 br label %v
{loop("v", "0, %entry", whole, lanes, vector)}
 br label %s
{loop("s", f"{whole}, %vx", update.width, 1, kind)}
 ret void
}}"""


def _gathered(update: RowUpdate) -> str:
    """``gathered(gradient, its step, indices, count, keys, sums, table, shift)``: the distinct indices in the
    order in which they come first, and the sums of their rows; how many they are. The table is zero."""
    arguments = "ptr %g, i64 %gs, ptr %ix, i64 %ixs, i64 %m, ptr %keys, ptr %sums, ptr %table, i64 %shift"
    return f"""define internal i64 @gathered({arguments}) {{
entry:
 %down = sub i64 64, %shift
 %size = shl i64 1, %shift
 %mask = sub i64 %size, 1
 br label %head
head:
 %i = phi i64 [0, %entry], [%in, %next]
 %c = phi i64 [0, %entry], [%cn, %next]
 %more = icmp slt i64 %i, %m
 br i1 %more, label %look, label %done
look:
 %in = add i64 %i, 1
{index_at(update, "k", "%i")}
 %h0 = mul i64 %k, -7046029254386353131
 %h1 = lshr i64 %h0, %down
{row_at(update, "from", "%g", "%i", "%gs")}
 br label %probe
probe:
 %h = phi i64 [%h1, %look], [%hn, %other]
 %tp = getelementptr i32, ptr %table, i64 %h
 %e32 = load i32, ptr %tp
 %e = zext i32 %e32 to i64
 %free = icmp eq i64 %e, 0
 br i1 %free, label %first, label %known
known:
 %u = sub i64 %e, 1
 %kp = getelementptr i64, ptr %keys, i64 %u
 %kk = load i64, ptr %kp
 %same = icmp eq i64 %kk, %k
 br i1 %same, label %again, label %other
other:
 %h2 = add i64 %h, 1
 %hn = and i64 %h2, %mask
 br label %probe
first:
 %c1 = add i64 %c, 1
 %c32 = trunc i64 %c1 to i32
 store i32 %c32, ptr %tp
 %np = getelementptr i64, ptr %keys, i64 %c
 store i64 %k, ptr %np
{row_at(update, "new", "%sums", "%c")}
 call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %from, i64 {update.width * SIZES[update.dtype]}, i1 false)
 br label %next
again:
{row_at(update, "old", "%sums", "%u")}
 call void @added(ptr %old, ptr %from)
 br label %next
next:
 %cn = phi i64 [%c1, %first], [%c, %again]
 br label %head
done:
 ret i64 %c
}}"""


def index_at(update: RowUpdate, name: str, place: str) -> str:
    """The index at this place, of 64 bits."""
    kind = KINDS[update.indices]
    text = f" %{name}io = mul i64 {place}, %ixs\n %{name}ip = getelementptr {kind}, ptr %ix, i64 %{name}io\n"
    if kind == "i64":
        return f"{text} %{name} = load i64, ptr %{name}ip"
    return f"{text} %{name}32 = load {kind}, ptr %{name}ip\n %{name} = sext {kind} %{name}32 to i64"
