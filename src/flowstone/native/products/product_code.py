"""LLVM's text of a product of few rows: ``run(ptr addresses)``, tile by tile, on a team where that pays.

`addresses` are those of the two matrices, of what the steps after the product take, and of the outputs, and
how far the rows of inputs that are `pitched` lie apart; all else is contiguous. A tile is some rows by some
vectors of columns, as many sums as there are registers. Where the second matrix is stored by columns, vectors
of it lie along the sums: then a tile is four columns, whose sums are folded at the end. Either way tiles go
to the stack, and the steps read them there, a panel at a time. Where a panel's rows lie on more pages than
the processor finds at once, and many tiles read it, it is copied to the stack first.
"""

from __future__ import annotations

from flowstone.framework.machine import machine
from flowstone.native.clusters.clusters import Cluster
from flowstone.native.clusters.loop_code import number_of
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import KINDS, SIZES, Emitter
from flowstone.native.codegen.parts import by_team, has_teams
from flowstone.native.numerics.elements import ELEMENTS

__all__ = ["Writer", "copies_panels", "product_code"]

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
    kind: type[Writer] | None = None,
) -> str:
    """The text of ``run`` and what it calls; `is_pitched`: the first matrix is; `kind`: what writes it."""
    writer = (kind or Writer)(rows, inner, columns, is_transposed, after, declarations, is_pitched)
    text = [writer.panels()]
    panels = writer.panel_count
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


class Writer:
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
    ) -> None:
        self.rows, self.inner, self.columns, self.is_transposed = rows, inner, columns, is_transposed
        self.after, self.declarations, self.is_pitched = after, declarations, is_pitched
        self.dtype = after.inputs[0].dtype
        self.kind, self.size = KINDS[self.dtype], SIZES[self.dtype]
        self.lanes = host.lanes() * 4 // self.size
        self._set_tiles()
        self.width = self.vectors * self.lanes
        self.panel_count = -(-columns // self.width)
        self.texts: list[str] = []
        self.apart: list[str] = []  # of a tile's rows, how far each is from the first

    def _set_tiles(self) -> None:
        """How many vectors and rows a tile has, and whether panels are copied."""
        sums = _registers(host.lanes())
        self.vectors = 1 if self.is_transposed else self._vectors(sums)
        most = sums // (_FOLDED if self.is_transposed else self.vectors)
        self.tile_rows = -(-self.rows // -(-self.rows // most))
        is_wide = copies_panels(self.rows, self.inner, self.columns, self.dtype)
        self.is_copied = is_wide and not self.is_transposed

    def _vectors(self, sums: int) -> int:
        """How many vectors wide a tile is."""
        needed = -(-self.columns // self.lanes)
        for count in (4, 2):
            if needed >= 2 * count and self.rows * count <= sums:
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
        body += ["define internal void @panels(ptr %a, i64 %p0, i64 %p1) {", "entry:", " br label %head"]
        body += ["head:", " %p = phi i64 [%p0, %entry], [%p2, %next]", " %more = icmp slt i64 %p, %p1"]
        body += [" br i1 %more, label %work, label %done", "work:", f" %c = mul i64 %p, {self.width}"]
        if whole and left:
            body += [f" %is = icmp slt i64 %p, {whole}", " br i1 %is, label %full, label %last", "full:"]
            body += [" call void @panel_full(ptr %a, i64 %c)", " br label %next", "last:"]
            body += [" call void @panel_last(ptr %a, i64 %c)", " br label %next"]
        else:
            body += [f" call void @panel_{'full' if whole else 'last'}(ptr %a, i64 %c)", " br label %next"]
        body += ["next:", " %p2 = add i64 %p, 1", " br label %head", "done:", " ret void", "}"]
        return "\n".join([*self.texts, *body])

    def panel(self, name: str, columns: int) -> None:
        """The function ``panel_<name>`` of all rows of these columns, and those of its tiles."""
        whole, left = divmod(self.rows, self.tile_rows)
        lines = [f"define internal void @panel_{name}(ptr %a, i64 %c) {{", "entry:"]
        lines += [f" %tile = alloca [{self.tile_rows * self.width} x {self.kind}], align 64"]
        if self.is_copied:
            lines += [f" %own = alloca [{self.inner * self.width} x {self.kind}], align 64"]
            lines += [f" call void @copy_{name}(ptr %a, ptr %own, i64 %c)"]
            self.texts.append(self.copy(name, columns))
        lines += [" br label %row", "row:", " %r = phi i64 [0, %entry], [%r2, %row]"]
        lines += self.calls(name, "rows", "%r", self.tile_rows, columns)
        end = whole * self.tile_rows
        lines += [f" %r2 = add i64 %r, {self.tile_rows}", f" %more = icmp slt i64 %r2, {end}"]
        lines += [" br i1 %more, label %row, label %rest", "rest:"]
        if left:
            lines += self.calls(name, "rest", str(end), left, columns)
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
        x = self.place(e, x, e.let(f"mul i64 %r, {pitch}"))
        self.apart = [
            e.let(f"mul i64 {pitch}, {r}") if self.is_pitched else str(r * self.inner) for r in range(rows)
        ]
        if self.is_transposed:
            self.by_columns(e, x, self.place(e, y, e.let(f"mul i64 %c, {self.inner}")), rows, columns)
        else:
            self.by_rows(e, x, "%own" if self.is_copied else self.place(e, y, "%c"), rows, columns)
        e.lines += [" ret void", "}"]
        self.texts.append("\n".join(e.lines))

    def pitch(self, e: Emitter) -> str:
        """How far the rows of the first matrix lie apart."""
        if not self.is_pitched:
            return str(self.inner)
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
        column = self.place(e, x, "%k")
        for r in range(rows):
            first = self.everywhere(e, self.place(e, column, self.apart[r]), self.dtype)
            for v in range(vectors):
                total = e.intrinsic("fma", self.dtype, first, second[v], f"%s{r}_{v}")
                _name(e, f"%n{r}_{v}", kind, total)
        e.lines += [" %k2 = add i64 %k, 1", f" %more = icmp slt i64 %k2, {self.inner}"]
        e.lines += [" br i1 %more, label %add, label %end", "end:"]
        for r, v in cells:
            e.do(f"store {kind} %n{r}_{v}, ptr {self.place(e, '%tile', r * self.width + v * self.lanes)}")

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
        kind, place = _memory_kind(dtype), f"%p{i}"
        if dims[0] > 1:
            pitch = f"%q{i}" if i in self.after.pitched else dims[1]
            place = e.let(f"getelementptr {kind}, ptr {place}, i64 {e.let(f'mul i64 %at, {pitch}')}")
        if dims[1] > 1:
            place = e.let(f"getelementptr {kind}, ptr {place}, i64 {e.let(f'add i64 %c, {start}')}")
        return place

    # ---- memory

    def zero(self) -> str:
        return Emitter(self.lanes, {}).constant(self.dtype, 0)

    def everywhere(self, e: Emitter, address: str, dtype: str) -> str:
        """A number of memory in all lanes."""
        kind = _memory_kind(dtype)
        value = e.let(f"load {kind}, ptr {address}, align {SIZES[dtype]}")
        if dtype == "bool":
            value, kind = e.let(f"icmp ne i8 {value}, 0"), "i1"
        vector = e.vector(kind)
        one = e.let(f"insertelement {vector} poison, {kind} {value}, i32 0")
        places = f"<{self.lanes} x i32> zeroinitializer"
        return e.let(f"shufflevector {vector} {one}, {vector} poison, {places}")

    def mask(self, count: int) -> str:
        lanes = ", ".join(f"i1 {'true' if i < count else 'false'}" for i in range(self.lanes))
        return f"<{self.lanes} x i1> <{lanes}>"

    def load(self, e: Emitter, address: str, dtype: str, count: int) -> str:
        """`count` numbers of memory, and zeros."""
        kind, align = _memory_kind(dtype), SIZES[dtype]
        vector = e.vector(kind)
        if count == self.lanes:
            value = e.let(f"load {vector}, ptr {address}, align {align}")
        else:
            name = f"llvm.masked.load.{_suffix(self.lanes, kind)}.p0"
            self.declarations[name] = f"declare {vector} @{name}(ptr, {e.vector('i1')}, {vector})"
            place = f"ptr align {align} {address}, {self.mask(count)}, {vector} zeroinitializer"
            value = e.let(f"call {vector} @{name}({place})")
        return e.let(f"icmp ne {vector} {value}, zeroinitializer") if dtype == "bool" else value

    def store(self, e: Emitter, address: str, dtype: str, value: str, count: int) -> None:
        kind, align = _memory_kind(dtype), SIZES[dtype]
        vector = e.vector(kind)
        if dtype == "bool":
            value = e.let(f"zext {e.vector('i1')} {value} to {vector}")
        if count == self.lanes:
            e.do(f"store {vector} {value}, ptr {address}, align {align}")
            return
        name = f"llvm.masked.store.{_suffix(self.lanes, kind)}.p0"
        self.declarations[name] = f"declare void @{name}({vector}, ptr, {e.vector('i1')})"
        e.do(f"call void @{name}({vector} {value}, ptr align {align} {address}, {self.mask(count)})")


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


def _memory_kind(dtype: str) -> str:
    kind = KINDS[dtype]
    return "i8" if kind == "i1" else kind


def _suffix(lanes: int, kind: str) -> str:
    return f"v{lanes}{ {'float': 'f32', 'double': 'f64'}.get(kind, kind) }"
