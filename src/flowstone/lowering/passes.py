"""The passes of lowering, in order: what chooses kernels, once it is known on which device each node runs.

`pipeline` is all that a step on one device runs, with the passes of rewriting before and after
(`rewriting/passes.py`); `COMPILING` comes last, since nothing looks into machine code. `passes_for` is what
is left for a device once nodes are placed. `EVERY` is the pipeline of a host.
"""

from __future__ import annotations

import functools

from flowstone.framework.declarations.kernel import CPU
from flowstone.lowering.arrays.class_comparisons import compare_classes
from flowstone.lowering.arrays.distinct_rows import pick_rows_directly
from flowstone.lowering.arrays.dropout_choices import choose_by_margins
from flowstone.lowering.arrays.filled_rows import fill_kept_rows
from flowstone.lowering.arrays.joined_rows import join_rows
from flowstone.lowering.arrays.picked_sums import sum_picked_rows
from flowstone.lowering.arrays.present_rows import pick_present_rows
from flowstone.lowering.arrays.slice_tiles import split_slices
from flowstone.lowering.arrays.spread_rows import spread_kept_rows
from flowstone.lowering.arrays.truth_counts import count_truths
from flowstone.lowering.arrays.uniform_values import hold_uniform_values
from flowstone.lowering.clusters.element_clusters import join_clusters
from flowstone.lowering.convolutions.batch_normalization import normalize_batches
from flowstone.lowering.convolutions.byte_pooling import pool_in_bytes
from flowstone.lowering.convolutions.channels_last import put_channels_last
from flowstone.lowering.convolutions.depthwise import convolve_channels
from flowstone.lowering.convolutions.direct import convolve_directly
from flowstone.lowering.convolutions.filter_layout import lay_out_filters
from flowstone.lowering.convolutions.joined_convolutions import join_convolutions
from flowstone.lowering.convolutions.normalization_fusion import fold_normalizations
from flowstone.lowering.convolutions.pooling_fusion import keep_places, pool_first
from flowstone.lowering.convolutions.sparse_gradients import skip_zero_gradients
from flowstone.lowering.convolutions.spreading import spread_convolutions
from flowstone.lowering.convolutions.tiles import convolve_in_tiles
from flowstone.lowering.convolutions.winograd import convolve_by_winograd
from flowstone.lowering.losses.accidental_hits import mask_accidental_hits
from flowstone.lowering.losses.logistic_losses import simplify_logistic_losses
from flowstone.lowering.losses.loss_fusion import fuse_losses
from flowstone.lowering.packing.weight_packing import pack_filters, pack_weights
from flowstone.lowering.products.fusion import fuse_biases
from flowstone.lowering.products.joined_products import join_products
from flowstone.lowering.products.loop_accumulators import stack_accumulators
from flowstone.lowering.products.narrow_layers import compile_narrow_layers
from flowstone.lowering.products.product_clusters import compile_products
from flowstone.lowering.products.sums import join_slices, stack_products
from flowstone.lowering.products.taken_parts import compute_taken_parts
from flowstone.lowering.programs.program_regions import join_programs
from flowstone.lowering.programs.straight_regions import join_straight_programs
from flowstone.lowering.recurrences.lstm_layers import join_lstm_layers
from flowstone.lowering.recurrences.lstm_loops import join_lstm_loops
from flowstone.lowering.updates.compiled_rows import compile_row_updates
from flowstone.lowering.updates.decayed_rows import join_decayed_rows
from flowstone.lowering.updates.joint_descents import join_descents
from flowstone.lowering.updates.row_updates import add_negated_rows, sum_repeated_rows
from flowstone.lowering.updates.update_fusion import fuse_updates
from flowstone.lowering.updates.update_grouping import compile_updates, group_updates
from flowstone.lowering.updates.written_updates import join_written_updates
from flowstone.rewriting.loops.accumulated_parts import accumulate_parts
from flowstone.rewriting.loops.whole_arrays import forward_whole_arrays
from flowstone.rewriting.passes import SAVING, SIMPLIFYING, Pass
from flowstone.rewriting.patterns import remove_unneeded
from flowstone.rewriting.simplification.common_subexpression import merge_common_subexpressions
from flowstone.rewriting.simplification.transposes import cancel_transposes

_AFTER_A_LAYOUT = (cancel_transposes, merge_common_subexpressions, remove_unneeded)
LOWERING = (
    Pass(put_channels_last, "put channels last, as kernels of convolutions read images", hosts=True),
    *[each._replace(follows=True) for each in SIMPLIFYING if each.function in _AFTER_A_LAYOUT],
    Pass(choose_by_margins, "choose what dropout keeps by differences instead of masks", hosts=True),
    Pass(
        simplify_logistic_losses,
        "compute sigmoid cross entropies by softplus, their gradients by sigmoid",
        joins=True,
        partly=True,
    ),
    Pass(
        mask_accidental_hits,
        "compare candidates with true classes instead of listing hits",
        joins=True,
        partly=True,
    ),
    Pass(split_slices, "replace slices that make up a tensor by one split", joins=True),
    Pass(join_slices, "concatenate the gradients of slices that tile a tensor", joins=True, partly=True),
    Pass(
        accumulate_parts,
        "add up the parts of what a loop concatenates and adds up",
        joins=True,
        whole_loops=True,
    ),
    Pass(
        join_programs,
        "compile loops and conditionals on small arrays whole",
        joins=True,
        whole_loops=True,
        hosts=True,
    ),
    Pass(join_lstm_layers, "run the LSTM cells of an unrolled layer in one kernel", joins=True, hosts=True),
    Pass(
        join_lstm_loops,
        "run loops over LSTM cells as one kernel a layer",
        joins=True,
        whole_loops=True,
        hosts=True,
    ),
    Pass(
        forward_whole_arrays,
        "replace arrays that are written and read whole by tensors",
        joins=True,
        whole_loops=True,
        partly=True,
    ),
    Pass(stack_products, "replace a sum of products by one product of stacked operands", joins=True),
    Pass(
        stack_accumulators, "stack the operands of products that a loop adds up", joins=True, whole_loops=True
    ),
    Pass(compute_taken_parts, "compute of products that are split the part that is taken", joins=True),
    Pass(join_products, "join products by the same matrix, and the row-wise nodes after them", joins=True),
    Pass(pool_first, "apply activations after the pooling, to fewer elements", joins=True),
    Pass(keep_places, "keep the places of a pooling's maxima for its gradient", joins=True),
    Pass(pool_in_bytes, "pool images by machine code, and keep places in bytes", joins=True, hosts=True),
    Pass(fold_normalizations, "scale filters instead of images", joins=True),
    Pass(
        normalize_batches,
        "normalise batches by machine code, with the activations after them",
        joins=True,
        loses=True,  # in training, the statistics that are given
        hosts=True,
    ),
    Pass(convolve_directly, "leave convolutions of small images to machine code", hosts=True),
    Pass(lay_out_filters, "store filters in the order that convolutions read"),
    Pass(fuse_biases, "fuse a product or convolution with its bias and activation", joins=True),
    Pass(skip_zero_gradients, "multiply only what is not zero of gradients of maxima", hosts=True),
    Pass(spread_convolutions, "compute convolutions to few channels as products", joins=True, hosts=True),
    Pass(convolve_channels, "compute depthwise convolutions by machine code", joins=True, hosts=True),
    Pass(convolve_in_tiles, "compute convolutions by Winograd's algorithm in tiles", joins=True, hosts=True),
    Pass(convolve_by_winograd, "compute large convolutions by Winograd's algorithm", joins=True, hosts=True),
    Pass(join_convolutions, "join the gradients of convolutions of the same images", joins=True, hosts=True),
    Pass(pack_weights, "pack weights that nothing changes, as products read them", joins=True),
    Pass(
        pack_filters, "pack filters that nothing changes, as convolutions read them", joins=True, hosts=True
    ),
    Pass(count_truths, "count truths instead of adding up numbers made of them", joins=True),
    Pass(fuse_losses, "compute the mean soft-max cross entropy and its gradient in one kernel", joins=True),
    Pass(
        join_written_updates,
        "replace assignments that make up an optimiser's step by one update",
        joins=True,
        forwards=True,
        hosts=True,
    ),
    Pass(
        join_decayed_rows,
        "join decays of all rows and additions to some with the update that takes both",
        joins=True,
        forwards=True,
        condenses=True,
        hosts=True,
    ),
    Pass(fuse_updates, "subtract products from variables in one kernel", joins=True),
    Pass(
        compile_narrow_layers,
        "multiply by weights of few columns in machine code, as the step keeps them",
        joins=True,
        hosts=True,
    ),
    Pass(
        join_descents,
        "compute a layer's gradient and the descent of its weights in one pass over them",
        joins=True,
        hosts=True,
    ),
    Pass(compare_classes, "compare with the numbers of classes, element by element", hosts=True),
    Pass(pick_rows_directly, "pick rows without a list of distinct indices", hosts=True),
    Pass(pick_present_rows, "pick rows by numbers that may be negative without masks", hosts=True),
    Pass(
        fill_kept_rows,
        "keep elements and fill rows without any in one call, and sum over them",
        joins=True,
        loses=True,
        hosts=True,
    ),
    Pass(spread_kept_rows, "give elements the gradients of their rows in one call", joins=True, hosts=True),
    Pass(sum_repeated_rows, "sum rows of equal indices in the update itself", joins=True),
    Pass(compile_row_updates, "update rows of variables in machine code", joins=True, hosts=True),
    Pass(add_negated_rows, "add negated rows to a variable instead of subtracting rows"),
    Pass(
        sum_picked_rows,
        "add up rows that are picked for that alone where they are",
        joins=True,
        hosts=True,
    ),
    Pass(
        compile_updates,
        "update variables by the same rule in one call of machine code",
        joins=True,
        hosts=True,
    ),
    Pass(group_updates, "group small updates by the same rates into one call", joins=True),
)
COMPILING = (
    Pass(join_straight_programs, "compile many nodes on small arrays whole", joins=True, hosts=True),
    Pass(join_rows, "copy picked and other small rows side by side in one call", joins=True, hosts=True),
    Pass(join_clusters, "compile element-wise nodes that feed each other as one", joins=True, hosts=True),
    Pass(
        compile_products,
        "compile products of few rows with the element-wise nodes after them",
        joins=True,
        hosts=True,
    ),
    Pass(
        hold_uniform_values,
        "keep values of one number that are only read",
        joins=True,
        loses=True,
        hosts=True,
    ),
)
EVERY = (*SIMPLIFYING, *LOWERING, *SAVING, *COMPILING)
NAMES = frozenset(each.name for each in EVERY)


@functools.cache
def pipeline(device_type: str) -> tuple[Pass, ...]:
    """All passes of a step that runs on one device of this type."""
    compiling = COMPILING if device_type == CPU else ()
    return (*SIMPLIFYING, *_lowering(device_type, False), *SAVING, *compiling)


@functools.cache
def passes_for(device_type: str, in_part: bool) -> tuple[Pass, ...]:
    """The passes that follow placement, for a device of this type; `in_part`: for what is only a part of a
    step.
    """
    compiling = (
        [each for each in COMPILING if not (in_part and each.whole_loops)] if device_type == CPU else []
    )
    return (*_lowering(device_type, in_part), *compiling)


def _lowering(device_type: str, in_part: bool) -> list[Pass]:
    is_host = device_type == CPU
    return [each for each in LOWERING if (is_host or not each.hosts) and not (in_part and each.whole_loops)]
