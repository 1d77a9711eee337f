"""`VariableScope`: a prefix of variables' names, with the defaults that `get_variable` takes inside."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.constant_arrays import constant_array
from flowstone.framework.types.dtypes import DType
from flowstone.ops.variables.variable_creation import VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from flowstone.ops.variables.variable_store import VariableStore

__all__ = ["AUTO_REUSE", "VariableScope"]


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE


class VariableScope:
    """A prefix of variables' names and the defaults that `get_variable` takes inside."""

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Callable[..., Any] | None = None,
        name_scope: str = "",
        dtype: Any = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Callable[..., Any] | None = None,
    ) -> None:
        self._name, self._name_scope, self._reuse = name, name_scope, reuse
        self._initializer, self._regularizer, self._partitioner = initializer, regularizer, partitioner
        self._caching_device, self._custom_getter, self._constraint = (
            caching_device,
            custom_getter,
            constraint,
        )
        self._dtype, self._use_resource = dtype, use_resource

    name = property(lambda self: self._name, doc="The prefix of variable names, without a final slash.")
    original_name_scope = property(
        lambda self: self._name_scope, doc="The name scope entered when it was made."
    )
    reuse = property(lambda self: self._reuse, doc="False, True or AUTO_REUSE.")
    initializer = property(lambda self: self._initializer, doc="The default initialiser.")
    regularizer = property(lambda self: self._regularizer, doc="The default regulariser.")
    partitioner = property(lambda self: self._partitioner, doc="The default partitioner.")
    caching_device = property(lambda self: self._caching_device, doc="The default caching device.")
    custom_getter = property(
        lambda self: self._custom_getter, doc="What `get_variable` calls instead, or None."
    )
    constraint = property(lambda self: self._constraint, doc="The default constraint.")
    dtype = property(lambda self: self._dtype, doc="The default element type.")
    use_resource = property(
        lambda self: self._use_resource, doc="The kind of variables made; None for the default."
    )

    def reuse_variables(self) -> None:
        """From now on `get_variable` finds existing variables only; there is no way back."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initialiser."""
        self._initializer = initializer

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default element type."""
        self._dtype = dtype

    def set_use_resource(self, use_resource: bool | None) -> None:
        """Sets the kind of variables made."""
        self._use_resource = use_resource

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regulariser."""
        self._regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        """Sets the default caching device."""
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: Callable[..., Any] | None) -> None:
        """Sets what `get_variable` calls instead of the store's own."""
        self._custom_getter = custom_getter

    def get_collection(self, name: Any) -> list[Any]:
        """The items of a collection whose names lie in this scope."""
        return get_default_graph().get_collection(name, f"{self._name}/" if self._name else "")

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self,
        var_store: VariableStore,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: Callable[..., Any] | None = None,
        constraint: Callable[..., Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Any:
        """The variable `name` of this scope in `var_store`; see `tf.get_variable`."""
        # Without a name the variable takes the scope's own, "scope/": its node is exactly "scope", as
        # slots need.
        full_name = f"{self._name}/{name}" if self._name else name
        asked = None
        with get_default_graph().name_scope(None):
            if dtype is not None and initializer is not None and not callable(initializer):
                asked = convert_to_tensor(initializer)  # TensorFlow makes a node to ask for the type, too
                value_type = asked.dtype.base_dtype
                if value_type is not dtypes.as_dtype(dtype).base_dtype:
                    raise ValueError(
                        f"Initializer type '{value_type.name}' and explicit dtype "
                        f"'{dtypes.as_dtype(dtype).name}' don't match."
                    )
            variable = var_store.get_variable(
                full_name,
                shape=shape,
                dtype=self._dtype if dtype is None else dtype,
                initializer=self._initializer if initializer is None else initializer,
                regularizer=self._regularizer if regularizer is None else regularizer,
                reuse=self._reuse if reuse is None else reuse,
                trainable=trainable,
                collections=collections,
                caching_device=self._caching_device if caching_device is None else caching_device,
                partitioner=self._partitioner if partitioner is None else partitioner,
                validate_shape=validate_shape,
                use_resource=self._use_resource if use_resource is None else use_resource,
                custom_getter=self._custom_getter if custom_getter is None else custom_getter,
                constraint=self._constraint if constraint is None else constraint,
                synchronization=synchronization,
                aggregation=aggregation,
            )
        _share_value(asked, variable)
        return variable


def _share_value(asked: Any, variable: Any) -> None:
    """Holds a constant that is the initial value, too, once."""
    initial = getattr(variable, "initial_value", None)
    if asked is None or initial is None or initial is asked or initial.op.type != asked.op.type:
        return
    value, same = asked.op.attributes.get("value"), initial.op.attributes.get("value")
    if value is not None and same is not None and np.array_equal(value, same):
        asked.op.attributes["value"] = same


def type_of_value(value: Any) -> DType:
    """The type of an initial value: its own, or the one that a Python or NumPy value is converted to."""
    own = getattr(value, "dtype", None)
    if isinstance(own, DType):
        return own.base_dtype
    return dtypes.as_dtype(constant_array(value, None, None, False).dtype)
