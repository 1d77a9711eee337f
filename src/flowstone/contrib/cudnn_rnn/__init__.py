"""`tf.contrib.cudnn_rnn`: layers of recurrent cells with all parameters in one vector, in cuDNN's order.

They run and train on any device. Savers save the parameters as those of the cells that compute the same:
`CudnnCompatibleLSTMCell`, `CudnnCompatibleGRUCell` and `BasicRNNCell`.
"""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_FORMATS = " ".join(f"CudnnParamsFormatConverter{kind}" for kind in ("GRU", "LSTM", "Relu", "Tanh"))

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.cudnn_rnn.compatible_cells": "CudnnCompatibleGRUCell CudnnCompatibleLSTMCell",
        "flowstone.contrib.cudnn_rnn.cudnn_rnn": "CudnnGRU CudnnLSTM CudnnRNNRelu CudnnRNNTanh",
        "flowstone.contrib.cudnn_rnn.parameter_formats": _FORMATS,
        "flowstone.contrib.cudnn_rnn.saveables": "CudnnGRUSaveable CudnnLSTMSaveable CudnnRNNReluSaveable"
        " CudnnRNNTanhSaveable",
    },
)
