"""Recurrent cells of other kinds than `lstm_cells.py` has: basic ones, gated recurrent units (GRU), and LSTM
cells with peepholes, clipping, projection or layer normalisation.

    basic:  h' = tanh([x, h] W + b)
    GRU:    r, u = split(sigmoid([x, h] W + b));  h' = u h + (1 - u) tanh([x, r h] V + d)
    LSTM:   c' = clip(sigmoid(f + 1 + w c) c + sigmoid(i + v c) tanh(j));  m = sigmoid(o + z c') tanh(c')
            h' = m, or clip(m P)

No kernel that ATen has runs a layer of these as TensorFlow defines them (docs/design/028-patterns-as-data.md
says which were tried), so their steps stay; the log says so where a layer is long enough for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.recurrences.lstm_cells import ADD, BIASED, COLUMNS
from flowstone.rewriting.analyses.loop_variables import constant_of
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Term, Value

_AXIS = Number(where=lambda axis: axis == 1, read=constant_of)
_ACTIVATIONS = "Relu|Sigmoid|Tanh"


class BasicCell(NamedTuple):
    """A basic cell; its `product` is by `weights`."""

    h: PlanOutput
    weights: PlanOutput
    product: PlanOutput
    output: PlanOutput


BASIC = Pattern(Op(_ACTIVATIONS, BIASED, name="output"), BasicCell)


class GRUCell(NamedTuple):
    """A gated recurrent unit; `product` makes its gates by `weights`, and the candidate is made by
    `candidate_weights`."""

    h: PlanOutput
    weights: PlanOutput
    product: PlanOutput
    candidate_weights: PlanOutput
    reset_part: int
    update_part: int
    output: PlanOutput


def _gate(part: str) -> Either:
    """A part of the gates, which are split before or after the activation."""
    activated = Op("Split", _AXIS, Op("Sigmoid", BIASED), num_split=2, node="split", part=part)
    split = Op("Sigmoid", Op("Split", _AXIS, BIASED, num_split=2, node="split", part=part))
    return Either(activated, split)


_RESET_ROWS = Op("ConcatV2", Value("x"), Op("Mul", _gate("reset_part"), Value("h")), COLUMNS)
_CANDIDATE_SUM = Op(f"BiasAdd|{ADD}", Op("MatMul", _RESET_ROWS, Value("candidate_weights")), Value())
_UPDATE = _gate("update_part").called("update")
_WRITTEN = Op("Mul", Op("Sub", Number(where=lambda one: one == 1), _UPDATE), Op(_ACTIVATIONS, _CANDIDATE_SUM))
GRU = Pattern(
    Op(ADD, Op("Mul", Value("update"), Value("h")), _WRITTEN, name="output"),
    GRUCell,
    lambda cell: cell.reset_part != cell.update_part,
)


class LSTMVariant(NamedTuple):
    """An LSTM cell with what it may have besides: the peephole to the output gate, what its state is clipped
    to, the projection of the h that it takes, and the scale by which its candidate is normalised."""

    c: PlanOutput
    weights: PlanOutput
    product: PlanOutput
    state: PlanOutput
    output: PlanOutput
    peephole: PlanOutput | None = None
    limit: Any = None
    projection: PlanOutput | None = None
    scale: PlanOutput | None = None


def _normalized(term: Term, scale: str) -> Either:
    """A term, or ``term * scale + (offset - mean * scale)``."""
    offset = Op("Sub", Value(), Op("Mul", Value(), Value(scale)))
    return Either(Op(ADD, Op("Mul", term, Value(scale)), offset), term)


def _seen_through(term: Term, state: str, peephole: str) -> Either:
    """A term, or that plus a vector times the state."""
    return Either(Op(ADD, term, Op("Mul", Value(peephole), Value(state))), term)


def _clipped(term: Term, limit: str = "") -> Either:
    """A term, or that between two numbers."""
    return Either(Op("Maximum", Op("Minimum", term, Number(limit)), Number()), term)


_PROJECTED = _clipped(Op("MatMul", Value(), Value("projection")))
_ROWS = Op("ConcatV2", Value("x"), Either(_PROJECTED, Value()), COLUMNS)
_PRODUCT = Op("MatMul", _ROWS, Value("weights"), name="product")
_SUMS = Either(Op(f"BiasAdd|{ADD}", _PRODUCT, Value()), _PRODUCT, name="gates")


_SAME_SUMS = Value("gates")


def _part(name: str, sums: Term = _SAME_SUMS) -> Op:
    return Op("Split", _AXIS, sums, num_split=4, node="split", part=name)


_F = _normalized(_part("f"), "forget_scale")
_FORGET = Op("Sigmoid", _seen_through(Either(Op(ADD, _F, Number()), _F), "c", "forget_peephole"))
_INPUT = Op("Sigmoid", _seen_through(_normalized(_part("i"), "input_scale"), "c", "input_peephole"))
_CANDIDATE = Op("Tanh", _normalized(_part("j"), "scale"))
_SUM = Op(ADD, Op("Mul", _FORGET, Value("c")), Op("Mul", _INPUT, _CANDIDATE))
_STATE = _clipped(_normalized(_SUM, "state_scale"), "limit").called("state")
_OUTPUT = Op("Sigmoid", _seen_through(_normalized(_part("o", _SUMS), "output_scale"), "state", "peephole"))
LSTM = Pattern(Op("Mul", Op("Tanh", _STATE), _OUTPUT, name="output"), LSTMVariant)


# ---- layers


class _Kind(NamedTuple):
    """Cells of one pattern: what each hands to the next, and what it has from the one before; their name."""

    pattern: Pattern[Any]
    before: str
    after: str
    named: Callable[[Any], str]


def _named(cell: LSTMVariant) -> str:
    has = {
        "peepholes": cell.peephole,
        "clipping": cell.limit,
        "projection": cell.projection,
        "layer normalisation": cell.scale,
    }
    words = [word for word, value in has.items() if value is not None]
    return f"LSTM cells with {' and '.join(words)}" if words else ""


_KINDS = (
    _Kind(BASIC, "h", "output", lambda _: "basic cells"),
    _Kind(GRU, "h", "output", lambda _: "gated recurrent units"),
    _Kind(LSTM, "c", "state", _named),
)


def layers_without_kernel(
    nodes: Iterable[PlanNode], pays: Callable[[int, int], bool]
) -> list[tuple[str, str]]:
    """Layers of so many cells, with so many weights, that a kernel would pay: the name of the first product,
    and what they are in words.
    """
    nodes, found = list(nodes), []
    products = Counter(node.inputs[1] for node in nodes if node.type == "MatMul")
    if not any(pays(count, num_elements(x.dims) or 0) for x, count in products.items()):
        return []
    for kind in _KINDS:
        layers: dict[PlanOutput, list[Any]] = {}
        for cell in kind.pattern.find(nodes):
            layers.setdefault(cell.weights, []).append(cell)
        for weights, cells in layers.items():
            handed_on = {getattr(cell, kind.after) for cell in cells}
            following = [cell for cell in cells if getattr(cell, kind.before) in handed_on]
            name = kind.named(following[-1]) if following else ""
            if name and pays(len(following) + 1, num_elements(weights.dims) or 0):
                found.append((cells[0].product.op.name, f"{len(following) + 1} {name}"))
    return found
