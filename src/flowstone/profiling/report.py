"""A profile as text, in the columns of TensorFlow's profiler.

Before the slash is what a node costs itself, behind it with all that is below it. ``--`` stands for what is
not counted. Thousands are metric: 1.23KB are 1,230 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.profiling.options import COLUMNS, NAMES, Options
from flowstone.profiling.records import Costs, Dims, Record
from flowstone.profiling.trees import Tree, walk

_VIEWS = {
    "scope": "the nodes of the graph by their names, which are like paths of files.",
    "graph": "the nodes of the graph by data flow; below a node are those whose outputs it takes.",
    "op": "the kinds of ops, each with all nodes of that kind.",
    "code": "the lines of Python that made the nodes, by their calls.",
}
_MEANINGS = {
    "micros": "microseconds on the host and on accelerators.",
    "accelerator_micros": "microseconds that kernels ran on accelerators.",
    "cpu_micros": "microseconds on the host, from an op's start to its end, launches and waiting included.",
    "bytes": "bytes that were requested of the allocator.",
    "peak_bytes": "the most bytes that were held at one time.",
    "residual_bytes": "bytes that were still held after the op.",
    "output_bytes": "bytes of the outputs, allocated by the op or not.",
    "params": "numbers in variables and placeholders.",
    "float_ops": "floating-point operations; two are a multiplication and an addition.",
    "device": "where it ran.",
    "op_types": "the op, the devices, and the types that an OpLogProto gives.",
    "occurrence": "how often it ran, and how many there are.",
    "input_shapes": "the shapes of the inputs, by their numbers.",
    "tensor_value": "not shown.",
}
_HEADINGS = {
    "bytes": "requested bytes",
    "peak_bytes": "peak bytes",
    "residual_bytes": "residual bytes",
    "output_bytes": "output bytes",
    "micros": "total execution time | accelerator execution time | cpu execution time",
    "accelerator_micros": "accelerator execution time",
    "cpu_micros": "cpu execution time",
    "params": "# parameters",
    "float_ops": "# float_ops",
    "device": "assigned devices",
    "op_types": "op types",
    "occurrence": "op count (run|defined)",
    "input_shapes": "input shapes",
}
_MEMORY = ("bytes", "peak_bytes", "residual_bytes", "output_bytes")
_TIME = ("micros", "accelerator_micros", "cpu_micros")
_REST = ("device", "op_types", "occurrence", "input_shapes")
_OF_NODES = ("params", "float_ops", *_MEMORY, *_TIME, *_REST)
_OF_MANY = (*_MEMORY, *_TIME, "params", "float_ops", *_REST)


def options_text(options: Options) -> str:
    """A line for each option."""
    lines = []
    for name in NAMES:
        value = options.values[name]
        if name == "select":
            value = sorted(value)
        if name == "output":
            value = value if ":" in value else f"{value}:"
        lines.append(f"{'-' + name:<28}{_option(value)}")
    return "\n".join(lines)


def _option(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, (list, tuple)) else str(value)


def text(view: str, shown: Tree | Sequence[Tree], options: Options) -> str:
    """The report of a view: what its columns mean, and a line for each node."""
    lines = ["", "Doc:", f"{view}: {_VIEWS[view]}"]
    lines += [f"{name}: {_MEANINGS[name]}" for name in sorted(options.select) if name in COLUMNS]
    columns = _columns(view, options)
    headings = " | ".join(_heading(view, name) for name in columns)
    lines += ["", "Profile:", f"node name | {headings}"]
    if isinstance(shown, Tree):
        row = _line_row if view == "code" else _node_row
        lines += [f"{'  ' * depth}{tree.name} ({row(tree, columns)})" for tree, depth in walk(shown)]
    else:
        lines += [_kind_row(tree, shown[0].total, columns) for tree in shown[1:]]
    return "\n".join(lines) + "\n"


def _columns(view: str, options: Options) -> list[str]:
    order = _OF_NODES if view in ("scope", "graph") else _OF_MANY
    selected = set(options.select)
    if "micros" in selected:  # it shows the other two
        selected -= {"accelerator_micros", "cpu_micros"}
    return [name for name in order if name in selected]


def _heading(view: str, name: str) -> str:
    if name == "occurrence" and view in ("op", "code"):
        return "op occurrence (run|defined)"
    return _HEADINGS[name]


# ---- rows


def _node_row(tree: Tree, columns: Sequence[str]) -> str:
    cells = []
    for name in columns:
        if name == "op_types":
            cells.append("|".join(sorted(tree.types)))
        elif name == "occurrence":
            runs, definitions = _of(tree, str(tree.own.runs)), _of(tree, str(tree.own.definitions))
            cells.append(f"{runs}/{tree.total.runs}|{definitions}/{tree.total.definitions}")
        elif name == "input_shapes":
            cells.append("" if tree.record is None else _shapes(tree.record, "|"))
        else:
            cells += _measures(tree, name)
    return ", ".join(cells)


def _line_row(tree: Tree, columns: Sequence[str]) -> str:
    cells = []
    for name in columns:
        if name == "op_types":
            cells.append("|".join(sorted({kind for record, _ in tree.members for kind in record.types})))
        elif name in ("occurrence", "input_shapes"):
            cells.append(f"{name} N/A in code view")
        else:
            cells += _measures(tree, name)
    return ", ".join(cells)


def _of(tree: Tree, own: str) -> str:
    return own if tree.is_counted and not tree.is_root else "--"


def _measures(tree: Tree, name: str) -> list[str]:
    """A column's cells in a tree: a shape may go before parameters, and devices may be missing."""
    if name == "device":
        return [",".join(tree.devices)] if tree.devices else []
    if name == "micros":
        return [f"{_of(tree, time(getattr(tree.own, x)))}/{time(getattr(tree.total, x))}" for x in _TIME]
    form = _FORMS[name]
    own, total = getattr(tree.own, name), getattr(tree.total, name)
    unit = {"params": " params", "float_ops": " flops"}.get(name, "")
    cells = [f"{_of(tree, form(own))}/{form(total)}{unit}"]
    if name == "params" and tree.record is not None and tree.record.shape is not None:
        cells.insert(0, _dims(tree.record.shape))
    return cells


def _kind_row(tree: Tree, whole: Costs, columns: Sequence[str]) -> str:
    cells = []
    for name in columns:
        if name == "device":
            cells.append("|".join(tree.devices))
        elif name == "op_types":
            cells.append("|".join(sorted(tree.types)))
        elif name == "occurrence":
            cells.append(f"{f'{tree.own.runs}|{len(tree.members)}':>10}")
        elif name != "input_shapes":
            for measure in _TIME if name == "micros" else (name,):
                cells.append(_share(tree, whole, measure))
    row = f"{tree.name:<25}" + ", ".join(cells)
    return row + _input_types(tree) if "input_shapes" in columns else row


def _share(tree: Tree, whole: Costs, name: str) -> str:
    """A measure of a kind; what part of the whole are it and all after it, and it alone."""
    own, total, all_of = (getattr(costs, name) for costs in (tree.own, tree.total, whole))
    parts = [100 * part / all_of if all_of else 0.0 for part in (total, own)]
    unit = {"params": " params", "float_ops": " float_ops"}.get(name, "")
    return f"{f'{_FORMS[name](own)}{unit} ({parts[0]:.2f}%, {parts[1]:.2f}%)':>30}"


def _input_types(tree: Tree) -> str:
    """A line for each combination of input shapes of a kind, the slowest first."""
    found: dict[str, list[Costs]] = {}
    for record, costs in tree.members:
        found.setdefault(_shapes(record, ",\t"), []).append(costs)
    lines = []
    for shapes, each in sorted(found.items(), key=lambda item: (-sum(x.micros for x in item[1]), item[0])):
        runs, micros = sum(x.runs for x in each), sum(x.micros for x in each)
        lines.append(f"input_type: {shapes}\t(run*{runs}|defined*{len(each)})\texec_time: {time(micros)}\n")
    return "\n\n" + "".join(lines)


# ---- numbers


def _shapes(record: Record, separator: str) -> str:
    texts = [f"{index}:{_dims(dims)}" for index, dims in sorted(record.input_shapes.items())]
    return separator.join(texts)


def _dims(dims: Dims) -> str:
    return "unknown" if dims is None else "x".join("-1" if n is None else str(n) for n in dims)


def time(micros: int) -> str:
    """A time: 12us, 1.23ms, 1.23sec."""
    return _metric(micros, "us", ("ms", "sec"))


def size(count: int) -> str:
    """A number of bytes: 12B, 1.23KB, 1.23MB."""
    return _metric(count, "B", ("KB", "MB"))


def number(count: int) -> str:
    """A count: 12, 1.23k, 1.23m, 1.23b."""
    return _metric(count, "", ("k", "m", "b"))


def _metric(value: int, unit: str, larger: Sequence[str]) -> str:
    if value < 1000:
        return f"{value}{unit}"
    power = 0
    while power < len(larger) - 1 and value >= 1000 ** (power + 2):
        power += 1
    return f"{value / 1000 ** (power + 1):.2f}{larger[power]}"


_FORMS: dict[str, Callable[[int], str]] = {
    **dict.fromkeys(_MEMORY, size),
    **dict.fromkeys(_TIME, time),
    "params": number,
    "float_ops": number,
}
