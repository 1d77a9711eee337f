"""LLVM's text of a cluster's loops.

It is ``rows(ptr addresses, first row, the rows' end, first column, the columns' end, ptr slot)``.

`addresses` are those of the inputs and then of the outputs, after which come the distances of the rows of
inputs that are pitched, in elements. The rows are walked one by one, each in the
passes of its schedule, the columns a vector at a time; what is left at the end of a row is masked. What is
the same along a row is read and computed once a row, what is the same everywhere once. An output may be an
input of the same shape: each element is read before it is written. `slot` is the memory of reductions that
go over more than a row (`accumulators.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowstone.native.clusters import accumulators
from flowstone.native.clusters.clusters import Cluster, Level, Step
from flowstone.native.clusters.schedules import Pass, schedule_of
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.vector_memory import (
    in_all_lanes,
    lane_mask,
    load,
    load_apart,
    memory_kind,
    read_one,
    store,
    store_one,
)
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.numerics.reductions import Parts, take_several

__all__ = ["lanes_of", "number_of", "rows_code", "value_of"]

_BLOCK = 4  # vectors that are reduced at a time
_FEW_STEPS = 12  # of an element, in a block


def lanes_of(cluster: Cluster) -> int:
    """How many elements are computed at a time."""
    return host.lanes() if cluster.loops().columns > 1 else 1


def rows_code(cluster: Cluster, declarations: dict[str, str]) -> str:
    """The text of ``rows``."""
    return _Writer(cluster, declarations).rows()


class _Writer:
    def __init__(self, cluster: Cluster, declarations: dict[str, str]) -> None:
        self.cluster, self.loops, self.declarations = cluster, cluster.loops(), declarations
        self.levels, self.schedule = cluster.levels(), schedule_of(cluster)
        self.given = cluster.given()
        self.count = len(cluster.inputs)
        self.lanes = lanes_of(cluster)
        self.slot = accumulators.Slot(cluster, self.lanes)
        self.lines: list[str] = []
        self.fixed: dict[int, str] = {}  # values that are the same for all columns
        self.chunks: list[dict[int, str]] = [{} for _ in range(self.schedule.chunks)]

    def add(self, *lines: str) -> None:
        self.lines += lines

    def emitter(self, prefix: str) -> Emitter:
        """One that writes at the end of what there is."""
        e = Emitter(self.lanes, self.declarations, prefix)
        e.lines = self.lines
        return e

    def rows(self) -> str:
        inputs = [i for i in range(self.count) if self.levels[i] != Level.ELEMENT]
        arguments = "ptr %a, i64 %r0, i64 %r1, i64 %c0, i64 %c1, ptr %slot"
        self.add(f"define internal void @rows({arguments}) {{", "entry:")
        for i in range(self.count + len(self.cluster.outputs)):
            self.add(f" %q{i} = getelementptr ptr, ptr %a, i64 {i}", f" %p{i} = load ptr, ptr %q{i}")
        for n, i in enumerate(self.cluster.pitched, self.count + len(self.cluster.outputs)):
            self.add(f" %qp{i} = getelementptr i64, ptr %a, i64 {n}", f" %pitch{i} = load i64, ptr %qp{i}")
        self.places()
        e = self.emitter("e")
        for i in inputs:
            if self.levels[i] == Level.EVERYWHERE:
                self.fixed[i] = read_one(e, self.dtype_at(i), f"%p{i}")
        self.compute(e, self.schedule.once)
        self.add(" br label %row", "row:", " %r = phi i64 [%r0, %entry], [%rn, %next]")
        self.add(" %more = icmp slt i64 %r, %r1", " br i1 %more, label %inside, label %done", "inside:")
        self.row_places()
        e = self.emitter("w")
        for i in inputs:
            if self.levels[i] == Level.ROW:
                self.fixed[i] = read_one(e, self.dtype_at(i), f"%b{i}")
        for number, each in enumerate(self.schedule.passes):
            self.one_pass(number, each, e)
        self.row_end(e)
        self.add(" br label %next", "next:", " %rn = add i64 %r, 1", " br label %row", "done:")
        self.give_back()
        return "\n".join([*self.lines, " ret void", "}"])

    # ---- memory of reductions and of what is kept

    def places(self) -> None:
        """Memory on the stack, which becomes registers but for what is kept: ``%k3`` for array 3, ``%g4_0`` …
        for the parts of reduction 4 over rows or everything."""
        e = self.emitter("z")
        for step, found in self.slot.places.items():
            if found[0].vectors == 1 and self.step(step).over == "all":
                for i, part in enumerate(self.slot.read(e, "%slot", step)):
                    kind = e.type(found[i].dtype)
                    self.add(f" %g{step}_{i} = alloca {kind}", f" store {kind} {part}, ptr %g{step}_{i}")
        width = -(-self.loops.columns // self.lanes) * self.lanes
        for each in self.schedule.passes:
            for step in each.reduced:
                for i, (dtype, _) in enumerate(accumulators.parts_of(self.cluster, step)):
                    self.add(f" %g{step}_{i} = alloca {e.type(dtype)}")
            for array in each.kept if not self.chunks else ():
                self.add(
                    f" %k{array} = alloca [{width} x {memory_kind(self.cluster.dtype(array))}], align 64"
                )

    def give_back(self) -> None:
        """Puts reductions over everything into the slot."""
        e = self.emitter("y")
        for step in self.slot.places:
            if self.step(step).over == "all":
                self.slot.write(e, "%slot", step, self.parts(e, step))

    def parts(self, e: Emitter, step: int) -> Parts:
        kinds = [dtype for dtype, _ in accumulators.parts_of(self.cluster, step)]
        return [e.let(f"load {e.type(dtype)}, ptr %g{step}_{i}") for i, dtype in enumerate(kinds)]

    def set_parts(self, e: Emitter, step: int, parts: Parts) -> None:
        kinds = [dtype for dtype, _ in accumulators.parts_of(self.cluster, step)]
        for i, (dtype, part) in enumerate(zip(kinds, parts)):
            e.do(f"store {e.type(dtype)} {part}, ptr %g{step}_{i}")

    # ---- rows

    def row_places(self) -> None:
        """Where this row begins in each array: ``%b0`` …"""
        sizes = self.loops.sizes
        counters = ["%r"]
        rest = "%r"
        for depth in range(len(sizes) - 2, 0, -1):  # the row's place along each dimension, the last first
            self.add(
                f" %d{depth} = urem i64 {rest}, {sizes[depth]}",
                f" %o{depth} = udiv i64 {rest}, {sizes[depth]}",
            )
            counters.insert(1, f"%d{depth}")
            rest = f"%o{depth}"
        counters[0] = rest
        for i in range(self.count + len(self.given)):
            if i in self.cluster.pitched:
                self.add(f" %s{i}_p = mul i64 %r, %pitch{i}")
                self.add(f" %b{i} = getelementptr {memory_kind(self.dtype_at(i))}, ptr %p{i}, i64 %s{i}_p")
                continue
            strides = self.strides_at(i)
            offset = "0"
            for depth in range(len(sizes) - 1):
                if strides[depth]:
                    self.add(f" %n{i}_{depth} = mul i64 {counters[depth]}, {strides[depth]}")
                    self.add(f" %s{i}_{depth} = add i64 {offset}, %n{i}_{depth}")
                    offset = f"%s{i}_{depth}"
            self.add(f" %b{i} = getelementptr {memory_kind(self.dtype_at(i))}, ptr %p{i}, i64 {offset}")

    def strides_at(self, place: int) -> Sequence[int]:
        sizes = self.loops.sizes
        if place < self.count:
            return self.loops.strides[place]
        full, step = [0] * len(sizes), 1
        for depth in range(len(sizes) - 1, -1, -1):
            full[depth], step = step, step * sizes[depth]
        return full

    def dtype_at(self, place: int) -> str:
        """The type of an input, or of the output whose address comes after those of the inputs."""
        return self.cluster.dtype(place if place < self.count else self.cluster.outputs[place - self.count])

    def row_end(self, e: Emitter) -> None:
        """What is left to do when the passes are done."""
        self.compute(e, self.schedule.after)
        for step in self.schedule.row_ends:
            reduction, dtype, _ = accumulators.reduction_of(self.cluster, step)
            old = self.parts(e, step)
            new = reduction.take(e, dtype, old, self.fixed[self.step(step).operands[0]])
            first = ", ".join(f"i1 {'false' if i else 'true'}" for i in range(self.lanes))
            mask = f"<{first}>" if self.lanes > 1 else "true"
            self.set_parts(e, step, accumulators.chosen(e, self.cluster, step, mask, new, old))
        for i in self.schedule.row_stores:
            array = self.cluster.outputs[i]
            store_one(e, self.cluster.dtype(array), self.fixed[array], f"%p{self.count + i}", "%r")

    def compute(self, e: Emitter, steps: Sequence[int]) -> None:
        for array in steps:
            self.fixed[array] = self.value(e, array, self.fixed)

    def value(self, e: Emitter, array: int, values: dict[int, str]) -> str:
        return value_of(self.cluster, e, array, values)

    # ---- passes

    def one_pass(self, number: int, each: Pass, e: Emitter) -> None:
        self.compute(e, each.before)
        for step in each.reduced:
            self.set_parts(e, step, accumulators.start(e, self.cluster, step))
        if self.lanes == 1:
            self.body(self.emitter("s"), each, ["%c0"], "", [{}])
        elif self.chunks:
            whole = self.loops.columns // self.lanes
            places = [str(i * self.lanes) for i in range(self.schedule.chunks)]
            e_row = self.emitter(f"u{number}x")
            if whole:
                self.body(e_row, each, places[:whole], "", self.chunks[:whole])
            if left := self.loops.columns % self.lanes:
                bits = ", ".join(f"i1 {'true' if j < left else 'false'}" for j in range(self.lanes))
                self.body(e_row, each, places[whole:], f"<{bits}>", self.chunks[whole:])
        else:
            self.columns(each, str(number or ""))
        for step in each.reduced:
            self.fixed[step] = accumulators.folded(e, self.cluster, step, self.parts(e, step))

    def columns(self, each: Pass, n: str) -> None:
        """The loop over the columns; `n` ends the names of its labels."""
        lanes, size = self.lanes, self.loops.columns
        if size < lanes:
            self.add(f" br label %tail{n}", f"tail{n}:")
            self.masked(each, n, "%c0")
            return
        first = self.blocks(each, n) if self.in_blocks(each) else "%c0"
        self.add(f" %full{n} = sub i64 %c1, {lanes}", f" br label %start{n}", f"start{n}:")
        self.add(f" br label %column{n}", f"column{n}:")
        self.add(f" %c{n}_ = phi i64 [{first}, %start{n}], [%cn{n}, %vector{n}]")
        self.add(f" %fits{n} = icmp sle i64 %c{n}_, %full{n}")
        self.add(f" br i1 %fits{n}, label %vector{n}, label %rest{n}", f"vector{n}:")
        self.body(self.emitter(f"v{n}x"), each, [f"%c{n}_"], "", [{}])
        self.add(f" %cn{n} = add i64 %c{n}_, {lanes}", f" br label %column{n}", f"rest{n}:")
        if size % lanes:
            self.add(f" %left{n} = icmp slt i64 %c{n}_, %c1")
            self.add(f" br i1 %left{n}, label %tail{n}, label %over{n}", f"tail{n}:")
            self.masked(each, n, f"%c{n}_")
            self.add(f" br label %over{n}", f"over{n}:")

    def in_blocks(self, each: Pass) -> bool:
        """Whether a pass that reduces a long row takes several vectors at a time."""
        if self.loops.columns < 2 * _BLOCK * self.lanes or len(each.elements) > _FEW_STEPS:
            return False
        return any(self.step(i).over != "columns" for i in (*each.reduced, *each.ends))

    def blocks(self, each: Pass, n: str) -> str:
        """The loop over whole blocks; returns the column where it ends."""
        size = _BLOCK * self.lanes
        self.add(f" %whole{n} = sub i64 %c1, {size}", f" br label %first{n}", f"first{n}:")
        self.add(f" br label %block{n}", f"block{n}:")
        self.add(f" %cb{n}_ = phi i64 [%c0, %first{n}], [%cbn{n}, %blocks{n}]")
        self.add(f" %bfits{n} = icmp sle i64 %cb{n}_, %whole{n}")
        self.add(f" br i1 %bfits{n}, label %blocks{n}, label %single{n}", f"blocks{n}:")
        e = self.emitter(f"b{n}x")
        places = [e.let(f"add i64 %cb{n}_, {i * self.lanes}") for i in range(_BLOCK)]
        self.body(e, each, places, "", [{} for _ in places])
        self.add(f" %cbn{n} = add i64 %cb{n}_, {size}", f" br label %block{n}", f"single{n}:")
        return f"%cb{n}_"

    def masked(self, each: Pass, n: str, column: str) -> None:
        e = self.emitter(f"t{n}x")
        self.body(e, each, [column], lane_mask(e, e.let(f"sub i64 %c1, {column}")), [{}])

    def body(
        self, e: Emitter, each: Pass, columns: list[str], mask: str, values: list[dict[int, str]]
    ) -> None:
        """A pass for the vectors that begin at these columns, or what is left of the row; `values`: what of
        each is in registers."""
        for column, found in zip(columns, values):
            self.elements(e, each, column, mask, found)
        self.accumulate(e, each, columns, mask, values)
        for column, found in zip(columns, values):
            for i in each.stores:
                array, place = self.cluster.outputs[i], self.count + i
                store(e, self.cluster.dtype(array), found[array], f"%b{place}", column, mask)

    def elements(self, e: Emitter, each: Pass, column: str, mask: str, values: dict[int, str]) -> None:
        """Reads and computes what a pass needs of a vector."""
        values.update(self.fixed)
        for array in each.restored:
            if array not in values:
                values[array] = load(e, self.cluster.dtype(array), f"%k{array}", column)
        for array in each.elements:
            step = self.cluster.step(array)
            if array in values:
                continue
            if step is None:
                values[array] = self.read(e, array, column, mask)
            elif step.op == "ColumnIndex":
                values[array] = self.places_in_row(e, column)
            else:
                values[array] = self.value(e, array, values)
        for array in each.kept if not self.chunks else ():
            store(e, self.cluster.dtype(array), values[array], f"%k{array}", column)

    def read(self, e: Emitter, array: int, column: str, mask: str) -> str:
        """A vector of an input, from a column on."""
        dtype, stride = self.dtype_at(array), self.strides_at(array)[-1]
        if stride == 1 or self.loops.columns == 1:
            return load(e, dtype, f"%b{array}", column, mask)
        if stride == 0:
            return read_one(e, dtype, f"%b{array}")
        return load_apart(e, dtype, f"%b{array}", column, stride, mask)

    def places_in_row(self, e: Emitter, column: str) -> str:
        first = in_all_lanes(e, "i32", e.let(f"trunc i64 {column} to i32"))
        places = ", ".join(f"i32 {i}" for i in range(self.lanes))
        return e.binary("add", "int32", first, f"<{places}>" if self.lanes > 1 else "0")

    def accumulate(
        self, e: Emitter, each: Pass, columns: list[str], mask: str, values: list[dict[int, str]]
    ) -> None:
        """Takes vectors into the reductions of a pass."""
        for step in (*each.reduced, *each.ends):
            reduction, dtype, attributes = accumulators.reduction_of(self.cluster, step)
            operand = self.step(step).operands[0]
            if attributes["over"] == "columns":
                for column, found in zip(columns, values):
                    old = self.slot.read(e, "%slot", step, column)
                    self.slot.write(e, "%slot", step, reduction.take(e, dtype, old, found[operand]), column)
                continue
            old = self.parts(e, step)
            new = take_several(reduction, e, dtype, old, [found[operand] for found in values])
            if mask:
                new = accumulators.chosen(e, self.cluster, step, mask, new, old)
            self.set_parts(e, step, new)

    def step(self, array: int) -> Step:
        return self.cluster.steps[array - self.count]


def value_of(cluster: Cluster, e: Emitter, array: int, values: Mapping[int, str]) -> str:
    """What a step, but for reductions and places, computes of the values of arrays."""
    step = cluster.steps[array - len(cluster.inputs)]
    if step.op == "Const":
        return e.constant(step.dtype, number_of(step.dtype, str(dict(step.attributes)["value"])))
    dtype = cluster.dtype(step.operands[-1])
    return ELEMENTS[step.op].emit(e, dtype, [values[j] for j in step.operands], dict(step.attributes))


def number_of(dtype: str, text: str) -> float | int | bool:
    """The number that a ``Const`` step has as text."""
    if dtype == "bool":
        return text == "True"
    return float.fromhex(text) if dtype.startswith("float") else int(text)
