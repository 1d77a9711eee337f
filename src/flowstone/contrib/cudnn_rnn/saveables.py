"""What savers save of a vector of parameters: the kernels and biases of the cells that compute the same."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.cudnn_rnn import parameter_formats as formats
from flowstone.ops.checkpoints.saveable_object import SaveableObject, SaveSpec

__all__ = [
    "CudnnGRUSaveable",
    "CudnnLSTMSaveable",
    "CudnnOpaqueParamsSaveable",
    "CudnnRNNReluSaveable",
    "CudnnRNNTanhSaveable",
]


class CudnnOpaqueParamsSaveable(SaveableObject):
    """The base.

    Args:
        opaque_params: the variable with the vector.
        num_layers, num_units, input_size, input_mode, direction: of the model.
        scope: of the saved names; default: the current scope.
        name: of the object.

    Names are ``SCOPE/rnn/multi_rnn_cell/cell_0/CELL/kernel``, of models in both directions
    ``SCOPE/stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/CELL/kernel``.
    """

    _format: type[formats.CudnnParamsFormatConverter]
    _cell = "basic_rnn_cell"
    _weights: tuple[str, ...] = ("kernel",)
    _biases: tuple[str, ...] = ("bias",)

    def __init__(
        self,
        opaque_params: Any,
        num_layers: int,
        num_units: int,
        input_size: int,
        input_mode: str = "linear_input",
        direction: str = "unidirectional",
        scope: Any = None,
        name: str = "cudnn_rnn_saveable",
    ) -> None:
        self._variables = opaque_params
        self._format_converter = self._format(
            num_layers, num_units, input_size, input_mode=input_mode, direction=direction
        )
        scope = tf.get_variable_scope() if scope is None else scope
        prefix = scope if isinstance(scope, str) else scope.name
        weights, biases = self._format_converter.opaque_to_tf_canonical(opaque_params)
        cells = self._cells(num_layers, direction == "bidirectional")
        names = [f"{cell}/{part}" for cell in cells for part in self._weights]
        names += [f"{cell}/{part}" for cell in cells for part in self._biases]
        specs = [
            SaveSpec(tensor, "", f"{prefix}/{own}" if prefix else own)
            for tensor, own in zip(weights + biases, names)
        ]
        super().__init__(opaque_params, specs, name)

    def _cells(self, layers: int, is_bidirectional: bool) -> list[str]:
        if not is_bidirectional:
            return [f"rnn/multi_rnn_cell/cell_{i}/{self._cell}" for i in range(layers)]
        return [
            f"stack_bidirectional_rnn/cell_{i}/bidirectional_rnn/{way}/{self._cell}"
            for i in range(layers)
            for way in ("fw", "bw")
        ]

    @property
    def format_converter(self) -> formats.CudnnParamsFormatConverter:
        """What converts between both forms."""
        return self._format_converter

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        """The operation that assigns the vector of the restored parameters."""
        vector = self._format_converter.tf_canonical_to_opaque(list(restored_tensors))
        return tf.assign(self._variables, vector, validate_shape=False)


class CudnnLSTMSaveable(CudnnOpaqueParamsSaveable):
    """Of `CudnnLSTM`."""

    _format = formats.CudnnParamsFormatConverterLSTM
    _cell = "cudnn_compatible_lstm_cell"


class CudnnGRUSaveable(CudnnOpaqueParamsSaveable):
    """Of `CudnnGRU`."""

    _format = formats.CudnnParamsFormatConverterGRU
    _cell = "cudnn_compatible_gru_cell"
    _weights = ("gates/kernel", "candidate/input_projection/kernel", "candidate/hidden_projection/kernel")
    _biases = ("gates/bias", "candidate/input_projection/bias", "candidate/hidden_projection/bias")


class CudnnRNNReluSaveable(CudnnOpaqueParamsSaveable):
    """Of `CudnnRNNRelu`."""

    _format = formats.CudnnParamsFormatConverterRelu


class CudnnRNNTanhSaveable(CudnnOpaqueParamsSaveable):
    """Of `CudnnRNNTanh`."""

    _format = formats.CudnnParamsFormatConverterTanh
