"""LLVM's text of a cluster's loops: ``run(ptr addresses)``, over all elements, on a team where that pays.

`addresses` are those of the inputs and then of the outputs, contiguous arrays. The rows are walked one by
one, the columns a vector at a time; what is left at the end of a row is masked. An input that is the same
along a row is read once a row, one that is the same everywhere once. An output may be an input of the same
shape: each element is read before it is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowstone.native import host
from flowstone.native.clusters import Cluster, Loops
from flowstone.native.elements import ELEMENTS
from flowstone.native.emitter import KINDS, SIZES, Emitter

__all__ = ["loop_code"]

_FEW_ROWS = 8  # of so many, each of the team's threads gets whole rows


def loop_code(cluster: Cluster, team_work: float, declarations: dict[str, str]) -> str:
    """The text of ``run`` and what it calls; a team of threads shares work of `team_work` additions or
    more."""
    writer = _Writer(cluster, declarations)
    text = writer.rows()
    loops = writer.loops
    whole = f"call void @rows(ptr %a, i64 0, i64 {loops.rows}, i64 0, i64 {loops.columns})"
    if cluster.work < team_work or not host.has("GOMP_parallel"):
        return f"{text}\ndefine internal void @run(ptr %a) {{\n {whole}\n ret void\n}}"
    declarations["GOMP_parallel"] = "declare void @GOMP_parallel(ptr, ptr, i32, i32)"
    declarations["omp_get_thread_num"] = "declare i32 @omp_get_thread_num()"
    declarations["omp_get_num_threads"] = "declare i32 @omp_get_num_threads()"
    start = "define internal void @run(ptr %a) {\n call void @GOMP_parallel(ptr @share, ptr %a, i32 0, i32 0)"
    return f"{text}\n{_share(loops, writer.lanes)}\n{start}\n ret void\n}}"


def _share(loops: Loops, lanes: int) -> str:
    """One thread's part: some of the rows or, of few, some of the columns of each."""
    by_rows = loops.rows >= _FEW_ROWS
    units = loops.rows if by_rows else -(-loops.columns // lanes)
    lines = [
        "define internal void @share(ptr %a) {",
        " %t32 = call i32 @omp_get_thread_num()",
        " %n32 = call i32 @omp_get_num_threads()",
        " %t = zext i32 %t32 to i64",
        " %n = zext i32 %n32 to i64",
        " %t1 = add i64 %t, 1",
        f" %m0 = mul i64 %t, {units}",
        " %u0 = udiv i64 %m0, %n",
        f" %m1 = mul i64 %t1, {units}",
        " %u1 = udiv i64 %m1, %n",
    ]
    if by_rows:
        lines.append(f" call void @rows(ptr %a, i64 %u0, i64 %u1, i64 0, i64 {loops.columns})")
    else:
        lines += [
            f" %c0 = mul i64 %u0, {lanes}",
            f" %c1 = mul i64 %u1, {lanes}",
            f" %over = icmp sgt i64 %c1, {loops.columns}",
            f" %end = select i1 %over, i64 {loops.columns}, i64 %c1",
            f" call void @rows(ptr %a, i64 0, i64 {loops.rows}, i64 %c0, i64 %end)",
        ]
    return "\n".join([*lines, " ret void", "}"])


class _Writer:
    """Writes ``rows(ptr addresses, first row, row's end, first column, column's end)``."""

    def __init__(self, cluster: Cluster, declarations: dict[str, str]) -> None:
        self.cluster, self.loops, self.declarations = cluster, cluster.loops(), declarations
        self.lanes = host.lanes() if self.loops.columns > 1 else 1
        self.first_lane = f"<{self.lanes} x i32> zeroinitializer"  # of a shuffle, to have it in all
        self.lines: list[str] = []
        self.fixed: dict[int, str] = {}  # values of inputs that are read outside of the loop over columns

    def rows(self) -> str:
        inputs = range(len(self.cluster.inputs))
        everywhere = [i for i in inputs if not any(self.loops.strides[i])]
        by_row = [i for i in inputs if i not in everywhere and not self.loops.strides[i][-1]]
        self.add("define internal void @rows(ptr %a, i64 %r0, i64 %r1, i64 %c0, i64 %c1) {", "entry:")
        for i in range(len(self.cluster.inputs) + len(self.cluster.outputs)):
            self.add(f" %q{i} = getelementptr ptr, ptr %a, i64 {i}", f" %p{i} = load ptr, ptr %q{i}")
        for i in everywhere:
            self.fixed[i] = self.read_once(i, f"%p{i}", "e")
        self.add(" br label %row", "row:", " %r = phi i64 [%r0, %entry], [%rn, %next]")
        self.add(" %more = icmp slt i64 %r, %r1", " br i1 %more, label %inside, label %done", "inside:")
        self.row_places()
        for i in by_row:
            self.fixed[i] = self.read_once(i, f"%b{i}", "w")
        if self.lanes == 1:
            self.add(" br label %last", "last:")
            self.body("s", "%c0", masked=False)
        else:
            self.columns()
        self.add(
            " br label %next", "next:", " %rn = add i64 %r, 1", " br label %row", "done:", " ret void", "}"
        )
        return "\n".join(self.lines)

    def add(self, *lines: str) -> None:
        self.lines += lines

    def columns(self) -> None:
        lanes, size = self.lanes, self.loops.columns
        if size >= lanes:
            self.add(f" %full = sub i64 %c1, {lanes}", " br label %column", "column:")
            self.add(" %c = phi i64 [%c0, %inside], [%cn, %vector]", " %fits = icmp sle i64 %c, %full")
            self.add(" br i1 %fits, label %vector, label %rest", "vector:")
            self.body("v", "%c", masked=False)
            self.add(f" %cn = add i64 %c, {lanes}", " br label %column", "rest:")
            if size % lanes == 0:
                return
            self.add(" %left = icmp slt i64 %c, %c1", " br i1 %left, label %tail, label %over", "tail:")
            self.body("t", "%c", masked=True)
            self.add(" br label %over", "over:")
        else:
            self.add(" br label %tail", "tail:")
            self.body("t", "%c0", masked=True)

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
        full = [0] * len(sizes)
        step = 1
        for depth in range(len(sizes) - 1, -1, -1):
            full[depth], step = step, step * sizes[depth]
        count = len(self.cluster.inputs)
        for i in range(count + len(self.cluster.outputs)):
            strides: Sequence[int] = self.loops.strides[i] if i < count else full
            offset = "0"
            for depth in range(len(sizes) - 1):
                if strides[depth]:
                    self.add(f" %k{i}_{depth} = mul i64 {counters[depth]}, {strides[depth]}")
                    self.add(f" %s{i}_{depth} = add i64 {offset}, %k{i}_{depth}")
                    offset = f"%s{i}_{depth}"
            self.add(f" %b{i} = getelementptr {self.memory_kind(i)}, ptr %p{i}, i64 {offset}")

    def memory_kind(self, place: int) -> str:
        kind = KINDS[self.dtype_at(place)]
        return "i8" if kind == "i1" else kind

    def dtype_at(self, place: int) -> str:
        """The type of an input, or of the output whose address comes after those of the inputs."""
        count = len(self.cluster.inputs)
        return self.cluster.dtype(place if place < count else self.cluster.outputs[place - count])

    def read_once(self, i: int, address: str, prefix: str) -> str:
        """The value of an input that is the same for all columns, in all lanes."""
        kind, dtype = self.memory_kind(i), self.dtype_at(i)
        name = f"%{prefix}{i}"
        self.add(f" {name}_m = load {kind}, ptr {address}, align {SIZES[dtype]}")
        value = f"{name}_m"
        if dtype == "bool":
            self.add(f" {name}_t = icmp ne i8 {value}, 0")
            value, kind = f"{name}_t", "i1"
        if self.lanes == 1:
            return value
        vector = f"<{self.lanes} x {kind}>"
        self.add(f" {name}_i = insertelement {vector} poison, {kind} {value}, i32 0")
        self.add(f" {name} = shufflevector {vector} {name}_i, {vector} poison, {self.first_lane}")
        return name

    def body(self, prefix: str, column: str, masked: bool) -> None:
        """The steps on the vector that begins at this column, or on what is left of the row."""
        e = Emitter(self.lanes, self.declarations, prefix)
        mask = self.mask(e, column) if masked else ""
        values: dict[int, str] = {}
        for i in range(len(self.cluster.inputs)):
            values[i] = self.fixed[i] if i in self.fixed else self.load(e, i, column, mask)
        for number, step in enumerate(self.cluster.steps, len(self.cluster.inputs)):
            operands = [values[j] for j in step.operands]
            dtype = self.cluster.dtype(step.operands[-1])
            values[number] = ELEMENTS[step.op].emit(e, dtype, operands, dict(step.attributes))
        for i, array in enumerate(self.cluster.outputs, len(self.cluster.inputs)):
            self.store(e, i, values[array], column, mask)
        self.add(*e.lines)

    def mask(self, e: Emitter, column: str) -> str:
        left = e.let(f"sub i64 %c1, {column}")
        start = e.let(f"insertelement {e.vector('i64')} poison, i64 {left}, i32 0")
        counts = e.let(
            f"shufflevector {e.vector('i64')} {start}, {e.vector('i64')} poison, {self.first_lane}"
        )
        places = ", ".join(f"i64 {i}" for i in range(self.lanes))
        return e.let(f"icmp slt {e.vector('i64')} <{places}>, {counts}")

    def load(self, e: Emitter, i: int, column: str, mask: str) -> str:
        kind, dtype = self.memory_kind(i), self.dtype_at(i)
        vector = e.vector(kind)
        address = e.let(f"getelementptr {kind}, ptr %b{i}, i64 {column}")
        if mask:
            name = f"llvm.masked.load.{_suffix(self.lanes, kind)}.p0"
            self.declarations[name] = f"declare {vector} @{name}(ptr, {e.vector('i1')}, {vector})"
            value = e.let(
                f"call {vector} @{name}(ptr align {SIZES[dtype]} {address}, {e.vector('i1')} {mask}, "
                f"{vector} zeroinitializer)"
            )
        else:
            value = e.let(f"load {vector}, ptr {address}, align {SIZES[dtype]}")
        if dtype != "bool":
            return value
        return e.let(f"icmp ne {vector} {value}, {'0' if self.lanes == 1 else 'zeroinitializer'}")

    def store(self, e: Emitter, i: int, value: str, column: str, mask: str) -> None:
        kind, dtype = self.memory_kind(i), self.dtype_at(i)
        vector = e.vector(kind)
        if dtype == "bool":
            value = e.let(f"zext {e.vector('i1')} {value} to {vector}")
        address = e.let(f"getelementptr {kind}, ptr %b{i}, i64 {column}")
        if mask:
            name = f"llvm.masked.store.{_suffix(self.lanes, kind)}.p0"
            self.declarations[name] = f"declare void @{name}({vector}, ptr, {e.vector('i1')})"
            place = f"ptr align {SIZES[dtype]} {address}"
            e.do(f"call void @{name}({vector} {value}, {place}, {e.vector('i1')} {mask})")
        else:
            e.do(f"store {vector} {value}, ptr {address}, align {SIZES[dtype]}")


def _suffix(lanes: int, kind: str) -> str:
    return f"v{lanes}{ {'float': 'f32', 'double': 'f64'}.get(kind, kind) }"
