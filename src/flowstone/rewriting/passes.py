"""The passes of rewriting, in order: what is true of graphs on any machine.

`SIMPLIFYING` come first. `SAVING` arrange the step in less memory, once nodes are as they will run: on one
device after those of `lowering/passes.py`, which choose kernels. Each pass changes a `Subgraph` in place and
is switched off by name (``FLOWSTONE_PASSES=-fold_constants``, or `run_passes(disabled=…)`). With
``FLOWSTONE_CHECK=1`` the invariants are checked after each. `show` receives the name and the text of the
graph before and after each pass that changed it.

A pass asks `subgraph.analysis(Liveness)`, `subgraph.analysis(Frames)`, `subgraph.consumers()` and does not
change what it gets: passes share it as long as none of them changes the graph. Changes by `patterns.py`, and
`subgraph.nodes = …`, invalidate it. A pass that sets inputs, control inputs or attributes of nodes itself
calls `subgraph.invalidate()` then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from flowstone.framework import flags
from flowstone.framework.graphs.subgraph import StaleAnalysisError, Subgraph
from flowstone.rewriting.analyses.dependences import dependences
from flowstone.rewriting.invariants import check, check_kept
from flowstone.rewriting.loop_effects import LoopEffects, hold
from flowstone.rewriting.loops.loop_invariants import hold_invariants
from flowstone.rewriting.loops.loop_stacks import drop_stacks
from flowstone.rewriting.memory.joined_values import read_joined_values
from flowstone.rewriting.memory.memory_schedule import schedule_memory
from flowstone.rewriting.memory.recomputation import recompute_activations, recompute_hinted
from flowstone.rewriting.memory.swapping import swap_activations, swap_hinted
from flowstone.rewriting.patterns import remove_unneeded
from flowstone.rewriting.simplification.broadcasts import narrow_broadcasts
from flowstone.rewriting.simplification.common_subexpression import merge_common_subexpressions
from flowstone.rewriting.simplification.constant_folding import apply_identities, fold_constants
from flowstone.rewriting.simplification.control_edges import drop_waits
from flowstone.rewriting.simplification.dead_branches import remove_dead_branches
from flowstone.rewriting.simplification.dilated_windows import dilate_convolutions
from flowstone.rewriting.simplification.direct_sums import sum_directly
from flowstone.rewriting.simplification.einstein_products import multiply_einsums
from flowstone.rewriting.simplification.mixed_precision import multiply_in_bfloat16
from flowstone.rewriting.simplification.offset_slices import split_at_offsets
from flowstone.rewriting.simplification.own_sizes import keep_own_sizes
from flowstone.rewriting.simplification.transposes import cancel_transposes


class Pass(NamedTuple):
    """A pass and what it is for.

    What `invariants.py` lets it do: `joins`, it makes one value of several; `loses`, it finds out what
    results do not depend on; `partly`, it replaces a value for some of those who take it, while others keep
    it; `forwards`, it takes a value that is stored in place of what is read afterwards; `condenses`, it makes
    one change of a state of several. When it runs:
    `hosts`, for hosts' kernels alone; `whole_loops`, not in a part of a step, whose loops may go on in other
    parts; `follows`, only if the last pass that does not follow another changed something.
    """

    function: Callable[[Subgraph], None]
    purpose: str
    joins: bool = False
    loses: bool = False
    partly: bool = False
    forwards: bool = False
    condenses: bool = False
    hosts: bool = False
    whole_loops: bool = False
    follows: bool = False

    @property
    def name(self) -> str:
        """What switches and logs call it: its function's name."""
        return self.function.__name__


SIMPLIFYING = (
    Pass(multiply_in_bfloat16, "products and convolutions in 16 bits, if asked for"),
    Pass(split_at_offsets, "split gradients of concatenations, whose sizes are known, once"),
    Pass(fold_constants, "compute what does not depend on the step", loses=True),
    Pass(remove_dead_branches, "keep only the branch of a decided conditional that is taken", loses=True),
    Pass(drop_waits, "drop control edges that order no effects and no state"),
    Pass(apply_identities, "x + 0 = x, Identity, and other local identities of the ops", loses=True),
    Pass(multiply_einsums, "compute Einstein sums of two operands as products of matrices"),
    Pass(dilate_convolutions, "make dilated convolutions of those of places moved to the batch"),
    Pass(sum_directly, "compute products with ones, and sums of sums, as one sum", joins=True),
    Pass(narrow_broadcasts, "drop broadcasts that the op itself does", partly=True),
    Pass(cancel_transposes, "cancel transposes and reshapes that undo each other", partly=True),
    Pass(keep_own_sizes, "take vectors for their own elements packed, and shapes that stay", loses=True),
    Pass(merge_common_subexpressions, "merge equal pure nodes"),
    Pass(remove_unneeded, "drop what neither a fetch, a target nor an effect needs"),
    Pass(hold_invariants, "bring in once what every iteration has the same"),
    Pass(drop_stacks, "drop pushes of what a loop's gradient can count or never pops"),
)
SAVING = (
    Pass(read_joined_values, "read activations from the concatenation that holds them"),
    Pass(schedule_memory, "order nodes for a low memory peak, where values are large"),
    Pass(recompute_hinted, "recompute for gradients what the program marks"),
    Pass(recompute_activations, "recompute activations for gradients instead of holding them"),
    Pass(swap_hinted, "hold what the program marks on the host until gradients need it"),
    Pass(swap_activations, "hold activations on the host until gradients need them"),
)


def run_passes(
    subgraph: Subgraph,
    passes: Sequence[Pass],
    disabled: Collection[str] = flags.DISABLED_PASSES,
    show: Callable[[str, str, str], None] | None = None,
) -> Subgraph:
    """Runs the passes that are not disabled; returns the same subgraph."""
    if show is None and flags.DEBUG >= 2:
        show = _print_change
    known = dependences(subgraph) if flags.CHECK else None
    size = len(subgraph.log)
    for each in passes:
        if not each.follows:
            size = len(subgraph.log)
        elif len(subgraph.log) == size:
            continue
        if each.name in disabled:
            continue
        before = str(subgraph) if show else ""
        try:
            in_loops = subgraph.analysis(LoopEffects)
            each.function(subgraph)
            if subgraph.analysis(LoopEffects) is not in_loops:  # the pass has changed something
                hold(subgraph, in_loops)
        except StaleAnalysisError as error:
            raise StaleAnalysisError(f"in {each.name}: {error}") from error
        if known:
            check(subgraph, each.name)
            known, then = dependences(subgraph, known), known
            check_kept(then, known, each)
        if show and (after := str(subgraph)) != before:
            show(each.name, before, after)
    if flags.DEBUG >= 5:
        for pass_name, node, reason in subgraph.log:
            print(f"{pass_name}: {node}: {reason}", file=sys.stderr)
    return subgraph


def _print_change(name: str, before: str, after: str) -> None:
    print(f"--- {name}\n{before}\n+++\n{after}", file=sys.stderr)


_BY_MEMORY_OPTIMIZATION: dict[int, frozenset[str]] = {
    2: frozenset({"recompute_hinted", "swap_hinted"}),  # MANUAL
    3: frozenset({"recompute_activations", "swap_activations"}),  # HEURISTICS
    4: frozenset({"swap_activations"}),  # SWAPPING_HEURISTICS
    5: frozenset({"recompute_activations"}),  # RECOMPUTATION_HEURISTICS
}
_HIDING = frozenset({"join_lstm_layers", "join_lstm_loops"})  # activations that could be computed again


def with_memory_optimization(disabled: frozenset[str], kind: int) -> frozenset[str]:
    """The disabled passes where `kind` (RewriterConfig.MemOptType) switches some on or off."""
    if kind == 1:
        return disabled.union({"schedule_memory", "read_joined_values"}, *_BY_MEMORY_OPTIMIZATION.values())
    switched_on = _BY_MEMORY_OPTIMIZATION.get(kind, frozenset())
    hiding = _HIDING if "recompute_activations" in switched_on else frozenset()
    return (disabled | hiding) - switched_on
