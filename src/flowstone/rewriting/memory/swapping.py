"""Swapping: activations wait for their gradients in the host's memory, not in a GPU's (white paper 4.1).

A stash (`stashes.py`) goes to the host after its last use in the forward part and comes back before the first
gradient that uses it. Stashes that are alive at the estimated peak go, the largest first, until the peak is
where none is alive. Values do not change. Steps with loops or conditionals are left alone, and so are
machines without a GPU.

    %3 = Relu(%2) : float32[10,10]  # Relu
    %4 = _CopyToHost(%3) : float32[10,10]  # Relu/swapped_out
    …
    %9 = _CopyFromHost(%4) : float32[10,10]  # Relu/swapped_in
    %10 = ReluGrad(%8, %9) : float32[10,10]  # gradients/Relu_grad/ReluGrad

Both copies go through page-locked memory and are enqueued on the stream of the step, in which order makes
them safe; the host does not wait for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.graphs.device_name import DeviceSpec
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.memory_estimate import blocks_of, memory_profile, shares
from flowstone.rewriting.analyses.stashes import Stash, Stashes
from flowstone.rewriting.memory.memory_schedule import arrange

SMALLEST = 1 << 20  # bytes of a stash that is worth two copies
HINT = "_swap_to_host"
_LEAST_SAVING = 0.03  # of the peak
_MOST_ROUNDS = 1000

copy_to_host = op("_CopyToHost", "x: T -> y: T", T=None, capturable=False, role="swap_out")
copy_from_host = op("_CopyFromHost", "x: T -> y: T", T=None, capturable=False)
for _declaration in (copy_to_host, copy_from_host):
    _declaration.infer(lambda node: node.dims(0))
    _declaration.kernel(CPU)(lambda node, env: torch.clone)
    _declaration.not_differentiable()


@copy_to_host.kernel(GPU)
def _(node: Any, env: Any) -> Any:
    def leave(x: torch.Tensor) -> torch.Tensor:
        host = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
        return host.copy_(x, non_blocking=True)

    return leave


@copy_from_host.kernel(GPU)
def _(node: Any, env: Any) -> Any:
    device = env.device

    def come_back(x: torch.Tensor) -> torch.Tensor:
        return x.to(device, non_blocking=True)

    return come_back


def swap_activations(subgraph: Subgraph) -> None:
    """Moves the stashes that make the estimated peak, if there is a GPU."""
    if has_gpu():
        swap_peak(subgraph)


def swap_hinted(subgraph: Subgraph) -> None:
    """Moves the stashes that a node takes at the positions in its attribute ``_swap_to_host``."""
    if has_gpu() and any(HINT in node.attributes for node in subgraph.nodes):
        stashes = Stashes(subgraph)
        _Swap(subgraph, stashes, _hinted(stashes)).apply()


def has_gpu() -> bool:
    """Whether there is a device whose memory is not the host's."""
    return torch.cuda.is_available()


def swap_peak(subgraph: Subgraph) -> None:
    """Moves stashes until none is alive at the estimated peak, wherever the step runs."""
    stashes = Stashes(subgraph)
    left = sorted([s for s in stashes.found if s.size >= SMALLEST and _is_elsewhere(s)], key=lambda s: s.size)
    if not left:
        return
    profile = memory_profile(subgraph, blocks_of(subgraph))
    before = max(profile)
    chosen: list[Stash] = []
    for _ in range(_MOST_ROUNDS):
        peak = max(profile)
        at = profile.index(peak)
        stash = next((s for s in reversed(left) if s.early < at < s.late), None)
        if stash is None:
            break
        left.remove(stash)
        chosen.append(stash)
        for i in range(stash.early + 1, stash.late):
            profile[i] -= stash.size
    if max(profile) <= (1 - _LEAST_SAVING) * before:
        _Swap(subgraph, stashes, chosen).apply()
        reason = f"an estimated peak of {max(profile):,} bytes instead of {before:,}"
        subgraph.log.append(("swap_activations", "the step", f"{len(chosen)} values swapped: {reason}"))


def _is_elsewhere(stash: Stash) -> bool:
    """Whether the value may be on a device other than the CPU."""
    requested = stash.value.op.device
    return not requested or DeviceSpec.from_string(requested).device_type != CPU


def _hinted(stashes: Stashes) -> list[Stash]:
    wanted = {
        stashes.root.get(node.inputs[i])
        for node in stashes.nodes
        for i in node.attributes.get(HINT, ())
        if i < len(node.inputs)
    }
    return [stash for stash in stashes.found if stash.value in wanted]


class _Swap:
    """The copies of these stashes, and who takes them instead."""

    def __init__(self, subgraph: Subgraph, stashes: Stashes, chosen: Iterable[Stash]) -> None:
        self.subgraph, self.stashes = subgraph, stashes
        self.new: dict[int, list[PlanNode]] = {}  # by the place of the node before which they come
        for stash in chosen:
            self._add(stash)

    def _add(self, stash: Stash) -> None:
        value = stash.value
        out = self._copy(copy_to_host, value, value.op, "swapped_out")
        back = self._copy(copy_from_host, out.outputs[0], value.op, "swapped_in")
        self.new.setdefault(stash.early + 1, []).append(out)
        self.new.setdefault(stash.late, []).append(back)
        views: dict[PlanOutput, PlanOutput] = {value: back.outputs[0]}
        for node in self.stashes.nodes[stash.late :]:
            for i, x in enumerate(node.inputs):
                if self.stashes.root.get(x) is value and self.stashes.place[x.op] <= self.stashes.turn:
                    node.inputs[i] = self._view(x, views, stash.late)

    def _view(self, x: PlanOutput, views: dict[PlanOutput, PlanOutput], before: int) -> PlanOutput:
        """The view of the returned copy that corresponds to `x`, a view of the original."""
        if x not in views:
            node = x.op
            inputs = list(node.inputs)
            for i in shares(node):
                inputs[i] = self._view(inputs[i], views, before)
            clone = self.subgraph.new_node(
                node.declaration, inputs, node.attributes, node, node.group_sizes, f"{node.name}/swapped_in"
            )
            clone.control_inputs = list(node.control_inputs)
            for old, new in zip(node.outputs, clone.outputs):
                new.dims = old.dims
                views[old] = new
            self.new[before].append(clone)
        return views[x]

    def _copy(self, declaration: OpDeclaration, x: PlanOutput, like: PlanNode, word: str) -> PlanNode:
        attributes = {"T": x.dtype.base_dtype, "_class": (f"loc:@{like.name}",)}
        node = self.subgraph.new_node(declaration, [x], attributes, like, name=f"{like.name}/{word}")
        node.outputs[0].dims = x.dims
        return node

    def apply(self) -> None:
        """Puts the copies among the subgraph's nodes."""
        nodes: list[PlanNode] = []
        for i, node in enumerate(self.stashes.nodes):
            nodes += self.new.get(i, ())
            nodes.append(node)
        arrange(self.subgraph, nodes)
