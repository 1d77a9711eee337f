"""LLVM's text for a program's stacks and arrays: memory of the process, which the program's end frees."""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.emitter import SIZES
from flowstone.native.programs.programs import Statement
from flowstone.native.programs.writer import Writer

__all__ = ["STATEMENTS", "begin", "end", "give", "take"]

_FIRST_ROOM = 64  # elements of a stack
_FUNCTIONS = {
    "realloc": "declare ptr @realloc(ptr, i64)",
    "calloc": "declare ptr @calloc(i64, i64)",
    "free": "declare void @free(ptr)",
}
_UNSET, _SET, _CLEARED = 0, 1, 2  # states of an array's element


def begin(writer: Writer) -> None:
    """Makes all containers, empty."""
    for i, _ in enumerate(writer.program.containers):
        writer.declarations.update(_FUNCTIONS)
        for name, kind, nothing in (("data", "ptr", "null"), ("flags", "ptr", "null"), ("count", "i64", "0"),
                                    ("room", "i64", "0")):  # fmt: skip
            writer.allocate(f"%{name}{i}", kind, align=8)
            writer.lines.append(f" store {kind} {nothing}, ptr %{name}{i}")


def end(writer: Writer) -> None:
    """Frees their memory."""
    for i, _ in enumerate(writer.program.containers):
        for name in ("data", "flags"):
            kept = writer.scalars.let(f"load ptr, ptr %{name}{i}")
            writer.lines.append(f" call void @free(ptr {kept})")


def take(writer: Writer, place: int) -> None:
    """The containers are those of somebody else, who gives them from this address on."""
    for i, _ in enumerate(writer.program.containers):
        for j, (name, kind) in enumerate((("data", "ptr"), ("flags", "ptr"), ("count", "i64"))):
            given = writer.scalars.let(f"getelementptr ptr, ptr %a, i64 {place + 3 * i + j}")
            writer.allocate(f"%{name}{i}", kind, align=8)
            writer.lines.append(
                f" store {kind} {writer.scalars.let(f'load {kind}, ptr {given}')}, ptr %{name}{i}"
            )


def give(writer: Writer, i: int, row: int, is_copied: bool) -> tuple[tuple[str, ...], str]:
    """What `take` takes of an array whose elements begin there, and the copy that it has of the elements'
    states, as all who write at once need one."""
    let, container = writer.scalars.let, writer.program.containers[i]
    data, flags, count = (let(f"load {kind}, ptr %{name}{i}") for name, kind in (
        ("data", "ptr"), ("flags", "ptr"), ("count", "i64")))  # fmt: skip
    if row:
        data = let(f"getelementptr i8, ptr {data}, i64 {row * SIZES[container.dtype]}")
    copy = ""
    if is_copied:
        size = let(f"add i64 {count}, 1")
        copy = let(f"call ptr @calloc(i64 {size}, i64 1)")
        writer.require(let(f"icmp ne ptr {copy}, null"))
        writer.copy_bytes(copy, flags, size)
    return (f"ptr {data}", f"ptr {copy or flags}", f"i64 {count}"), copy


def _bytes(writer: Writer, i: int) -> int:
    container = writer.program.containers[i]
    return container.size * SIZES[container.dtype]


def _place(writer: Writer, i: int, index: str) -> str:
    data, container = writer.scalars.let(f"load ptr, ptr %data{i}"), writer.program.containers[i]
    pitch = (container.pitch or container.size) * SIZES[container.dtype]
    offset = writer.scalars.let(f"mul i64 {index}, {pitch}")
    return writer.scalars.let(f"getelementptr i8, ptr {data}, i64 {offset}")


def _move(writer: Writer, i: int, place: str, value: int, is_stored: bool) -> None:
    """Between an element of the container and a value."""
    container = writer.program.containers[i]
    if container.size == 1:
        if is_stored:
            writer.store_to(container.dtype, writer.load(value), place)
        else:
            writer.store(value, writer.load_from(container.dtype, place))
    elif is_stored:
        writer.copy_bytes(place, writer.address(value), _bytes(writer, i))
    else:
        writer.copy_bytes(writer.address(value), place, _bytes(writer, i))


# ---- stacks


def _push(writer: Writer, each: Statement) -> None:
    i = dict(each.attributes)["container"]
    let, lines = writer.scalars.let, writer.lines
    count, room = let(f"load i64, ptr %count{i}"), let(f"load i64, ptr %room{i}")
    grow, on = writer.label(), writer.label()
    full = let(f"icmp eq i64 {count}, {room}")
    lines += [f" br i1 {full}, label %{grow}, label %{on}", f"{grow}:"]
    twice = let(f"mul i64 {room}, 2")
    few = let(f"icmp slt i64 {twice}, {_FIRST_ROOM}")
    larger = let(f"select i1 {few}, i64 {_FIRST_ROOM}, i64 {twice}")
    size = let(f"mul i64 {larger}, {_bytes(writer, i)}")
    data = let(f"load ptr, ptr %data{i}")
    new = let(f"call ptr @realloc(ptr {data}, i64 {size})")
    there = let(f"icmp ne ptr {new}, null")
    writer.require(there)
    lines += [f" store ptr {new}, ptr %data{i}", f" store i64 {larger}, ptr %room{i}"]
    writer.begin(on)
    _move(writer, i, _place(writer, i, count), each.operands[0], True)
    lines.append(f" store i64 {let(f'add i64 {count}, 1')}, ptr %count{i}")


def _pop(writer: Writer, each: Statement) -> None:
    i = dict(each.attributes)["container"]
    let = writer.scalars.let
    count = let(f"load i64, ptr %count{i}")
    writer.require(let(f"icmp sgt i64 {count}, 0"))
    left = let(f"sub i64 {count}, 1")
    writer.lines.append(f" store i64 {left}, ptr %count{i}")
    _move(writer, i, _place(writer, i, left), each.results[0], False)


# ---- arrays


def _make(writer: Writer, each: Statement) -> None:
    """Of the size that the operand is; or, of gradients, as many as another container has. What it was in an
    iteration before is gone."""
    attributes = dict(each.attributes)
    i, let = attributes["container"], writer.scalars.let
    if "like" in attributes:
        count = let(f"load i64, ptr %count{attributes['like']}")
    else:
        count = writer.index(each.operands[0])
    writer.require(let(f"icmp sge i64 {count}, 0"))
    bytes_needed = let(f"mul i64 {count}, {_bytes(writer, i)}")
    padded = let(f"add i64 {bytes_needed}, 64")
    data = let(f"call ptr @realloc(ptr {let(f'load ptr, ptr %data{i}')}, i64 {padded})")
    writer.lines.append(f" store ptr {data}, ptr %data{i}")
    writer.lines.append(f" call void @free(ptr {let(f'load ptr, ptr %flags{i}')})")
    flags = let(f"call ptr @calloc(i64 {let(f'add i64 {count}, 1')}, i64 1)")
    writer.lines += [f" store ptr {flags}, ptr %flags{i}", f" store i64 {count}, ptr %count{i}"]
    writer.require(let(f"icmp ne ptr {data}, null"))
    writer.require(let(f"icmp ne ptr {flags}, null"))


def _checked(writer: Writer, i: int, index: str) -> str:
    """The address of the element's state, where the index is one."""
    let = writer.scalars.let
    count = let(f"load i64, ptr %count{i}")
    writer.require(let(f"icmp ult i64 {index}, {count}"))
    flags = let(f"load ptr, ptr %flags{i}")
    return let(f"getelementptr i8, ptr {flags}, i64 {index}")


def _write(writer: Writer, each: Statement) -> None:
    index = writer.index(each.operands[0])
    _write_at(writer, dict(each.attributes)["container"], index, each.operands[1])


def _write_at(writer: Writer, i: int, index: str, value: int) -> None:
    _put(writer, i, index, value, "0", lambda place: _move(writer, i, place, value, True))


def _put(writer: Writer, i: int, index: str, value: int, first: str, move: Callable[[str], object]) -> None:
    """Has `move` write an element, which are those of the value from `first` on, or adds them."""
    let = writer.scalars.let
    state = _checked(writer, i, index)
    found = let(f"load i8, ptr {state}")
    place = _place(writer, i, index)
    if writer.program.containers[i].adds:
        adds, sets, on = writer.label(), writer.label(), writer.label()
        writer.require(let(f"icmp ne i8 {found}, {_CLEARED}"))
        again = let(f"icmp eq i8 {found}, {_SET}")
        writer.lines += [f" br i1 {again}, label %{adds}, label %{sets}", f"{adds}:"]
        _add(writer, i, place, value, first)
        writer.lines += [f" br label %{on}", f"{sets}:"]
        move(place)
        writer.begin(on)
    else:
        writer.require(let(f"icmp eq i8 {found}, {_UNSET}"))
        move(place)
    _note(writer, i, state)


def _add(writer: Writer, i: int, place: str, value: int, first: str) -> None:
    dtype = writer.program.containers[i].dtype
    kind, size = writer.scalars.type(dtype), SIZES[dtype]
    name = "fadd" if dtype.startswith("float") else "add"

    def one(j: str) -> None:
        target = writer.scalars.let(f"getelementptr {kind}, ptr {place}, i64 {j}")
        a = writer.scalars.let(f"load {kind}, ptr {target}, align {size}")
        here = j if first == "0" else writer.scalars.let(f"add i64 {first}, {j}")
        total = writer.scalars.binary(name, dtype, a, writer.load(value, here))
        writer.lines.append(f" store {kind} {total}, ptr {target}, align {size}")

    writer.for_each(writer.program.containers[i].size, one)


def _read(writer: Writer, each: Statement) -> None:
    index = writer.index(each.operands[0])
    place = _read_place(writer, dict(each.attributes)["container"], index)
    _move(writer, dict(each.attributes)["container"], place, each.results[0], False)


def _read_place(writer: Writer, i: int, index: str) -> str:
    state, let, lines = _checked(writer, i, index), writer.scalars.let, writer.lines
    found, place = let(f"load i8, ptr {state}"), _place(writer, i, index)
    is_set, empty, on = let(f"icmp eq i8 {found}, {_SET}"), writer.label(), writer.label()
    lines += [f" br i1 {is_set}, label %{on}, label %{empty}", f"{empty}:"]
    writer.require(let(f"icmp eq i8 {found}, {_UNSET}"))
    _require_shape(writer, i)
    writer.declarations["llvm.memset.p0.i64"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    lines.append(f" call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {_bytes(writer, i)}, i1 false)")
    lines.append(f" store i8 {_SET}, ptr {state}")
    writer.begin(on)
    if writer.program.containers[i].clears:
        lines.append(f" store i8 {_CLEARED}, ptr {state}")
    return place


def _require_shape(writer: Writer, i: int) -> None:
    """Gives up unless the shape of elements is known, which the byte behind their states says."""
    container = writer.program.containers[i]
    known_by = i if container.of < 0 else container.of
    container = writer.program.containers[known_by]
    if container.known:
        return
    is_known = writer.scalars.let(f"load i8, ptr {_behind(writer, known_by)}") if container.learns else "0"
    writer.require(writer.scalars.let(f"icmp ne i8 {is_known}, 0"))


def _behind(writer: Writer, i: int) -> str:
    """The address of the byte behind the states of an array's elements."""
    flags, count = (
        writer.scalars.let(f"load {k}, ptr %{n}{i}") for k, n in (("ptr", "flags"), ("i64", "count"))
    )
    return writer.scalars.let(f"getelementptr i8, ptr {flags}, i64 {count}")


def _note(writer: Writer, i: int, state: str) -> None:
    """What was written is there."""
    writer.lines.append(f" store i8 {_SET}, ptr {state}")
    if writer.program.containers[i].learns:
        writer.lines.append(f" store i8 1, ptr {_behind(writer, i)}")


def _rows(writer: Writer, each: Statement, is_written: bool) -> None:
    """An element a row of a value: by the indices of the first operand."""
    i = dict(each.attributes)["container"]
    indices = each.operands[0]
    rows = each.operands[1] if is_written else each.results[0]
    container, size = writer.program.containers[i], _bytes(writer, i)

    def one(j: str) -> None:
        index = writer.load(indices, j)
        if writer.values[indices].dtype != "int64":
            index = writer.scalars.let(f"sext i32 {index} to i64")
        first = writer.scalars.let(f"mul i64 {j}, {container.size}")
        row = writer.element(rows, first)
        if is_written:
            _put(writer, i, index, rows, first, lambda place: writer.copy_bytes(place, row, size))
        else:
            writer.copy_bytes(row, _read_place(writer, i, index), size)

    writer.for_each(writer.values[indices].size, one)


def _size(writer: Writer, each: Statement) -> None:
    count = writer.scalars.let(f"load i64, ptr %count{dict(each.attributes)['container']}")
    writer.store(each.results[0], writer.scalars.let(f"trunc i64 {count} to i32"))


STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {
    "Push": _push,
    "Pop": _pop,
    "MakeArray": _make,
    "WriteArray": _write,
    "ReadArray": _read,
    "ScatterArray": lambda writer, each: _rows(writer, each, True),
    "GatherArray": lambda writer, each: _rows(writer, each, False),
    "SizeArray": _size,
}
"""How statements on containers are written: their attribute `container` says on which."""
