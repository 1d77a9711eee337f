"""From nodes to kernels: joined, fused, packed and arranged for the device that runs them.

A pass (`passes.py`) stands beside the operations that it makes, which only plans contain. Importing this
package declares them.
"""

from flowstone.framework.declarations.operation import registry
from flowstone.lowering.arrays import margins
from flowstone.lowering.clusters import cluster_kernel
from flowstone.lowering.convolutions import (
    fused_convolutions,
    joined_filters,
    pooled_places,
    tiled_convolutions,
    winograd_convolutions,
)
from flowstone.lowering.losses import loss_totals
from flowstone.lowering.packing import packed_products, packed_weights
from flowstone.lowering.products import narrow_layers, product_clusters, product_sums
from flowstone.lowering.recurrences import lstm_kernels
from flowstone.lowering.updates import grouped_updates, product_updates, program_updates

__all__ = [
    "cluster_kernel",
    "fused_convolutions",
    "grouped_updates",
    "joined_filters",
    "loss_totals",
    "lstm_kernels",
    "margins",
    "narrow_layers",
    "packed_products",
    "packed_weights",
    "pooled_places",
    "product_clusters",
    "product_sums",
    "product_updates",
    "program_updates",
    "tiled_convolutions",
    "winograd_convolutions",
]

registry.check_complete()
