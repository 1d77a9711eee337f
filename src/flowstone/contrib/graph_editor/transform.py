"""Copying parts of a graph, to the same graph or another one, while something is changed.

A `Transformer` copies operation by operation, in the order of their creation. Its handlers, which a program
may replace, decide what becomes of each operation, of control inputs, of collections and of tensors that come
from outside. What a handler gets is a `TransformerInfo`-like state with ``sgv``, ``graph`` and ``scope`` of
the source, ``graph_`` and ``scope_`` of the destination, ``transformed_ops`` and ``transformed_ts``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.framework import nest
from flowstone.contrib.graph_editor import select, subgraph, util

__all__ = [
    "Transformer",
    "TransformerInfo",
    "assign_renamed_collections_handler",
    "copy",
    "copy_op_handler",
    "copy_with_input_replacements",
    "graph_replace",
    "keep_t_if_possible_handler",
    "replace_t_with_placeholder_handler",
    "transform_op_if_inside_handler",
]


def replace_t_with_placeholder_handler(info: Any, t: Any) -> Any:
    """A placeholder in the destination for the tensor."""
    with info.graph_.as_default():
        return util.make_placeholder_from_tensor(t, scope=info.scope_)


def keep_t_if_possible_handler(info: Any, t: Any) -> Any:
    """The tensor itself where the destination is its graph, else a placeholder."""
    return t if info.graph is info.graph_ else replace_t_with_placeholder_handler(info, t)


def assign_renamed_collections_handler(info: Any, elem: Any, elem_: Any) -> None:
    """Adds the copy to the collections of the original; names of a program's own get the new scope."""
    known = {value for name, value in vars(tf.GraphKeys).items() if isinstance(value, str) and name[0] != "_"}
    for name in info.graph.get_all_collection_keys():
        if any(elem is each for each in info.graph.get_collection_ref(name)):
            info.graph_.add_to_collection(name if name in known else info.scope_ + name, elem_)


def transform_op_if_inside_handler(info: Any, op: Any, keep_if_possible: bool = True) -> Any:
    """The copy of an operation of the view; another one itself in the same graph, else None."""
    if op in info.inside:
        return info.transformed_ops[op]
    return op if keep_if_possible and info.graph is info.graph_ else None


def copy_op_handler(
    info: Any,
    op: Any,
    copy_shape: Any = True,
    new_inputs: Any = None,
    nodedef_fn: Callable[[Any], Any] | None = None,
) -> tuple[Any, list[Any]]:
    """Copies an operation.

    Args:
        info: the state of the copying.
        op: the operation.
        copy_shape: whether outputs get the original's static shapes; or, as in TensorFlow 1.15, `new_inputs`.
        new_inputs: the copy's inputs; default: those that the copying found.
        nodedef_fn: from the copy's NodeDef message to the one that is used.

    Returns the copy and its outputs.
    """
    if not isinstance(copy_shape, bool):
        copy_shape, new_inputs = False, copy_shape
    inputs = list(info.new_inputs if new_inputs is None else new_inputs)
    name, graph_ = info.new_name(op.name), info.graph_
    attributes, device = dict(op.attributes), op.device
    with graph_.as_default(), tf.control_dependencies(None), graph_.name_scope(None):
        if nodedef_fn is None:
            op_ = graph_.create(
                op.declaration,
                inputs,
                attributes,
                op.group_sizes,
                name + "/",
                control_inputs=[],
                device=device,
            )
        else:
            node = nodedef_fn(_named(op.node_def, name))
            op_ = graph_.create_op(node.op, inputs, name=node.name + "/", attrs=dict(node.attr))
    if copy_shape:
        for tensor, tensor_ in zip(op.outputs, op_.outputs, strict=True):
            tensor_.set_shape(tensor.get_shape())
    return op_, list(op_.outputs)


def _named(node: Any, name: str) -> Any:
    node.name = name
    return node


class TransformerInfo:
    """What became of the operations and tensors of a copied view."""

    def __init__(self, info: Any) -> None:
        self._graph, self._scope = info.graph, info.scope
        self._graph_, self._scope_ = info.graph_, info.scope_
        self._transformed_ops, self._transformed_ts = info.transformed_ops, info.transformed_ts

    def _map(self, forward: bool, top: Any) -> dict[Any, Any]:
        if not isinstance(top, (tf.Tensor, tf.Operation)):
            raise TypeError(f"Expected a tf.Tensor or a tf.Operation, got a {type(top)}")
        found = self._transformed_ts if isinstance(top, tf.Tensor) else self._transformed_ops
        return found if forward else {value: key for key, value in found.items()}

    def _found(self, forward: bool, top: Any, missing_fn: Any) -> Any:
        if isinstance(top, str):
            graph = self._graph if forward else self._graph_
            try:
                top = graph.as_graph_element(top)
            except (KeyError, ValueError):
                return None
        found = self._map(forward, top)
        if top not in found:
            return None if missing_fn is None else missing_fn(top)
        return found[top]

    def transformed(self, original: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """The copy of an operation or tensor, given itself or by its name.

        What has none gives what `missing_fn` says, None by default. TypeError for other things.
        """
        return self._found(True, original, missing_fn)

    def original(self, transformed: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """What an operation or tensor, given itself or by its name, is the copy of.

        What is none gives what `missing_fn` says, None by default. TypeError for other things.
        """
        return self._found(False, transformed, missing_fn)

    def __str__(self) -> str:
        place = "IN-PLACE" if self._graph is self._graph_ else f"to graph[{id(self._graph_)}]"
        parts = [
            "Transform result info:",
            f"  Within graph[{id(self._graph)}] {place}",
            "Operations mapping:",
        ]
        parts += [
            f"  {op.name} => {op_.name}" for op, op_ in self._transformed_ops.items() if op_ is not None
        ]
        return "\n".join(parts)


class _State:
    """The state of a copying."""

    def __init__(self, sgv: Any, dst_graph: Any, dst_scope: str, src_scope: str, reuse: bool) -> None:
        self.sgv, self.inside, self.graph, self.graph_ = sgv, set(sgv.ops), sgv.graph, dst_graph
        self.scope, self.scope_ = util.scope_finalize(src_scope), util.scope_finalize(dst_scope)
        if self.scope_ and not reuse:
            self.scope_ = util.scope_finalize(dst_graph.unique_name(self.scope_[:-1]))
        self.transformed_ops: dict[Any, Any] = {}
        self.transformed_ts: dict[Any, Any] = {}
        self.new_inputs: list[Any] = []

    def new_name(self, name: str) -> str:
        """The copy's name: in the destination's scope, without the source's scope.

        Raises ValueError for a name outside the source's scope.
        """
        if not name.startswith(self.scope):
            raise ValueError(f"{name} does not belong to source scope: {self.scope}.")
        with self.graph_.name_scope(None):
            return str(self.graph_.unique_name(self.scope_ + name[len(self.scope) :]))


class Transformer:
    """Copies views of graphs; its handlers may be replaced.

    transform_op_handler: from (info, op, new_inputs), or (info, op), to the copy and its outputs.
    transform_control_input_handler: from (info, op) to what the copy waits for, or None.
    assign_collections_handler: is called with (info, original, copy) of each operation and tensor.
    transform_external_input_handler: from (info, tensor) to the input in the place of one of the view's.
    transform_external_hidden_input_handler: the same for tensors from outside that are no inputs of the view.
    transform_original_op_handler: from (info, op) to the copy's original operation, or None.
    """

    def __init__(self) -> None:
        self.transform_op_handler: Callable[..., Any] = copy_op_handler
        self.transform_control_input_handler: Callable[..., Any] = transform_op_if_inside_handler
        self.assign_collections_handler: Callable[..., Any] = assign_renamed_collections_handler
        self.transform_external_input_handler: Callable[..., Any] = replace_t_with_placeholder_handler
        self.transform_external_hidden_input_handler: Callable[..., Any] = keep_t_if_possible_handler
        self.transform_original_op_handler: Callable[..., Any] = transform_op_if_inside_handler

    def __call__(
        self, sgv: Any, dst_graph: Any, dst_scope: str, src_scope: str = "", reuse_dst_scope: bool = False
    ) -> tuple[Any, TransformerInfo]:
        """Copies a view.

        Args:
            sgv: the view, or what `make_view` takes.
            dst_graph: where the copy goes. dst_scope: its name scope, made unique unless `reuse_dst_scope`.
            src_scope: the scope that the copied names lose.

        Returns the view of the copy and a `TransformerInfo`. TypeError for other than a graph, ValueError for
        an operation outside src_scope.
        """
        sgv = subgraph.make_view(sgv)
        if not isinstance(dst_graph, tf.Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(dst_graph)}")
        info = _State(sgv, dst_graph, dst_scope, src_scope, reuse_dst_scope)
        self._copy_ops(info)
        return self._view(info), TransformerInfo(info)

    def _copy_ops(self, info: _State) -> None:
        order = {op: index for index, op in enumerate(info.graph.get_operations())}
        ops = sorted(info.sgv.ops, key=order.__getitem__)
        later: list[tuple[Any, int, Any]] = []  # inputs that close loops
        for op in ops:
            info.new_inputs = []
            for index, tensor in enumerate(op.inputs):
                info.new_inputs.append(self._input(info, op, index, tensor, later))
            op_, outputs_ = self._call(info, op)
            if op is op_:
                raise ValueError("In-place transformation not allowed.")
            info.transformed_ops[op] = op_
            self.assign_collections_handler(info, op, op_)
            for tensor, tensor_ in zip(op.outputs, outputs_, strict=True):
                info.transformed_ts[tensor] = tensor_
                self.assign_collections_handler(info, tensor, tensor_)
        for op, index, tensor in later:
            info.transformed_ops[op]._update_input(index, info.transformed_ts[tensor])
        for op in ops:
            self._connect_controls(info, op)

    def _call(self, info: _State, op: Any) -> Any:
        handler = self.transform_op_handler
        if handler is copy_op_handler or len(inspect.signature(handler).parameters) < 3:
            return handler(info, op)
        return handler(info, op, info.new_inputs)

    def _input(self, info: _State, op: Any, index: int, tensor: Any, later: list[Any]) -> Any:
        if tensor in info.transformed_ts:
            return info.transformed_ts[tensor]
        if tensor.op in info.inside:
            later.append((op, index, tensor))
            with info.graph_.as_default():
                return util.make_placeholder_from_tensor(tensor, scope=info.scope_)
        if any(tensor is each for each in info.sgv.inputs):
            return self.transform_external_input_handler(info, tensor)
        return self.transform_external_hidden_input_handler(info, tensor)

    def _connect_controls(self, info: _State, op: Any) -> None:
        op_ = info.transformed_ops[op]
        found = [self.transform_control_input_handler(info, each) for each in op.control_inputs]
        op_._add_control_inputs([each for each in found if each is not None])
        original = getattr(op, "_original_op", None)
        if original is not None:
            op_._original_op = self.transform_original_op_handler(info, original)

    def _view(self, info: _State) -> Any:
        inputs = [info.transformed_ts[t] for t in info.sgv.inputs if t in info.transformed_ts]
        view = subgraph.SubGraphView(list(info.transformed_ops.values()))
        view._input_ts = inputs
        view._passthrough_ts = []
        view._output_ts = [info.transformed_ts[t] for t in info.sgv.outputs if t in info.transformed_ts]
        return view


def copy(
    sgv: Any, dst_graph: Any = None, dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False
) -> tuple[Any, TransformerInfo]:
    """Copies a view; its inputs become placeholders. The arguments and results are `Transformer`'s.

    The destination is the view's own graph by default.
    """
    sgv = subgraph.make_view(sgv)
    graph = sgv.graph if dst_graph is None else dst_graph
    return Transformer()(sgv, graph, dst_scope, src_scope, reuse_dst_scope)


def copy_with_input_replacements(
    sgv: Any,
    replacement_ts: Mapping[Any, Any],
    dst_graph: Any = None,
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[Any, TransformerInfo]:
    """Copies a view with other inputs: `replacement_ts` is a dict from tensors to those in their place.

    Other inputs stay. The further arguments and the results are `Transformer`'s.
    """
    sgv = subgraph.make_view(sgv)
    graph = sgv.graph if dst_graph is None else dst_graph

    def replaced(info: Any, t: Any) -> Any:
        return replacement_ts[t] if t in replacement_ts else keep_t_if_possible_handler(info, t)

    transformer = Transformer()
    transformer.transform_external_input_handler = replaced
    return transformer(sgv, graph, dst_scope, src_scope, reuse_dst_scope)


def graph_replace(
    target_ts: Any,
    replacement_ts: Mapping[Any, Any],
    dst_scope: str = "",
    src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> Any:
    """The targets, computed from other tensors: what is between them and the replaced ones is copied.

    Args:
        target_ts: a tensor, or a nested structure of tensors.
        replacement_ts: a dict from tensors to those in their place.
        dst_scope, src_scope, reuse_dst_scope: as for `Transformer`.

    Returns the targets in the same structure. ValueError if none depends on a replaced tensor.
    """
    targets = nest.flatten(target_ts)
    util.get_unique_graph(targets, tf.Tensor)
    control_ios = util.ControlOutputs(targets[0].graph)
    between = select.get_walks_intersection_ops(list(replacement_ts), targets, control_ios=control_ios)
    if not between:
        raise ValueError("Targets and replacements are not connected!")
    _, info = copy_with_input_replacements(
        between, replacement_ts, None, dst_scope, src_scope, reuse_dst_scope
    )
    found = [info.transformed(target, missing_fn=lambda original: original) for target in targets]
    return nest.pack_sequence_as(target_ts, found)
