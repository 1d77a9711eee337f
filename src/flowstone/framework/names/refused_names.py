"""The public names of later TensorFlows that are refused, and what to use instead of each; see `refusals`.

The types of `tf.dtypes.experimental` are in `small_types`.
"""

from __future__ import annotations

from flowstone.framework.names.refusals import refused_class, refused_function

__all__ = [
    "CheckpointOptions", "NumpyIterator", "RaggedFeature", "SaveOptions", "check_pinned", "decode_proto",
    "enable_check_numerics", "encode_proto",
    "experimental_connect_to_cluster", "experimental_connect_to_host",
    "experimental_run_functions_eagerly",
    "ragged_fill_empty_rows", "ragged_fill_empty_rows_grad", "random_index_shuffle",
    "run_functions_eagerly", "wrap_function",
]  # fmt: skip

_PROTO = "tf.py_func over the message's Python class"
_RUN = "session.run, which gives values"
_TARGET = 'tf.Session("grpc://host:port")'

# ---- tf

check_pinned = refused_function("tf.check_pinned", "nothing: sessions pin memory where it helps")
ragged_fill_empty_rows = refused_function("tf.ragged_fill_empty_rows", "tf.sparse.fill_empty_rows")
ragged_fill_empty_rows_grad = refused_function("tf.ragged_fill_empty_rows_grad", "tf.sparse.fill_empty_rows")
random_index_shuffle = refused_function("tf.random_index_shuffle", "tf.random.shuffle(tf.range(n), seed)")
wrap_function = refused_function("tf.wrap_function", "the Python function itself, in a graph of its own")

# ---- tf.config

run_functions_eagerly = refused_function("tf.config.run_functions_eagerly", _RUN)
experimental_run_functions_eagerly = refused_function("tf.config.experimental_run_functions_eagerly", _RUN)
experimental_connect_to_cluster = refused_function("tf.config.experimental_connect_to_cluster", _TARGET)
experimental_connect_to_host = refused_function("tf.config.experimental_connect_to_host", _TARGET)

# ---- tf.data, tf.debugging

NumpyIterator = refused_class(
    "tf.data.NumpyIterator", "tf.data.make_one_shot_iterator(dataset).get_next() in a session"
)
enable_check_numerics = refused_function(
    "tf.debugging.enable_check_numerics",
    "tf.add_check_numerics_ops(), an operation that checks the graph's tensors",
)

# ---- tf.io, tf.saved_model, tf.train

RaggedFeature = refused_class("tf.io.RaggedFeature", "tf.io.VarLenFeature, which gives a SparseTensor")
decode_proto = refused_function("tf.io.decode_proto", _PROTO)
encode_proto = refused_function("tf.io.encode_proto", _PROTO)
SaveOptions = refused_class("tf.saved_model.SaveOptions", "tf.saved_model.save without options")
CheckpointOptions = refused_class("tf.train.CheckpointOptions", "the arguments of tf.train.Saver")
