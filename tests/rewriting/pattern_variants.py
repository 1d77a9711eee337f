"""Variants of a program around the pattern of a rewriting pass, and whether rewriting leaves their values.

A `Program` is built anew for each variant, pruned, changed in one place and computed twice from the same
state: node by node as it was built, and as generated code after all passes. A variant that no kernel or
shape inference accepts as it was built says nothing and is left out.

The changes: every attribute of every node to each of some other legal values, small constants (axes, shapes,
permutations, numbers), every value fetched besides, taken twice by another node, taken under a condition, or
fed; special numbers in what is fed; other batch sizes, unknown dimensions, other element types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.attributes import REQUIRED
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.values import to_numpy, to_runtime
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.analyses.frames import LOOP_TYPES, Frames
from flowstone.rewriting.functions.function_inlining import inline_functions
from flowstone.rewriting.invariants import check
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.execution.executor import DEAD
from flowstone.runtime.execution.interpreter import interpret
from flowstone.runtime.steps.step import Step

BATCH = 3
_LONGEST_MS = 300
SPECIALS = (np.inf, -np.inf, np.nan, 1e30, 1e-40, -0.0)
_TOLERANCES = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 2e-4, "complex64": 2e-4}


class Draft:
    """What a program's function builds with: `batch` and `known` (else the batch is unknown before the
    step), the element type, and what is fed so far.
    """

    def __init__(self, batch: int = BATCH, known: bool = True, dtype: Any = tf.float32) -> None:
        self.batch, self.known, self.dtype = batch, known, dtype
        self.feeds: dict[Any, np.ndarray] = {}
        self.targets: list[Any] = []
        self._rng = np.random.default_rng(7)

    def values(self, *dims: int, dtype: Any = None) -> np.ndarray:
        """Numbers around zero of the program's type."""
        kind = (dtype or self.dtype).as_numpy_dtype
        x = self._rng.standard_normal(dims)
        if (dtype or self.dtype).is_integer:
            x = np.round(3 * x)
        if (dtype or self.dtype).is_complex:
            x = x + 1j * self._rng.standard_normal(dims)
        return np.asarray(x).astype(kind)

    def fed(self, *dims: Any, value: Any = None, dtype: Any = None) -> Any:
        """A placeholder; None stands for the batch."""
        dtype = dtype or self.dtype
        static = [(self.batch if self.known else None) if n is None else n for n in dims]
        x = tf.placeholder(dtype, static)
        sizes = [self.batch if n is None else n for n in dims]
        given = self.values(*sizes, dtype=dtype) if value is None else value
        self.feeds[x] = np.asarray(given).astype(dtype.as_numpy_dtype)
        return x

    def indices(self, limit: int, *dims: Any, dtype: Any = tf.int32) -> Any:
        """A placeholder of whole numbers below a limit."""
        sizes = [self.batch if n is None else n for n in dims]
        return self.fed(*dims, value=self._rng.integers(0, limit, sizes), dtype=dtype)

    def variable(self, *dims: int, value: Any = None, resource: bool = False) -> Any:
        """A variable with an initial value of its own."""
        given = self.values(*dims) if value is None else np.asarray(value)
        name = f"v{len(tf.global_variables())}"
        return tf.get_variable(name, initializer=tf.constant(given, self.dtype), use_resource=resource)


Build = Callable[[Draft], list[Any]]


class Program(NamedTuple):
    """A program around the pattern of the pass `name`; `changed`: which nodes' attributes are (by name);
    `dtypes`: the element types beside float32 in which it is built too; `finite`: feeds that are never
    infinite; `numbers`: feeds that are never NaN; `applies`: whether the pass does, or must not."""

    name: str
    build: Build
    changed: str = ""
    dtypes: tuple[str, ...] = ("float16", "bfloat16", "float64", "complex64", "int32")
    tolerance: float = 0.0
    finite: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    applies: bool = True

    def drafted(self, **how: Any) -> Built:
        """It in a graph of its own."""
        draft = Draft(**how)
        with tf.Graph().as_default():
            fetches = self.build(draft)
            fetches = [x for x in fetches if x is not None]
            variables = tf.global_variables()
            initial = tf.global_variables_initializer()
            reads = [v.value() for v in variables]
            return Built(fetches, draft, initial, reads)


class Built(NamedTuple):
    """A program as built."""

    fetches: list[Any]
    draft: Draft
    initial: Any
    reads: list[Any]

    def pruned(self, fed: Any = None) -> Subgraph:
        """What a step needs, before all passes."""
        feeds = [*self.draft.feeds, *([] if fed is None else [fed])]
        subgraph = prune(self.fetches, [x.op if hasattr(x, "op") else x for x in self.draft.targets], feeds)
        inline_functions(subgraph)
        return subgraph

    def values(self) -> list[np.ndarray]:
        """What is fed."""
        return list(self.draft.feeds.values())

    def computed(self, subgraph: Subgraph, values: list[np.ndarray], plainly: bool) -> list[Any]:
        """The fetched values, and those of all variables afterwards."""
        environment = Environment(resources=ResourceStore())
        with torch.inference_mode():
            interpret(prune([], [self.initial], []), environment, [])
            feeds = [to_runtime(np.array(x), y.dtype) for x, y in zip(values, subgraph.feeds)]
            loops = any(node.type in LOOP_TYPES for node in subgraph.nodes)
            if plainly and not loops and not self.reads:
                results = interpret(subgraph, environment, feeds)
            else:  # a changed loop may have no end
                segment = compile_segment(subgraph, environment, watched=loops)
                results = segment.function(Step(_LONGEST_MS), *feeds)
            if any(x is DEAD for x in results):
                raise ValueError("a branch that was not taken has no value")
            results = [to_numpy(x, y.dtype.base_dtype) for x, y in zip(results, subgraph.fetches)]
            left = interpret(prune(self.reads, [], []), environment, []) if self.reads else []
            return [*results, *(x.float().numpy() if x.is_floating_point() else x.numpy() for x in left)]


def rewritten(subgraph: Subgraph, name: str, show: Any = None) -> Subgraph:
    """The subgraph after all passes, with the one of this name switched on."""
    run_passes(subgraph, EVERY, flags.OPTIONAL_PASSES - {name}, show)
    check(subgraph)
    return subgraph


# ---- changes


class Change(NamedTuple):
    """What is done to a pruned subgraph, and its description."""

    text: str
    apply: Callable[[Subgraph], None]


def changes(program: Program, subgraph: Subgraph) -> Iterator[Change]:
    """All changes of attributes and constants, and of who takes what."""
    frames = subgraph.analysis(Frames)
    for i, node in enumerate(subgraph.nodes):
        if not re.search(program.changed, node.name):
            continue
        if node.type != "_Arg" and node.type not in LOOP_TYPES:
            for key, value in _alternatives(node):
                yield Change(f"{node.name} ({node.type}): {key} = {value}", _with_attribute(i, key, value))
        if frames.home(node) is not None:
            continue
        for k, x in enumerate(node.outputs):
            if x.dtype.is_ref or x.dtype.torch is None:
                continue
            yield Change(f"{node.name}:{k} fetched", _fetched(i, k))
            if x.dtype in dtypes.NUMBERS:
                yield Change(f"{node.name}:{k} taken twice", _taken(i, k))
            yield Change(f"{node.name}:{k} under a condition", _conditional(i, k))


def _alternatives(node: Any) -> Iterator[tuple[str, Any]]:
    for key, spec in node.declaration.attributes.items():
        if key not in node.attributes or key in node.declaration.inferred or spec.kind in ("type", "func"):
            continue
        for value in _others(spec, node.attributes[key]):
            try:
                spec.canonical(value) if spec.kind != "tensor" else None
            except (TypeError, ValueError):
                continue
            yield key, value
    if node.attributes.get("padding") in ("SAME", "VALID") and "explicit_paddings" in node.attributes:
        yield "explicit_paddings", (0, 0, 1, 1, 1, 1, 0, 0)
        yield "explicit_paddings", (0, 0, 2, 0, 0, 1, 0, 0)


def _others(spec: Any, value: Any) -> Iterator[Any]:
    if spec.kind == "tensor":
        yield from _other_constants(value)
    elif spec.kind == "bool":
        yield not value
    elif spec.allowed:
        yield from sorted(spec.allowed - {value}, key=str)
    elif spec.is_list and spec.kind == "int" and value:
        for i in range(len(value)):
            yield (*value[:i], value[i] + 1, *value[i + 1 :])
    elif spec.is_list or value is REQUIRED:
        return
    elif spec.kind == "float":
        yield from (value + 0.5, -value - 0.25, 0.0)
    elif spec.kind == "int":
        yield from (value + 1, value - 1, -1 - value)


def _other_constants(value: np.ndarray) -> Iterator[np.ndarray]:
    value = np.asarray(value)
    if value.dtype.kind == "i" and value.size <= 6:
        yield from (value + 1, value - 1, -1 - value, value[::-1] if value.ndim else -value)
        if value.ndim == 1:
            yield np.repeat(value[:1], 2)
            yield value[:0]
            yield np.concatenate([value, value[:1] + 1])
        elif value.ndim == 0:
            yield value.reshape(1)
    elif value.dtype.kind in "fc" and 0 < value.size <= 4096:
        other = value.copy()
        other.flat[0] = other.flat[0] * 2 + 0.5
        yield other
        yield from (value * 2, np.zeros_like(value) if value.ndim < 2 else value + 1, -value)
        if value.ndim:
            yield value.reshape(1, *value.shape)


def _with_attribute(i: int, key: str, value: Any) -> Callable[[Subgraph], None]:
    def apply(subgraph: Subgraph) -> None:
        node = subgraph.nodes[i]
        node.attributes = {**node.attributes, key: value}
        if key == "explicit_paddings":
            node.attributes["padding"] = "EXPLICIT"
        infer_again(subgraph)

    return apply


def infer_again(subgraph: Subgraph) -> None:
    """Infers all static shapes from the attributes as they are now."""
    for node in subgraph.nodes:
        infer = node.declaration.infer_function
        if node.type == "_Arg" or infer is None or not node.outputs:
            continue
        dims = infer(node)
        for x, shape in zip(node.outputs, dims if type(dims) is list else [dims]):
            x.dims = shape


def _add(subgraph: Subgraph, i: int, kind: str, inputs: list[Any], attributes: Any) -> Any:
    node = subgraph.new_node(registry[kind], inputs, attributes, subgraph.nodes[i], name=f"consumer/{kind}")
    subgraph.nodes.append(node)
    return node


def _fetched(i: int, k: int) -> Callable[[Subgraph], None]:
    return lambda subgraph: subgraph.fetches.append(subgraph.nodes[i].outputs[k])


def _taken(i: int, k: int) -> Callable[[Subgraph], None]:
    def apply(subgraph: Subgraph) -> None:
        x = subgraph.nodes[i].outputs[k]
        consumer = _add(subgraph, i, "Mul", [x, x], {"T": x.dtype.base_dtype})
        subgraph.fetches.append(consumer.outputs[0])

    return apply


def _conditional(i: int, k: int) -> Callable[[Subgraph], None]:
    def apply(subgraph: Subgraph) -> None:
        x = subgraph.nodes[i].outputs[k]
        attributes = {"value": np.array(True), "dtype": dtypes.bool}
        chosen = _add(subgraph, i, "Const", [], attributes).outputs[0]
        switch = _add(subgraph, i, "Switch", [x, chosen], {"T": x.dtype.base_dtype})
        subgraph.fetches.append(switch.outputs[1])

    return apply


# ---- whether the values stay


def difference(
    program: Program, built: Built, change: Change | None, values: Any = None, fed: Any = None
) -> str | None:
    """What differs between the values of a variant with and without rewriting, in words; None if nothing
    does, or the program is not a legal one."""
    values = built.values() if values is None else values
    try:
        plain = built.pruned(fed)
        if change is not None:
            change.apply(plain)
            check(plain)
        wanted = built.computed(plain, values, True)
    except Exception:
        return None
    try:
        subgraph = built.pruned(fed)
        if change is not None:
            change.apply(subgraph)
        rewritten(subgraph, program.name)
        found = built.computed(subgraph, values, False)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    tolerance = program.tolerance or _TOLERANCES.get(built.draft.dtype.name, 1e-9)
    for i, (x, y) in enumerate(zip(found, wanted)):
        if text := unequal(x, y, tolerance):
            return f"value {i}: {text}\n{subgraph}"
    return None


def unequal(x: np.ndarray, y: np.ndarray, tolerance: float) -> str | None:
    """How `x` differs from `y` by more than rounding."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return f"{x.dtype}{list(x.shape)} instead of {y.dtype}{list(y.shape)}"
    if x.dtype.kind not in "fcV" and x.dtype.name != "bfloat16":
        return None if np.array_equal(x, y) else f"{x} instead of {y}"
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        if not np.array_equal(np.isnan(x), np.isnan(y)):
            return f"NaN in {np.isnan(x).sum()} places instead of {np.isnan(y).sum()}:\n{x}\n{y}"
        infinite = np.isinf(x) | np.isinf(y)
        if not np.array_equal(x[infinite], y[infinite], equal_nan=x.dtype.kind == "c"):
            return f"infinities differ:\n{x}\n{y}"
        finite = np.isfinite(x) & np.isfinite(y)
        most = np.abs(y[finite]).max(initial=1e-3)
        if np.abs(x[finite] - y[finite]).max(initial=0) > tolerance * most:
            return f"differ by {np.abs(x[finite] - y[finite]).max()} of {most}:\n{x}\n{y}"
    return None


def disagreements(program: Program, at_most: int | None = None) -> list[str]:
    """The variants of a program whose values rewriting changes: of all, or of `at_most` of its changes."""
    found: list[str] = []

    def note(text: str, what: str | None) -> None:
        if what:
            found.append(f"{text}: {what}")

    built = program.drafted()
    note("as it is", difference(program, built, None))
    tried = list(changes(program, built.pruned()))
    step = max(1, -(-len(tried) // at_most)) if at_most else 1
    for change in tried[::step]:
        note(change.text, difference(program, built, change))
    _feed_inner(program, note)
    _feed_specials(program, note)
    for how in ({"batch": 0}, {"batch": 1}, {"known": False}, {"batch": 0, "known": False}):
        _build_otherwise(program, how, note)
    for name in program.dtypes:
        _build_otherwise(program, {"dtype": getattr(tf, name)}, note)
    return found


def _build_otherwise(program: Program, how: dict[str, Any], note: Any) -> None:
    try:
        built = program.drafted(**how)
    except Exception:
        return  # no such program
    note(str(how), difference(program, built, None))


def _feed_inner(program: Program, note: Any) -> None:
    built = program.drafted()
    subgraph = built.pruned()
    if any(node.type in LOOP_TYPES for node in subgraph.nodes):
        return
    for node in subgraph.nodes:
        if node.type == "_Arg" or not re.search(program.changed, node.name):
            continue
        for k, x in enumerate(node.outputs):
            origin = node.origin.outputs[k] if hasattr(node.origin, "outputs") else None
            if origin is None or x.dtype.is_ref or x.dtype.torch is None or x.dims is None or None in x.dims:
                continue
            value = built.draft.values(*x.dims, dtype=x.dtype)
            if not x.dtype.is_floating:
                plain = built.pruned()
                plain.fetches = [plain.nodes[subgraph.nodes.index(node)].outputs[k]]
                try:
                    value = built.computed(plain, built.values(), True)[0]
                except ValueError:
                    continue
            what = difference(program, built, None, [*built.values(), value], origin)
            note(f"{node.name}:{k} fed", what)


def _feed_specials(program: Program, note: Any) -> None:
    built = program.drafted()
    for i, (x, value) in enumerate(built.draft.feeds.items()):
        if not x.dtype.is_floating or not value.size:
            continue
        for special in SPECIALS:
            if (i in program.finite and np.isinf(special)) or (i in program.numbers and np.isnan(special)):
                continue
            for place in (0, value.size // 2):
                values = built.values()
                values[i] = value.copy()
                values[i].flat[place] = special
                note(f"{special} in feed {i} at {place}", difference(program, built, None, values))
