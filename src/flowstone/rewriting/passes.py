"""The passes of rewriting, in order: this page is the whole of it.

Each pass changes a `Subgraph` in place and is switched off by name (``FLOWSTONE_PASSES=-fold_constants``, or
`run_passes(disabled=…)`). With ``FLOWSTONE_CHECK=1`` the invariants are checked after each. `show` receives
the name and the text of the graph before and after each pass that changed it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import NamedTuple

from flowstone.framework import flags
from flowstone.framework.subgraph import Subgraph
from flowstone.rewriting.accidental_hits import mask_accidental_hits
from flowstone.rewriting.broadcasts import narrow_broadcasts
from flowstone.rewriting.channels_last import put_channels_last
from flowstone.rewriting.common_subexpression import merge_common_subexpressions
from flowstone.rewriting.constant_folding import apply_identities, fold_constants
from flowstone.rewriting.control_edges import drop_waits
from flowstone.rewriting.dead_branches import remove_dead_branches
from flowstone.rewriting.dependences import dependences
from flowstone.rewriting.direct_sums import sum_directly
from flowstone.rewriting.dropout_choices import choose_by_margins
from flowstone.rewriting.filter_layout import lay_out_filters
from flowstone.rewriting.fusion import fuse_biases
from flowstone.rewriting.invariants import check, check_kept
from flowstone.rewriting.joined_convolutions import join_convolutions
from flowstone.rewriting.joined_products import join_products
from flowstone.rewriting.joined_values import read_joined_values
from flowstone.rewriting.logistic_losses import simplify_logistic_losses
from flowstone.rewriting.loop_accumulators import stack_accumulators
from flowstone.rewriting.loop_invariants import hold_invariants
from flowstone.rewriting.loop_stacks import drop_stacks
from flowstone.rewriting.loss_fusion import fuse_losses
from flowstone.rewriting.lstm_layers import join_lstm_layers
from flowstone.rewriting.lstm_loops import join_lstm_loops
from flowstone.rewriting.memory_schedule import schedule_memory
from flowstone.rewriting.mixed_precision import multiply_in_bfloat16
from flowstone.rewriting.normalization_fusion import fold_normalizations
from flowstone.rewriting.patterns import remove_unneeded
from flowstone.rewriting.pooling_fusion import keep_places, pool_first
from flowstone.rewriting.recomputation import recompute_activations, recompute_hinted
from flowstone.rewriting.row_updates import add_negated_rows, sum_repeated_rows
from flowstone.rewriting.slice_tiles import split_slices
from flowstone.rewriting.sums import join_slices, stack_products
from flowstone.rewriting.swapping import swap_activations, swap_hinted
from flowstone.rewriting.transposes import cancel_transposes
from flowstone.rewriting.update_fusion import fuse_updates
from flowstone.rewriting.update_grouping import group_updates
from flowstone.rewriting.weight_packing import pack_filters, pack_weights
from flowstone.rewriting.whole_arrays import forward_whole_arrays
from flowstone.rewriting.winograd import convolve_by_winograd


class Pass(NamedTuple):
    """A pass and what it is for; `joins`: it makes one node of several, which must be on one device;
    `whole_loops`: it needs loops that are not partitioned; `on_hosts`: it is for hosts' kernels alone;
    `loses`: it finds out what results do not depend on; `partly`: it replaces a value for some of those who
    take it, while others keep it.
    """

    function: Callable[[Subgraph], None]
    purpose: str
    joins: bool = False
    whole_loops: bool = False
    on_hosts: bool = False
    loses: bool = False
    partly: bool = False

    @property
    def name(self) -> str:
        """What switches and logs call it: its function's name."""
        return self.function.__name__


PASSES = (
    Pass(multiply_in_bfloat16, "products and convolutions in 16 bits, if asked for"),
    Pass(fold_constants, "compute what does not depend on the step", loses=True),
    Pass(remove_dead_branches, "of a decided conditional only what is taken", loses=True),
    Pass(drop_waits, "wait only where effects or state make it matter"),
    Pass(apply_identities, "x + 0 = x, Identity, and other local identities of the ops", loses=True),
    Pass(sum_directly, "products with ones and sums of sums as one sum", joins=True),
    Pass(narrow_broadcasts, "repeat an operand only where the op does not do it itself", partly=True),
    Pass(put_channels_last, "images as their convolutions' kernels read them", on_hosts=True),
    Pass(cancel_transposes, "transposes and reshapes meet, and one or none is left", partly=True),
    Pass(merge_common_subexpressions, "equal pure nodes become one"),
    Pass(remove_unneeded, "drop what neither a fetch, a target nor an effect needs"),
    Pass(hold_invariants, "what is the same in every iteration is brought in once"),
    Pass(drop_stacks, "what a loop's gradient can count is not pushed, nor what nobody pops"),
    Pass(choose_by_margins, "dropout by differences instead of masks", on_hosts=True),
    Pass(
        simplify_logistic_losses,
        "sigmoid cross entropies and gradients by softplus and sigmoid",
        joins=True,
        partly=True,
    ),
    Pass(
        mask_accidental_hits,
        "compare candidates with true classes instead of listing hits",
        joins=True,
        partly=True,
    ),
    Pass(split_slices, "slices that make a tensor are the parts of one split", joins=True),
    Pass(join_slices, "concatenate the gradients of slices that tile a tensor", joins=True, partly=True),
    Pass(join_lstm_layers, "the cells of an unrolled layer in one kernel", joins=True, on_hosts=True),
    Pass(
        join_lstm_loops,
        "loops over LSTM cells as one kernel a layer",
        joins=True,
        whole_loops=True,
        on_hosts=True,
    ),
    Pass(
        forward_whole_arrays,
        "arrays filled and read as a whole are tensors",
        joins=True,
        whole_loops=True,
        partly=True,
    ),
    Pass(stack_products, "one product of stacked operands instead of a sum of products", joins=True),
    Pass(stack_accumulators, "the same for products that a loop adds up", joins=True, whole_loops=True),
    Pass(join_products, "products by one matrix, and what follows their rows, as one", joins=True),
    Pass(pool_first, "activations after the pooling that shrinks their input", joins=True),
    Pass(keep_places, "a pooling remembers its maxima for its gradient", joins=True),
    Pass(fold_normalizations, "filters are scaled instead of images", joins=True),
    Pass(lay_out_filters, "filters lie in memory as their convolutions read them"),
    Pass(fuse_biases, "a product or convolution, its bias and its activation in one kernel", joins=True),
    Pass(
        convolve_by_winograd, "a third fewer multiplications in large convolutions", joins=True, on_hosts=True
    ),
    Pass(join_convolutions, "gradients of convolutions of the same images in one", joins=True, on_hosts=True),
    Pass(pack_weights, "weights that nothing changes in their product's order", joins=True),
    Pass(
        pack_filters, "filters that nothing changes in their convolution's order", joins=True, on_hosts=True
    ),
    Pass(fuse_losses, "the mean of the soft-max cross entropies in one kernel", joins=True),
    Pass(fuse_updates, "a product that is only subtracted from a variable, in one kernel", joins=True),
    Pass(sum_repeated_rows, "updates of rows sum those of equal indices", joins=True),
    Pass(add_negated_rows, "rows are added to a variable, not subtracted"),
    Pass(group_updates, "small updates with the same numbers in one call", joins=True),
    Pass(read_joined_values, "what a concatenation holds, too, is let go"),
    Pass(schedule_memory, "an order of low peak memory, where values are large"),
    Pass(recompute_hinted, "compute what the program marks again for gradients"),
    Pass(recompute_activations, "compute activations again, not hold them"),
    Pass(swap_hinted, "hold what the program marks on the host until gradients need it"),
    Pass(swap_activations, "hold activations on the host until gradients need them"),
)

NAMES = frozenset(each.name for each in PASSES)
JOINING = frozenset(each.name for each in PASSES if each.joins)
ON_HOSTS = frozenset(each.name for each in PASSES if each.on_hosts)
JOINING_IN_PARTS = frozenset(each.name for each in PASSES if each.joins and not each.whole_loops)


def run_passes(
    subgraph: Subgraph,
    disabled: Collection[str] = flags.DISABLED_PASSES,
    show: Callable[[str, str, str], None] | None = None,
) -> Subgraph:
    """Runs all passes that are not disabled; returns the same subgraph."""
    if show is None and flags.DEBUG >= 2:
        show = _print_change
    known = dependences(subgraph) if flags.CHECK else None
    for each in PASSES:
        if each.name in disabled:
            continue
        before = str(subgraph) if show else ""
        each.function(subgraph)
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
