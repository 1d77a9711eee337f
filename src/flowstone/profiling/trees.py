"""The nodes of a profile as trees: by name scope, by data flow, by kind of op, by line of Python.

A tree is built of all nodes, its sums are made, it is sorted, and then cut down to what the options show:
what is hidden hands its children to what is above it. Graphs are deep, so that nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from flowstone.profiling.options import MEASURES, Options
from flowstone.profiling.records import Costs, Line, Record

ROOT = "_TFProfRoot"
SCOPE = "_kTFScopeParent"  # the type of a scope that is not a node
DATA_FLOW = "_TFGraphParent"  # the type of the root by data flow

Records = dict[str, Record]


class Tree:
    """A node of a view.

    Attributes:
        name: as it is shown. types: what regular expressions of types are matched with.
        own: its own costs. total: with those of everything below.
        is_counted: whether its own costs are among those asked for.
        is_accounted: whether it is part of the view: it is counted, or something below it is.
        children: below it. record: the node of the graph that it is.
        line: the line of Python that it is.
        members: the nodes of the graph that are collected in it, each with its costs.
    """

    def __init__(
        self, name: str, types: Iterable[str] = (), record: Record | None = None, line: Line | None = None
    ) -> None:
        self.name, self.types, self.record, self.line = name, set(types), record, line
        self.members: list[tuple[Record, Costs]] = []
        self.own = self.total = Costs()
        self.is_counted = self.is_accounted = False
        self.children: list[Tree] = []

    @property
    def is_root(self) -> bool:
        """Whether everything is below it."""
        return self.name == ROOT

    @property
    def devices(self) -> list[str]:
        """On which devices its nodes ran."""
        records = [record for record, _ in self.members] if self.record is None else [self.record]
        return list(dict.fromkeys(device for record in records for device in record.devices))

    def copy(self, children: list[Tree]) -> Tree:
        """The same node with other children."""
        other = Tree(self.name, self.types, self.record, self.line)
        other.members, other.own, other.total = self.members, self.own, self.total
        other.is_counted, other.is_accounted = self.is_counted, self.is_accounted
        other.children = children
        return other


def children_first(root: Tree) -> Iterator[Tree]:
    """Every node of a tree, after those below it."""
    order, waiting = [], [root]
    while waiting:
        tree = waiting.pop()
        order.append(tree)
        waiting += tree.children
    return reversed(order)


# ---- views of single nodes: by scope, by data flow


def scope_view(records: Records, options: Options) -> Tree:
    """The nodes by their names, which are like paths of files. What is between them is a scope."""
    root = Tree(ROOT, {SCOPE})
    trees = {name: Tree(name, record.types, record) for name, record in records.items()}
    for name in records:
        while "/" in name:
            name = name.rpartition("/")[0]
            if name not in trees:
                trees[name] = Tree(name, {SCOPE})
    for name, tree in trees.items():
        trees.get(name.rpartition("/")[0], root).children.append(tree)
    _account_nodes(root, options, scopes_count=True)
    return _shown(root, options, _shows_node)


def graph_view(records: Records, options: Options) -> Tree:
    """The nodes by data flow: below a node are those that it takes its inputs from.

    At the top are the nodes whose results nobody takes. A node that several take is below the first of them.
    """
    taken = {name for record in records.values() for name in record.inputs}
    root = Tree(ROOT, {DATA_FLOW})
    seen: set[str] = set()
    for name in sorted(set(records) - taken):
        _follow(records, name, root, seen)
    _account_nodes(root, options, scopes_count=False)
    return _shown(root, options, _shows_node)


def _follow(records: Records, name: str, root: Tree, seen: set[str]) -> None:
    """Adds a node below the root, and below it all inputs that were not seen yet, depth first."""
    waiting: list[tuple[str, Tree]] = [(name, root)]
    while waiting:
        name, above = waiting.pop()
        if name in seen or name not in records:
            continue
        seen.add(name)
        record = records[name]
        tree = Tree(name, record.types, record)
        above.children.append(tree)
        waiting += [(source, tree) for source in reversed(record.inputs)]


def _account_nodes(root: Tree, options: Options, scopes_count: bool) -> None:
    """Makes the sums. `scopes_count`: what has something counted below it is counted too."""
    for tree in children_first(root):
        tree.is_counted = any(map(options.is_accounted, tree.types)) and not tree.is_root
        below = scopes_count and any(child.is_accounted for child in tree.children)
        tree.is_accounted = tree.is_counted or below
        if tree.is_accounted and not tree.is_root:
            tree.own = tree.record.costs(options.step) if tree.record else Costs(definitions=1)
        tree.total = sum((child.total for child in tree.children), tree.own)
        _sort(tree.children, options)


def _shows_node(tree: Tree, options: Options, depth: int) -> bool:
    """Whether a node is shown: its time and bytes count with all below it, the rest without."""
    return (
        tree.is_accounted
        and options.shows_name(tree.name)
        and depth <= options.max_depth
        and _reaches(tree.total, options, ("micros", "accelerator_micros", "cpu_micros", *_BYTES))
        and _reaches(tree.own, options, ("params", "float_ops"))
        and tree.own.runs >= options.min_occurrence
    )


# ---- views of many nodes: by kind, by line


def op_view(records: Records, options: Options) -> list[Tree]:
    """The kinds of ops, in order. The total of each is that of it and all after it.

    First is the root, which has the sum of all.
    """
    kinds: dict[str, Tree] = {}
    for name in sorted(records):
        record = records[name]
        if any(map(options.is_accounted, record.types)):
            tree = kinds.setdefault(record.op, Tree(record.op))
            costs = record.costs(options.step)
            tree.types |= record.types
            tree.members.append((record, costs))
            tree.own += costs
    for tree in kinds.values():
        tree.total, tree.is_counted, tree.is_accounted = tree.own, True, True
    listed = [kinds[name] for name in sorted(kinds)]
    _sort(listed, options)
    if options.order_by == "occurrence":
        listed.sort(key=lambda tree: -len(tree.members))
    _accumulate(listed)
    root = Tree(ROOT)
    root.total = listed[0].total if listed else Costs()
    shown = []
    started = False
    for depth, tree in enumerate(listed):
        started = started or options.starts(tree.name)
        if options.trims(tree.name):
            break
        if started and _shows_kind(tree, options, depth):
            shown.append(tree)
    if options.account_displayed_op_only:
        _accumulate(shown)
        root.total = shown[0].total if shown else Costs()
    return [root, *shown]


def _accumulate(listed: list[Tree]) -> None:
    for tree, total in zip(reversed(listed), accumulate(each.own for each in reversed(listed))):
        tree.total = total


def _shows_kind(tree: Tree, options: Options, depth: int) -> bool:
    return (
        _shows_sum(tree, options, depth)
        and options.shows_name(tree.name)
        and len(tree.members) >= options.min_occurrence
    )


def _shows_sum(tree: Tree, options: Options, depth: int) -> bool:
    measures = ("micros", "accelerator_micros", "cpu_micros", "params", "float_ops", *_BYTES)
    return depth <= options.max_depth and _reaches(tree.total, options, measures)


def code_view(records: Records, options: Options) -> Tree:
    """The lines of Python by their calls; the innermost has the nodes that it made."""
    root = Tree(ROOT)
    below: dict[tuple[Tree, Line], Tree] = {}
    for name in sorted(records):
        record, tree = records[name], root
        for line in record.lines:
            child = below.get((tree, line))
            if child is None:
                child = below[tree, line] = Tree(_line_name(line), line=line)
                tree.children.append(child)
            tree = child
        if record.lines and any(map(options.is_accounted, record.types)):
            tree.members.append((record, record.costs(options.step)))
    everything = ".*" in options.account_type_regexes
    for tree in children_first(root):
        tree.is_counted = everything or bool(tree.members)
        tree.own = sum((costs for _, costs in tree.members), Costs())
        tree.is_accounted = tree.is_counted or any(child.is_accounted for child in tree.children)
        tree.total = sum((child.total for child in tree.children), tree.own)
        _sort(tree.children, options)
    return _shown(root, options, _shows_line, trimmed_stay=False, sum_shown=False)


def _line_name(line: Line) -> str:
    function = line.function if len(line.function) <= 20 else line.function[:17] + "..."
    return f"{line.file.rpartition('/')[2]}:{line.line}:{function}"


def _shows_line(tree: Tree, options: Options, depth: int) -> bool:
    return tree.is_accounted and options.shows_name(tree.name) and _shows_sum(tree, options, depth)


# ---- order, and what is shown

_BYTES = ("bytes", "peak_bytes", "residual_bytes", "output_bytes")


def _reaches(costs: Costs, options: Options, measures: tuple[str, ...]) -> bool:
    return all(getattr(costs, name) >= getattr(options, f"min_{name}") for name in measures)


def _sort(trees: list[Tree], options: Options) -> None:
    trees.sort(key=lambda tree: tree.name)
    order = options.order_by
    if order in MEASURES:
        trees.sort(key=lambda tree: -int(getattr(tree.total, order)))


_Shows = Callable[[Tree, Options, int], bool]


def _shown(
    root: Tree, options: Options, shows: _Shows, trimmed_stay: bool = True, sum_shown: bool = True
) -> Tree:
    """The tree of what is shown. With `account_displayed_op_only` its totals are made of it alone."""
    results: dict[int, list[Tree]] = {}  # what a node leaves: itself, or what it hands up
    waiting: list[tuple[Tree, int, bool, bool]] = [(root, 1, options.starts(ROOT), False)]
    while waiting:
        tree, depth, started, visited = waiting.pop()
        if not visited:
            started = started or options.starts(tree.name)
            waiting.append((tree, depth, started, True))
            if not options.trims(tree.name):
                waiting += [(child, depth + 1, started, False) for child in tree.children]
            continue
        below = [x for child in tree.children for x in results.pop(id(child), [])]
        _sort(below, options)
        is_cut = not trimmed_stay and options.trims(tree.name)
        if tree.is_root or (started and not is_cut and shows(tree, options, depth)):
            below = [tree.copy(below)]
        results[id(tree)] = below
    (result,) = results.values()
    if options.account_displayed_op_only and sum_shown:
        _sum_shown(result[0])
    return result[0]


def _sum_shown(root: Tree) -> None:
    root.own = Costs(definitions=1)
    for tree in children_first(root):
        tree.total = sum((child.total for child in tree.children), tree.own)


def walk(root: Tree) -> Iterator[tuple[Tree, int]]:
    """Every node of a tree with how deep it is, in the order of a report."""
    waiting: list[tuple[Tree, int]] = [(root, 0)]
    while waiting:
        tree, depth = waiting.pop()
        yield tree, depth
        waiting += [(child, depth + 1) for child in reversed(tree.children)]
