"""Finds and registers the functions that compute operations' gradients.

An op's own declaration names its gradient function (`OpDeclaration.gradient`). A program may register further
functions under names of its own (`RegisterGradient`) and make nodes use them with
`Graph.gradient_override_map`, which leaves the attribute ``_gradient_op_type`` on the node; or it may give a
gradient to an op whose declaration has none.

>>> RegisterGradient("Square")(lambda op, grad: grad)
Traceback (most recent call last):
    ...
KeyError: "Registering two gradient with name 'Square'! (its declaration has one)"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from flowstone.framework.declarations.operation import OpDeclaration, registry
from flowstone.framework.graphs.graph_operation import Operation

GradientFunction = Callable[..., Any]

_registered: dict[str, GradientFunction | None] = {}
_instead: dict[str, GradientFunction | None] = {}  # of ops that have gradients of their own


def _check_name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError("op_type must be a string")
    return name


def _check_free(name: str) -> str:
    if name in _registered:
        raise KeyError(f"Registering two gradient with name '{name}'! (registered by this program)")
    declaration = registry.get(name)
    if declaration is not None and declaration.gradient_kind != "none":
        raise KeyError(f"Registering two gradient with name '{name}'! (its declaration has one)")
    return name


class RegisterGradient:
    """Decorator: registers the gradient function of an op type, or of a name for
    `Graph.gradient_override_map`.

        @tf.RegisterGradient("Clipped")
        def _(op, grad):
            return tf.clip_by_value(grad, -1.0, 1.0)

    The function gets the operation and a gradient for each output, and returns a gradient (or None) for each
    input. Raises TypeError if the name is no string; used as a decorator, KeyError if it already has a
    gradient."""

    def __init__(self, op_type: str) -> None:
        self._op_type = _check_name(op_type)

    def __call__(self, f: GradientFunction) -> GradientFunction:
        """Registers `f`; returns it."""
        _registered[_check_free(self._op_type)] = f
        return f


def NotDifferentiable(op_type: str) -> None:
    """Registers that no gradient flows through this op type. TypeError and KeyError as `RegisterGradient`."""
    _registered[_check_free(_check_name(op_type))] = None


NoGradient = NotDifferentiable


def register(name: str, function: GradientFunction) -> None:
    """Registers a function under a name that is not used otherwise (custom gradients)."""
    _registered[name] = function


def gradient_function(op: Operation) -> GradientFunction | None:
    """The gradient function of an operation; None if no gradient flows through it. LookupError if it has
    none.
    """
    attributes = op.attributes
    name = attributes.get("_gradient_op_type") if attributes else None
    if _instead and (name or op.declaration.name) in _instead:
        return _instead[name or op.declaration.name]
    declaration: OpDeclaration | None
    if name is None:
        declaration = op.declaration
        if declaration.gradient_kind == "function":
            return declaration.gradient_function
        if declaration.gradient_kind == "not differentiable":
            return None
        name = declaration.name
    else:
        declaration = registry.get(name)
    if name in _registered:
        return _registered[name]
    if declaration is not None and declaration.gradient_kind != "none":
        return declaration.gradient_function
    raise LookupError(
        f"No gradient defined for operation '{op.name}' (op type: {op.type}). To treat it as a constant, use "
        "tf.stop_gradient or tf.NotDifferentiable; to give it a gradient, tf.RegisterGradient."
    )


class GradientRegistry:
    """The gradient functions by their names, as `_gradient_registry` of TensorFlow 1's module `ops`, which
    programs ask for names; by its `_registry` they also put functions in the place of others.

    >>> GradientRegistry().lookup("Nothing")
    Traceback (most recent call last):
        ...
    LookupError: gradient registry has no entry for: Nothing
    """

    def __init__(self) -> None:
        self._registry = _Entries()

    def lookup(self, name: str) -> GradientFunction | None:
        """The function of that name; None if no gradient flows. LookupError if there is none."""
        if name not in self._registry:
            raise LookupError(f"gradient registry has no entry for: {name}")
        return _Entries.function_of(name)

    def register(self, candidate: GradientFunction | None, name: str) -> None:
        """Registers a function. KeyError if there is one of that name."""
        _registered[_check_free(name)] = candidate

    def list(self) -> list[str]:
        """The names."""
        return list(self._registry)


class _Entry(dict[str, Any]):
    """What is registered under a name: "type" is the function, which can be set."""

    def __init__(self, name: str) -> None:
        super().__init__(type=_Entries.function_of(name), location=("UNKNOWN",) * 4)
        self._name = name

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        if key == "type":
            _instead[self._name] = value


class _Entries(MutableMapping[str, dict[str, Any]]):
    """What is registered, by names."""

    @staticmethod
    def function_of(name: str) -> GradientFunction | None:
        if name in _instead or name in _registered:
            return _instead[name] if name in _instead else _registered[name]
        declaration = registry.get(name)
        return None if declaration is None else declaration.gradient_function

    def __contains__(self, name: object) -> bool:
        declaration = registry.get(str(name))
        has_own = declaration is not None and declaration.gradient_kind != "none"
        return has_own or name in _registered or name in _instead

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name not in self:
            raise KeyError(name)
        return _Entry(name)

    def __setitem__(self, name: str, entry: dict[str, Any]) -> None:
        _instead[name] = entry["type"]

    def __delitem__(self, name: str) -> None:
        _registered.pop(name, None)
        _instead.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return (name for name in {*registry, *_registered, *_instead} if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
