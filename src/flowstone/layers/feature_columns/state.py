"""Where the variables of columns are: `StateManager`, which a layer of columns has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flowstone.framework.types import dtypes
from flowstone.ops.variables.partitioned_variables import PartitionedVariable
from flowstone.ops.variables.variable_scope import get_variable, variable_scope

__all__ = ["StateManager", "_StateManagerImpl"]


class StateManager(ABC):
    """Makes and keeps the variables and resources of columns, by column and name."""

    @abstractmethod
    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """Makes a variable of the column. ValueError if there is one of the name."""

    @abstractmethod
    def get_variable(self, feature_column: Any, name: str) -> Any:
        """The variable of the name. ValueError if there is none."""

    def add_variable(self, feature_column: Any, var: Any) -> Any:
        """Takes a variable that was made elsewhere."""
        raise TypeError(f"{type(self).__name__} takes no variables that it has not made, such as {var}")

    @abstractmethod
    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        """Takes a resource, such as a table."""

    @abstractmethod
    def get_resource(self, feature_column: Any, name: str) -> Any:
        """The resource of the name. ValueError if there is none."""


class _StateManagerImpl(StateManager):
    """That of a layer: variables are in the scope ``LAYER/COLUMN`` of variables.

    Args:
        layer: has the list `_made`, to which variables are added.
        trainable: whether any variable is.
    """

    def __init__(self, layer: Any, trainable: bool) -> None:
        self._layer, self._trainable = layer, trainable
        self._variables: dict[tuple[Any, str], Any] = {}
        self._resources: dict[tuple[Any, str], Any] = {}

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        if (feature_column, name) in self._variables:
            raise ValueError("Variable already exists.")
        is_trainable = bool(self._trainable and trainable)
        with variable_scope(feature_column.name, auxiliary_name_scope=False):
            variable = get_variable(
                name,
                shape=shape,
                dtype=dtypes.float32 if dtype is None else dtype,
                initializer=initializer,
                trainable=is_trainable,
                use_resource=use_resource,
            )
        self._variables[feature_column, name] = variable
        parts = list(variable) if isinstance(variable, PartitionedVariable) else [variable]
        self._layer._made += [(each, is_trainable) for each in parts]
        return variable

    def get_variable(self, feature_column: Any, name: str) -> Any:
        if (feature_column, name) not in self._variables:
            raise ValueError("Variable does not exist.")
        return self._variables[feature_column, name]

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        self._resources[feature_column, name] = resource

    def get_resource(self, feature_column: Any, name: str) -> Any:
        if (feature_column, name) not in self._resources:
            raise ValueError("Resource does not exist.")
        return self._resources[feature_column, name]
