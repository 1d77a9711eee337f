"""How a Python function is called, as a message FunctionSpec, and back."""

from __future__ import annotations

import inspect
from typing import Any

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.type_specs import TensorSpec
from flowstone.saved_model.structured_values import NotEncodableError, StructureCoder

__all__ = ["parameters_of", "traced_signature", "write_function_spec"]

_coder = StructureCoder()
_KINDS = inspect.Parameter


def write_function_spec(python_function: Any, input_signature: Any, message: Any) -> None:
    """Fills a FunctionSpec. Defaults that no message can hold are None there."""
    is_method = hasattr(python_function, "bound")
    given = inspect.getfullargspec(getattr(python_function, "function", python_function))
    defaults = None if given.defaults is None else tuple(map(_encodable, given.defaults))
    named = given.kwonlydefaults and {key: _encodable(value) for key, value in given.kwonlydefaults.items()}
    kept = given._replace(defaults=defaults, kwonlydefaults=named, annotations={})
    message.fullargspec.CopyFrom(_coder.encode_structure(kept))
    message.is_method = is_method
    specs = None if input_signature is None else tuple(input_signature)
    message.input_signature.CopyFrom(_coder.encode_structure(specs))


def _encodable(value: Any) -> Any:
    try:
        _coder.encode_structure(value)
    except (NotEncodableError, TypeError, ValueError):
        return None
    return value


def parameters_of(spec: Any, is_method: bool) -> inspect.Signature:
    """The parameters that a FullArgSpec, as it was decoded, says; those of a method without the first."""
    found = []
    defaults = list(spec.defaults or ())
    names = list(spec.args)
    values = [_KINDS.empty] * (len(names) - len(defaults)) + defaults
    for name, value in list(zip(names, values))[1 if is_method else 0 :]:
        found.append(_KINDS(name, _KINDS.POSITIONAL_OR_KEYWORD, default=value))
    if spec.varargs:
        found.append(_KINDS(spec.varargs, _KINDS.VAR_POSITIONAL))
    for name in spec.kwonlyargs or ():
        value = (spec.kwonlydefaults or {}).get(name, _KINDS.empty)
        found.append(_KINDS(name, _KINDS.KEYWORD_ONLY, default=value))
    if spec.varkw:
        found.append(_KINDS(spec.varkw, _KINDS.VAR_KEYWORD))
    return inspect.Signature(found)


def traced_signature(concrete: Any) -> Any:
    """The arguments of a trace, nested, in which each tensor's spec has its placeholder's name."""
    names = iter(concrete.argument_specs)

    def named(leaf: Any) -> Any:
        return TensorSpec(leaf.shape, leaf.dtype, next(names)) if isinstance(leaf, TensorSpec) else leaf

    return nest.map_structure(named, concrete.structured_input_signature)
