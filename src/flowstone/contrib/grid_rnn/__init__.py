"""`tf.contrib.grid_rnn`: recurrent cells along several dimensions at once."""

from __future__ import annotations

from flowstone.contrib import layers, rnn
from flowstone.contrib.package_names import package_names

__all__ = ["layers", "rnn"]

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.grid_rnn.grid_rnn_cell": "Grid1BasicLSTMCell Grid1BasicRNNCell Grid1LSTMCell"
        " Grid2BasicLSTMCell Grid2BasicRNNCell Grid2GRUCell Grid2LSTMCell Grid3LSTMCell GridRNNCell",
    },
)
