"""LLVM's text of a product of few rows: ``run(ptr addresses)``, tile by tile, on a team where that pays.

`addresses` are those of the two matrices, of what the steps after the product take, and of the outputs, and
how far the rows of inputs that are `pitched` lie apart; all else is contiguous. A tile is some rows by some
vectors of columns, as many sums as there are registers. Where the second matrix is stored by columns, vectors
of it lie along the sums: then a tile is four columns, whose sums are folded at the end. Either way tiles go
to the stack, and the steps read them there, a panel at a time. Where the first matrix is stored by columns,
as for weights' gradients, rows may be many, and threads share them instead of panels. Where a panel's rows
lie on more pages than the processor finds at once, and many tiles read it, it is copied to the stack first.
"""

from __future__ import annotations

from flowstone.framework import machine
from flowstone.native.clusters.clusters import Cluster
from flowstone.native.clusters.loop_code import number_of
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import KINDS, SIZES, Emitter
from flowstone.native.codegen.parts import by_team, has_teams
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.products.tile_memory import Memory, memory_kind

__all__ = ["copies_panels", "product_code"]

_FOLDED = 4  # columns whose sums are folded at a time
_COPIED_ROWS = 48  # from which a copy of a panel pays
_FOUND_BYTES = 1 << 18  # of the second matrix, on so many pages as addresses are found for at once
_MOST_COPIED = 1 << 18  # bytes of a copy, which lies on the stack


def product_code(
    rows: int,
    inner: int,
    columns: int,
    is_transposed: bool,
    after: Cluster,
    declarations: dict[str, str],
    is_pitched: bool = False,
    by_terms: bool = False,
) -> str:
    """The text of ``run`` and what it calls; `is_pitched`: the first matrix is; `by_terms`: it is stored by
    columns."""
    writer = _Writer(rows, inner, columns, is_transposed, after, declarations, is_pitched, by_terms)
    text = [writer.panels()]
    panels = writer.units
    is_small = rows * inner * columns < machine.current().profile.product_team
    if is_small or panels < 2 or not has_teams():
        call = f"call void @panels(ptr %a, i64 0, i64 {panels})"
        return "\n".join([*text, f"define internal void @run(ptr %a) {{\n {call}\n ret void\n}}"])
    call = f"call void @{by_team('share', declarations)}(ptr %a, i32 0)"
    run = f"define internal void @run(ptr %a) {{\n {call}\n ret void\n}}"
    return "\n".join([*text, _SHARE.replace("PANELS", str(panels)), run])


_SHARE = """define internal void @share(ptr %a, i64 %t, i64 %n) {
 %t1 = add i64 %t, 1
 %m0 = mul i64 %t, PANELS
 %p0 = udiv i64 %m0, %n
 %m1 = mul i64 %t1, PANELS
 %p1 = udiv i64 %m1, %n
 call void @panels(ptr %a, i64 %p0, i64 %p1)
 ret void
}"""


def copies_panels(rows: int, inner: int, columns: int, dtype: str) -> bool:
    """Whether the panels of a second matrix that is stored by rows are copied. With the widest vectors they
    are wider, and fewer tiles read them."""
    size, lanes = SIZES[dtype], host.lanes()
    is_wide = rows >= _COPIED_ROWS and inner * columns * size > _FOUND_BYTES
    return is_wide and lanes < 16 and inner * 2 * lanes * 4 <= _MOST_COPIED


def _registers(lanes: int) -> int:
    """Sums that are held at a time: of 32 registers with the widest vectors, else of 16."""
    return 24 if lanes == 16 else 12


class _Writer(Memory):
    """Writes ``panels(ptr addresses, first panel, panels' end)`` and the functions of its tiles."""

    def __init__(
        self,
        rows: int,
        inner: int,
        columns: int,
        is_transposed: bool,
        after: Cluster,
        declarations: dict[str, str],
        is_pitched: bool,
        by_terms: bool,
    ) -> None:
        self.by_terms = by_terms
        self.rows, self.inner, self.columns, self.is_transposed = rows, inner, columns, is_transposed
        self.after, self.declarations, self.is_pitched = after, declarations, is_pitched
        self.dtype = after.inputs[0].dtype
        self.kind, self.size = KINDS[self.dtype], SIZES[self.dtype]
        sums = _registers(host.lanes())
        self.lanes = host.lanes() * 4 // self.size
        self.vectors = 1 if is_transposed else self._vectors(sums)
        most = sums // (_FOLDED if is_transposed else self.vectors)
        self.tile_rows = -(-rows // -(-rows // most))
        self.width = self.vectors * self.lanes
        self.panel_count = -(-columns // self.width)
        self.units = -(-rows // self.tile_rows) if by_terms else self.panel_count
        self.is_copied = (
            not is_transposed and not by_terms and copies_panels(rows, inner, columns, self.dtype)
        )
        # Nothing comes after the product: tiles need not go to the stack.
        self.is_direct = by_terms and not after.steps and len(after.inputs) == 1 and after.outputs == (0,)
        self.texts: list[str] = []
        self.apart: list[str] = []  # of a tile's rows, how far each is from the first
        self.step = ""  # how far the terms lie apart, if they do

    def _vectors(self, sums: int) -> int:
        """How many vectors wide a tile is."""
        needed = -(-self.columns // self.lanes)
        for count in (4, 2):
            if needed >= 2 * count and (self.by_terms or self.rows * count <= sums):
                return count
        return 2 if needed >= 2 else 1

    # ---- the walk over tiles

    def panels(self) -> str:
        """The text of all functions."""
        whole, left = divmod(self.columns, self.width)
        body: list[str] = []
        for name, count, columns in (("full", whole, self.width), ("last", 1 if left else 0, left)):
            if count:
                self.panel(name, columns)
        body += ["define internal void @panels(ptr %a, i64 %u0, i64 %u1) {", "entry:"]
        first, end, rows = "%u0", "%u1", ""
        if self.by_terms:
            first, end, rows = "0", str(self.panel_count), ", i64 %r0, i64 %r1"
            body += [f" %r{i} = mul i64 %u{i}, {self.tile_rows}" for i in (0, 1)]
        body += [" br label %head", "head:", f" %p = phi i64 [{first}, %entry], [%p2, %next]"]
        body += [f" %more = icmp slt i64 %p, {end}"]
        body += [" br i1 %more, label %work, label %done", "work:", f" %c = mul i64 %p, {self.width}"]
        if whole and left:
            body += [f" %is = icmp slt i64 %p, {whole}", " br i1 %is, label %full, label %last", "full:"]
            body += [f" call void @panel_full(ptr %a, i64 %c{rows})", " br label %next", "last:"]
            body += [f" call void @panel_last(ptr %a, i64 %c{rows})", " br label %next"]
        else:
            name = "full" if whole else "last"
            body += [f" call void @panel_{name}(ptr %a, i64 %c{rows})", " br label %next"]
        body += ["next:", " %p2 = add i64 %p, 1", " br label %head", "done:", " ret void", "}"]
        return "\n".join([*self.texts, *body])

    def panel(self, name: str, columns: int) -> None:
        """The function ``panel_<name>`` of these columns, of all rows or of some tiles', and those of its
        tiles."""
        whole, left = divmod(self.rows, self.tile_rows)
        own = ", i64 %r0, i64 %r1" * self.by_terms
        lines = [f"define internal void @panel_{name}(ptr %a, i64 %c{own}) {{", "entry:"]
        lines += [f" %tile = alloca [{self.tile_rows * self.width} x {self.kind}], align 64"]
        if self.is_copied:
            lines += [f" %own = alloca [{self.inner * self.width} x {self.kind}], align 64"]
            lines += [f" call void @copy_{name}(ptr %a, ptr %own, i64 %c)"]
            self.texts.append(self.copy(name, columns))
        end = whole * self.tile_rows
        first, last = ("%r0", "%some") if self.by_terms else ("0", str(end))
        if self.by_terms:
            lines += [f" %is_last = icmp sgt i64 %r1, {end}"]
            lines += [f" %some = select i1 %is_last, i64 {end}, i64 %r1"]
            lines += [" %any = icmp slt i64 %r0, %some", " br i1 %any, label %row, label %rest"]
        else:
            lines += [" br label %row"]
        lines += ["row:", f" %r = phi i64 [{first}, %entry], [%r2, %row]"]
        lines += self.calls(name, "rows", "%r", self.tile_rows, columns)
        lines += [f" %r2 = add i64 %r, {self.tile_rows}", f" %more = icmp slt i64 %r2, {last}"]
        lines += [" br i1 %more, label %row, label %rest", "rest:"]
        if left and self.by_terms:
            lines += [" br i1 %is_last, label %some_rows, label %done", "some_rows:"]
        if left:
            lines += self.calls(name, "rest", str(end), left, columns)
        if left and self.by_terms:
            lines += [" br label %done", "done:"]
        if not self.is_direct:
            self.texts.append(self.finish(name, columns))
        self.texts.append("\n".join([*lines, " ret void", "}"]))

    def calls(self, panel: str, part: str, row: str, rows: int, columns: int) -> list[str]:
        """Calls, for `rows` rows of a panel of `columns` columns, of the tiles and of what comes after."""
        step = _FOLDED if self.is_transposed else columns
        lines, made = [], dict[int, str]()
        for start in range(0, columns, step):
            count = min(step, columns - start)
            if count not in made:
                made[count] = f"{panel}_{part}_{count}"
                self.tile(made[count], rows, count)
            lines += [f" %t_{part}{start} = getelementptr {self.kind}, ptr %tile, i64 {start}"]
            lines += [f" %c_{part}{start} = add i64 %c, {start}"]
            place = f"ptr %t_{part}{start}, i64 {row}, i64 %c_{part}{start}" + ", ptr %own" * self.is_copied
            lines += [f" call void @tile_{made[count]}(ptr %a, {place})"]
        if self.is_direct:
            return lines
        return [*lines, f" call void @finish_{panel}(ptr %a, ptr %tile, i64 {row}, i64 {rows}, i64 %c)"]

    # ---- one tile

    def tile(self, name: str, rows: int, columns: int) -> None:
        """The function ``tile_<name>``: these rows and columns of the product, to the stack."""
        e = Emitter(self.lanes, self.declarations)
        own = ", ptr %own" * self.is_copied
        e.lines.append(f"define internal void @tile_{name}(ptr %a, ptr %tile, i64 %r, i64 %c{own}) {{")
        e.lines.append("entry:")
        x = e.let("load ptr, ptr %a")
        y = e.let(f"load ptr, ptr {e.let('getelementptr ptr, ptr %a, i64 1')}")
        pitch = self.pitch(e)
        if self.by_terms:
            x, self.apart, self.step = self.place(e, x, "%r"), [str(r) for r in range(rows)], pitch
        else:
            x = self.place(e, x, e.let(f"mul i64 %r, {pitch}"))
            self.apart = [
                e.let(f"mul i64 {pitch}, {r}") if self.is_pitched else str(r * self.inner)
                for r in range(rows)
            ]
        if self.is_transposed:
            self.by_columns(e, x, self.place(e, y, e.let(f"mul i64 %c, {self.inner}")), rows, columns)
        else:
            self.by_rows(e, x, "%own" if self.is_copied else self.place(e, y, "%c"), rows, columns)
        e.lines += [" ret void", "}"]
        self.texts.append("\n".join(e.lines))

    def pitch(self, e: Emitter) -> str:
        """How far the rows of the first matrix, as it is stored, lie apart."""
        if not self.is_pitched:
            return str(self.rows if self.by_terms else self.inner)
        place = len(self.after.inputs) + 1 + len(self.after.outputs)
        return e.let(f"load i64, ptr {e.let(f'getelementptr i64, ptr %a, i64 {place}')}")

    def copy(self, name: str, columns: int) -> str:
        """The function ``copy_<name>``: these columns of all rows of the second matrix, to the stack."""
        e = Emitter(self.lanes, self.declarations)
        e.lines.append(f"define internal void @copy_{name}(ptr %a, ptr %own, i64 %c) {{")
        e.lines.append("entry:")
        y = e.let(f"load ptr, ptr {e.let('getelementptr ptr, ptr %a, i64 1')}")
        y, kind = self.place(e, y, "%c"), e.vector(self.kind)
        e.lines += [" br label %row", "row:", " %k = phi i64 [0, %entry], [%k2, %row]"]
        source = self.place(e, y, e.let(f"mul i64 %k, {self.columns}"))
        target = self.place(e, "%own", e.let(f"mul i64 %k, {self.width}"))
        for start in range(0, columns, self.lanes):
            found = self.load(e, self.place(e, source, start), self.dtype, min(self.lanes, columns - start))
            e.do(f"store {kind} {found}, ptr {self.place(e, target, start)}, align {self.size}")
        e.lines += [" %k2 = add i64 %k, 1", f" %more = icmp slt i64 %k2, {self.inner}"]
        return "\n".join([*e.lines, " br i1 %more, label %row, label %done", "done:", " ret void", "}"])

    def place(self, e: Emitter, address: str, offset: str | int) -> str:
        return e.let(f"getelementptr {self.kind}, ptr {address}, i64 {offset}")

    def by_rows(self, e: Emitter, x: str, y: str, rows: int, columns: int) -> None:
        """Adds up numbers of the first matrix times vectors of the second's rows."""
        vectors = -(-columns // self.lanes)
        cells = [(r, v) for r in range(rows) for v in range(vectors)]
        zero, kind = self.zero(), e.vector(self.kind)
        e.lines += [" br label %add", "add:", " %k = phi i64 [0, %entry], [%k2, %add]"]
        e.lines += [f" %s{r}_{v} = phi {kind} [{zero}, %entry], [%n{r}_{v}, %add]" for r, v in cells]
        pitch = self.width if self.is_copied else self.columns
        row = self.place(e, y, e.let(f"mul i64 %k, {pitch}"))
        second = []
        for v in range(vectors):
            count = min(self.lanes, columns - v * self.lanes)
            second.append(self.load(e, self.place(e, row, v * self.lanes), self.dtype, count))
        column = self.place(e, x, e.let(f"mul i64 %k, {self.step}") if self.by_terms else "%k")
        for r in range(rows):
            first = self.everywhere(e, self.place(e, column, self.apart[r]), self.dtype)
            for v in range(vectors):
                total = e.intrinsic("fma", self.dtype, first, second[v], f"%s{r}_{v}")
                _name(e, f"%n{r}_{v}", kind, total)
        e.lines += [" %k2 = add i64 %k, 1", f" %more = icmp slt i64 %k2, {self.inner}"]
        e.lines += [" br i1 %more, label %add, label %end", "end:"]
        for r, v in cells:
            if not self.is_direct:
                e.do(f"store {kind} %n{r}_{v}, ptr {self.place(e, '%tile', r * self.width + v * self.lanes)}")
                continue
            place = self.place(e, self.result(e, r), v * self.lanes)
            self.store(e, place, self.dtype, f"%n{r}_{v}", min(self.lanes, columns - v * self.lanes))

    def result(self, e: Emitter, r: int) -> str:
        """The address of the r-th row of a tile in the only output."""
        output = e.let(f"load ptr, ptr {e.let('getelementptr ptr, ptr %a, i64 2')}")
        row = e.let(f"mul i64 {e.let(f'add i64 %r, {r}')}, {self.columns}")
        return self.place(e, self.place(e, output, row), "%c")

    def by_columns(self, e: Emitter, x: str, y: str, rows: int, columns: int) -> None:
        """Adds up vectors of both matrices, which both lie along the sums, of a few columns."""
        cells = [(r, c) for r in range(rows) for c in range(columns)]
        kind, zero = e.vector(self.kind), self.zero()
        end = self.inner // self.lanes * self.lanes
        sums = dict.fromkeys(cells, zero)
        if end:
            e.lines += [" br label %add", "add:", " %k = phi i64 [0, %entry], [%k2, %add]"]
            e.lines += [f" %s{r}_{c} = phi {kind} [{zero}, %entry], [%n{r}_{c}, %add]" for r, c in cells]
            sums = {(r, c): f"%s{r}_{c}" for r, c in cells}
            sums = self.multiplied(e, self.place(e, x, "%k"), self.place(e, y, "%k"), sums, self.lanes)
            for r, c in cells:
                _name(e, f"%n{r}_{c}", kind, sums[r, c])
            e.lines += [f" %k2 = add i64 %k, {self.lanes}", f" %more = icmp slt i64 %k2, {end}"]
            e.lines += [" br i1 %more, label %add, label %end", "end:"]
        if end < self.inner:
            sums = self.multiplied(e, self.place(e, x, end), self.place(e, y, end), sums, self.inner - end)
        for r in range(rows):
            self.fold(e, [sums[r, c] for c in range(columns)], r * self.width)

    def multiplied(
        self, e: Emitter, x: str, y: str, sums: dict[tuple[int, int], str], count: int
    ) -> dict[tuple[int, int], str]:
        """The sums with the products of `count` numbers of each row and column added."""
        rows, columns = (1 + max(each) for each in zip(*sums))
        first = [self.load(e, self.place(e, x, self.apart[r]), self.dtype, count) for r in range(rows)]
        result = {}
        for c in range(columns):  # one vector of the second matrix at a time leaves registers for the sums
            second = self.load(e, self.place(e, y, c * self.inner), self.dtype, count)
            for r in range(rows):
                result[r, c] = e.intrinsic("fma", self.dtype, first[r], second, sums[r, c])
        return result

    def fold(self, e: Emitter, sums: list[str], offset: int) -> None:
        """Stores the totals of the vectors, one after the other."""
        parts, lanes = [*sums, *[self.zero()] * (-len(sums) % _FOLDED)], self.lanes
        while len(parts) > 1:  # two vectors become one, which holds partial sums of both in turn
            group = _FOLDED // len(parts)
            low, high = _interleaved(lanes, group, 0), _interleaved(lanes, group, group)
            parts = [self.added(e, a, b, low, high, lanes) for a, b in zip(parts[::2], parts[1::2])]
        total = parts[0]
        while lanes > _FOLDED:
            half = lanes // 2
            low, high = list(range(half)), list(range(half, lanes))
            total = self.added(e, total, total, low, high, lanes)
            lanes = half
        place = self.place(e, "%tile", offset)
        e.do(f"store <{_FOLDED} x {self.kind}> {total}, ptr {place}, align {self.size}")

    def added(self, e: Emitter, a: str, b: str, low: list[int], high: list[int], lanes: int) -> str:
        kind = f"<{lanes} x {self.kind}>"
        parts = []
        for chosen in (low, high):
            places = ", ".join(f"i32 {i}" for i in chosen)
            parts.append(e.let(f"shufflevector {kind} {a}, {kind} {b}, <{len(chosen)} x i32> <{places}>"))
        return e.let(f"fadd <{len(low)} x {self.kind}> {parts[0]}, {parts[1]}")

    # ---- the steps after the product

    def finish(self, name: str, columns: int) -> str:
        """The function ``finish_<name>``: the steps on these columns of some rows of a tile."""
        e = Emitter(self.lanes, self.declarations)
        e.lines.append(f"define internal void @finish_{name}(ptr %a, ptr %t, i64 %r, i64 %n, i64 %c) {{")
        e.lines.append("entry:")
        count = len(self.after.inputs)
        for i in [*range(1, count), *range(count, count + len(self.after.outputs))]:
            e.do(f"%p{i} = load ptr, ptr {e.let(f'getelementptr ptr, ptr %a, i64 {i + 1}')}")
        places = count + 1 + len(self.after.outputs) + self.is_pitched
        for place, i in enumerate(self.after.pitched, places):
            e.do(f"%q{i} = load i64, ptr {e.let(f'getelementptr i64, ptr %a, i64 {place}')}")
        e.lines += [" br label %row", "row:", " %i = phi i64 [0, %entry], [%i2, %row]"]
        e.lines += [" %at = add i64 %r, %i", f" %own = mul i64 %i, {self.width}"]
        for start in range(0, columns, self.lanes):
            self.steps(e, start, min(self.lanes, columns - start))
        e.lines += [" %i2 = add i64 %i, 1", " %more = icmp slt i64 %i2, %n"]
        e.lines += [" br i1 %more, label %row, label %done", "done:", " ret void", "}"]
        return "\n".join(e.lines)

    def steps(self, e: Emitter, start: int, count: int) -> None:
        """The steps on `count` columns, from column `start` of the tile on."""
        kind = e.vector(self.kind)
        own = self.place(e, self.place(e, "%t", "%own"), start)
        values = {0: e.let(f"load {kind}, ptr {own}, align {self.size}")}
        for i, array in enumerate(self.after.inputs[1:], 1):
            dims = (1, 1, *array.dims)[-2:]
            address = self.element(e, i, array.dtype, dims, start)
            if dims[1] == 1:
                values[i] = self.everywhere(e, address, array.dtype)
            else:
                values[i] = self.load(e, address, array.dtype, count)
        for number, step in enumerate(self.after.steps, len(self.after.inputs)):
            attributes = dict(step.attributes)
            if step.op == "Const":
                values[number] = e.constant(step.dtype, number_of(step.dtype, str(attributes["value"])))
                continue
            dtype = self.after.dtype(step.operands[-1])
            operands = [values[j] for j in step.operands]
            values[number] = ELEMENTS[step.op].emit(e, dtype, operands, attributes)
        for i, output in enumerate(self.after.outputs, len(self.after.inputs)):
            dtype = self.after.dtype(output)
            self.store(
                e, self.element(e, i, dtype, (self.rows, self.columns), start), dtype, values[output], count
            )

    def element(self, e: Emitter, i: int, dtype: str, dims: tuple[int, ...], start: int) -> str:
        """The address of column `start` of the tile in this row of an array of `dims`."""
        kind, place = memory_kind(dtype), f"%p{i}"
        if dims[0] > 1:
            pitch = f"%q{i}" if i in self.after.pitched else dims[1]
            place = e.let(f"getelementptr {kind}, ptr {place}, i64 {e.let(f'mul i64 %at, {pitch}')}")
        if dims[1] > 1:
            place = e.let(f"getelementptr {kind}, ptr {place}, i64 {e.let(f'add i64 %c, {start}')}")
        return place


def _name(e: Emitter, name: str, kind: str, value: str) -> None:
    """Gives a value a name that was used before; LLVM removes the instruction."""
    e.do(f"{name} = select i1 true, {kind} {value}, {kind} {value}")


def _interleaved(lanes: int, group: int, offset: int) -> list[int]:
    """Of two vectors of groups of 2 x `group` numbers, those from `offset` on of each group in turn."""
    result: list[int] = []
    for start in range(0, lanes, 2 * group):
        for vector in (0, lanes):
            result += [vector + start + offset + i for i in range(group)]
    return result
