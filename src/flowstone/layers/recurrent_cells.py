"""Recurrent cells: ``output, new_state = cell(inputs, state)`` is one step over time of a whole batch.

A cell is a layer: the first call makes its variables inside the current variable scope
(``basic_rnn_cell/kernel``, ``gru_cell/gates/kernel`` …); later calls use them again. `state_size` and
`output_size` are sizes without the batch dimension, or nested structures of them; `zero_state` gives a state
to begin with. The functions of `recurrent` and `dynamic_recurrent` run a cell over the steps of a sequence.

This file holds `RNNCell`, the base, and the cells whose state is their output. `lstm_cells` holds those with
a separate memory, `cell_wrappers` those made of other cells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import as_shape
from flowstone.layers.activations import activation_named
from flowstone.layers.base import InputSpec, Layer
from flowstone.layers.cell_state import zero_state
from flowstone.ops.algebra.matrices import matmul
from flowstone.ops.arrays.joining import concat, split
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.networks.neural_net import bias_add
from flowstone.ops.numbers.functions import sigmoid, tanh
from flowstone.ops.variables.initializers import Constant, Zeros
from flowstone.ops.variables.partitioned_variables import PartitionedVariable
from flowstone.ops.variables.scope_defaults import VariableScope
from flowstone.ops.variables.variable_scope import get_variable_scope, variable_scope

__all__ = ["BasicRNNCell", "GRUCell", "RNNCell"]


class RNNCell(Layer):
    """The base of recurrent cells.

    A subclass has the properties `state_size` and `output_size` and a method ``call(inputs, state)`` that
    returns the output and the new state. Variables that `call` gets from `tf.get_variable` count among the
    cell's.
    """

    def __call__(
        self, inputs: Any, state: Any, scope: str | VariableScope | None = None, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """One step.

        Args:
            inputs: [batch, depth] tensor, or a nested structure of tensors.
            state: of the structure of `state_size`, each tensor [batch, *size].
            scope: of the variables, at the first call; default: the class's name in snake case.

        Returns the output, of the structure of `output_size`, and the new state.
        """
        if scope is not None:
            with variable_scope(scope, custom_getter=self._tracking_getter) as named:
                stepped: tuple[Any, Any] = super().__call__(inputs, state, *args, scope=named, **kwargs)
                return stepped
        surroundings = getattr(self, "_surroundings", None)
        if surroundings is None:
            surroundings = variable_scope(get_variable_scope(), custom_getter=self._tracking_getter)
            self._surroundings = surroundings
        with surroundings:
            stepped = super().__call__(inputs, state, *args, **kwargs)
            return stepped

    def _tracking_getter(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        variable = getter(*args, **kwargs)
        first = next(iter(variable)) if isinstance(variable, PartitionedVariable) else variable
        trainable = get_default_graph().get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        self._track(variable, any(first is other for other in trainable))
        return variable

    @property
    def state_size(self) -> Any:
        """The size of the state, or a nested structure of sizes."""
        raise NotImplementedError("Abstract method")  # TensorFlow's class and words

    @property
    def output_size(self) -> Any:
        """The size of the output, or a nested structure of sizes."""
        raise NotImplementedError("Abstract method")

    def build(self, _: Any) -> None:
        """Makes no variables: `call` may get them."""

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros [batch_size, *size] in the structure of `state_size`.

        `batch_size`: an integer or a scalar int32 tensor.
        """
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return zero_state(self.state_size, batch_size, dtype)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """The zero state for the batch size and type of `inputs`, [batch, …], or those given.

        ValueError if either is not known or differs from that of `inputs`.
        """
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            if dtype is not None and inputs.dtype != dtypes.as_dtype(dtype):
                raise ValueError(
                    "dtype from input tensor doesn't match the provided dtype. "
                    f"Received: inputs.dtype={inputs.dtype!r} and dtype={dtype!r}"
                )
            known = inputs.shape.as_list()[0] if inputs.shape.ndims else None
            if isinstance(batch_size, int) and known is not None and batch_size != known:
                raise ValueError(
                    "batch size from input tensor is different from the input param. "
                    f"Received: inputs batch size={known} and batch_size={batch_size}"
                )
            batch_size = shape_of(inputs)[0] if known is None else known
            dtype = inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)


class LayerRNNCell(RNNCell):
    """The base of cells that make their variables in `build`, in a scope of their own, with `add_weight`.

    Their inputs are matrices [batch, depth] with a known depth.
    """

    def __call__(
        self, inputs: Any, state: Any, scope: str | VariableScope | None = None, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """One step: `inputs` [batch, depth]; see `RNNCell`. ValueError for other ranks, or integers."""
        _check_floating(inputs, state)
        stepped: tuple[Any, Any] = Layer.__call__(self, inputs, state, *args, scope=scope, **kwargs)
        return stepped

    def add_matrix(
        self, name: str, rows: int, columns: int, initializer: Any = None, partitioner: Any = None
    ) -> Any:
        """The variable ``name/kernel``, [rows, columns]."""
        return self.add_weight(
            f"{name}kernel", [rows, columns], initializer=initializer, partitioner=partitioner
        )

    def add_bias(self, name: str, size: int, initializer: Any = None) -> Any:
        """The variable ``name/bias``, [size]; zeros unless there is an initialiser."""
        return self.add_weight(
            f"{name}bias",
            [size],
            initializer=Zeros(dtype=self.dtype or dtypes.float32) if initializer is None else initializer,
        )


def input_depth(inputs_shape: Any) -> int:
    """The last dimension of a cell's inputs. ValueError if it is not known."""
    sizes = as_shape(inputs_shape).as_list()
    if sizes[-1] is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, received shape: {tuple(sizes)}")
    return sizes[-1]


def _check_floating(*tensors: Any) -> None:
    """Raises ValueError if one of the nested tensors is not of a floating-point or complex type."""
    for tensor in nest.flatten(tensors):
        if isinstance(tensor, Tensor) and not (tensor.dtype.is_floating or tensor.dtype.is_complex):
            raise ValueError(
                f"RNN cell only supports floating point inputs, but received dtype: {tensor.dtype}"
            )


class LayerOfUnits(LayerRNNCell):
    """A cell of `num_units` units, whose inputs are matrices."""

    def __init__(
        self, num_units: int, reuse: Any = None, name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units


class BasicRNNCell(LayerOfUnits):
    """``output = new state = activation(inputs · W + state · U + b)``.

    Args:
        num_units: the size of state and output.
        activation: a function or a name; default: tanh.
        reuse: whether the variables must be there already (True), or may be (AUTO_REUSE).
        name: of the variable scope; default: "basic_rnn_cell".
        dtype: of the variables; default: that of the first inputs.

    Variables: kernel [depth + num_units, num_units], bias [num_units].
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, reuse, name, dtype, **kwargs)
        self._activation = activation_named(activation, tanh)

    @property
    def state_size(self) -> int:
        """num_units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """num_units."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel and bias."""
        rows = input_depth(inputs_shape) + self._num_units
        self._kernel = self.add_matrix("", rows, self._num_units)
        self._bias = self.add_bias("", self._num_units)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Tensor]:
        """Output and new state, both [batch, num_units]."""
        output = self._activation(bias_add(matmul(concat([inputs, state], 1), self._kernel), self._bias))
        return output, output


class GRUCell(LayerOfUnits):
    """The gated recurrent unit (Cho et al. 2014, http://arxiv.org/abs/1406.1078).

    With r, u = sigmoid([inputs, state] · gates), c = activation([inputs, r · state] · candidate), the output
    and new state are u · state + (1 - u) · c.

    Args:
        num_units: the size of state and output.
        activation: of the candidate, a function or a name; default: tanh.
        reuse: whether the variables must be there already (True), or may be (AUTO_REUSE).
        kernel_initializer, bias_initializer: default: the scope's; 1 for the gates' bias, else 0.
        name: of the variable scope; default: "gru_cell".
        dtype: of the variables; default: that of the first inputs.

    Variables: gates/kernel [depth + num_units, 2 num_units], gates/bias, candidate/kernel, candidate/bias.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, reuse, name, dtype, **kwargs)
        self._activation = activation_named(activation, tanh)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> int:
        """num_units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """num_units."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes the kernels and biases of gates and candidate."""
        units, rows = self._num_units, input_depth(inputs_shape) + self._num_units
        of_kernel, of_bias = self._kernel_initializer, self._bias_initializer
        open_gates = Constant(1.0, dtype=self.dtype or dtypes.float32) if of_bias is None else of_bias
        self._gate_kernel = self.add_matrix("gates/", rows, 2 * units, of_kernel)
        self._gate_bias = self.add_bias("gates/", 2 * units, open_gates)
        self._candidate_kernel = self.add_matrix("candidate/", rows, units, of_kernel)
        self._candidate_bias = self.add_bias("candidate/", units, of_bias)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Tensor]:
        """Output and new state, both [batch, num_units]."""
        gates = bias_add(matmul(concat([inputs, state], 1), self._gate_kernel), self._gate_bias)
        reset, update = split(sigmoid(gates), 2, 1)
        candidate = bias_add(
            matmul(concat([inputs, reset * state], 1), self._candidate_kernel), self._candidate_bias
        )
        candidate = self._activation(candidate)
        new_state = update * state + (1 - update) * candidate
        return new_state, new_state
