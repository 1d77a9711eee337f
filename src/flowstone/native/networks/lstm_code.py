"""LLVM's text of a step of LSTM cells after its product by the state, and of its gradient up to that product.

All is float32; arrays are [rows, units], `gates` [rows, 4 units]: the four sums of each cell, of which the
numbers of a call say where the input gate, the forget gate, the candidate and the output gate begin.

    advance:        gates are the functions of themselves and the bias; state and output are written
    differentiate:  gates, as advance left them, are the gradients by their sums; d_before is written

`dh` is added to `dy`, the gradient by the output. Operations are those of the cells one by one, in their
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code
from flowstone.native.numerics.elements import ELEMENTS

__all__ = ["PLACES", "WORDS", "lstm_code"]

GATES = ("input", "forget", "candidate", "output")
WORDS = ("threads", "rows", "units", *GATES)
"""The whole numbers of a call; a gate's: the first of its columns."""
PLACES = {
    "advance": ("bias", "gates", "before", "state", "y"),
    "differentiate": ("gates", "before", "state", "dy", "dh", "dc", "d_before"),
}
"""The addresses that each function takes after that of the numbers, in order. `state` may be `before`, and
`d_before` may be `dc`."""
_FLOAT = "float32"


def lstm_code(lanes: int) -> str:
    """The text of the functions of `PLACES`."""
    declarations: dict[str, str] = {}
    parts = []
    for name, places in PLACES.items():
        some = _Step(f"{name}_some", places, lanes, declarations)
        (_advance if name == "advance" else _differentiate)(some)
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts += [some.text(), e.text()]
    return "\n".join([*declarations.values(), *parts])


class _Step(Code):
    """The text of a thread's rows."""

    def __init__(self, name: str, places: Sequence[str], lanes: int, declarations: dict[str, str]) -> None:
        super().__init__(name, ["ptr a"], lanes, declarations)
        self.places = places_of(self, places)
        self.words = words_of(self, self.places["words"], WORDS)

    def cells(self) -> Iterator[tuple[str, str, dict[str, str], str]]:
        """Of each vector of cells: the first one's column, its place, those of its gates, and the mask."""
        units = self.words["units"]
        _, start, end = my_part(self, self.words["rows"])
        with self.loop(start, end) as row:
            for column, (mask,) in self.vectors(units):
                first = self.add(self.mul(self.mul(row, units), 4), column)
                gates = {name: self.add(first, self.words[name]) for name in GATES}
                yield column, self.add(self.mul(row, units), column), gates, mask

    def given(self, name: str, place: str, mask: str) -> str:
        return self.read(self.at(self.places[name], place), mask)

    def give(self, name: str, place: str, value: str, mask: str) -> None:
        self.write(self.at(self.places[name], place), value, mask)

    def function(self, name: str, *values: str) -> str:
        """A function of elements by the name of its operation."""
        return ELEMENTS[name].emit(self, _FLOAT, values, {})


def _advance(e: _Step) -> None:
    for column, place, gates, mask in e.cells():
        found = {}
        for name in GATES:
            bias = e.given("bias", e.add(e.words[name], column), mask)
            total = e.plus(e.given("gates", gates[name], mask), bias)
            found[name] = e.function("Tanh" if name == "candidate" else "Sigmoid", total)
            e.give("gates", gates[name], found[name], mask)
        kept = e.times(found["forget"], e.given("before", place, mask))
        state = e.plus(kept, e.times(found["input"], found["candidate"]))
        e.give("state", place, state, mask)
        e.give("y", place, e.times(found["output"], e.function("Tanh", state)), mask)


def _differentiate(e: _Step) -> None:
    for _, place, gates, mask in e.cells():
        i, f, candidate, o = (e.given("gates", gates[name], mask) for name in GATES)
        squashed = e.function("Tanh", e.given("state", place, mask))
        dh = e.plus(e.given("dy", place, mask), e.given("dh", place, mask))
        through = e.function("TanhGrad", squashed, e.times(dh, o))
        dc = e.plus(e.given("dc", place, mask), through)
        found = {
            "input": e.function("SigmoidGrad", i, e.times(dc, candidate)),
            "forget": e.function("SigmoidGrad", f, e.times(dc, e.given("before", place, mask))),
            "candidate": e.function("TanhGrad", candidate, e.times(dc, i)),
            "output": e.function("SigmoidGrad", o, e.times(dh, squashed)),
        }
        for name, value in found.items():
            e.give("gates", gates[name], value, mask)
        e.give("d_before", place, e.times(dc, f), mask)
