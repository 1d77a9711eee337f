"""What tiles of a product read and write: numbers and vectors of memory, the last of a row under a mask."""

from __future__ import annotations

from flowstone.native.codegen.emitter import KINDS, SIZES, Emitter

__all__ = ["Memory", "memory_kind"]


class Memory:
    """Writes loads and stores of vectors of `lanes` elements; `dtype` is that of the sums."""

    lanes: int
    dtype: str
    declarations: dict[str, str]

    def zero(self) -> str:
        return Emitter(self.lanes, {}).constant(self.dtype, 0)

    def everywhere(self, e: Emitter, address: str, dtype: str) -> str:
        """A number of memory in all lanes."""
        kind = memory_kind(dtype)
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
        kind, align = memory_kind(dtype), SIZES[dtype]
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
        kind, align = memory_kind(dtype), SIZES[dtype]
        vector = e.vector(kind)
        if dtype == "bool":
            value = e.let(f"zext {e.vector('i1')} {value} to {vector}")
        if count == self.lanes:
            e.do(f"store {vector} {value}, ptr {address}, align {align}")
            return
        name = f"llvm.masked.store.{_suffix(self.lanes, kind)}.p0"
        self.declarations[name] = f"declare void @{name}({vector}, ptr, {e.vector('i1')})"
        e.do(f"call void @{name}({vector} {value}, ptr align {align} {address}, {self.mask(count)})")


def memory_kind(dtype: str) -> str:
    kind = KINDS[dtype]
    return "i8" if kind == "i1" else kind


def _suffix(lanes: int, kind: str) -> str:
    return f"v{lanes}{ {'float': 'f32', 'double': 'f64'}.get(kind, kind) }"
