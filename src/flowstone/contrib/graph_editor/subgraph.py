"""Views of parts of a graph: operations, and which of their tensors count as inputs and outputs, in order."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import flowstone as tf
from flowstone.contrib.graph_editor import select, util

__all__ = ["SubGraphView", "make_view", "make_view_from_scope"]


def _check_within(indices: Iterable[int], count: int, unique: bool) -> list[int]:
    found = list(indices)
    for index in found:
        if not 0 <= index < count:
            raise ValueError(f"Out of [0, {count}[ range: {index}")
    if unique and len(set(found)) != len(found):
        raise ValueError(f"Found repetition in mapping: {found}")
    return found


class SubGraphView:
    """A part of a graph.

    At first its inputs are the tensors that enter it, its outputs those that are used outside or by nobody,
    each followed by the passthroughs: tensors that are input and output at once. The methods `remap…` give
    views with other inputs and outputs; a view itself stays as it is, unless it is rewired.

    Args:
        inside_ops: an operation, or a list of them.
        passthrough_ts: a tensor, or a list of them.

    Raises TypeError for other things, ValueError for things of several graphs.
    """

    def __init__(self, inside_ops: Any = (), passthrough_ts: Any = ()) -> None:
        ops, passthroughs = util.make_list_of_op(inside_ops), util.make_list_of_t(passthrough_ts)
        self._graph = util.get_unique_graph([*ops, *passthroughs], none_if_empty=True)
        self._ops = ops
        inputs, outputs, inside = select.compute_boundary_ts(ops)
        known = {*inputs, *outputs, *inside}
        self._passthrough_ts = [tensor for tensor in passthroughs if tensor not in known]
        self._input_ts = inputs + self._passthrough_ts
        self._output_ts = outputs + self._passthrough_ts

    def __copy__(self) -> SubGraphView:
        return self.copy()

    def copy(self) -> SubGraphView:
        """A view of the same part, with lists of its own."""
        found = object.__new__(SubGraphView)
        for name, value in vars(self).items():
            setattr(found, name, copy.copy(value) if isinstance(value, list) else value)
        return found

    def _assign_from(self, other: SubGraphView) -> None:
        for name, value in vars(other.copy()).items():
            setattr(self, name, value)

    def remap_inputs(self, new_input_indices: Iterable[int]) -> SubGraphView:
        """A view whose inputs are those at the indices, in their order.

        Raises ValueError for an index that is out of range, or there twice.
        """
        found = self.copy()
        indices = _check_within(new_input_indices, len(self._input_ts), True)
        found._input_ts = [self._input_ts[i] for i in indices]
        return found

    def remap_outputs(self, new_output_indices: Iterable[int]) -> SubGraphView:
        """A view whose outputs are those at the indices, in their order; some may be there more than once.

        Raises ValueError for an index that is out of range.
        """
        found = self.copy()
        indices = _check_within(new_output_indices, len(self._output_ts), False)
        found._output_ts = [self._output_ts[i] for i in indices]
        return found

    def remap(self, new_input_indices: Any = None, new_output_indices: Any = None) -> SubGraphView:
        """Both `remap_inputs` and `remap_outputs`, where indices are given."""
        found = self if new_input_indices is None else self.remap_inputs(new_input_indices)
        return found.copy() if new_output_indices is None else found.remap_outputs(new_output_indices)

    def remap_default(self, remove_input_map: bool = True, remove_output_map: bool = True) -> SubGraphView:
        """A view with the inputs and outputs that a new view of these operations would have."""
        fresh, found = SubGraphView(self._ops, self._passthrough_ts), self.copy()
        if remove_input_map:
            found._input_ts = fresh._input_ts
        if remove_output_map:
            found._output_ts = fresh._output_ts
        return found

    def remap_outputs_make_unique(self) -> SubGraphView:
        """A view that has each of its outputs once."""
        found = self.copy()
        found._output_ts = util.unique(self._output_ts)
        return found

    def remap_outputs_to_consumers(self) -> SubGraphView:
        """A view that has each of its outputs as often as it is consumed."""
        found = self.remap_outputs_make_unique()
        found._output_ts = [tensor for tensor in found._output_ts for _ in tensor.consumers()]
        return found

    def remove_unused_ops(self, control_inputs: bool = True) -> SubGraphView:
        """A view without operations that neither depend on its inputs nor are needed for its outputs."""
        kept = set(
            select.get_walks_union_ops(
                self.connected_inputs,
                self.connected_outputs,
                within_ops=self._ops,
                control_inputs=control_inputs,
            )
        )
        found = self.copy()
        found._ops = [op for op in self._ops if op in kept]
        return found

    @property
    def ops(self) -> list[Any]:
        """The operations."""
        return self._ops

    @property
    def graph(self) -> Any:
        """The graph; None of a view of nothing."""
        return self._graph

    @property
    def inputs(self) -> list[Any]:
        """The input tensors."""
        return list(self._input_ts)

    @property
    def outputs(self) -> list[Any]:
        """The output tensors."""
        return list(self._output_ts)

    @property
    def passthroughs(self) -> list[Any]:
        """The tensors that are input and output at once."""
        return list(self._passthrough_ts)

    @property
    def connected_inputs(self) -> list[Any]:
        """The inputs that are no passthroughs."""
        return [tensor for tensor in self._input_ts if not self.is_passthrough(tensor)]

    @property
    def connected_outputs(self) -> list[Any]:
        """The outputs that are no passthroughs."""
        return [tensor for tensor in self._output_ts if not self.is_passthrough(tensor)]

    def op(self, op_id: int) -> Any:
        """The operation at an index."""
        return self._ops[op_id]

    def is_passthrough(self, t: Any) -> bool:
        """Whether the tensor is a passthrough."""
        return any(t is each for each in self._passthrough_ts)

    def find_op_by_name(self, op_name: str) -> Any:
        """The operation of a name. ValueError if there is none."""
        for op in self._ops:
            if op.name == op_name:
                return op
        raise ValueError(f"{op_name} not in subgraph.")

    def input_index(self, t: Any) -> int:
        """The index of a tensor among the inputs. ValueError if it is none."""
        return self._index(t, self._input_ts, "inputs")

    def output_index(self, t: Any) -> int:
        """The index of a tensor among the outputs. ValueError if it is none."""
        return self._index(t, self._output_ts, "outputs")

    def _index(self, t: Any, among: list[Any], role: str) -> int:
        for index, tensor in enumerate(among):
            if tensor is t:
                return index
        raise ValueError(f"Can't find {t.name} in the {role} of the subgraph.")

    def consumers(self) -> list[Any]:
        """The operations outside that have one of its outputs as an input."""
        inside = set(self._ops)
        return [op for op in util.get_consuming_ops(self._output_ts) if op not in inside]

    def __str__(self) -> str:
        if self._graph is None:
            return "SubGraphView: empty"
        parts = [f"SubGraphView (graphid={id(self._graph)}):"]
        for role, items in (("ops", self._ops), ("inputs", self._input_ts), ("outputs", self._output_ts)):
            parts.append(f"** {role}[{len(items)}]:")
            parts += [f"  {item.name}" for item in items]
        return "\n".join(parts)

    def __bool__(self) -> bool:
        return self._graph is not None

    def __enter__(self) -> SubGraphView:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def make_view(*args: Any, **kwargs: Any) -> SubGraphView:
    """A view of operations, with tensors as passthroughs.

    Args:
        *args: as for `select_ops_and_ts`; or a single graph, list of operations or view, given as it is.
        **kwargs: ``graph``, for regular expressions.

    Raises TypeError and ValueError as `select_ops` does.
    """
    if len(args) == 1 and not kwargs:
        if isinstance(args[0], SubGraphView):
            return args[0]
        if isinstance(args[0], tf.Graph):
            return SubGraphView(args[0].get_operations())
    ops, ts = select.select_ops_and_ts(*args, **kwargs)
    return SubGraphView(ops, ts)


def make_view_from_scope(scope: str, graph: Any) -> SubGraphView:
    """A view of the operations of a name scope."""
    return SubGraphView(select.get_name_scope_ops(graph, scope))
