"""Layers of recurrent cells as one operation, CudnnRNN."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.cudnn_rnn import saveables
from flowstone.framework.graphs.graph import GraphKeys
from flowstone.layers.base import InputSpec, Layer

__all__ = ["CudnnGRU", "CudnnLSTM", "CudnnRNNRelu", "CudnnRNNTanh"]


class _CudnnRNN(Layer):
    """The base.

    Args:
        num_layers: one above the other.
        num_units: the size of each layer's state.
        input_mode: "linear_input".
        direction: "unidirectional" or "bidirectional".
        dropout: the probability of dropping what one layer gives the next.
        seed: of dropout.
        dtype: of inputs and parameters.
        kernel_initializer, bias_initializer: of the matrices and vectors of cuDNN's gates; default: uniform
            by Glorot, and zeros.
        name: of the scope.

    Variable: opaque_kernel, a vector. Its parts are saved, too (see `saveables`).
    """

    _rnn_mode: str
    _saveable_class: type[saveables.CudnnOpaqueParamsSaveable]

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = "linear_input",
        direction: str = "unidirectional",
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: Any = tf.float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        if direction not in ("unidirectional", "bidirectional"):
            raise ValueError(f"direction must be 'unidirectional' or 'bidirectional', got {direction!r}")
        if input_mode != "linear_input":
            raise ValueError(f"input_mode must be 'linear_input', got {input_mode!r}")
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout must be between 0 and 1, got {dropout}")
        self._num_layers, self._num_units = num_layers, num_units
        self._input_mode, self._direction, self._dropout = input_mode, direction, dropout
        self._seeds = tf.get_seed(seed)
        self._kernel_initializer = kernel_initializer or tf.glorot_uniform_initializer(dtype=dtype)
        self._bias_initializer = bias_initializer or tf.constant_initializer(0.0, dtype=dtype)
        self._input_size: int | None = None
        self._saveable: saveables.CudnnOpaqueParamsSaveable | None = None
        self.input_spec = None

    num_layers = property(lambda self: self._num_layers, doc="The number of layers.")
    num_units = property(lambda self: self._num_units, doc="The size of each layer's state.")
    input_mode = property(lambda self: self._input_mode, doc='"linear_input".')
    direction = property(lambda self: self._direction, doc='"unidirectional" or "bidirectional".')
    num_dirs = property(lambda self: 2 if self._direction == "bidirectional" else 1, doc="1 or 2.")
    rnn_mode = property(lambda self: self._rnn_mode, doc='"lstm", "gru", "rnn_relu" or "rnn_tanh".')
    saveable = property(lambda self: self._saveable, doc="What savers save; None before the first call.")

    @property
    def input_size(self) -> int:
        """The depth of the inputs. ValueError before the first call."""
        if not self._input_size:
            raise ValueError("'input_size' is unknown since layer has not been built.")
        return self._input_size

    def _format(self) -> Any:
        return self._saveable_class._format(
            self._num_layers, self._num_units, self.input_size, direction=self._direction
        )

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, int]]:
        """The shapes of the vector's matrices."""
        shapes: list[tuple[int, int]] = self._format().weight_shapes()
        return shapes

    @property
    def canonical_bias_shapes(self) -> list[list[int]]:
        """The shapes of the vector's biases."""
        shapes: list[list[int]] = self._format().bias_shapes()
        return shapes

    def build(self, input_shape: Any) -> None:
        """Makes the vector of parameters. ValueError for inputs that are not [time, batch, known depth]."""
        shape = tf.TensorShape(input_shape)
        if shape.ndims != 3 or shape[-1].value is None:
            raise ValueError(f"The last dimension of 3-dimensional inputs must be known, got {shape}")
        self._input_size = shape[-1].value
        self.input_spec = InputSpec(ndim=3, axes={-1: self._input_size})
        self._set_scope(None)
        dtype = tf.as_dtype(self.dtype)

        def start(shape: Any = None, dtype: Any = dtype, partition_info: Any = None) -> Any:
            parts = [self._kernel_initializer(each, dtype=dtype) for each in self.canonical_weight_shapes]
            parts += [self._bias_initializer(each, dtype=dtype) for each in self.canonical_bias_shapes]
            return tf.concat([tf.reshape(part, [-1]) for part in parts], 0)

        self.kernel = self.add_weight("opaque_kernel", [self._format().params_size()], initializer=start)
        if not tf.get_variable_scope().reuse:
            self._saveable = self._saveable_class(
                self.kernel,
                self._num_layers,
                self._num_units,
                self._input_size,
                self._input_mode,
                self._direction,
                scope=self._scope,
                name=f"{self.kernel.op.name}_saveable",
            )
            tf.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self._saveable)
        self.built = True

    def state_shape(self, batch_size: Any) -> tuple[list[Any], ...]:
        """The shapes of the state's parts, [layers · directions, batch, units]."""
        return ([self._num_layers * self.num_dirs, batch_size, self._num_units],)

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        sequence_lengths: Any = None,
        time_major: bool = True,
        training: bool = True,
    ) -> tuple[Any, tuple[Any, ...]]:
        """Runs all layers.

        Args:
            inputs: [time, batch, depth], or [batch, time, depth] unless `time_major`.
            initial_state: a tuple of tensors of `state_shape`; default: zeros.
            sequence_lengths: None: all sequences have the length of the inputs.
            time_major: see inputs.
            training: whether there is dropout; gradients need it.

        Returns the outputs [time, batch, units · directions], and the last state, a tuple. ValueError for
        sequence lengths, TypeError for inputs of another type.
        """
        if sequence_lengths is not None:
            raise ValueError(
                "sequence_lengths are not supported: run CudnnCompatibleLSTMCell by tf.nn.dynamic_rnn"
            )
        dtype = tf.as_dtype(self.dtype)
        if inputs.dtype != dtype:
            raise TypeError(f"Tensor has type {inputs.dtype}, but the layer {dtype}")
        x = inputs if time_major else tf.transpose(inputs, perm=(1, 0, 2))
        if initial_state is None:
            known = x.shape[1].value
            batch = tf.shape(x)[1] if known is None else known
            initial_state = tuple(tf.zeros(tf.stack(shape), dtype) for shape in self.state_shape(batch))
        elif not isinstance(initial_state, tuple):
            raise TypeError(f"Invalid initial_state type: {type(initial_state)}, expecting tuple.")
        h, c = initial_state if len(initial_state) == 2 else (initial_state[0], tf.constant([], dtype))
        seed, seed2 = self._seeds
        found = tf.raw_ops.CudnnRNN(
            input=x,
            input_h=h,
            input_c=c,
            params=self.kernel,
            rnn_mode=self._rnn_mode,
            input_mode=self._input_mode,
            direction=self._direction,
            dropout=self._dropout,
            seed=seed or 0,
            seed2=seed2 or 0,
            is_training=training,
        )
        output = found.output if time_major else tf.transpose(found.output, perm=(1, 0, 2))
        state = (found.output_h, found.output_c) if self._rnn_mode == "lstm" else (found.output_h,)
        return output, state


class CudnnLSTM(_CudnnRNN):
    """Layers of LSTM; the state is (h, c). See `_CudnnRNN` for the arguments."""

    _rnn_mode = "lstm"
    _saveable_class = saveables.CudnnLSTMSaveable

    def state_shape(self, batch_size: Any) -> tuple[list[Any], ...]:
        """The shapes of h and c, [layers · directions, batch, units]."""
        return super().state_shape(batch_size) * 2


class CudnnGRU(_CudnnRNN):
    """Layers of GRU; the state is (h,). See `_CudnnRNN` for the arguments."""

    _rnn_mode = "gru"
    _saveable_class = saveables.CudnnGRUSaveable


class CudnnRNNRelu(_CudnnRNN):
    """Layers with relu; the state is (h,). See `_CudnnRNN` for the arguments."""

    _rnn_mode = "rnn_relu"
    _saveable_class = saveables.CudnnRNNReluSaveable


class CudnnRNNTanh(_CudnnRNN):
    """Layers with tanh; the state is (h,). See `_CudnnRNN` for the arguments."""

    _rnn_mode = "rnn_tanh"
    _saveable_class = saveables.CudnnRNNTanhSaveable
