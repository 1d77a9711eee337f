"""What the native tier offers to kernels of the rooms below it: the slots of `framework/machine_code.py`."""

from __future__ import annotations

from flowstone.framework import machine_code
from flowstone.native import (
    bands,
    box_choice,
    byte_strings,
    colours,
    cut_windows,
    hot_places,
    image_sampling,
    image_windows,
    incomplete_functions,
    matrix_batches,
    random_values,
    random_words,
    rejection_values,
    row_moves,
    segment_sums,
    small_matrices,
    spaced_numbers,
    sparse_products,
    step_passes,
)

__all__ = ["offer_all"]


def offer_all() -> None:
    """Fills all slots; a second call changes nothing."""
    machine_code.band_solver.offer(bands.band_solver)
    machine_code.beta_fraction.offer(incomplete_functions.beta_fraction)
    machine_code.gamma_series.offer(incomplete_functions.gamma_series)
    machine_code.zeta.offer(incomplete_functions.zeta)
    machine_code.box_choice.offer(box_choice.box_choice)
    machine_code.byte_strings.offer(byte_strings.byte_strings)
    machine_code.colour_change.offer(colours.colour_change)
    machine_code.cut_windows.offer(cut_windows.cut_windows)
    machine_code.sampler.offer(image_sampling.sampler)
    machine_code.projection.offer(image_windows.projection)
    machine_code.glimpse_cut.offer(image_windows.glimpse_cut)
    machine_code.box_drawing.offer(image_windows.box_drawing)
    machine_code.hot_places.offer(hot_places.hot_places)
    machine_code.matrix_batches.offer(matrix_batches.matrix_batches)
    machine_code.random_values.offer(random_values.random_values)
    machine_code.random_words.offer(random_words.random_words)
    machine_code.rejection_values.offer(rejection_values.rejection_values)
    machine_code.requantizer.offer(step_passes.requantizer)
    machine_code.row_moves.offer(row_moves.row_moves)
    machine_code.segment_rows.offer(segment_sums.segment_rows)
    machine_code.segment_sums.offer(segment_sums.segment_sums)
    machine_code.small_matrices.offer(small_matrices.small_matrices)
    machine_code.spaced_numbers.offer(spaced_numbers.spaced_numbers)
    machine_code.sparse_product.offer(sparse_products.sparse_product)
    machine_code.step_passes.offer(step_passes.step_passes)
