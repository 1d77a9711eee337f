"""`StagingArea` and `MapStagingArea`: where one step puts tuples of tensors aside for another.

Unlike a queue an area checks no shapes at run time and is never closed. A `StagingArea`
gives tuples in the order in which they came, a `MapStagingArea` by key, component by component if wanted.

>>> from flowstone.framework.graphs.graph import Graph
>>> with Graph().as_default():
...     area = StagingArea(["float32", "int32"], shapes=[[2], []])
...     print(area.put([[1.0, 2.0], 3]).name, [x.name for x in area.get()])
StagingArea_put ['StagingArea_get:0', 'StagingArea_get:1']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes as _dtypes
from flowstone.framework.types.shape import TensorShape, as_shape

__all__ = ["BaseStagingArea", "MapStagingArea", "StagingArea"]


class BaseStagingArea:
    """What both have in common.

    `dtypes`, `shapes` (default: unknown), `names` of the components; `shared_name`: sessions on one target
    share areas of a name; `capacity` (tuples) and `memory_limit` (bytes) at which puts begin to wait (0:
    never). Raises ValueError where lengths disagree.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        graph = scope.get_default_graph()
        if shared_name is None:
            self._name = graph.unique_name(type(self).__name__)
        elif isinstance(shared_name, str):
            self._name = shared_name
        else:
            raise ValueError(f"shared_name must be a string, got {shared_name}")
        self._dtypes = [_dtypes.as_dtype(dtype) for dtype in dtypes]
        if shapes is not None and len(shapes) != len(self._dtypes):
            raise ValueError("StagingArea shapes must be the same length as dtypes")
        if names is not None and len(names) != len(self._dtypes):
            raise ValueError("StagingArea names must be the same length as dtypes")
        self._shapes = [TensorShape(None)] * len(self._dtypes) if shapes is None else [*map(as_shape, shapes)]
        self._names = None if names is None else list(names)
        self._capacity, self._memory_limit = capacity, memory_limit
        with graph.name_scope(f"{self._name}_root"):
            self._root = F.NoOp()

    @property
    def name(self) -> str:
        """Its name, under which its operations find it."""
        return self._name

    @property
    def dtypes(self) -> list[Any]:
        """The components' types."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The components' shapes."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """The components' names, or None."""
        return self._names

    @property
    def capacity(self) -> int:
        """The most tuples it holds; 0: any number."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """The most bytes it holds; 0: any number."""
        return self._memory_limit

    # ---- building

    def _limits(self, types: Any = None) -> dict[str, Any]:
        return {
            "dtypes": self._dtypes if types is None else types,
            "shared_name": self._name,
            "capacity": self._capacity,
            "memory_limit": self._memory_limit,
        }

    def _components(self, values: Any, indices: Any = None) -> tuple[list[Tensor], list[int]]:
        """The tensors to put, and which components they are."""
        if isinstance(values, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if not set(values) <= set(self._names):
                raise ValueError(
                    "Keys in dictionary to put do not match names of staging area. "
                    f"Dictionary: {sorted(values)}Queue: {sorted(self._names)}"
                )
            indices = sorted(self._names.index(name) for name in values)
            values = [values[self._names[i]] for i in indices]
        else:
            if self._names:
                raise ValueError("You must enqueue a dictionary in a staging area with names")
            values = values if isinstance(values, (list, tuple)) else [values]
            if indices is None:
                raise ValueError("Indices must be supplied when inserting a list of tensors")
            if len(indices) != len(values):
                raise ValueError(
                    f"Number of indices {len(indices)} doesn't match number of values {len(values)}"
                )
        tensors = []
        for place, value in zip(indices, values):
            tensor = convert_to_tensor(value, self._dtypes[place], "component")
            tensor.shape.assert_is_compatible_with(self._shapes[place])
            tensors.append(tensor)
        return tensors, list(indices)

    def _result(self, tensors: Sequence[Tensor], indices: Sequence[int]) -> Any:
        """What was taken, with its shapes, on the device of who takes it."""
        for tensor, place in zip(tensors, indices):
            tensor.set_shape(self._shapes[place])
        here = F.NoOp().device
        if here != self._root.device:
            tensors = [F.Identity(tensor) for tensor in tensors]
        if self._names:
            return {self._names[place]: tensor for place, tensor in zip(indices, tensors)}
        return list(tensors)


class StagingArea(BaseStagingArea):
    """Tuples come out in the order in which they were put; the arguments are `BaseStagingArea`'s."""

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Puts a tuple aside, waiting while the area is full.

        `values`: a list or tuple of tensors, one tensor, or a dict by names. A step fails with
        ResourceExhaustedError for more bytes than the memory limit.
        """
        graph = scope.get_default_graph()
        with graph.name_scope(name or f"{self._name}_put") as full_name:
            if not isinstance(values, dict):
                values = values if isinstance(values, (list, tuple)) else [values]
                if len(values) != len(self._dtypes) and not self._names:
                    raise ValueError(f"Unexpected number of inputs {len(values)} vs {len(self._dtypes)}")
            tensors, places = self._components(values, range(len(self._dtypes)))
            if len(places) != len(self._dtypes):
                raise ValueError(f"Unexpected number of inputs {len(places)} vs {len(self._dtypes)}")
            with graph.colocate_with(self._root):
                return F.Stage.operation(tensors, name=full_name, **self._limits())

    def get(self, name: str | None = None) -> Any:
        """Takes the first tuple, waiting while there is none: a list of tensors, or a dict by names."""
        with scope.get_default_graph().colocate_with(self._root):
            tensors = F.Unstage.several(name=name or f"{self._name}_get", **self._limits())
        return self._result(tensors, range(len(tensors)))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The tuple at place `index` (int32, []; 0 is the first), once there is one; it stays there."""
        with scope.get_default_graph().colocate_with(self._root):
            tensors = F.StagePeek.several(index, name=name or f"{self._name}_peek", **self._limits())
        return self._result(tensors, range(len(tensors)))

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples it holds: int32, []."""
        with scope.get_default_graph().colocate_with(self._root):
            return F.StageSize(name=name or f"{self._name}_size", **self._limits())

    def clear(self, name: str | None = None) -> Operation:
        """Drops all tuples."""
        with scope.get_default_graph().colocate_with(self._root):
            return F.StageClear.operation(name=name or f"{self._name}_clear", **self._limits())


class MapStagingArea(BaseStagingArea):
    """Tuples come out by key (int64, []), or without one: the smallest key if `ordered`, else the oldest.

    The other arguments are `BaseStagingArea`'s.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)
        self._prefix = "OrderedMap" if ordered else "Map"

    def put(self, key: Any, vals: Any, indices: Any = None, name: str | None = None) -> Operation:
        """Puts components `indices` of the tuple `key` aside, waiting while the area is full.

        `vals`: a list of tensors, or a dict by names, which says the indices itself. A step fails with
        InvalidArgumentError for a component that is there already.
        """
        graph = scope.get_default_graph()
        with graph.name_scope(name or f"{self._name}_put") as full_name:
            tensors, places = self._components(vals, indices)
            with graph.colocate_with(self._root):
                return self._op("Stage")(  # type: ignore[no-any-return]
                    _as_key(key), places, tensors, name=full_name, **self._limits()
                )

    def get(self, key: Any = None, indices: Any = None, name: str | None = None) -> Any:
        """Takes components `indices` (default: all) of the tuple `key`, once it is complete.

        Returns (key, components): a list of tensors, or a dict by names.
        """
        places, limits = self._places(indices)
        with scope.get_default_graph().colocate_with(self._root):
            if key is None:
                found, tensors = self._op("UnstageNoKey")(
                    places, name=name or f"{self._name}_get_nokey", **limits
                )
            else:
                found = key
                tensors = self._op("Unstage")(
                    _as_key(key), places, name=name or f"{self._name}_get", **limits
                )
        return found, self._result(tensors, places)

    def peek(self, key: Any, indices: Any = None, name: str | None = None) -> Any:
        """Components `indices` (default: all) of the tuple `key`, once it is complete; they stay there."""
        places, limits = self._places(indices)
        with scope.get_default_graph().colocate_with(self._root):
            tensors = self._op("Peek")(_as_key(key), places, name=name or f"{self._name}_pop", **limits)
        return self._result(tensors, places)

    def size(self, name: str | None = None) -> Tensor:
        """How many complete tuples it holds: int32, []."""
        return self._op("Size")(name=name or f"{self._name}_size", **self._limits())  # type: ignore[no-any-return]

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many tuples lack components: int32, []."""
        return self._op("IncompleteSize")(  # type: ignore[no-any-return]
            name=name or f"{self._name}_incomplete_size", **self._limits()
        )

    def clear(self, name: str | None = None) -> Operation:
        """Drops all tuples, incomplete ones too."""
        return self._op("Clear")(name=name or f"{self._name}_clear", **self._limits())  # type: ignore[no-any-return]

    def _op(self, name: str) -> Any:
        return getattr(F, self._prefix + name)

    def _places(self, indices: Any) -> tuple[list[int], dict[str, Any]]:
        """Which components are meant, and the attributes of an operation that takes them."""
        if indices is None:
            places = list(range(len(self._dtypes)))
        elif all(isinstance(index, str) for index in indices):
            if self._names is None:
                raise ValueError("String indices provided for a Staging Area with no names.")
            if not set(indices) <= set(self._names):
                raise ValueError(f"Named index not in Staging Area names {self._names}")
            places = [self._names.index(index) for index in indices]
        elif all(isinstance(index, int) for index in indices):
            places = list(indices)
        else:
            raise TypeError(f"Mixed types in indices {indices}. May only be str or int")
        return places, self._limits([self._dtypes[place] for place in places])


def _as_key(key: Any) -> Tensor:
    return convert_to_tensor(key, _dtypes.int64, "key")
