"""What the native tier offers to kernels of the rooms below it: the slots of `machine_code`, `array_code`,
`image_code`, `network_code`, `number_code`, `record_code` and `string_code` in `framework/machine`."""

from __future__ import annotations

from flowstone.framework.machine import (
    array_code,
    image_code,
    machine_code,
    network_code,
    number_code,
    record_code,
    string_code,
)
from flowstone.native.arrays import (
    counting,
    distinct,
    filled_rows,
    framed_rows,
    histograms,
    hot_places,
    largest,
    placing,
    row_additions,
    row_moves,
    segment_sums,
    spaced_numbers,
    spread_rows,
    step_passes,
    tuple_rows,
)
from flowstone.native.images import box_choice, colours, image_sampling, image_windows, resampling
from flowstone.native.matrices import (
    bands,
    complex_eigenvalues,
    matrix_batches,
    small_matrices,
    sparse_products,
)
from flowstone.native.networks import (
    cell_gradients,
    cell_steps,
    cut_windows,
    dilations,
    direct_kernels,
    path_beams,
    path_labels,
    window_pools,
    window_rows,
)
from flowstone.native.numerics import complex_functions, incomplete_functions, quotients
from flowstone.native.products import integer_matrices, integer_products
from flowstone.native.randomness import class_choice, random_values, random_words, rejection_values
from flowstone.native.records import csv_lines, examples
from flowstone.native.strings import (
    byte_strings,
    distinct_texts,
    string_codecs,
    string_hashes,
    text_automata,
    text_numbers,
    text_pieces,
    text_rewriters,
)

__all__ = ["offer_all"]


def offer_all() -> None:
    """Fills all slots; a second call changes nothing."""
    machine_code.band_solver.offer(bands.band_solver)
    network_code.cell_gradient.offer(cell_gradients.cell_gradient)
    network_code.cell_step.offer(cell_steps.cell_step)
    machine_code.bin_counts.offer(counting.bin_counts)
    machine_code.group_counts.offer(counting.group_counts)
    machine_code.beta_fraction.offer(incomplete_functions.beta_fraction)
    machine_code.gamma_series.offer(incomplete_functions.gamma_series)
    machine_code.zeta.offer(incomplete_functions.zeta)
    image_code.box_choice.offer(box_choice.box_choice)
    string_code.byte_strings.offer(byte_strings.byte_strings)
    image_code.colour_change.offer(colours.colour_change)
    number_code.complex_eigenvalues.offer(complex_eigenvalues.complex_eigenvalues)
    number_code.complex_function.offer(complex_functions.complex_function)
    image_code.cut_windows.offer(cut_windows.cut_windows)
    network_code.dilation.offer(dilations.dilation)
    network_code.direct_windows.offer(direct_kernels.direct_windows)
    image_code.sampler.offer(image_sampling.sampler)
    image_code.resampler.offer(resampling.resampler)
    image_code.projection.offer(image_windows.projection)
    image_code.glimpse_cut.offer(image_windows.glimpse_cut)
    image_code.box_drawing.offer(image_windows.box_drawing)
    array_code.distinct.offer(distinct.distinct)
    string_code.distinct_texts.offer(distinct_texts.distinct_texts)
    record_code.csv_reader.offer(csv_lines.csv_reader)
    record_code.example_reader.offer(examples.example_reader)
    array_code.filled_rows.offer(filled_rows.filled_rows)
    array_code.framed_rows.offer(framed_rows.framed_rows)
    array_code.spread_rows.offer(spread_rows.spread_rows)
    array_code.stepped_numbers.offer(spaced_numbers.stepped_numbers)
    string_code.string_codecs.offer(string_codecs.string_codecs)
    string_code.string_hashes.offer(string_hashes.string_hashes)
    string_code.text_automata.offer(text_automata.text_automata)
    string_code.text_numbers.offer(text_numbers.text_numbers)
    string_code.text_pieces.offer(text_pieces.text_pieces)
    string_code.text_rewriters.offer(text_rewriters.text_rewriters)
    machine_code.hot_places.offer(hot_places.hot_places)
    number_code.integer_matrices.offer(integer_matrices.integer_matrices)
    machine_code.integer_product.offer(integer_products.integer_product)
    machine_code.largest.offer(largest.largest)
    machine_code.matrix_batches.offer(matrix_batches.matrix_batches)
    network_code.path_beams.offer(path_beams.path_beams)
    network_code.path_labels.offer(path_labels.path_labels)
    network_code.window_pool.offer(window_pools.window_pool)
    network_code.window_rows.offer(window_rows.window_rows)
    machine_code.placing.offer(placing.placing)
    machine_code.quotients.offer(quotients.quotients)
    machine_code.random_values.offer(random_values.random_values)
    machine_code.random_words.offer(random_words.random_words)
    machine_code.rejection_values.offer(rejection_values.rejection_values)
    machine_code.requantizer.offer(step_passes.requantizer)
    machine_code.row_additions.offer(row_additions.row_additions)
    machine_code.row_moves.offer(row_moves.row_moves)
    machine_code.class_choice.offer(class_choice.class_choice)
    machine_code.segment_rows.offer(segment_sums.segment_rows)
    machine_code.segment_sums.offer(segment_sums.segment_sums)
    machine_code.size_histogram.offer(histograms.size_histogram)
    machine_code.small_matrices.offer(small_matrices.small_matrices)
    machine_code.spaced_numbers.offer(spaced_numbers.spaced_numbers)
    machine_code.sparse_product.offer(sparse_products.sparse_product)
    machine_code.step_passes.offer(step_passes.step_passes)
    machine_code.tuple_rows.offer(tuple_rows.tuple_rows)
    machine_code.unsorted_rows.offer(segment_sums.unsorted_rows)
