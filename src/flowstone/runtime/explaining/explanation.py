"""Explains a step, as text and as JSON: its rewrites, where its time and memory go, and the floors.

`explanation_text` fits into 100 columns. All figures have units; the columns are named in docs/explain.md.
The same figures are in `explanation_record`, whose keys end in their units.

>>> print(rewrite_text([("fold_constants", "a", "known before the step")] * 2 + [("fuse_biases", "b", "x")]))
3 rewrites
  fold_constants                 2  known before the step: a, a
  fuse_biases                    1  x: b
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from flowstone.framework.machine import machine
from flowstone.runtime.code.native_kernels import (
    KernelReport,
    cluster_text,
    kernel_record,
    kernel_table,
    native_kernels,
)
from flowstone.runtime.explaining.floors import Floors
from flowstone.runtime.explaining.step_profile import MemoryProfile, NodeProfile, StepProfile
from flowstone.runtime.plans.plan import Plan
from flowstone.runtime.quantities import WIDTH, aligned, bytes_text, clipped, listed, time_text

_MOST_TYPES = 15
_MOST_HELD = 5
_MOST_TIMED = 10  # kernels of machine code
_LONGEST_PATH = 34


class Explanation(NamedTuple):
    """One kind of step: the names of its `fetches` and `feeds` (feeds with shapes); how often it ran (`runs`)
    and for how long in total (`total_ms`, without planning); whether only its first run was traced
    (`is_cold`); its plan, and what was measured (None: nothing).
    """

    fetches: tuple[str, ...]
    feeds: tuple[str, ...]
    runs: int
    total_ms: float
    is_cold: bool
    plan: Plan
    profile: StepProfile | None


class RewriteGroup(NamedTuple):
    """What one pass did to several `nodes` for the same `reason`; names that differ are left out of it."""

    rewrite: str
    reason: str
    nodes: tuple[str, ...]


def group_rewrites(log: Iterable[tuple[str, str, str]]) -> list[RewriteGroup]:
    """Groups a subgraph's log, (pass, node, reason) each, by pass and reason, in the order of the log."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    log = list(log)
    names = {node for _, node, _ in log}
    for rewrite, node, reason in log:
        groups.setdefault((rewrite, _general(reason, names)), []).append((node, reason))
    return [
        RewriteGroup(
            rewrite,
            found[0][1] if len({reason for _, reason in found}) == 1 else general,
            tuple(node for node, _ in found),
        )
        for (rewrite, general), found in groups.items()
    ]


def _general(reason: str, names: set[str]) -> str:
    """The reason without numbers and names of nodes."""
    words = [
        "…" if "/" in word or word.strip(",;:()") in names or re.fullmatch(r"[A-Z]\w*_\d+", word) else word
        for word in reason.split(" ")
    ]
    return re.sub(r"\d+(\.\d+)?", "…", " ".join(words))


# ---- text


def explanation_text(
    explanation: Explanation, nodes: int = 10, graph: bool = False, code: bool = False
) -> str:
    """Explains a kind of step as text. `nodes`: how many nodes to list; `graph`, `code`: whether to include
    the graph after rewriting and the generated code.
    """
    plan, measured = explanation.plan, explanation.profile
    blocks = [_head(explanation), rewrite_text(plan.subgraph.log)]
    if measured is not None:
        blocks.append(measured_text(explanation, nodes))
    if graph:
        blocks.append("graph after rewriting\n" + _indented(plan.graph_text))
    if code:
        blocks.append("generated code\n" + _indented(plan.program.source))
        kernels = _kernels(explanation, 0)
        blocks += [cluster_text([each]) + "\n\n" + _indented(each.source) for each in kernels]
    return "\n\n".join(blocks)


def measured_text(explanation: Explanation, nodes: int = 10) -> str:
    """Where the time and memory of a step that was measured go, and the times of machine code."""
    assert explanation.profile is not None
    table = kernel_table(_kernels(explanation, nodes))
    text = profile_text(explanation.profile, nodes)
    return f"{text}\n\n{table}" if table else text


def _kernels(explanation: Explanation, most: int) -> list[KernelReport]:
    """The plan's machine code; that of the first `most` kinds is timed if the step was."""
    nodes = [node for part in explanation.plan.parts.values() for node in part.nodes]
    return native_kernels(nodes, most if explanation.profile is not None else 0)


def _head(explanation: Explanation) -> str:
    count = f"{explanation.runs} step{'s' if explanation.runs != 1 else ''}"
    lines = [listed("step of ", explanation.fetches)]
    if explanation.feeds:
        lines.append(listed("  fed with ", explanation.feeds))
    about = f"  {count}, {time_text(explanation.total_ms)}"
    if explanation.profile is not None:
        traced = explanation.profile.traced_steps
        if explanation.is_cold:
            about += "; traced: only the first, which is slower than later ones"
        else:
            about += f"; {time_text(explanation.profile.step_ms)} a step (median), {traced} traced"
    return "\n".join([*lines, about])


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())


def rewrite_text(log: Iterable[tuple[str, str, str]]) -> str:
    """What rewriting did, with a line for each pass and reason."""
    groups = group_rewrites(log)
    count = sum(len(group.nodes) for group in groups)
    lines = [f"{count} rewrite{'s' if count != 1 else ''}"]
    for group in groups:
        head = f"  {group.rewrite:28} {len(group.nodes):3}  {group.reason}: "
        lines.append(listed(head, group.nodes))
    return "\n".join(lines)


def profile_text(profile: StepProfile, nodes: int = 10) -> str:
    """Where a step's time and memory go, and how far its nodes are from the floors."""
    blocks = [
        _type_table(profile),
        _node_table(profile, nodes),
        _memory_text(profile.memory),
    ]
    return "\n\n".join(block for block in blocks if block)


class TypeProfile(NamedTuple):
    """The nodes of one op type: see `NodeProfile`; `floored_ms` is the time of the nodes that have a
    floor."""

    type: str
    runs: int
    ms: float
    floor_ms: float
    floored_ms: float
    allocated: int
    waits: bool


def group_types(nodes: Iterable[NodeProfile]) -> list[TypeProfile]:
    """The nodes by op type, the most expensive type first."""
    groups: dict[str, list[NodeProfile]] = {}
    for node in nodes:
        groups.setdefault(node.type, []).append(node)
    types = [_joined(kind, [_of_one(node) for node in own]) for kind, own in groups.items()]
    return sorted(types, key=lambda each: (-each.ms, each.type))


def _of_one(node: NodeProfile) -> TypeProfile:
    floored_ms = node.ms if node.floor_ms else 0.0
    return TypeProfile(
        node.type, node.runs, node.ms, node.floor_ms, floored_ms, node.allocated, node.waits
    )  # fmt: skip


def _joined(name: str, each: Sequence[TypeProfile]) -> TypeProfile:
    return TypeProfile(
        name,
        sum(one.runs for one in each),
        sum(one.ms for one in each),
        sum(one.floor_ms for one in each),
        sum(one.floored_ms for one in each),
        sum(one.allocated for one in each),
        any(one.waits for one in each),
    )


def _type_table(profile: StepProfile) -> str:
    types = group_types(profile.nodes)
    total = profile.node_ms
    rows: list[tuple[str, ...]] = [("op", "runs", "time", "share", "allocates", "floor", "x floor")]
    rows += [_type_row(each, total) for each in types[:_MOST_TYPES]]
    rest = types[_MOST_TYPES:]
    if rest:
        rows.append(_type_row(_joined(f"{len(rest)} others", rest), total))
    rows.append(_type_row(_joined("all nodes", types), total))
    title = f"where the time goes (median of {_steps(profile.traced_steps)})"
    lines = [title, *aligned(rows, left=1)]
    outside = profile.step_ms - total
    if outside > 0:
        lines.append(f"  between the nodes, and for feeds and fetches: {time_text(outside)} of a step")
    else:
        lines.append("  above a step's: nodes run at the same time, or more slowly in traced steps")
    return "\n".join(lines)


def _steps(count: int) -> str:
    return "1 traced step" if count == 1 else f"{count} traced steps"


def _type_row(each: TypeProfile, total: float) -> tuple[str, ...]:
    name = f"{each.type} (waits)" if each.waits else each.type
    ratio = f"{each.floored_ms / each.floor_ms:.1f}" if each.floor_ms else "-"
    return (
        clipped(name, 40), str(each.runs), time_text(each.ms), f"{each.ms / total:.0%}" if total else "-",
        bytes_text(each.allocated) if each.allocated else "-",
        time_text(each.floor_ms) if each.floor_ms else "-", ratio,
    )  # fmt: skip


def _node_table(profile: StepProfile, count: int) -> str:
    shown, total = profile.nodes[:count], profile.node_ms
    if not shown:
        return ""
    devices = len({node.device for node in profile.nodes}) > 1
    lines = ["the most expensive nodes", f"  {'time':>9}  share  {'floor':>9}  x floor  bound    node"]
    for node in shown:
        share = f"{node.ms / total:.0%}" if total else "-"
        floor, ratio = (time_text(node.floor_ms), f"{node.ratio:.1f}") if node.floor_ms else ("-", "-")
        head = f"  {time_text(node.ms):>9}  {share:>5}  {floor:>9}  {ratio:>7}  {node.bound or '-':7}  "
        runs = f" ({node.runs} runs)" if node.runs > 1 else ""
        place = f" on {node.device.rpartition('/device:')[2]}" if devices else ""
        where = f"  {_short_path(node.user_line)}" if node.user_line else ""
        lines.append(head + clipped(f"{node.type}{runs}{place}", WIDTH - len(head) - len(where)) + where)
        types = f"({', '.join(node.inputs)}) -> {', '.join(node.outputs) or 'nothing'}"
        if len(node.name) + len(types) + 6 <= WIDTH:
            lines.append(f"      {node.name}{types}")
        else:
            lines += [clipped(f"      {node.name}", WIDTH), clipped(f"      {types}", WIDTH)]
    if len(profile.nodes) > count:
        lines.append(f"  and {len(profile.nodes) - count} more")
    return "\n".join(lines)


def _short_path(line: str) -> str:
    """The line with its file relative to the current folder, if the file is in it; a long path is cut to its
    end."""
    text = line.removeprefix(os.getcwd() + os.sep)
    return text if len(text) <= _LONGEST_PATH else "…" + text[1 - _LONGEST_PATH :]


def _memory_text(memory: MemoryProfile) -> str:
    lines = [
        "where the memory goes",
        f"  variables and constants {bytes_text(memory.state)}, fed values {bytes_text(memory.fed)}",
        f"  values of the step: at most {bytes_text(memory.peak)} at a time (estimated from shapes: "
        f"{bytes_text(memory.estimated_peak)}), {bytes_text(memory.allocated)} allocated in all",
    ]
    if memory.held:
        lines.append(clipped(f"  held at that time, after {memory.at}", WIDTH))
    for held in memory.held[:_MOST_HELD]:
        where = f"  {_short_path(held.user_line)}" if held.user_line else ""
        text = clipped(f"  {bytes_text(held.size):>9}  {held.type} {held.name}", WIDTH - len(where))
        lines.append(text + where)
    rest = memory.held[_MOST_HELD:]
    if rest:
        lines.append(f"  {bytes_text(sum(held.size for held in rest)):>9}  {len(rest)} more")
    return "\n".join(lines)


def machine_text(profiles: Iterable[StepProfile]) -> str:
    """The models of the devices from which the profiles' floors are computed; "" if there are none."""
    names_of: dict[Floors, list[str]] = {}
    for name, floors in dict.fromkeys(pair for profile in profiles for pair in profile.machines.items()):
        names_of.setdefault(floors, []).append(name.rpartition("/device:")[2])
    if not names_of:
        return ""
    lines = [
        f"kernels were chosen by the profile {machine.current().profile.name}",
        "the machine that the floors are of (measured now)",
    ]
    for floors, names in names_of.items():
        threads = f", {floors.threads} intra-op thread{'s' if floors.threads > 1 else ''}"
        lines.append(f"  {', '.join(names)}{threads if floors.device == 'cpu' else ''}")
        lines.append(
            f"    matrix product {floors.product / 1e9:.1f} Gflop/s, "
            f"convolution {floors.convolution / 1e9:.1f} Gflop/s, a call {floors.call * 1e6:.2f} us"
        )
        rates = ", ".join(f"{rate / 1e9:.1f} GB/s in {bytes_text(size)}" for size, rate in floors.bandwidths)
        lines.append(f"    memory {rates}")
    return "\n".join(lines)


# ---- JSON


def explanation_record(explanation: Explanation) -> dict[str, Any]:
    """The same as a dictionary of JSON's types, graph and code included. Keys end in units: ``_ms``,
    ``_bytes``, ``_flop``, ``_flop_per_s``, ``_bytes_per_s``.
    """
    plan, profile = explanation.plan, explanation.profile
    return {
        "fetches": list(explanation.fetches),
        "feeds": list(explanation.feeds),
        "steps": explanation.runs,
        "total_ms": explanation.total_ms,
        "only_first_step_traced": explanation.is_cold,
        "rewrites": [
            {"pass": rewrite, "node": node, "reason": reason} for rewrite, node, reason in plan.subgraph.log
        ],
        "graph": plan.graph_text,
        "code": plan.program.source,
        "native_kernels": [kernel_record(each) for each in _kernels(explanation, _MOST_TIMED)],
        "profile": None if profile is None else _profile_record(profile),
    }


def _profile_record(profile: StepProfile) -> dict[str, Any]:
    memory = profile.memory
    return {
        "step_ms": profile.step_ms,
        "traced_steps": profile.traced_steps,
        "nodes": [_node_record(node) for node in profile.nodes],
        "memory": {
            "state_bytes": memory.state,
            "fed_bytes": memory.fed,
            "peak_bytes": memory.peak,
            "estimated_peak_bytes": memory.estimated_peak,
            "allocated_bytes": memory.allocated,
            "peak_node": memory.at,
            "held_at_peak": [
                {"name": held.name, "type": held.type, "size_bytes": held.size, "user_line": held.user_line}
                for held in memory.held
            ],
        },
        "profile": machine.current().profile.name,
        "machines": {name: _floors_record(floors) for name, floors in profile.machines.items()},
    }


def _node_record(node: NodeProfile) -> dict[str, Any]:
    return {
        "name": node.name,
        "op": node.type,
        "device": node.device,
        "user_line": node.user_line,
        "inputs": list(node.inputs),
        "outputs": list(node.outputs),
        "runs": node.runs,
        "time_ms": node.ms,
        "floor_ms": node.floor_ms or None,
        "bound": node.bound or None,
        "operations_flop": node.operations,
        "traffic_bytes": node.traffic,
        "allocated_bytes": node.allocated,
        "waits": node.waits,
    }


def _floors_record(floors: Floors) -> dict[str, Any]:
    return {
        "intra_op_threads": floors.threads,
        "product_flop_per_s": floors.product,
        "convolution_flop_per_s": floors.convolution,
        "memory": [{"size_bytes": size, "rate_bytes_per_s": rate} for size, rate in floors.bandwidths],
        "call_ms": floors.call * 1e3,
    }
