"""The cells of `tensorflow.contrib.rnn.python.ops.rnn_cell`, with those that `tf.contrib.rnn` does not
show."""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.contrib.rnn.core_rnn_cell": "_Linear _linear",
        "flowstone.contrib.rnn.gated_cells": "CFNCell MinimalRNNCell",
        "flowstone.contrib.rnn.normalized_cells": "LayerNormLSTMCell WeightNormLSTMCell",
        "flowstone.contrib.rnn.special_cells": "_conv _random_exp_initializer",
    },
)
