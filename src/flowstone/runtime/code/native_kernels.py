"""The machine code that a plan runs: when it begins; and for explanations what each kernel computes, its
text, its time by ATen.

%0 … are the arrays of `native/clusters/clusters.py`. Times are of calls with new arguments of the kernel's
shapes, in the process that explains; ATen's is that of the kernels of the nodes that the machine code stands
for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from flowstone.framework import flags
from flowstone.framework.declarations.kernel import CPU, FOLDING, Call, StepCall
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import OPEN, Array, Cluster
from flowstone.native.products.products import Product, product_source
from flowstone.rewriting.analyses.changing_values import changing_nodes
from flowstone.runtime.code.planning_costs import plan_costs
from flowstone.runtime.quantities import WIDTH, aligned, clipped, listed, time_text

__all__ = ["KernelReport", "begin_kernels", "cluster_text", "kernel_record", "kernel_table", "native_kernels"]

_ROUNDS = 5
_SOME_ROWS = 32  # of arguments whose first size is open
_ROUND_S = 0.001


class KernelReport(NamedTuple):
    """A kernel: the node that calls it, the nodes that it stands for (`members`), what it computes; the times
    of a call, None where they were not measured."""

    node: str
    members: tuple[str, ...]
    cluster: Cluster | Product
    ms: float | None = None
    aten_ms: float | None = None

    @property
    def source(self) -> str:
        """LLVM's text of its functions."""
        if isinstance(self.cluster, Product):
            return product_source(self.cluster)
        return kernels.source_of(self.cluster)


def begin_kernels(made: Mapping[PlanNode, Any], subgraph: Subgraph) -> None:
    """Has the first runs of a step not wait for the code of kernels whose next run computes something else
    anyway: where a step is short, as many as take about as long as making the code. All others compute the
    same in every run, by machine code, which a thread begins to make. If the subgraph has its `code_first`,
    all begin with the best code."""
    found = {node: functions for node, kernel in made.items() if (functions := _functions(kernel))}
    if not found:
        return
    if subgraph.code_first:
        for functions in found.values():
            for each in functions:
                each.begin_by_best()
        return
    changing = set() if flags.DETERMINISTIC else changing_nodes(subgraph) & found.keys()
    much = Counter({each.cluster: each.is_much for node in changing for each in found[node]}.values())
    calls = plan_costs(subgraph).steps_by_aten(much[False], much[True]) if much else 0
    for i, (node, functions) in enumerate(found.items()):
        for each in functions:
            if node in changing:
                each.begin_by_aten(calls, calls * i // (4 * len(found)))
        for each in {each.cluster: each for each in functions}.values():
            each.prepare()
    kernels.begin_together(each for node in changing for each in found[node])


def _functions(kernel: Any) -> list[kernels.NativeKernel]:
    """The functions with machine code that a kernel calls."""
    if isinstance(kernel, kernels.NativeKernel):
        return [kernel]
    if isinstance(kernel, list):
        return [found for each in kernel for found in _functions(each)]
    if isinstance(kernel, StepCall):
        return _functions(kernel.function)
    if not isinstance(kernel, Call):
        return []
    parts = [kernel.function, *kernel.arguments, *kernel.overwrites.values()]
    return [found for each in parts for found in _functions(each)]


def native_kernels(nodes: Iterable[PlanNode], measured: int = 0) -> list[KernelReport]:
    """Reports on the clusters among the nodes; times those of the first `measured` kinds."""
    reports: list[KernelReport] = []
    times: dict[Cluster | Product, tuple[float, float]] = {}
    for node in nodes:
        members = node.attributes.get("members")
        if members is None or not isinstance(getattr(members, "cluster", None), Cluster):
            continue
        cluster: Cluster | Product = getattr(members, "product", members.cluster)
        if cluster not in times and len(times) < measured:
            times[cluster] = _times(node, cluster)
        names = tuple(each.name for each in members.nodes)
        reports.append(KernelReport(node.name, names, cluster, *times.get(cluster, (None, None))))
    return reports


def _times(node: PlanNode, cluster: Cluster | Product) -> tuple[float, float]:
    """Milliseconds of a call of the machine code, and of the members' kernels."""
    call: Any = node.declaration.kernels[CPU](node, FOLDING)
    native: kernels.NativeKernel = call.function
    native.compile()
    inputs = [_argument(array, x) for array, x in zip(cluster.inputs, node.inputs, strict=True)]
    with torch.inference_mode():
        return _time(native, inputs), _time(native.otherwise, inputs)


def _argument(array: Array, x: PlanOutput) -> torch.Tensor:
    """As the step has it, with some size for each that only the step knows: the code may see it in another
    shape."""
    kind = getattr(torch, array.dtype)
    dims = [_SOME_ROWS if n in (None, OPEN) else n for n in (array.dims if x.dims is None else x.dims)]
    return (
        torch.rand(tuple(dims), dtype=kind)
        if kind.is_floating_point
        else torch.zeros(tuple(dims), dtype=kind)
    )


def _time(function: Callable[..., Any], inputs: Sequence[Any]) -> float:
    """The milliseconds of a call in the best of a few short rounds."""
    function(*inputs)
    best, count = float("inf"), 1
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(count):
            function(*inputs)
        taken = (time.perf_counter() - start) / count
        best, count = min(best, taken), max(1, min(1000, int(_ROUND_S / taken)))
    return best * 1e3


# ---- text and JSON


def cluster_text(reports: Sequence[KernelReport]) -> str:
    """What each kernel computes, and of which nodes it was made."""
    blocks = []
    for each in reports:
        lines = [f"{each.node} as machine code", clipped(listed("  for ", each.members), WIDTH)]
        blocks.append("\n".join([*lines, *[f"  {line}" for line in str(each.cluster).splitlines()]]))
    return "\n\n".join(blocks)


def kernel_table(reports: Sequence[KernelReport]) -> str:
    """The kernels' times beside ATen's; empty if nothing was measured."""
    measured = [each for each in reports if each.ms is not None and each.aten_ms is not None]
    if not measured:
        return ""
    rows: list[tuple[str, ...]] = [("kernel", "nodes", "time", "by ATen", "of it")]
    for each in measured:
        ours, atens = each.ms or 0.0, each.aten_ms or 0.0
        name = clipped(f"{each.node} {each.cluster!r}", 50)
        rows.append((name, str(len(each.members)), time_text(ours), time_text(atens), f"{ours / atens:.0%}"))
    lines = ["machine code beside ATen (a call with new arguments)", *aligned(rows, left=1)]
    rest = len(reports) - len(measured)
    return "\n".join([*lines, f"  and {rest} more"] if rest else lines)


def kernel_record(report: KernelReport) -> dict[str, Any]:
    """A report as JSON's types."""
    return {
        "node": report.node,
        "members": list(report.members),
        "cluster": str(report.cluster),
        "time_ms": report.ms,
        "aten_time_ms": report.aten_ms,
        "llvm": report.source,
    }
