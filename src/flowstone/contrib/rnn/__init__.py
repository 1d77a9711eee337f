"""`tf.contrib.rnn`: recurrent cells and the functions that run them."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.rnn.core_rnn_cell": "EmbeddingWrapper InputProjectionWrapper"
        " OutputProjectionWrapper",
        "flowstone.contrib.rnn.frequency_cells": "BidirectionalGridLSTMCell GridLSTMCell TimeFreqLSTMCell",
        "flowstone.contrib.rnn.fused_rnn_cell": "FusedRNNCell FusedRNNCellAdaptor TimeReversedFusedRNN",
        "flowstone.contrib.rnn.gated_cells": "CoupledInputForgetGateLSTMCell IntersectionRNNCell NASCell"
        " UGRNNCell",
        "flowstone.contrib.rnn.gru_ops": "GRUBlockCell GRUBlockCellV2",
        "flowstone.contrib.rnn.independent_cells": "IndRNNCell IndyGRUCell IndyLSTMCell SRUCell",
        "flowstone.contrib.rnn.lstm_ops": "LSTMBlockCell LSTMBlockFusedCell LSTMBlockWrapper",
        "flowstone.contrib.rnn.normalized_cells": "LayerNormBasicLSTMCell",
        "flowstone.contrib.rnn.rnn": "best_effort_input_batch_size stack_bidirectional_dynamic_rnn"
        " stack_bidirectional_rnn transpose_batch_time",
        "flowstone.contrib.rnn.special_cells": "Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell ConvLSTMCell"
        " GLSTMCell PhasedLSTMCell",
        "flowstone.contrib.rnn.wrapper_cells": "AttentionCellWrapper CompiledWrapper HighwayWrapper",
        "flowstone.layers.recurrent_cells": "LayerRNNCell",
        "flowstone.nn": "bidirectional_dynamic_rnn dynamic_rnn raw_rnn static_bidirectional_rnn static_rnn"
        " static_state_saving_rnn",
        "flowstone.rnn_cell": "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell"
        " LSTMStateTuple MultiRNNCell RNNCell ResidualWrapper",
    },
)
