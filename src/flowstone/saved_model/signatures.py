"""The signatures of an object that is saved: functions that take tensors by name and give tensors by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.tensors.type_specs import TensorSpec
from flowstone.functions.traced_functions import Function, function
from flowstone.functions.traces import ConcreteFunction
from flowstone.saved_model.loaded_functions import LoadedFunction, LoadedTrace
from flowstone.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

__all__ = ["SignatureMap", "is_concrete", "is_function", "named_functions", "signatures_of"]


class SignatureMap(dict[str, Any]):
    """The signatures of a model, by their keys."""

    def __repr__(self) -> str:
        return f"_SignatureMap({dict(self)!r})"


def is_concrete(value: Any) -> bool:
    """Whether it is a traced function, of this program or of a model that it loaded."""
    return isinstance(value, (ConcreteFunction, LoadedTrace))


def is_function(value: Any) -> bool:
    """Whether it is a function with traces, of this program or of a model that it loaded."""
    return isinstance(value, (Function, LoadedFunction))


def named_functions(value: Any) -> dict[str, Any]:
    """The attributes of an object that are functions, by name, or those in a list, as they are saved."""
    if isinstance(value, (list, tuple)):
        return {str(i): each for i, each in enumerate(value) if is_function(each) or is_concrete(each)}
    if isinstance(value, Mapping):
        return {}
    found = {}
    for name in dir(value):
        if isinstance(getattr(type(value), name, None), property):
            continue
        each = getattr(value, name, None)
        if is_function(each) or is_concrete(each):
            found[name] = each
    return found


def signatures_of(value: Any, given: Any) -> SignatureMap:
    """The signatures, traced: those that were given, by key or alone; else the object's only function that
    can be one.

    ValueError for what is no function with one trace, and for results that have no names.
    """
    if given is None:
        given = _only_function(value)
    if not isinstance(given, Mapping):
        given = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: given}
    return SignatureMap({key: _named(_concrete(each), key) for key, each in given.items()})


def _only_function(value: Any) -> Any:
    functions = named_functions(value)
    if "_default_save_signature" in functions:
        return functions["_default_save_signature"]
    found = []
    for each in functions.values():
        try:
            concrete = _concrete(each)
            _flat_outputs(concrete.structured_outputs, concrete, DEFAULT_SERVING_SIGNATURE_DEF_KEY)
        except ValueError:
            continue
        found.append(concrete)
    return found[0] if len(found) == 1 else {}


def _concrete(value: Any) -> Any:
    if is_function(value) and value.input_signature is not None:
        return value.get_concrete_function()
    if not is_concrete(value):
        raise ValueError(
            f"Expected a TensorFlow function to generate a signature for, but got {value}. Only "
            "`tf.functions` with an input signature or concrete functions can be used as a signature."
        )
    return value


def _named(concrete: Any, key: str) -> Any:
    """The function with arguments and results by name, traced."""
    specs = {name: TensorSpec(spec.shape, spec.dtype, name) for name, spec in concrete.argument_specs.items()}

    def signature_wrapper(**kwargs: Any) -> Any:
        result = concrete(**kwargs)
        return result if isinstance(result, Operation) else _flat_outputs(result, concrete, key)

    return function(signature_wrapper, autograph=False).get_concrete_function(**specs)


def _flat_outputs(outputs: Any, concrete: Any, key: str) -> dict[str, Any]:
    """The results by name. ValueError for those that are not flat."""
    name = concrete.name
    if isinstance(outputs, Mapping):
        for each, value in outputs.items():
            if not isinstance(each, str):
                raise ValueError(
                    f"Got a dictionary with a non-string key {each!r} in the output of the function {name} "
                    f"used to generate the SavedModel signature {key!r}."
                )
            if not _is_tensor(value):
                raise ValueError(
                    f"Got a dictionary containing non-Tensor value {value!r} for key {each} in the output of "
                    f"the function {name} used to generate a SavedModel signature."
                )
        return dict(outputs)
    flat = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    if not all(_is_tensor(each) for each in flat):
        raise ValueError(
            f"Got non-flat outputs {outputs!r} from {name} for SavedModel signature {key!r}. Signatures have "
            "one Tensor per output, so to have predictable names Python functions used to generate these "
            "signatures should avoid outputting Tensors in nested structures."
        )
    return {f"output_{i}": each for i, each in enumerate(flat)}


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (Tensor, TensorSpec))
