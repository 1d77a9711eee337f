"""The passes of lowering, in order: what chooses kernels, once it is known on which device each node runs.

`passes_for` is what a device runs; `EVERY` the whole pipeline of a host, with the passes of rewriting before
and after (`rewriting/passes.py`).
"""

from __future__ import annotations

import functools

from flowstone.framework.kernel import CPU
from flowstone.lowering.arrays.dropout_choices import choose_by_margins
from flowstone.lowering.arrays.slice_tiles import split_slices
from flowstone.lowering.convolutions.channels_last import put_channels_last
from flowstone.lowering.convolutions.filter_layout import lay_out_filters
from flowstone.lowering.convolutions.joined_convolutions import join_convolutions
from flowstone.lowering.convolutions.normalization_fusion import fold_normalizations
from flowstone.lowering.convolutions.pooling_fusion import keep_places, pool_first
from flowstone.lowering.convolutions.winograd import convolve_by_winograd
from flowstone.lowering.losses.accidental_hits import mask_accidental_hits
from flowstone.lowering.losses.logistic_losses import simplify_logistic_losses
from flowstone.lowering.losses.loss_fusion import fuse_losses
from flowstone.lowering.packing.weight_packing import pack_filters, pack_weights
from flowstone.lowering.products.fusion import fuse_biases
from flowstone.lowering.products.joined_products import join_products
from flowstone.lowering.products.loop_accumulators import stack_accumulators
from flowstone.lowering.products.sums import join_slices, stack_products
from flowstone.lowering.recurrences.lstm_layers import join_lstm_layers
from flowstone.lowering.recurrences.lstm_loops import join_lstm_loops
from flowstone.lowering.updates.row_updates import add_negated_rows, sum_repeated_rows
from flowstone.lowering.updates.update_fusion import fuse_updates
from flowstone.lowering.updates.update_grouping import group_updates
from flowstone.rewriting.loops.whole_arrays import forward_whole_arrays
from flowstone.rewriting.passes import SAVING, SIMPLIFYING, Pass
from flowstone.rewriting.patterns import remove_unneeded
from flowstone.rewriting.simplification.common_subexpression import merge_common_subexpressions
from flowstone.rewriting.simplification.transposes import cancel_transposes

_AFTER_A_LAYOUT = (cancel_transposes, merge_common_subexpressions, remove_unneeded)
LOWERING = (
    Pass(put_channels_last, "images as their convolutions' kernels read them", hosts=True),
    *[each._replace(follows=True) for each in SIMPLIFYING if each.function in _AFTER_A_LAYOUT],
    Pass(choose_by_margins, "dropout by differences instead of masks", hosts=True),
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
    Pass(join_lstm_layers, "the cells of an unrolled layer in one kernel", joins=True, hosts=True),
    Pass(
        join_lstm_loops,
        "loops over LSTM cells as one kernel a layer",
        joins=True,
        whole_loops=True,
        hosts=True,
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
    Pass(convolve_by_winograd, "a third fewer multiplications in large convolutions", joins=True, hosts=True),
    Pass(join_convolutions, "gradients of convolutions of the same images in one", joins=True, hosts=True),
    Pass(pack_weights, "weights that nothing changes in their product's order", joins=True),
    Pass(pack_filters, "filters that nothing changes in their convolution's order", joins=True, hosts=True),
    Pass(fuse_losses, "the mean of the soft-max cross entropies in one kernel", joins=True),
    Pass(fuse_updates, "a product that is only subtracted from a variable, in one kernel", joins=True),
    Pass(sum_repeated_rows, "updates of rows sum those of equal indices", joins=True),
    Pass(add_negated_rows, "rows are added to a variable, not subtracted"),
    Pass(group_updates, "small updates with the same numbers in one call", joins=True),
)
EVERY = (*SIMPLIFYING, *LOWERING, *SAVING)
NAMES = frozenset(each.name for each in EVERY)


@functools.cache
def passes_for(device_type: str, in_part: bool) -> tuple[Pass, ...]:
    """The passes of lowering for a device of this type; `in_part`: for what is only a part of a step."""
    is_host = device_type == CPU
    return tuple(
        [each for each in LOWERING if (is_host or not each.hosts) and not (in_part and each.whole_loops)]
    )
