"""How much memory a step's values need, from static shapes and liveness.

A value lives in a *buffer*, from the node that computes it to the last node that uses it or a view of it. An
op that declares `aliases` hands on its input's buffer; a kernel that can leave its result in an input's
buffer does so where that is used no more. State, constants and fed values need no memory of the step, nor do
handles, but those of what a layer saves for its gradient. Unknown dimensions count as `ASSUMED_SIZE`. A
kernel's scratch memory is not counted.

A loop is one block, whose values of one iteration are all held to its end.

>>> from flowstone.framework.graphs.graph import Graph
>>> from flowstone.ops.algebra.matrices import matmul
>>> from flowstone.ops.randomness.random import random_uniform
>>> from flowstone.rewriting.simplification.partial_execution import prune
>>> with Graph().as_default():
...     x = random_uniform([10, 10])
...     y = matmul(matmul(x, x), x)
>>> peak_memory(prune([y], [], []))  # x, its square and y, 4 bytes an element
1200
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowstone.framework.declarations.kernel import CPU, FOLDING, Call
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.frames import Frame, Frames, order_by_frames
from flowstone.rewriting.analyses.state_access import input_positions

ASSUMED_SIZE = 32  # of an unknown dimension
ASSUMED_ELEMENTS = 1024  # of an unknown rank

_NOT_OF_THE_STEP = frozenset({"constant", "feed", "swap_out"})  # roles

Block = tuple[PlanNode, ...]


def size_of(output: PlanOutput) -> int:
    """Bytes of an output's value; 0 for references, handles, strings, constants, fed and swapped values."""
    dtype = output.dtype
    if dtype.torch is None:
        held = output.op.declaration.held_function
        return 0 if held is None else held(output.op)
    if dtype.is_ref or output.op.declaration.role in _NOT_OF_THE_STEP:
        return 0
    dims = output.dims
    if dims is None:
        return ASSUMED_ELEMENTS * dtype.size
    size = dtype.size
    for n in dims:
        size *= ASSUMED_SIZE if n is None else n
    return size


def blocks_of(subgraph: Subgraph) -> list[Block]:
    """The nodes in the order in which they will run, outermost loops as one block each."""
    frames = order_by_frames(subgraph)
    if not frames.exist:
        return [(node,) for node in subgraph.nodes]
    blocks: list[Block] = []
    inside: list[PlanNode] = []
    loop: Frame | None = None
    for node in subgraph.nodes:
        home = _outermost(frames, node)
        if inside and home is not loop:
            blocks.append(tuple(inside))
            inside = []
        loop = home
        if home is None:
            blocks.append((node,))
        else:
            inside.append(node)
    return blocks + ([tuple(inside)] if inside else [])


def _outermost(frames: Frames, node: PlanNode) -> Frame | None:
    frame = frames.home(node)
    while frame is not None and frame.parent is not None:
        frame = frame.parent
    return frame


def shares(node: PlanNode) -> Sequence[int]:
    """The positions of the inputs whose buffers the outputs of `node` lie in."""
    aliases = node.declaration.aliases
    return input_positions(node, aliases) if aliases else ()


def memory_profile(subgraph: Subgraph, blocks: Iterable[Block] | None = None) -> list[int]:
    """Bytes that are alive while each block runs. `blocks`: an order of the subgraph's; its own if None."""
    walk = _Walk(subgraph)
    return [walk.run(block) for block in (blocks_of(subgraph) if blocks is None else blocks)]


def peak_memory(subgraph: Subgraph, blocks: Iterable[Block] | None = None) -> int:
    """The most bytes of values that are alive at a time; see the module."""
    return max(memory_profile(subgraph, blocks), default=0)


class _Walk:
    """Runs blocks one after the other; `alive` are the bytes held, `left` how many uses each buffer has."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.uses: dict[PlanOutput, int] = {}
        for node in subgraph.nodes:
            for x in dict.fromkeys(node.inputs):
                self.uses[x] = self.uses.get(x, 0) + 1
        for x in subgraph.fetches:
            self.uses[x] = self.uses.get(x, 0) + 1
        self.alive = 0
        self.size: list[int] = []
        self.left: list[int] = []
        self.buffers: dict[PlanOutput, tuple[int, ...]] = {}

    def run(self, block: Block) -> int:
        """Computes the block's values and frees what nobody uses any more; returns the bytes alive."""
        ended: list[int] = []
        for node in block:
            ended += self._compute(node)
        most = self.alive
        for buffer in ended:
            if not self.left[buffer]:
                self.alive -= self.size[buffer]
                self.size[buffer] = 0
        return most

    def _compute(self, node: PlanNode) -> list[int]:
        """Makes the outputs' buffers; returns those that may have been used for the last time."""
        buffers, left = self.buffers, self.left
        used = [buffer for x in dict.fromkeys(node.inputs) for buffer in buffers.get(x, ())]
        for buffer in used:
            left[buffer] -= 1
        shared = shares(node)
        spare = None if shared else self._spare(node)
        for output in node.outputs:
            if shared:
                own: tuple[int, ...] = tuple(
                    dict.fromkeys([b for i in shared for b in buffers.get(node.inputs[i], ())])
                )
            else:
                own = self._allocate(output, spare or {})
            if own:
                buffers[output] = own
                for buffer in own:
                    left[buffer] += self.uses.get(output, 0)
                used += own
        return used

    def _spare(self, node: PlanNode) -> dict[int, list[int]]:
        """Buffers that outputs of `node` may be left in, by their size."""
        sizes = {size_of(output) for output in node.outputs} - {0}
        found: dict[int, list[tuple[int, int]]] = {}
        places: dict[PlanOutput, int] = {}
        for i, x in enumerate(node.inputs if sizes else ()):
            places.setdefault(x, i)
        for x, i in places.items():
            taken = self.buffers.get(x, ())
            if len(taken) == 1 and not self.left[taken[0]] and self.size[taken[0]] in sizes:
                found.setdefault(self.size[taken[0]], []).append((i, taken[0]))
        may = overwritten(node) if found else ()
        return {size: [buffer for i, buffer in pairs if i in may] for size, pairs in found.items()}

    def _allocate(self, output: PlanOutput, spare: dict[int, list[int]]) -> tuple[int, ...]:
        size = size_of(output)
        if not size:
            return ()
        for buffer in spare.get(size, ()):
            if not self.left[buffer]:
                return (buffer,)
        self.alive += size
        self.size.append(size)
        self.left.append(0)
        return (len(self.size) - 1,)


def overwritten(node: PlanNode) -> frozenset[int]:
    """The positions of the inputs in whose buffers the node's kernel can leave a result of the same size."""
    factory = node.declaration.kernels.get(CPU)
    if factory is None or not node.declaration.is_pure:
        return frozenset()
    try:
        kernel = factory(node, FOLDING)
    except Exception:  # what is wrong with it is said when the plan is compiled
        return frozenset()
    return frozenset(kernel.overwrites) if isinstance(kernel, Call) else frozenset()
