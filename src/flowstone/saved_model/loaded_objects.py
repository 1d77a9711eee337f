"""Objects that a SavedModel of objects gives back: what holds others, and tables."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.training.checkpoints.tracking import AutoTrackable

__all__ = ["LoadedTable", "user_object"]


def user_object() -> Any:
    """A new object of a class of its own, which can get `__call__`."""
    return type("_UserObject", (AutoTrackable,), {})()


class LoadedTable:
    """A table of a SavedModel with the types of `node`, which makes it in the function `_create_resource`."""

    def __init__(self, node: Any) -> None:
        names = ("key_dtype", "value_dtype")
        self._types: dict[str, Any] = {name: dtypes.as_dtype(node.attr[name].type) for name in names}
        self._shared_name = get_default_graph().unique_name("loaded_table", mark_as_used=False)
        self.resource_handle = self._make()
        self.initializer: Any = None

    def _make(self) -> Tensor:
        made: Tensor = F.HashTableV2(shared_name=self._shared_name, name="loaded_table", **self._types)
        return made

    def set_initializer(self, operation: Operation) -> None:
        """The operation that gives it its contents, which `tables_initializer` runs, too."""
        self.initializer = operation
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, operation)

    def _initialize_again(self) -> Any:
        return vars(self)["_initialize"]()  # the function of the model

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        own = vars(self).get("_initializer")
        return [] if own is None else [("_initializer", own)]
