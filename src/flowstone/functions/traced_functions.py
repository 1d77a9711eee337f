"""`tf.function`: a Python function that becomes one node of the graph where it is called.

    @tf.function
    def scaled(x, factor=2.0):
        return x * factor

    y = scaled(tf.constant(1.0))  # adds a PartitionedCall of the traced function

The Python function runs once for each kind of arguments in each graph (`call_arguments.kind_of`); what a
step runs is the trace (`traces.py`), whose nodes a plan puts in place of the call. Python's `if`, `while`
and `for` on tensors become nodes too, unless `autograph` is False (`flowstone.conversion`).
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from flowstone import conversion
from flowstone.framework.functions.init_scope import outermost_graph
from flowstone.framework.tensors import scope
from flowstone.functions.call_arguments import Signature, flat_tensors, kind_of
from flowstone.functions.traces import ConcreteFunction

__all__ = ["ConcreteFunction", "Function", "defun", "function"]


class Function:
    """A traced Python function; made by `function`. `python_function` is what was given."""

    def __init__(
        self,
        python_function: Callable[..., Any],
        name: str,
        input_signature: Any = None,
        autograph: bool = True,
        autograph_options: Any = None,
        relax_shapes: bool = False,
        creates_always: bool = False,
    ) -> None:
        self._python_function, self._name = python_function, name
        self._autograph, self._options, self._relax_shapes = autograph, autograph_options, relax_shapes
        self._creates_always = creates_always
        self._signature = Signature(python_function, input_signature)
        self._input_signature = input_signature
        self._bound: weakref.WeakKeyDictionary[Any, Function] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()
        functools.update_wrapper(self, python_function, updated=())

    @property
    def python_function(self) -> Callable[..., Any]:
        """The Python function."""
        return self._python_function

    @property
    def input_signature(self) -> Any:
        """The signature that was given, or None."""
        return self._signature.specs

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The function of a method's instance: the same one for the same instance."""
        if instance is None:
            return self
        try:
            found = self._bound.get(instance)
        except TypeError:  # it cannot be hashed or weakly referenced
            return self._of(instance)
        if found is None:
            found = self._bound[instance] = self._of(instance)
        return found

    def _of(self, instance: Any) -> Function:
        method = _Method(self._python_function, instance)
        return Function(
            method, self._name, self._input_signature, self._autograph, self._options, self._relax_shapes,
            self._creates_always,
        )  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a call to the default graph. TypeError for wrong arguments or results that are no tensors."""
        args, kwargs = self._arguments(args, kwargs)
        return self._traced(args, kwargs).call(flat_tensors((args, kwargs)))

    def _arguments(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = self._signature.bound(args, kwargs)
        return (args, kwargs) if self._signature.specs is None else (self._signature.fitted(args, kwargs), {})

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments, of which tensors may be TensorSpecs; those of the signature without
        any.
        """
        if self._signature.specs is not None and not args and not kwargs:
            args = self._signature.specs
        return self._traced(*self._arguments(args, kwargs))

    def traces(self) -> list[ConcreteFunction]:
        """Its traces in the default graph; with an `input_signature` there is one."""
        if self._signature.specs is not None:
            return [self.get_concrete_function()]
        kept: _Traces | None = scope.get_default_graph().traces.get(self)
        return [] if kept is None else list(kept.by_kind.values())

    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteFunction:
        """The trace for these arguments in the default graph."""
        graph = scope.get_default_graph()
        kept: _Traces = graph.traces.setdefault(self, _Traces())
        specs = self._signature.specs
        with self._lock:
            kind = _kind(args, kwargs) if specs is None else None
            found = kept.by_kind.get(kind)
            if found is None:
                given = args if specs is None else specs
                found = kept.by_kind[kind] = self._trace(given, kwargs)
        return found

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteFunction:
        body = self._python_function
        if self._autograph:
            body = conversion.convert(body.bound if isinstance(body, _Method) else body, self._options)
        state: _Traces = outermost_graph().traces.setdefault(self, _Traces())
        first, state.has_run = not state.has_run, True
        names = _argument_names(self._signature, args, kwargs)
        may_create = first or self._creates_always
        trace = ConcreteFunction(body, args, kwargs, self._name, may_create, names)
        if trace.graph.created and not self._creates_always:  # this one, too, must do without new variables
            trace = ConcreteFunction(body, args, kwargs, self._name, False, names)
        return trace


class _Traces:
    """What a function has in one graph: its traces by kind of arguments, and whether it was traced there."""

    def __init__(self) -> None:
        self.by_kind: dict[Any, ConcreteFunction] = {}
        self.has_run = False


class _Method:
    """A method of an instance, which it does not keep alive."""

    def __init__(self, function: Callable[..., Any], instance: Any) -> None:
        self.function = function
        try:
            self._instance: Callable[[], Any] = weakref.ref(instance)
        except TypeError:
            self._instance = lambda: instance
        functools.update_wrapper(self, function, updated=())
        bound = function.__get__(instance)
        self.__signature__ = Signature(bound, None).parameters

    @property
    def bound(self) -> Any:
        """The bound method."""
        return self.function.__get__(self._instance())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.bound(*args, **kwargs)


def _kind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return kind_of((args, kwargs))
    except TypeError as error:
        raise TypeError(f"Arguments of a tf.function must be tensors, or hashable: {error}") from None


def _argument_names(signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """For each tensor the name of the parameter that it was given for."""
    parameters = [] if signature.parameters is None else list(signature.parameters.parameters)
    found = []
    for i, value in enumerate(args):
        name = parameters[i] if i < len(parameters) else "args"
        found += [name] * len(flat_tensors(value))
    for name in sorted(kwargs):
        found += [name] * len(flat_tensors(kwargs[name]))
    return found


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    experimental_autograph_options: Any = None,
    experimental_relax_shapes: bool = False,
) -> Any:
    """A `Function` of a Python function of tensors; without one, a decorator.

    Args:
        func: the Python function. It returns a nested structure of tensors and None, and runs once for each
            kind of arguments; it may create variables when it runs for the first time.
        input_signature: a nested sequence of TensorSpecs, to which arguments are converted, so that there is
            one trace.
        autograph: whether Python's statements on tensors become nodes.
        experimental_autograph_options: `tf.autograph.experimental.Feature`s.
        experimental_relax_shapes: accepted: each static shape has a trace of its own.

    Raises TypeError for a signature that is no sequence of TensorSpecs.
    """
    return _decorator(
        func, input_signature, autograph, experimental_autograph_options, experimental_relax_shapes, False
    )


def defun(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    experimental_autograph_options: Any = None,
    experimental_relax_shapes: bool = False,
) -> Any:
    """`function`, but each trace may create variables: `tf.contrib.eager.defun`."""
    return _decorator(
        func, input_signature, autograph, experimental_autograph_options, experimental_relax_shapes, True
    )


def _decorator(func: Any, *options: Any) -> Any:
    def decorated(python_function: Callable[..., Any]) -> Function:
        inner = python_function.python_function if isinstance(python_function, Function) else python_function
        name = getattr(inner, "__name__", type(inner).__name__)
        return Function(inner, name, *options)

    return decorated if func is None else decorated(func)
