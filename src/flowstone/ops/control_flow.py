"""Order and choice: no-op, group, Switch, Merge, cond."""

from __future__ import annotations

from flowstone.framework.kernel import CPU, GPU
from flowstone.framework.operation import op

no_op_declaration = op("NoOp", "->", stateful=True)
no_op_declaration.infer(lambda node: None)
no_op_declaration.kernel(CPU, GPU)(lambda node, env: _nothing)
no_op_declaration.not_differentiable()


def _nothing():
    return None


def no_op(name=None):
    """An operation that does nothing but can be waited for."""
    return no_op_declaration(name=name)
