"""`tensorflow.python.ops.control_flow_util`: questions about where nodes are built."""

from __future__ import annotations

from typing import Any

from flowstone.compat.internals.ops_control_flow_ops import IsLoopExit, IsSwitch

__all__ = [
    "ENABLE_CONTROL_FLOW_V2",
    "CheckInputFromValidContext",
    "EnableControlFlowV2",
    "GetContainingCondContext",
    "GetContainingWhileContext",
    "GetContainingXLAContext",
    "GetLoopConstantEnter",
    "GetOutputContext",
    "GetWhileContext",
    "GraphOrParentsInXlaContext",
    "InXlaContext",
    "IsCondMerge",
    "IsCondSwitch",
    "IsContainingContext",
    "IsInCond",
    "IsInWhileLoop",
    "IsInXLAContext",
    "IsLoopConstantEnter",
    "IsLoopEnter",
    "IsLoopExit",
    "IsLoopMerge",
    "IsLoopSwitch",
    "IsMerge",
    "IsSwitch",
    "OpInContext",
    "TensorInContext",
    "enable_control_flow_v2",
]

ENABLE_CONTROL_FLOW_V2 = False


def enable_control_flow_v2(function: Any) -> Any:
    """The function itself: loops and conditionals are built of nodes, as in TensorFlow 1."""
    return function


def EnableControlFlowV2(graph: Any) -> bool:
    """False: loops and conditionals are built of nodes."""
    return False


def GraphOrParentsInXlaContext(graph: Any) -> bool:
    """False: there is no context of TensorFlow's compiler."""
    return False


InXlaContext = GraphOrParentsInXlaContext


def IsInXLAContext(op: Any) -> bool:
    """False: there is no context of TensorFlow's compiler."""
    return False


def GetContainingXLAContext(ctxt: Any, stop_ctxt: Any = None) -> None:
    """None: there is no context of TensorFlow's compiler."""


# ---- kinds of nodes


def IsMerge(op: Any) -> bool:
    """Whether an operation takes the input that is there first."""
    return op.type in ("Merge", "RefMerge")


def IsLoopEnter(op: Any) -> bool:
    """Whether an operation brings a value into a loop."""
    return op.type in ("Enter", "RefEnter")


def IsLoopConstantEnter(op: Any) -> bool:
    """Whether an operation brings a value into a loop that all iterations use."""
    return IsLoopEnter(op) and bool(op.get_attr("is_constant"))


def GetLoopConstantEnter(value: Any) -> Any:
    """The Enter of a loop's constant of which `value` is a copy; None if it is none."""
    op = value.op
    while op.type in ("Identity", "RefIdentity", "Switch", "RefSwitch"):
        op = op.inputs[0].op
    return op if IsLoopConstantEnter(op) else None


def IsLoopSwitch(op: Any) -> bool:
    """Whether an operation is the Switch of a loop variable."""
    context = op._get_control_flow_context()
    return IsSwitch(op) and context is not None and context.IsWhileContext() and not IsCondSwitch(op)


def IsCondSwitch(op: Any) -> bool:
    """Whether an operation is the Switch of a conditional: what takes its outputs is in a branch."""
    if not IsSwitch(op) or not op.outputs:
        return False
    consumers = [consumer for output in op.outputs for consumer in output.consumers()]
    if not consumers:
        context = op._get_control_flow_context()
        return context is not None and context.IsCondContext()
    for consumer in consumers:
        context = consumer._get_control_flow_context()
        if IsLoopEnter(consumer):
            context = context.outer_context
        if context is None or not context.IsCondContext():
            return False
    return True


def IsCondMerge(op: Any) -> bool:
    """Whether an operation is the Merge of a conditional's results."""
    return IsMerge(op) and bool(op.inputs) and not any(_is_next(each.op) for each in op.inputs)


def IsLoopMerge(op: Any) -> bool:
    """Whether an operation is the Merge of a loop variable."""
    return IsMerge(op) and any(_is_next(each.op) for each in op.inputs)


def _is_next(op: Any) -> bool:
    return op.type in ("NextIteration", "RefNextIteration")


# ---- contexts


def IsInWhileLoop(op: Any) -> bool:
    """Whether an operation is in a loop, also in a conditional there."""
    return GetContainingWhileContext(_context(op)) is not None


def IsInCond(op: Any) -> bool:
    """Whether an operation is in a branch of a conditional, also in a loop there."""
    return GetContainingCondContext(_context(op)) is not None


def GetOutputContext(op: Any) -> Any:
    """The context to which an operation's outputs belong: for an Exit the one around the loop."""
    return op._get_control_flow_context()


def _context(op: Any) -> Any:
    """The context of an operation as TensorFlow says it: for an Exit the loop, not what is around."""
    return op.inputs[0].op._get_control_flow_context() if IsLoopExit(op) else op._get_control_flow_context()


def GetContainingWhileContext(ctxt: Any, stop_ctxt: Any = None) -> Any:
    """The innermost loop around a context (it may be the context itself), before `stop_ctxt`; None if there
    is none.
    """
    while ctxt is not None and not ctxt.IsWhileContext() and ctxt is not stop_ctxt:
        ctxt = ctxt.outer_context
    return None if ctxt is not None and not ctxt.IsWhileContext() else ctxt


def GetContainingCondContext(ctxt: Any) -> Any:
    """The innermost conditional around a context (it may be the context itself); None if there is none."""
    while ctxt is not None and not ctxt.IsCondContext():
        ctxt = ctxt.outer_context
    return ctxt


def GetWhileContext(op: Any) -> Any:
    """The innermost loop around an operation; None if there is none."""
    context = _context(op)
    return None if context is None else context.GetWhileContext()


def IsContainingContext(ctxt: Any, maybe_containing_ctxt: Any) -> bool:
    """Whether the second context lies around the first, or is it."""
    while ctxt is not None and ctxt is not maybe_containing_ctxt:
        ctxt = ctxt.outer_context
    return ctxt is maybe_containing_ctxt


def OpInContext(op: Any, ctxt: Any) -> bool:
    """Whether an operation is in a context, or in one within it."""
    return IsContainingContext(_context(op), ctxt)


def TensorInContext(tensor: Any, ctxt: Any) -> bool:
    """Whether a tensor's operation is in a context, or in one within it."""
    return OpInContext(tensor.op, ctxt)


def CheckInputFromValidContext(op: Any, input_op: Any) -> None:
    """Raises ValueError if an operation outside of a loop or branch takes a value from within."""
    inner = GetOutputContext(input_op)
    loop = GetContainingWhileContext(inner)
    if loop is None or IsContainingContext(op._get_control_flow_context(), loop):
        return
    raise ValueError(
        f"Cannot use '{input_op.name}' as input to '{op.name}' because '{input_op.name}' is in a while loop. "
        "See info log for more details."
    )
