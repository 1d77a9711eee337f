"""`if`, `while` and `for` of converted functions: Python's, unless what they depend on is a tensor.

Then the parts, functions that `rewriting.py` made of the statements, are called once while a conditional or
a loop of the graph is built. What they assign goes from part to part as values of the graph: each is given
the variables' values at its beginning, and its own values are taken from it at its end (`state.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.conversion.state import UNDEFINED, State, as_leaf, is_dataset, is_tensor, no_value
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control.conditionals import cond
from flowstone.ops.control.loops import while_loop
from flowstone.ops.lists.tensor_array import TensorArray

__all__ = ["Enumerated", "for_stmt", "if_exp", "if_stmt", "loop_options", "while_stmt"]


# ---- if


def if_stmt(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None],
    names: Sequence[str],
    live: Sequence[str],
    composites: Sequence[Any],
) -> None:
    """An `if`, whose branches assign `names`, of which those in `live` are read later.

    ValueError for a variable that only one branch has, TypeError for values that differ in type or structure.
    """
    if not is_tensor(test):
        (body if test else orelse)()
        return
    state = State((body, orelse), names, composites)
    branches = _Branches(state, {*live, *[text for text, _, _ in composites]})
    functions = branches.traced(body, "main"), branches.traced(orelse, "else")
    state.set(branches.results(cond(convert_to_tensor(test), *functions, strict=True)))


class _Branches:
    """What the two branches of a conditional leave in the variables."""

    def __init__(self, state: State, live: set[str]) -> None:
        self.state, self.live = state, live
        self.before = state.get()
        self.structures: list[list[Any]] = []

    def traced(self, function: Callable[[], Any], which: str) -> Callable[[], list[Any]]:
        """A branch function for `cond`: it returns the leaves of the live variables that have values."""

        def branch() -> list[Any]:
            self.state.set(self.before)
            function()
            after = self.state.get()
            self.state.set(self.before)
            found = [self._converted(name, value) for name, value in zip(self.state.names, after)]
            self.structures.append(found)
            if len(self.structures) == 2:
                self._check()
            return _flat(found) or [constant(0)]

        return branch

    def _converted(self, name: str, value: Any) -> Any:
        if name not in self.live or value is UNDEFINED or value is no_value:
            return UNDEFINED if name not in self.live else value
        return nest.map_structure(lambda leaf: leaf if leaf is None else as_leaf(leaf), value)

    def _check(self) -> None:
        on_true, on_false = self.structures
        for branch, here, there in (("main", on_true, on_false), ("else", on_false, on_true)):
            pairs = list(zip(self.state.names, here, there))
            if any(x is no_value and y is not no_value for _, x, y in pairs):
                raise ValueError(
                    f"A value must also be returned from the {branch} branch. If a value is returned from "
                    "one branch of a conditional a value must be returned from all branches."
                )
            missing = tuple(name for name, x, y in pairs if x is UNDEFINED and y is not UNDEFINED)
            if missing:
                raise ValueError(
                    f"The following symbols must also be initialized in the {branch} branch: {missing}. "
                    "Alternatively, you may initialize them before the if statement."
                )
        for name, x, y in zip(self.state.names, on_true, on_false):
            _check_alike(name, x, y)

    def results(self, merged: Any) -> list[Any]:
        """The variables' values after the conditional; of those that nobody reads the earlier ones."""
        leaves = iter(merged)
        found = []
        for name, value, before in zip(self.state.names, self.structures[0], self.before):
            if value is UNDEFINED or value is no_value:
                found.append(value if name in self.live else before)
                continue
            packed = [None if leaf is None else next(leaves) for leaf in nest.flatten(value)]
            found.append(nest.pack_sequence_as(value, packed))
        return found


def _flat(values: Sequence[Any]) -> list[Any]:
    kept = [value for value in values if value is not UNDEFINED and value is not no_value]
    return [leaf for leaf in nest.flatten(kept) if leaf is not None]


def _check_alike(name: str, x: Any, y: Any) -> None:
    """TypeError unless both branches give values of one structure and of the same types."""
    shown = "the value that is returned" if name.startswith("ag__") else f'"{name}"'
    try:
        nest.assert_same_structure(x, y)
        if [leaf is None for leaf in nest.flatten(x)] != [leaf is None for leaf in nest.flatten(y)]:
            raise ValueError("None in one of them is a value in the other.")
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{shown} does not have the same nested structure in the TRUE and FALSE branches.\n\n{error}"
        ) from None
    for a, b in zip(nest.flatten(x), nest.flatten(y)):
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype.base_dtype != b.dtype.base_dtype:
            raise TypeError(
                f"{shown} has dtype {a.dtype.base_dtype.name} in the TRUE branch, but dtype="
                f"{b.dtype.base_dtype.name} in the FALSE branch. TensorFlow control flow requires that they "
                "are the same."
            )


def if_exp(test: Any, body: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """``body() if test else orelse()``."""
    if not is_tensor(test):
        return body() if test else orelse()
    return cond(convert_to_tensor(test), body, orelse, strict=True)


# ---- loops


def loop_options(
    parallel_iterations: Any = None,
    back_prop: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> dict[str, Any]:
    """The arguments of `set_loop_options` that were given."""
    given = locals()
    return {key: value for key, value in given.items() if value is not None}


def while_stmt(
    test: Callable[[], Any],
    body: Callable[[], Any],
    names: Sequence[str],
    live: Sequence[str],
    composites: Sequence[Any],
    options: Callable[[], dict[str, Any]] | None,
) -> None:
    """A `while`, whose body assigns `names`, of which those in `live` are read by other iterations or later.

    ValueError for a variable without a value before the loop or of another shape after an iteration,
    TypeError for one of another type.
    """
    goes_on = test()
    if not is_tensor(goes_on):
        while goes_on:
            body()
            goes_on = test()
        return
    state = State((test, body), names, composites)
    _Loop(state, {*live, *[text for text, _, _ in composites]}, options).build(
        lambda extra: convert_to_tensor(test()), lambda extra: body() or [], []
    )


class _Loop:
    """A loop of the graph, whose variables are those of a function that are live."""

    def __init__(self, state: State, live: set[str], options: Callable[[], dict[str, Any]] | None) -> None:
        self.state, self.before = state, state.get()
        self.kept = [i for i, name in enumerate(state.names) if name in live]
        self.options = options() if options is not None else {}
        undefined = tuple(state.names[i] for i in self.kept if self.before[i] is UNDEFINED)
        if any(self.before[i] is no_value for i in self.kept):
            raise ValueError("return statements are not supported within a TensorFlow loop.")
        if undefined:
            raise ValueError(
                f"TensorFlow requires that the following symbols must be defined before the loop: {undefined}"
            )
        self.initial = [nest.map_structure(as_leaf, self.before[i]) for i in self.kept]

    def build(
        self, test: Callable[[list[Any]], Any], step: Callable[[list[Any]], list[Any]], extra: list[Any]
    ) -> list[Any]:
        """Builds the loop; `extra` are variables of its own. `step` runs an iteration and returns their next
        values.
        """
        variables = [*extra, *self.initial]
        count = len(extra)
        if not variables:
            variables = [constant(0)]

        bare = len(variables) == 1 and "maximum_iterations" in self.options  # `while_loop` then unpacks it

        def condition(*values: Any) -> Any:
            self._set(values[count:])
            return test(list(values[:count]))

        def body(*values: Any) -> list[Any]:
            self._set(values[count:])
            following = step(list(values[:count]))
            after = self.state.get()
            found = [self._checked(i, place, after[place]) for i, place in enumerate(self.kept)]
            result = [*following, *found] or list(values)
            return result[0] if bare else result

        invariants = self._invariants(variables, count)
        options = {key: value for key, value in self.options.items() if key != "shape_invariants"}
        results = while_loop(condition, body, variables, invariants, return_same_structure=True, **options)
        results = [results] if bare else results
        self._set(results[count:])
        return list(results[:count])

    def _set(self, values: Sequence[Any]) -> None:
        state = list(self.before)
        for place, value in zip(self.kept, values):
            state[place] = value
        self.state.set(state)

    def _invariants(self, variables: list[Any], count: int) -> Any:
        told = self.options.get("shape_invariants")
        if not told:
            return None
        found = [nest.map_structure(_shape_of, variable) for variable in variables]
        for given, shape in told:
            for i, place in enumerate(self.kept):
                if self.before[place] is given:
                    found[count + i] = shape
        return found

    def _checked(self, i: int, place: int, value: Any) -> Any:
        """A variable's value after an iteration. TypeError or ValueError unless it is like the one before."""
        name, before = self.state.names[place], self.initial[i]
        if value is UNDEFINED:
            raise ValueError(f"The loop variable '{name}' is undefined after one iteration.")
        try:
            nest.assert_same_structure(before, value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f'"{name}" does not have the same nested structure after one iteration.\n\n{error}'
            ) from None
        value = nest.map_structure(as_leaf, value)
        for x, y in zip(nest.flatten(before), nest.flatten(value)):
            if isinstance(x, Tensor) and isinstance(y, Tensor):
                self._check_leaf(name, x, y)
        return value

    def _check_leaf(self, name: str, x: Tensor, y: Tensor) -> None:
        if x.dtype.base_dtype != y.dtype.base_dtype:
            raise TypeError(
                f'"{name}" has dtype {x.dtype.base_dtype.name} before the loop, but dtype '
                f"{y.dtype.base_dtype.name} after one iteration. TensorFlow control flow requires it stays "
                "the same."
            )
        if self.options.get("shape_invariants") or _is_as_specific(y.dims, x.dims):
            return
        raise ValueError(
            f'"{name}" has shape {x.shape} before the loop, but shape {y.shape} after one iteration. '
            "TensorFlow control flow requires it stays the same or be more specific."
        )


def _shape_of(leaf: Any) -> Any:
    return leaf.flow.shape if hasattr(leaf, "flow") else leaf.shape


def _is_as_specific(dims: Any, than: Any) -> bool:
    if than is None:
        return True
    if dims is None or len(dims) != len(than):
        return False
    return all(n is None or m == n for m, n in zip(dims, than))


# ---- for


class Enumerated:
    """``enumerate`` of a tensor or dataset."""

    def __init__(self, iterated: Any, start: Any) -> None:
        self.iterated, self.start = iterated, start


def for_stmt(
    iterated: Any,
    goes_on: Callable[[], Any] | None,
    body: Callable[[Any], None],
    names: Sequence[str],
    live: Sequence[str],
    composites: Sequence[Any],
    options: Callable[[], dict[str, Any]] | None,
) -> None:
    """A `for`, whose body takes an item and assigns `names`; `goes_on` is asked after each item. See
    `while_stmt`.
    """
    counted = iterated if isinstance(iterated, Enumerated) else None
    source = iterated.iterated if counted is not None else iterated
    if not is_tensor(source) and not is_dataset(source):
        _python_for(iterated, goes_on, body)
        return
    loop = _Loop(State((body,), names, composites), {*live, *[text for text, _, _ in composites]}, options)
    if is_dataset(source):
        _dataset_for(source, counted, goes_on, body, loop)
    else:
        _tensor_for(convert_to_tensor(source), counted, goes_on, body, loop)


def _python_for(iterated: Any, goes_on: Callable[[], Any] | None, body: Callable[[Any], None]) -> None:
    for item in iterated:
        body(item)
        if goes_on is not None and not goes_on():
            break


def _tensor_for(
    tensor: Tensor, counted: Enumerated | None, goes_on: Any, body: Callable[[Any], None], loop: _Loop
) -> None:
    """A loop over the first axis of a tensor, or over the numbers of a range."""
    if tensor.op.type == "Range" and counted is None:
        start, limit, delta = tensor.op.inputs
        begin, item = start, None
    else:
        if tensor.dims == ():
            raise ValueError("cannot iterate over a scalar tensor")
        limit, begin, delta = F.Shape(tensor)[0], constant(0), constant(1)
        item = TensorArray(tensor.dtype.base_dtype, limit, element_shape=tensor.shape[1:]).unstack(tensor)

    def test(extra: list[Any]) -> Any:
        remains = _remains(extra[0], limit, delta)
        return remains if goes_on is None else F.LogicalAnd(remains, convert_to_tensor(goes_on()))

    def step(extra: list[Any]) -> list[Any]:
        value = extra[0] if item is None else item.read(extra[0])
        body(value if counted is None else (extra[0] + counted.start, value))
        return [F.AddV2(extra[0], delta)]

    loop.build(test, step, [begin])


def _remains(number: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """Whether a range has not ended; which way it goes may be known only in a step."""
    if delta.op.type == "Const":
        forward = bool(delta.op.attributes["value"] > 0)
        return F.Less(number, limit) if forward else F.Greater(number, limit)
    upwards = F.LogicalAnd(F.Greater(delta, F.ZerosLike(delta)), F.Less(number, limit))
    downwards = F.LogicalAnd(F.Less(delta, F.ZerosLike(delta)), F.Greater(number, limit))
    return F.LogicalOr(upwards, downwards)


def _dataset_for(
    dataset: Any, counted: Enumerated | None, goes_on: Any, body: Callable[[Any], None], loop: _Loop
) -> None:
    """A loop over a dataset, as its `reduce`; after a `break` the other elements are passed over."""
    state = (constant(0), *loop.initial)

    def iteration(item: Any, number: Any, values: Sequence[Any]) -> list[Any]:
        loop._set(values)
        body(item if counted is None else (number + counted.start, item))
        after = loop.state.get()
        return [loop._checked(i, place, after[place]) for i, place in enumerate(loop.kept)]

    def reduced(values: Any, *items: Any) -> Any:
        item = items[0] if len(items) == 1 else items
        number, kept = values[0], list(values[1:])
        if goes_on is None:
            return (number + 1, *iteration(item, number, kept))
        loop._set(kept)
        alive = convert_to_tensor(goes_on())
        found = cond(alive, lambda: iteration(item, number, kept), lambda: _same(kept), strict=True)
        return (number + 1, *found)

    results = dataset.reduce(state, reduced)
    loop._set(results[1:])


def _same(values: list[Any]) -> list[Any]:
    return [nest.map_structure(lambda leaf: F.Identity(leaf), value) for value in values]
