"""The names of `tf` that are refused, and what to use instead of each; see `refusals`."""

from __future__ import annotations

from flowstone.framework.refusals import refused_class, refused_function

__all__ = [
    "GradientTape", "RaggedTensor", "RaggedTensorSpec", "check_pinned", "function", "ragged_fill_empty_rows",
    "ragged_fill_empty_rows_grad", "random_index_shuffle", "wrap_function",
]  # fmt: skip

_PADDED = "a tf.SparseTensor, or a dense tensor with the lengths of its rows"

GradientTape = refused_class("tf.GradientTape", "tf.gradients, which asks the graph")
RaggedTensor = refused_class("tf.RaggedTensor", _PADDED)
RaggedTensorSpec = refused_class("tf.RaggedTensorSpec", "tf.SparseTensorSpec, for " + _PADDED)
check_pinned = refused_function("tf.check_pinned", "nothing: sessions pin memory where it helps")
function = refused_function("tf.function", "the Python function itself, which adds to the graph when called")
ragged_fill_empty_rows = refused_function("tf.ragged_fill_empty_rows", "tf.sparse.fill_empty_rows")
ragged_fill_empty_rows_grad = refused_function("tf.ragged_fill_empty_rows_grad", "tf.sparse.fill_empty_rows")
random_index_shuffle = refused_function("tf.random_index_shuffle", "tf.random.shuffle(tf.range(n), seed)")
wrap_function = refused_function("tf.wrap_function", "the Python function itself, in a graph of its own")
