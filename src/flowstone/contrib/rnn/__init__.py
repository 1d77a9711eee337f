"""`tf.contrib.rnn`: recurrent cells and the functions that run them."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.rnn.core_rnn_cell": "EmbeddingWrapper InputProjectionWrapper OutputProjectionWrapper",
        "flowstone.nn": "bidirectional_dynamic_rnn dynamic_rnn raw_rnn static_bidirectional_rnn static_rnn"
        " static_state_saving_rnn",
        "flowstone.rnn_cell": "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell"
        " LSTMStateTuple MultiRNNCell RNNCell ResidualWrapper",
    },
)
