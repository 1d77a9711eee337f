"""User functions of elements, as functions of the graph's library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone import conversion
from flowstone.data.structure import Structure, as_results, components
from flowstone.framework.functions.function import Defun
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor


class ElementFunction:
    """A function of elements, traced once; its Python's control flow on tensors is converted (AutoGraph).

    `name`: that of its FunctionDef, in the library of the default graph; `whole`: whether tuples are one
    argument, not several; `result`: what the user's function
    returned; `captured`: the tensors from outside that it uses.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        structures: tuple[Structure, ...],
        returned: Callable[[Any], list[Tensor]],
        name: str,
        whole: bool = False,
    ) -> None:
        self.result: Any = None
        function = conversion.convert(function)

        def traced(*tensors: Tensor) -> list[Tensor]:
            arguments, place = [], 0
            for structure in structures:
                count = len(structure.leaves)
                element = structure.unpacked(tensors[place : place + count])
                arguments += [element] if whole else as_arguments(element)
                place += count
            self.result = function(*arguments)
            return returned(self.result)

        traced.__name__ = name
        types = [dtype for structure in structures for dtype in structure.flat_types]
        self._defined = Defun(*types)(traced)
        self._defined.add_to_graph(get_default_graph())

    @property
    def captured(self) -> list[Tensor]:
        """The tensors from outside that it uses."""
        captured: list[Tensor] = self._defined.captured_inputs
        return captured

    @property
    def captured_types(self) -> list[Any]:
        """Their types."""
        return [x.dtype.base_dtype for x in self.captured]

    def name_in(self, graph: Any) -> str:
        """The function's name, in the library of `graph`."""
        self._defined.add_to_graph(graph)
        called = getattr(graph, "called", None)
        if called is not None and self._defined not in called:
            called.append(self._defined)
        return str(self._defined.name)


def as_arguments(element: Any) -> list[Any]:
    """The arguments with which a function of an element is called: the parts of a tuple, or the element."""
    return list(element) if type(element) is tuple else [element]


class MapFunction(ElementFunction):
    """A function from elements to elements; `structure` is that of the results. What returns a list, such as
    `py_func`, returns a tuple."""

    def __init__(
        self, function: Callable[..., Any], *structures: Structure, name: str, whole: bool = False
    ) -> None:
        self.structure: Structure

        def returned(result: Any) -> list[Tensor]:
            if any(leaf is None for leaf in nest.flatten(result)):
                raise TypeError(f"A dataset's function must return tensors, not None: {result}")
            values = as_results(tuple(result) if isinstance(result, list) else result)
            self.structure = Structure.of_values(values)
            return components(values)

        super().__init__(function, structures, returned, name, whole)


def state_function(
    function: Callable[..., Any],
    state: Structure,
    element: Structure,
    next_state: Callable[[Any], Any],
    name: str,
) -> tuple[MapFunction, Structure]:
    """A function of a state and an element, and the structure of the states, whose shapes are as general as
    the states that it gives need. ``next_state(form)`` is the state's part of the form of the results.
    TypeError if that has other types."""
    while True:
        traced = MapFunction(function, state, element, name=name, whole=True)
        after = Structure(next_state(traced.structure.form))
        if str(after.types) != str(state.types):
            raise TypeError(
                f"The element types for the new state must match the initial state. Expected {state.types}; "
                f"got {after.types}."
            )
        common = state.common_with(after)
        if str(common.shapes) == str(state.shapes):
            return traced, state
        state = common


class DatasetFunction(ElementFunction):
    """A function from elements to datasets; `dataset` is what it returned."""

    def __init__(self, function: Callable[..., Any], *structures: Structure, name: str, what: str) -> None:
        def returned(result: Any) -> list[Tensor]:
            if not hasattr(result, "_as_variant_tensor"):
                raise TypeError(
                    f"`{what}` must return a `Dataset` object, but returned {type(result).__name__}"
                )
            return [result._as_variant_tensor()]

        super().__init__(function, structures, returned, name)
        self.dataset = self.result


def with_function(
    add: Callable[..., Any], source: Any, function: Any, structure: Structure, more: list[Tensor], **rest: Any
) -> Any:
    """The node of an op that takes a dataset, captured tensors, and `more`; `rest`: its other attributes."""
    return add(
        source._as_variant_tensor(), function.captured, *more, f=function.name_in(get_default_graph()),
        Targuments=function.captured_types, **structure.attributes, **rest,
    )  # fmt: skip
