"""LLVM's text that moves vectors between memory and values: loads, stores, masks, and numbers in all lanes.

In memory, a bool is a byte. A masked load gives zeros where it does not read.
"""

from __future__ import annotations

from flowstone.native.codegen.emitter import SIZES, Emitter, kind_of

__all__ = ["in_all_lanes", "lane_mask", "load", "load_apart", "memory_kind", "read_one", "store", "store_one"]


def memory_kind(dtype: str) -> str:
    """LLVM's type of an element in memory."""
    kind = kind_of(dtype)
    return "i8" if kind == "i1" else kind


def in_all_lanes(e: Emitter, kind: str, value: str) -> str:
    """The vector that has a value of LLVM's type `kind` in all lanes."""
    if e.lanes == 1:
        return value
    vector, first_lane = e.vector(kind), f"<{e.lanes} x i32> zeroinitializer"
    start = e.let(f"insertelement {vector} poison, {kind} {value}, i32 0")
    return e.let(f"shufflevector {vector} {start}, {vector} poison, {first_lane}")


def lane_mask(e: Emitter, left: str) -> str:
    """The lanes whose number is below the i64 `left`."""
    counts = in_all_lanes(e, "i64", left)
    places = ", ".join(f"i64 {i}" for i in range(e.lanes))
    return e.let(f"icmp slt {e.vector('i64')} <{places}>, {counts}")


def load(e: Emitter, dtype: str, base: str, index: str, mask: str = "") -> str:
    """The vector of elements from place `index` on."""
    kind = memory_kind(dtype)
    vector = e.vector(kind)
    address = e.let(f"getelementptr {kind}, ptr {base}, i64 {index}")
    if mask:
        name = f"llvm.masked.load.{_suffix(e.lanes, kind)}.p0"
        e.declarations[name] = f"declare {vector} @{name}(ptr, {e.vector('i1')}, {vector})"
        value = e.let(
            f"call {vector} @{name}(ptr align {SIZES[dtype]} {address}, {e.vector('i1')} {mask}, "
            f"{vector} zeroinitializer)"
        )
    else:
        value = e.let(f"load {vector}, ptr {address}, align {SIZES[dtype]}")
    return _as_truth(e, vector, value) if dtype == "bool" else value


def load_apart(e: Emitter, dtype: str, base: str, index: str, distance: int, mask: str = "") -> str:
    """The vector of elements that lie `distance` elements apart, from the one that is number `index` of them
    on."""
    kind, lanes = memory_kind(dtype), e.lanes
    vector, places = e.vector(kind), e.vector("i64")
    number = e.let(f"mul i64 {index}, {distance}")
    if lanes == 1:
        address = e.let(f"getelementptr {kind}, ptr {base}, i64 {number}")
        value = e.let(f"load {kind}, ptr {address}, align {SIZES[dtype]}")
        return _as_truth(e, vector, value) if dtype == "bool" else value
    apart = ", ".join(f"i64 {i * distance}" for i in range(lanes))
    numbers = e.let(f"add {places} {in_all_lanes(e, 'i64', number)}, <{apart}>")
    addresses = e.let(f"getelementptr {kind}, ptr {base}, {places} {numbers}")
    name = f"llvm.masked.gather.{_suffix(lanes, kind)}.v{lanes}p0"
    truths = e.vector("i1")
    e.declarations[name] = f"declare {vector} @{name}({e.vector('ptr')}, {truths}, {vector})"
    mask = mask or "<" + ", ".join(["i1 true"] * lanes) + ">"
    where = f"{e.vector('ptr')} align {SIZES[dtype]} {addresses}"
    value = e.let(f"call {vector} @{name}({where}, {truths} {mask}, {vector} zeroinitializer)")
    return _as_truth(e, vector, value) if dtype == "bool" else value


def store(e: Emitter, dtype: str, value: str, base: str, index: str, mask: str = "") -> None:
    """Writes a vector of elements from place `index` on."""
    kind = memory_kind(dtype)
    vector = e.vector(kind)
    if dtype == "bool":
        value = e.let(f"zext {e.vector('i1')} {value} to {vector}")
    address = e.let(f"getelementptr {kind}, ptr {base}, i64 {index}")
    if mask:
        name = f"llvm.masked.store.{_suffix(e.lanes, kind)}.p0"
        e.declarations[name] = f"declare void @{name}({vector}, ptr, {e.vector('i1')})"
        place = f"ptr align {SIZES[dtype]} {address}"
        e.do(f"call void @{name}({vector} {value}, {place}, {e.vector('i1')} {mask})")
    else:
        e.do(f"store {vector} {value}, ptr {address}, align {SIZES[dtype]}")


def read_one(e: Emitter, dtype: str, address: str) -> str:
    """The element at an address, in all lanes."""
    kind = memory_kind(dtype)
    value = e.let(f"load {kind}, ptr {address}, align {SIZES[dtype]}")
    if dtype == "bool":
        value, kind = e.let(f"icmp ne i8 {value}, 0"), "i1"
    return in_all_lanes(e, kind, value)


def store_one(e: Emitter, dtype: str, value: str, base: str, index: str) -> None:
    """Writes the first lane's element at place `index`."""
    kind = kind_of(dtype)
    if e.lanes > 1:
        value = e.let(f"extractelement {e.vector(kind)} {value}, i32 0")
    if dtype == "bool":
        value, kind = e.let(f"zext i1 {value} to i8"), "i8"
    address = e.let(f"getelementptr {kind}, ptr {base}, i64 {index}")
    e.do(f"store {kind} {value}, ptr {address}, align {SIZES[dtype]}")


def _as_truth(e: Emitter, vector: str, value: str) -> str:
    return e.let(f"icmp ne {vector} {value}, {'0' if e.lanes == 1 else 'zeroinitializer'}")


def _suffix(lanes: int, kind: str) -> str:
    return f"v{lanes}{ {'half': 'f16', 'float': 'f32', 'double': 'f64'}.get(kind, kind) }"
