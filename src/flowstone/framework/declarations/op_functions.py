"""A function for each declared op, as TensorFlow generates them: `tf.raw_ops` and the modules `gen_…_ops`.

Arguments are the op's inputs, then the attributes that no input decides: first those without a default, then
the others; last comes the node's name. A function of `raw_ops` is named as the op (``Conv2DBackpropInput``)
and takes keywords only; one of ``gen_nn_ops`` is named in snake case (``conv2d_backprop_input``) and takes
positions, too.

>>> snake_case("Conv2DBackpropInput"), snake_case("LRNGrad"), snake_case("FFT2D")
('conv2d_backprop_input', 'lrn_grad', 'fft2d')
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from flowstone.framework.declarations.attributes import REQUIRED
from flowstone.framework.declarations.operation import OpDeclaration, registry

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[^_])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """The name of an op's function in a module ``gen_…_ops``."""
    return _WORDS.sub("_", name).lower()


def parameters(declaration: OpDeclaration) -> list[Parameter]:
    """The parameters of an op's functions; see the module."""
    kind = Parameter.POSITIONAL_OR_KEYWORD
    free = [spec for name, spec in declaration.attributes.items() if name not in declaration.inferred]
    required = [Parameter(spec.name, kind) for spec in free if spec.default is REQUIRED]
    others = [spec for spec in free if spec.default is not REQUIRED]
    optional = [Parameter(spec.name, kind, default=spec.default) for spec in others]
    inputs = [Parameter(argument.name, kind) for argument in declaration.inputs]
    return [*inputs, *required, *optional, Parameter("name", kind, default=None)]


@functools.cache
def positional(op_type: str) -> Callable[..., Any]:
    """The function of a module ``gen_…_ops`` for an op. KeyError if no such op is declared."""
    declaration = registry[op_type]
    signature = Signature(parameters(declaration))
    new_names = declaration.later_names

    def function(*arguments: Any, **keywords: Any) -> Any:
        given = {new_names.get(key, key): value for key, value in keywords.items()}
        try:
            bound = signature.bind(*arguments, **given).arguments
        except TypeError as error:
            raise TypeError(f"{function.__name__}(): {error}") from None
        inputs = [bound.pop(argument.name) for argument in declaration.inputs]
        return declaration(*inputs, **bound)

    return _described(function, declaration, snake_case(op_type), signature)


@functools.cache
def keywords_only(op_type: str) -> Callable[..., Any]:
    """The function of `tf.raw_ops` for an op. KeyError if no such op is declared."""
    declaration, call = registry[op_type], positional(op_type)
    signature = Signature([each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters(declaration)])

    def function(*arguments: Any, **keywords: Any) -> Any:
        if arguments:
            raise TypeError(
                f"{op_type} only takes keyword args (possible keys: {list(signature.parameters)}). Please "
                "pass these args as kwargs instead."
            )
        return call(**keywords)

    return _described(function, declaration, op_type, signature)


def _described(
    function: Callable[..., Any], declaration: OpDeclaration, name: str, signature: Signature
) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Adds a node of {declaration.name} to the graph; returns its outputs, or else the node."
    )
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def public_types() -> list[str]:
    """The names of the ops that programs may use, sorted: those of plans begin with '_'."""
    return sorted(name for name in registry if not name.startswith("_"))


@functools.cache
def _types_by_function() -> dict[str, str]:
    return {snake_case(name): name for name in public_types()}


def type_named(function: str) -> str | None:
    """The op of a function of a module ``gen_…_ops``, which may begin with '_'; None if there is none."""
    return _types_by_function().get(function.removeprefix("_"))


def function_names() -> list[str]:
    """The names of all functions of the modules ``gen_…_ops``, sorted."""
    return sorted(_types_by_function())
