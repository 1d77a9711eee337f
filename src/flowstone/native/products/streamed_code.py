"""LLVM's text of a product of few rows by a matrix that no cache holds: memory is read once, in order.

Tiles that go down the columns of such a matrix wait for memory at every row, which lies on another page.
Here a panel's sums, of all rows, lie on the stack in the nearest cache. Some rows of the second matrix at a
time are read along the panel: at each vector the sums are taken, so many products added, and put back, while
the same place of the rows that come next is asked for.
"""

from __future__ import annotations

from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import SIZES, Emitter
from flowstone.native.products.product_code import Writer

__all__ = ["StreamedWriter", "may_be_streamed"]

_PANEL_BYTES = 2048  # of a row
_FINISHED = 4  # vectors of a panel on which the steps after the product run at a time
_PRODUCTS = 256  # of a number and a vector, that a place of the panel gets at most at a time
_PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"


def may_be_streamed(rows: int) -> bool:
    """Whether there are registers for the sums of so many rows."""
    return rows <= (24 if host.lanes() == 16 else 12)


class StreamedWriter(Writer):
    """Writes the functions of panels, each of which is one tile."""

    def _set_tiles(self) -> None:
        self.vectors = _PANEL_BYTES // (self.lanes * SIZES[self.dtype])
        self.tile_rows = self.rows
        self.is_copied = False

    def panel(self, name: str, columns: int) -> None:
        """The function ``panel_<name>`` of all rows of these columns, and that of its tile."""
        self.tile(name, self.rows, columns)
        lines = [f"define internal void @panel_{name}(ptr %a, i64 %c) {{", "entry:"]
        lines += [f" %tile = alloca [{self.rows * self.width} x {self.kind}], align 64"]
        lines += [f" call void @tile_{name}(ptr %a, ptr %tile, i64 0, i64 %c)"]
        made: set[int] = set()
        step = _FINISHED * self.lanes
        for start in range(0, columns, step):
            count = min(step, columns - start)
            if count not in made:
                made.add(count)
                self.texts.append(self.finish(f"{name}_{count}", count))
            lines += [f" %t{start} = getelementptr {self.kind}, ptr %tile, i64 {start}"]
            lines += [f" %c{start} = add i64 %c, {start}"]
            place = f"ptr %t{start}, i64 0, i64 {self.rows}, i64 %c{start}"
            lines += [f" call void @finish_{name}_{count}(ptr %a, {place})"]
        self.texts.append("\n".join([*lines, " ret void", "}"]))

    def by_rows(self, e: Emitter, x: str, y: str, rows: int, columns: int) -> None:
        """Adds up some rows of the second matrix at a time, along the panel."""
        at_once = max(4, min(16, _PRODUCTS // rows))
        whole, left = divmod(columns, self.lanes)
        vector, zero = e.vector(self.kind), self.zero()
        for r in range(rows):
            for v in range(-(-columns // self.lanes)):
                e.do(f"store {vector} {zero}, ptr {self._sum(e, r, str(v * self.lanes))}, align {self.size}")
        start = "%entry"
        for name, count, end in (("block", at_once, self.inner // at_once * at_once), ("row", 1, self.inner)):
            first = 0 if name == "block" else self.inner // at_once * at_once
            if first == end:
                continue
            e.lines += [f" br label %{name}", f"{name}:"]
            e.lines += [f" %k_{name} = phi i64 [{first}, {start}], [%k2_{name}, %{name}_end]"]
            row = self.place(e, y, e.let(f"mul i64 %k_{name}, {self.columns}"))
            column = self.place(e, x, f"%k_{name}")
            if whole:
                e.lines += [f" br label %{name}_v", f"{name}_v:"]
                e.lines += [f" %v_{name} = phi i64 [0, %{name}], [%v2_{name}, %{name}_v]"]
                self._add(e, column, row, f"%v_{name}", rows, count, self.lanes)
                e.lines += [f" %v2_{name} = add i64 %v_{name}, {self.lanes}"]
                e.lines += [f" %m_{name} = icmp slt i64 %v2_{name}, {whole * self.lanes}"]
                e.lines += [f" br i1 %m_{name}, label %{name}_v, label %{name}_left", f"{name}_left:"]
            if left:
                self._add(e, column, row, str(whole * self.lanes), rows, count, left)
            e.lines += [f" br label %{name}_end", f"{name}_end:", f" %k2_{name} = add i64 %k_{name}, {count}"]
            e.lines += [f" %more_{name} = icmp slt i64 %k2_{name}, {end}"]
            e.lines += [f" br i1 %more_{name}, label %{name}, label %{name}_out", f"{name}_out:"]
            start = f"%{name}_out"

    def _sum(self, e: Emitter, row: int, column: str) -> str:
        return self.place(e, self.place(e, "%tile", row * self.width), column)

    def _add(self, e: Emitter, x: str, y: str, at: str, rows: int, count: int, lanes: int) -> None:
        """Adds the products of `count` numbers of each row and the vectors at a place of as many rows."""
        vector = e.vector(self.kind)
        places = [self._sum(e, r, at) for r in range(rows)]
        sums = [e.let(f"load {vector}, ptr {place}, align {self.size}") for place in places]
        self.declarations["llvm.prefetch.p0"] = _PREFETCH
        for k in range(count):
            source = self.place(e, self.place(e, y, k * self.columns), at)
            second = self.load(e, source, self.dtype, lanes)
            if count > 1:
                e.do(
                    f"call void @llvm.prefetch.p0(ptr {self.place(e, source, count * self.columns)}, "
                    "i32 0, i32 2, i32 1)"
                )
            column = self.place(e, x, k)
            for r in range(rows):
                first = self.everywhere(e, self.place(e, column, self.apart[r]), self.dtype)
                sums[r] = e.intrinsic("fma", self.dtype, first, second, sums[r])
        for place, total in zip(places, sums):
            e.do(f"store {vector} {total}, ptr {place}, align {self.size}")
