"""Taking parts of a graph out, and joining parts."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.graph_editor import reroute, select, subgraph, util

__all__ = [
    "bypass",
    "connect",
    "detach",
    "detach_control_inputs",
    "detach_control_outputs",
    "detach_inputs",
    "detach_outputs",
]


def detach_control_inputs(sgv: Any) -> None:
    """Has the view's operations no longer wait for operations outside."""
    sgv = subgraph.make_view(sgv)
    for op in sgv.ops:
        outside = [each for each in op.control_inputs if each not in sgv.ops]
        reroute.remove_control_inputs(op, outside)


def detach_control_outputs(sgv: Any, control_outputs: Any) -> None:
    """Has operations outside no longer wait for the view's. TypeError for other than `ControlOutputs`."""
    if not isinstance(control_outputs, util.ControlOutputs):
        raise TypeError(f"Expected a util.ControlOutputs, got: {type(control_outputs)}")
    control_outputs.update()
    sgv = subgraph.make_view(sgv)
    for op in sgv.ops:
        for outside in control_outputs.get(op):
            if outside not in sgv.ops:
                reroute.remove_control_inputs(outside, op)


def detach_inputs(sgv: Any, control_inputs: bool = False) -> tuple[Any, list[Any]]:
    """Puts a placeholder in the place of each input.

    Returns the view and the placeholders. With `control_inputs` it waits for nothing outside, either.
    """
    sgv = subgraph.make_view(sgv)
    with sgv.graph.as_default():
        placeholders = [tf.placeholder(t.dtype, name=util.placeholder_name(t)) for t in sgv.inputs]
    reroute.reroute_inputs(subgraph.SubGraphView(passthrough_ts=placeholders), sgv)
    if control_inputs:
        detach_control_inputs(sgv)
    return sgv, placeholders


def detach_outputs(sgv: Any, control_outputs: Any = None) -> tuple[Any, list[Any]]:
    """Gives those that use the view's outputs placeholders in their place.

    Returns the view, of whose outputs those remain that were used, and the placeholders.
    With a `ControlOutputs` nothing outside waits for the view, either.
    """
    sgv = subgraph.make_view(sgv)
    used = [i for i, tensor in enumerate(sgv.outputs) if tensor.consumers()]
    sgv = sgv.remap_outputs(used)
    with sgv.graph.as_default():
        placeholders = [util.make_placeholder_from_tensor(tensor) for tensor in sgv.outputs]
    reroute.reroute_outputs(subgraph.SubGraphView(passthrough_ts=placeholders), sgv)
    if control_outputs is not None:
        detach_control_outputs(sgv, control_outputs)
    return sgv, placeholders


def detach(
    sgv: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> tuple[Any, list[Any], list[Any]]:
    """`detach_inputs` and `detach_outputs`. Returns the view, the input and the output placeholders."""
    control_inputs, control_outputs = select.check_cios(control_inputs, control_outputs, control_ios)
    _, inputs = detach_inputs(sgv, control_inputs)
    view, outputs = detach_outputs(sgv, control_outputs)
    return view, inputs, outputs


def connect(sgv0: Any, sgv1: Any, disconnect_first: bool = False) -> tuple[Any, Any]:
    """Gives `sgv1` the outputs of `sgv0` as its inputs, in their order. Returns both views.

    With `disconnect_first` those that used these outputs get placeholders. ValueError for different numbers
    of outputs and inputs.
    """
    sgv0, sgv1 = subgraph.make_view(sgv0), subgraph.make_view(sgv1)
    util.check_graphs(sgv0, sgv1)
    if disconnect_first:
        detach_outputs(sgv0)
    reroute.reroute_inputs(subgraph.SubGraphView(passthrough_ts=sgv0.outputs), sgv1)
    return sgv0, sgv1


def bypass(sgv: Any) -> tuple[Any, list[Any]]:
    """Gives those that use the view's outputs its inputs, in their order; the view gets placeholders.

    Returns the view and the placeholders. ValueError for different numbers of inputs and outputs.
    """
    sgv = subgraph.make_view(sgv)
    inputs = sgv.inputs
    sgv, placeholders = detach_inputs(sgv)
    reroute.reroute_ts(inputs, sgv.outputs)
    return sgv, placeholders
