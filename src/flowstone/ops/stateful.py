"""State that outlives a step: the operations of variables, of both kinds.

A *reference* variable (``VariableV2``) hands its buffer itself along an edge of type ``Ref(T)``; a consumer that wants a
plain tensor reads the buffer when it runs. A *resource* variable (``VarHandleOp``) hands its handle along, and
``ReadVariableOp`` gives the value at the time of the read. Both are a `Variable` in the session's containers.
"""

from __future__ import annotations

import torch

from flowstone.framework.containers import Variable
from flowstone.framework.kernel import CPU, GPU, Value
from flowstone.framework.operation import op
from flowstone.framework.shape import merge


def find_variable(node, env):
    """The `Variable` of a variable node, made in its container on first use."""
    name = node.attributes["shared_name"] or node.name
    return env.resources.look_up_or_create(node.attributes["container"], name, lambda: Variable(name))


variable_v2 = op(
    "VariableV2",
    "-> ref: Ref(dtype)",
    "shape: shape ; container: string = '' ; shared_name: string = ''",
    dtype=None,
    stateful=True,
)
variable_v2.infer(lambda node: node.attributes["shape"])
variable_v2.kernel(CPU, GPU)(lambda node, env: Value(find_variable(node, env)))
variable_v2.not_differentiable()


def store(variable, value):
    """Gives `variable` this value, in its own buffer where shape and type allow; never keeps `value` itself."""
    buffer = getattr(variable, "tensor", None)
    if buffer is not None and buffer.shape == value.shape:
        buffer.copy_(value)
    else:
        variable.tensor = value.clone(memory_format=torch.contiguous_format)
    return variable


assign = op(
    "Assign",
    "ref: Ref(T), value: T -> output_ref: Ref(T)",
    "validate_shape: bool = true ; use_locking: bool = true",
    T=None,
    mutates=[0],
    aliases=[0],
)


@assign.infer
def _(node):
    return merge(node.dims(0), node.dims(1)) if node.attributes["validate_shape"] else node.dims(1)


@assign.kernel(CPU, GPU)
def _(node, env):
    return store


assign.not_differentiable()
