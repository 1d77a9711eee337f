"""The contexts of conditionals and loops as messages of a MetaGraphDef, and back.

A context's message names its tensors: ``values`` are those that may be used in it, ``external_values`` those
from outside with the tensor in their place. Contexts inside another one are in its message, but those of a
gradient's loop are in none. An imported loop keeps the frame's name of its operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowstone.framework.graphs.collection_protos import ProtoFunctions, register_late
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.io.proto.control_flow_pb2 import (
    CondContextDef,
    ControlFlowContextDef,
    ValuesDef,
    WhileContextDef,
)
from flowstone.ops.control.conditionals import CondContext
from flowstone.ops.control.loop_context import WhileContext
from flowstone.ops.variables.save_slice_info import without_scope

__all__ = ["cond_from_message", "cond_message", "loop_from_message", "loop_message"]


# ---- writing


def _is_outside(context: Any, scope: str | None) -> bool:
    return bool(scope) and not context.name.startswith(f"{scope}/")


def _name(tensor: Tensor | None, scope: str | None) -> str:
    return "" if tensor is None else without_scope(tensor.name, scope)


def _handed_on(context: Any) -> set[Tensor]:
    """The tensors that the surrounding context has in place of those outside itself."""
    outer = context.outer_context
    if outer is None:
        return set()
    replaced = outer._switched if isinstance(outer, CondContext) else outer._entered
    return set(replaced.values())


def _values(inside: Iterable[Tensor], replaced: dict[Tensor, Tensor], scope: str | None) -> Any:
    message = ValuesDef()
    message.values.extend(sorted({_name(tensor, scope) for tensor in (*inside, *replaced)}))
    for outer, inner in replaced.items():
        message.external_values[_name(outer, scope)] = _name(inner, scope)
    return message


def _add_nested(message: Any, context: Any, scope: str | None) -> None:
    for inner in context.nested:
        if isinstance(inner, CondContext):
            held = cond_message(inner, scope)
            if held is not None:
                message.nested_contexts.append(ControlFlowContextDef(cond_ctxt=held))
        elif inner.history is None and inner.pivot is not None:
            held = loop_message(inner, scope)
            if held is not None:
                message.nested_contexts.append(ControlFlowContextDef(while_ctxt=held))


def cond_message(context: CondContext, export_scope: str | None = None) -> Any:
    """The CondContextDef of a branch, with names as seen from inside `export_scope`; None if it lies
    outside."""
    if _is_outside(context, export_scope):
        return None
    handed_on = _handed_on(context)
    replaced = {outer: outer if outer in handed_on else inner for outer, inner in context._switched.items()}
    message = CondContextDef(
        context_name=without_scope(context.name, export_scope),
        pred_name=_name(context.pred, export_scope),
        pivot_name=_name(context.pivot, export_scope),
        branch=context.branch,
        values_def=_values(context._inside, {**replaced, context.pred: context.pred}, export_scope),
    )
    _add_nested(message, context, export_scope)
    return message


def loop_message(context: WhileContext, export_scope: str | None = None) -> Any:
    """The WhileContextDef of a loop, with names as seen from inside `export_scope`; None if it lies
    outside."""
    if _is_outside(context, export_scope):
        return None
    handed_on = _handed_on(context)
    replaced = {outer: inner for outer, inner in context._entered.items() if outer not in handed_on}
    message = WhileContextDef(
        context_name=without_scope(context.name, export_scope),
        parallel_iterations=context.parallel_iterations,
        back_prop=context.back_prop,
        swap_memory=context.swap_memory,
        pivot_name=_name(context.pivot, export_scope),
        pivot_for_pred_name=_name(context.pivot_for_pred, export_scope),
        pivot_for_body_name=_name(context.pivot_for_body, export_scope),
        loop_exit_names=[_name(tensor, export_scope) for tensor in context.loop_exits],
        loop_enter_names=[_name(tensor, export_scope) for tensor in context.loop_enters],
        values_def=_values({*context._inside, *context.loop_exits}, replaced, export_scope),
        maximum_iterations_name=_name(context.maximum_iterations, export_scope),
    )
    _add_nested(message, context, export_scope)
    return message


# ---- reading


class _Reader:
    """Finds the tensors that a message names in `graph`, below `scope`."""

    def __init__(self, graph: Graph, scope: str | None) -> None:
        self.graph, self.prefix = graph, f"{scope}/" if scope else ""

    def tensor(self, name: str, context_name: str) -> Tensor:
        """The tensor; ValueError, which names the context, if the graph does not have it."""
        found = self.find(name)
        if found is None:
            raise ValueError(f"The context '{context_name}' names '{name}', which is not in the graph.")
        return found

    def find(self, name: str) -> Tensor | None:
        """The tensor, or None where only part of a graph was exported."""
        try:
            return self.graph.get_tensor_by_name(self.prefix + name)
        except (KeyError, ValueError):
            return None

    def values(self, message: Any) -> tuple[list[Tensor], dict[Tensor, Tensor]]:
        """The tensors that were made in the context, and those in place of outside tensors."""
        outside = message.external_values
        replaced = {}
        for outer_name, inner_name in outside.items():
            outer, inner = self.find(outer_name), self.find(inner_name)
            if outer is not None and inner is not None and outer is not inner:
                replaced[outer] = replaced[inner.op.inputs[0]] = inner
        found = (self.find(name) for name in message.values if name not in outside)
        return [tensor for tensor in found if tensor is not None], replaced

    def name(self, context: Any, given: str) -> str:
        """The context's name in the graph, where no other will get it."""
        with self.graph.name_scope(None):
            self.graph.unique_name(self.prefix + given)
        return self.prefix + given

    def nested(self, context: Any, message: Any) -> None:
        """Makes the contexts inside `context`."""
        with self.graph._scopes.having(control_flow_context=context):
            for each in message.nested_contexts:
                if each.HasField("cond_ctxt"):
                    self.cond(each.cond_ctxt)
                elif each.HasField("while_ctxt"):
                    self.loop(each.while_ctxt)

    def cond(self, message: Any) -> CondContext:
        """The context of a branch, whose operations then know it."""
        name = message.context_name
        pred, pivot = self.tensor(message.pred_name, name), self.tensor(message.pivot_name, name)
        context = CondContext(self.graph, pred, pivot, message.branch)
        context.name = self.name(context, name)
        inside, replaced = self.values(message.values_def)
        context._inside.update(inside)
        context._switched.update(replaced)
        for tensor in inside:
            if tensor is not pred and tensor is not pivot:
                tensor.op._control_flow_context = context
        self.nested(context, message)
        return context

    def loop(self, message: Any) -> WhileContext:
        """The context of a loop, whose operations then know it."""
        name = message.context_name
        limit = message.maximum_iterations_name
        context = WhileContext(
            self.graph,
            message.parallel_iterations,
            message.back_prop,
            message.swap_memory,
            maximum_iterations=self.tensor(limit, name) if limit else None,
        )
        context.loop_enters = [self.tensor(each, name) for each in message.loop_enter_names]
        context.loop_exits = [self.tensor(each, name) for each in message.loop_exit_names]
        context.pivot = self.tensor(message.pivot_name, name)
        context.pivot_for_pred = self.tensor(message.pivot_for_pred_name, name)
        context.pivot_for_body = self.tensor(message.pivot_for_body_name, name)
        context.name = self.name(context, name)
        inside, replaced = self.values(message.values_def)
        exits = set(context.loop_exits)
        for tensor in inside:
            if tensor not in exits:
                tensor.op._control_flow_context = context
        for tensor in exits:
            tensor.op._control_flow_context = context.outer_context
        enters = context.loop_enters or [context.pivot_for_pred.op.inputs[0]]
        context.name = enters[0].op.attributes["frame_name"]
        context._inside.update(inside)
        context._entered.update(replaced)
        self.nested(context, message)
        return context


def cond_from_message(message: Any, import_scope: str | None = None) -> CondContext:
    """The context of a branch of the default graph, whose names are below `import_scope`. ValueError for
    names that the graph does not have."""
    return _Reader(get_default_graph(), import_scope).cond(message)


def loop_from_message(message: Any, import_scope: str | None = None) -> WhileContext:
    """The context of a loop of the default graph, whose names are below `import_scope`. ValueError for names
    that the graph does not have."""
    return _Reader(get_default_graph(), import_scope).loop(message)


register_late(GraphKeys.COND_CONTEXT, lambda: ProtoFunctions(CondContextDef, cond_message, cond_from_message))
register_late(
    GraphKeys.WHILE_CONTEXT, lambda: ProtoFunctions(WhileContextDef, loop_message, loop_from_message)
)
