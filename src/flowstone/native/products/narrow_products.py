"""Products with few columns, as machine code: a layer with few outputs, and descent by its weights' gradient.

Weights [terms, columns] are kept column by column, so that vectors run along the terms, all lanes full: the
layer's results are dot products of rows, a block of them at once so that each vector of weights is read for
several rows; and the gradient ``x' g`` grows in registers, some vectors of terms for all columns at once,
until it is added to the weights. Sums are in float32, in another order than BLAS's.

`layer(sizes, rectifies, otherwise)` is a function of x [rows, terms], the weights and a bias [columns]; it
returns x w + b, or what is positive of it. `descent(sizes, transposed, otherwise)` is one of a variable, a
rate, x, and g [rows, columns], or [columns, rows] if that is `transposed`, in any layout; it subtracts
rate x' g from the variable, and returns it. Both take float32. For other layouts and types they call
`otherwise`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flowstone.native.clusters.entry_points import DECLARATIONS, TYPE_CODES
from flowstone.native.clusters.machine_functions import MachineFunction
from flowstone.native.codegen import host

__all__ = ["Sizes", "descent", "layer"]

_WRAP = "_Z16THPVariable_WrapRKN2at10TensorBaseE"
_MORE = {
    "aoti_torch_get_strides": "declare i32 @aoti_torch_get_strides(ptr, ptr)",
    "PyFloat_AsDouble": "declare double @PyFloat_AsDouble(ptr)",
    "flowstone_variable_type": "@flowstone_variable_type = external global i8",
}
_FLOAT = TYPE_CODES["float32"]


class Sizes(NamedTuple):
    """Of x and of the weights."""

    rows: int
    terms: int
    columns: int


def layer(sizes: Sizes, rectifies: bool, otherwise: Callable[..., Any]) -> MachineFunction:
    """The function of x, weights and bias: see the top of the file."""
    key = (sizes, rectifies)
    return MachineFunction("narrow_layer", key, lambda: _layer_code(sizes, rectifies), otherwise)


def descent(sizes: Sizes, transposed: bool, otherwise: Callable[..., Any]) -> MachineFunction:
    """The function of variable, rate, x and g: see the top of the file."""
    key = (sizes, transposed)
    return MachineFunction("narrow_descent", key, lambda: _descent_code(sizes, transposed), otherwise)


class _Text:
    """Lines of one function, with names of their own."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.lanes = host.lanes()
        self.vector = f"<{self.lanes} x float>"
        self.block = "entry"

    def let(self, text: str) -> str:
        self.count += 1
        self.lines.append(f" %v{self.count} = {text}")
        return f"%v{self.count}"

    def do(self, text: str) -> None:
        self.lines.append(f" {text}")

    def begin(self, label: str) -> None:
        """Begins the block that the one before runs into."""
        self.do(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.block = label

    def place(self, base: str, *offset: str) -> str:
        """The address of an element of float32: offsets are words ``i * n``."""
        for each in offset:
            base = self.let(f"getelementptr float, ptr {base}, i64 {each}")
        return base

    def load(self, place: str, left: int = 0) -> str:
        """A vector, or the first `left` elements of one."""
        if not left:
            return self.let(f"load {self.vector}, ptr {place}, align 4")
        return self.let(
            f"call {self.vector} @llvm.masked.load.v{self.lanes}f32.p0(ptr align 4 {place}, "
            f"{self.mask(left)}, {self.vector} zeroinitializer)"
        )

    def store(self, value: str, place: str, left: int = 0) -> None:
        if not left:
            self.do(f"store {self.vector} {value}, ptr {place}, align 4")
        else:
            self.do(
                f"call void @llvm.masked.store.v{self.lanes}f32.p0({self.vector} {value}, "
                f"ptr align 4 {place}, {self.mask(left)})"
            )

    def mask(self, left: int) -> str:
        words = ", ".join(f"i1 {'true' if i < left else 'false'}" for i in range(self.lanes))
        return f"<{self.lanes} x i1> <{words}>"

    def everywhere(self, value: str) -> str:
        one = self.let(f"insertelement {self.vector} poison, float {value}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.let(f"shufflevector {self.vector} {one}, {self.vector} poison, {zeros}")

    def fma(self, a: str, b: str, c: str) -> str:
        name = f"llvm.fma.v{self.lanes}f32"
        return self.let(
            f"call {self.vector} @{name}({self.vector} {a}, {self.vector} {b}, {self.vector} {c})"
        )

    def loop(self, label: str, start: int, end: int, step: int, sums: list[str], body: Any) -> list[str]:
        """Counts from `start` to `end`; ``body(counter, sums)`` gives the sums after one turn. Returns the
        sums after the last; there is at least one."""
        before, number = self.block, self.count
        self.do(f"br label %{label}")
        self.lines.append(f"{label}:")
        head = len(self.lines)
        names = [f"%{label}s{i}" for i in range(len(sums))]
        counter = f"%{label}i"
        self.block = label
        after: list[str] = body(counter, names)
        following = self.let(f"add i64 {counter}, {step}")
        more = self.let(f"icmp slt i64 {following}, {end}")
        last = self.block
        phis = [f" {counter} = phi i64 [{start}, %{before}], [{following}, %{last}]"]
        phis += [
            f" {name} = phi {self.vector} [{old}, %{before}], [{new}, %{last}]"
            for name, old, new in zip(names, sums, after)
        ]
        self.lines[head:head] = phis
        self.do(f"br i1 {more}, label %{label}, label %{label}e{number}")
        self.lines.append(f"{label}e{number}:")
        self.block = f"{label}e{number}"
        return after


def _declarations() -> str:
    lanes = host.lanes()
    vector, mask = f"<{lanes} x float>", f"<{lanes} x i1>"
    return "\n".join([
        *{**DECLARATIONS, **_MORE}.values(),
        f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})",
        f"declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {vector})",
        f"declare {vector} @llvm.masked.load.v{lanes}f32.p0(ptr, {mask}, {vector})",
        f"declare void @llvm.masked.store.v{lanes}f32.p0({vector}, ptr, {mask})",
    ])  # fmt: skip


def _at_once(columns: int) -> int:
    """How many rows, or vectors of terms, registers have room for, each with a sum for every column of a
    part."""
    return max(1, min(8, _sums() // len(_parts(columns)[0])))


def _parts(columns: int) -> list[range]:
    """The columns in parts, of which each leaves room for the sums of two rows."""
    count = -(-columns // (_sums() // 2))
    width = -(-columns // count)
    return [range(i, min(i + width, columns)) for i in range(0, columns, width)]


def _sums() -> int:
    """How many vectors of sums the processor's registers hold beside what is added up."""
    return 28 if host.lanes() == 16 else 12


# ---- the layer


def _layer_code(sizes: Sizes, rectifies: bool) -> str:
    text, rows = _Text(), _at_once(sizes.columns)
    whole = sizes.rows // rows * rows

    def block(count: int) -> Any:
        def body(row: str, _: list[str]) -> list[str]:
            _dot_products(text, sizes, row, count, rectifies)
            return []

        return body

    if whole:
        text.loop("rows", 0, whole, rows, [], block(rows))
    if whole < sizes.rows:
        text.loop("single", whole, sizes.rows, 1, [], block(1))
    head = (
        "define internal void @run(ptr noalias %x, ptr noalias %w, ptr noalias %b, ptr noalias %y) {\nentry:"
    )
    return "\n".join([_declarations(), head, *text.lines, " ret void\n}", _layer_entry(sizes)])


def _dot_products(text: _Text, sizes: Sizes, row: str, count: int, rectifies: bool) -> None:
    """The results of the rows that begin at `row`."""
    first = text.let(f"mul i64 {row}, {sizes.terms}")
    x = [text.place("%x", first, str(i * sizes.terms)) for i in range(count)]
    start = text.let(f"mul i64 {row}, {sizes.columns}")
    for part in _parts(sizes.columns):
        sums = iter(_sums_over_terms(text, sizes.terms, x, part))
        for i in range(count):
            for j in part:
                place = text.place("%y", start, str(i * sizes.columns + j))
                _finish(text, next(sums), j, place, rectifies)


def _sums_over_terms(text: _Text, terms: int, x: list[str], part: range) -> list[str]:
    """Vectors of partial sums: for each row all columns of a part."""

    def step(term: str, sums: list[str], left: int = 0) -> list[str]:
        values = [text.load(text.place(each, term), left) for each in x]
        result = list(sums)
        for j, column in enumerate(part):
            weights = text.load(text.place("%w", str(column * terms), term), left)
            for i, value in enumerate(values):
                result[i * len(part) + j] = text.fma(value, weights, sums[i * len(part) + j])
        return result

    sums = ["zeroinitializer"] * (len(x) * len(part))
    whole = terms // text.lanes * text.lanes
    if whole:
        sums = text.loop(f"terms{text.count}", 0, whole, text.lanes, sums, step)
    return step(str(whole), sums, terms - whole) if whole < terms else sums


def _finish(text: _Text, sums: str, column: int, place: str, rectifies: bool) -> None:
    """Stores a result."""
    name = f"llvm.vector.reduce.fadd.v{text.lanes}f32"
    total = text.let(f"call reassoc float @{name}(float -0.0, {text.vector} {sums})")
    bias = text.let(f"load float, ptr {text.place('%b', str(column))}, align 4")
    total = text.let(f"fadd float {total}, {bias}")
    if rectifies:
        above = text.let(f"fcmp ule float 0.0, {total}")
        total = text.let(f"select i1 {above}, float {total}, float 0.0")
    text.do(f"store float {total}, ptr {place}, align 4")


def _layer_entry(sizes: Sizes) -> str:
    rows, terms, columns = sizes
    entry = _Entry("narrow_layer")
    entry.tensor(0, rows * terms, None)
    entry.tensor(1, terms * columns, (1, terms) if columns > 1 else None)
    entry.tensor(2, columns, None)
    entry.lines += [
        " %m = call i32 @aoti_torch_empty_strided(i64 2, ptr @sizes, ptr @strides, "
        f"i32 {_FLOAT}, i32 0, i32 -1, ptr %h)",
        " %made = icmp eq i32 %m, 0",
        " br i1 %made, label %going, label %other",
        "going:",
        " %y = load ptr, ptr %h",
        " %e = call i32 @aoti_torch_get_data_ptr(ptr %y, ptr %place)",
        " %d = load ptr, ptr %place",
        " call void @run(ptr %d0, ptr %d1, ptr %d2, ptr %d)",
        f" %r = call ptr @{_WRAP}(ptr %y)",
        " %f = call i32 @aoti_torch_delete_tensor_object(ptr %y)",
        " ret ptr %r",
    ]
    constants = (
        f"@sizes = internal constant [2 x i64] [i64 {rows}, i64 {columns}]\n"
        f"@strides = internal constant [2 x i64] [i64 {columns}, i64 1]\n"
    )
    return constants + entry.text()


# ---- descent


def _descent_code(sizes: Sizes, transposed: bool) -> str:
    text, at_once = _Text(), _at_once(sizes.columns)
    width = at_once * text.lanes
    whole = sizes.terms // width * width

    def body(term: str, _: list[str]) -> list[str]:
        _gradient(text, sizes, term, [0] * at_once)
        return []

    if whole:
        text.loop("terms", 0, whole, width, [], body)
    for term in range(whole, sizes.terms, text.lanes):
        left = sizes.terms - term
        _gradient(text, sizes, str(term), [left if left < text.lanes else 0])
    head = (
        "define internal void @run(ptr noalias %w, float %rate, ptr noalias %x, ptr noalias %g, "
        "i64 %by_row, i64 %by_column) {\nentry:"
    )
    return "\n".join([_declarations(), head, *text.lines, " ret void\n}", _descent_entry(sizes, transposed)])


def _gradient(text: _Text, sizes: Sizes, term: str, lefts: list[int]) -> None:
    """Descends by the gradients of some vectors of weights of each column; `lefts`: how many elements of each
    vector there are, or 0 for all."""
    for part in _parts(sizes.columns):
        _gradient_of(text, sizes, part, term, lefts)


def _gradient_of(text: _Text, sizes: Sizes, part: range, term: str, lefts: list[int]) -> None:
    rows, terms, _ = sizes
    columns = [text.place("%g", text.let(f"mul i64 %by_column, {column}")) for column in part]

    def step(row: str, sums: list[str]) -> list[str]:
        first = text.let(f"mul i64 {row}, {terms}")
        values = [
            text.load(text.place("%x", first, term, str(i * text.lanes)), left)
            for i, left in enumerate(lefts)
        ]
        start = text.let(f"mul i64 {row}, %by_row")
        result = []
        for j, column in enumerate(columns):
            g = text.everywhere(text.let(f"load float, ptr {text.place(column, start)}, align 4"))
            result += [text.fma(value, g, sums[j * len(lefts) + i]) for i, value in enumerate(values)]
        return result

    label = f"rows{text.count}"
    sums = text.loop(label, 0, rows, 1, ["zeroinitializer"] * (len(part) * len(lefts)), step)
    rate = text.everywhere("%rate")
    for j, column in enumerate(part):
        for i, left in enumerate(lefts):
            place = text.place("%w", str(column * terms), term, str(i * text.lanes))
            text.store(text.fma(sums[j * len(lefts) + i], rate, text.load(place, left)), place, left)


def _descent_entry(sizes: Sizes, transposed: bool) -> str:
    rows, terms, columns = sizes
    entry = _Entry("narrow_descent")
    entry.variable(0, terms * columns, (1, terms) if columns > 1 else None)
    entry.tensor(2, rows * terms, None)
    entry.tensor(3, rows * columns, ())
    row, column = (1, 0) if transposed else (0, 1)
    entry.lines += [
        f" %by_row = load i64, ptr {entry.stride(3, row)}",
        f" %by_column = load i64, ptr {entry.stride(3, column)}",
        " %ratep = getelementptr ptr, ptr %args, i64 1",
        " %rateo = load ptr, ptr %ratep",
        " %rate = call double @PyFloat_AsDouble(ptr %rateo)",
        " %minus = fneg double %rate",
        " %short_rate = fptrunc double %minus to float",
        " call void @run(ptr %d0, float %short_rate, ptr %d2, ptr %d3, i64 %by_row, i64 %by_column)",
        " call void @Py_IncRef(ptr %o0)",
        " ret ptr %o0",
    ]
    return entry.text()


class _Entry:
    """A built-in that checks its arguments: their addresses are ``%d0`` …"""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []
        self.blocks = 0

    def unless(self, condition: str) -> None:
        self.blocks += 1
        self.lines += [f" br i1 {condition}, label %go{self.blocks}, label %other", f"go{self.blocks}:"]

    def variable(self, i: int, numel: int, strides: tuple[int, ...] | None) -> None:
        """Takes a variable."""
        self.argument(i)
        self.lines.append(f" %yv{i} = getelementptr i8, ptr %o{i}, i64 8")
        self.lines.append(f" %tv{i} = load ptr, ptr %yv{i}")
        self.lines.append(f" %qv{i} = icmp eq ptr %tv{i}, @flowstone_variable_type")
        self.unless(f"%qv{i}")
        self.lines.append(f" %sv{i} = getelementptr i8, ptr %o{i}, i64 {host.variable_offset()}")
        self.lines.append(f" %t{i} = load ptr, ptr %sv{i}")
        self.lines.append(f" %nv{i} = icmp ne ptr %t{i}, null")
        self.unless(f"%nv{i}")
        self.check(i, f"%t{i}", numel, strides)

    def tensor(self, i: int, numel: int, strides: tuple[int, ...] | None) -> None:
        """Takes a tensor; `strides`: those that it must have, perhaps only the first of them, or None if it
        must be contiguous."""
        self.argument(i)
        self.check(i, f"%o{i}", numel, strides)

    def stride(self, i: int, axis: int) -> str:
        """Where the tensor, which was checked by strides, has that of an axis."""
        self.blocks += 1
        self.lines.append(f" %st{self.blocks} = getelementptr i64, ptr %sl{i}, i64 {axis}")
        return f"%st{self.blocks}"

    def argument(self, i: int) -> None:
        self.lines.append(f" %p{i} = getelementptr ptr, ptr %args, i64 {i}")
        self.lines.append(f" %o{i} = load ptr, ptr %p{i}")

    def check(self, i: int, tensor: str, numel: int, strides: tuple[int, ...] | None) -> None:
        self.lines += [
            f" %y{i} = getelementptr i8, ptr {tensor}, i64 8",
            f" %z{i} = load ptr, ptr %y{i}",
            f" %is{i} = icmp eq ptr %z{i}, @flowstone_tensor_type",
        ]
        self.unless(f"%is{i}")
        self.lines.append(f" %w{i} = getelementptr i8, ptr {tensor}, i64 {host.HANDLE_OFFSET}")
        self.compare(f"n{i}", i, "aoti_torch_get_numel", "%long", "i64", numel)
        self.compare(f"t{i}", i, "aoti_torch_get_dtype", "%short", "i32", _FLOAT)
        if strides is None:
            self.compare(f"c{i}", i, "aoti_torch_is_contiguous", "%flag", "i8", 1)
        else:
            self.lines.append(f" %se{i} = call i32 @aoti_torch_get_strides(ptr %w{i}, ptr %place)")
            self.lines.append(f" %sl{i} = load ptr, ptr %place")
            for axis, stride in enumerate(strides):
                self.lines.append(f" %sp{i}_{axis} = getelementptr i64, ptr %sl{i}, i64 {axis}")
                self.lines.append(f" %sw{i}_{axis} = load i64, ptr %sp{i}_{axis}")
                self.lines.append(f" %sq{i}_{axis} = icmp eq i64 %sw{i}_{axis}, {stride}")
                self.unless(f"%sq{i}_{axis}")
        self.lines.append(f" %x{i} = call i32 @aoti_torch_get_data_ptr(ptr %w{i}, ptr %place)")
        self.lines.append(f" %d{i} = load ptr, ptr %place")

    def compare(self, name: str, i: int, function: str, place: str, kind: str, expected: int) -> None:
        self.lines += [
            f" %e{name} = call i32 @{function}(ptr %w{i}, ptr {place})",
            f" %v{name} = load {kind}, ptr {place}",
            f" %q{name} = icmp eq {kind} %v{name}, {expected}",
        ]
        self.unless(f"%q{name}")

    def text(self) -> str:
        return "\n".join([
            f"define ptr @{self.name}(ptr %self, ptr %args, i64 %n) {{",
            "entry:",
            " %long = alloca i64",
            " %short = alloca i32",
            " %flag = alloca i8",
            " %place = alloca ptr",
            " %h = alloca ptr",
            *self.lines,
            "other:",
            " %fallback = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %n, ptr null)",
            " ret ptr %fallback",
            "}",
        ])  # fmt: skip
