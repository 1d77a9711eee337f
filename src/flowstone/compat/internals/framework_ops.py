"""`tensorflow.python.framework.ops`: what libraries use of graphs and tensors that is not public."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.ops import get_name_scope as get_name_scope
from flowstone.framework.graphs import collection_protos
from flowstone.framework.tensors import nest, scope
from flowstone.framework.tensors.composite import IndexedSlicesValue as IndexedSlicesValue
from flowstone.gradients.registration import GradientRegistry, gradient_function
from flowstone.profiling.float_operations import float_operations
from flowstone.runtime.execution.eager_graph import EagerTensor as EagerTensor

__all__ = [
    "IndexedSlicesValue",
    "NullContextmanager",
    "OpStats",
    "RegisterShape",
    "RegisterStatistics",
    "convert_n_to_tensor",
    "convert_n_to_tensor_or_composite",
    "convert_n_to_tensor_or_indexed_slices",
    "convert_to_tensor_or_composite",
    "default_session",
    "dismantle_graph",
    "executing_eagerly_outside_functions",
    "get_all_collection_keys",
    "get_collection_proto_type",
    "get_from_proto_function",
    "get_gradient_function",
    "get_name_scope",
    "get_stats_for_node_def",
    "get_to_proto_function",
    "has_default_graph",
    "inside_function",
    "internal_convert_n_to_tensor",
    "internal_convert_n_to_tensor_or_indexed_slices",
    "internal_convert_to_tensor",
    "internal_convert_to_tensor_or_indexed_slices",
    "is_dense_tensor_like",
    "name_from_scope_name",
    "prepend_name_scope",
    "register_dense_tensor_like_type",
    "set_shape_and_handle_data_for_outputs",
    "set_shapes_for_outputs",
    "strip_name_scope",
    "tensor_id",
    "uid",
]

_EagerTensorBase = EagerTensor


def name_from_scope_name(name: str) -> str:
    """The name of a node of a scope's name: without the slash behind it."""
    return name.removesuffix("/")


def inside_function() -> bool:
    """Whether operations are now added to the body of a function."""
    return bool(tf.get_default_graph().building_function)


def executing_eagerly_outside_functions() -> bool:
    """False: operations build a graph."""
    return False


# ---- conversion


def internal_convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
    ctx: Any = None,
    **later: Any,
) -> Any:
    """`tf.convert_to_tensor`, which gives a variable's reference with `as_ref`."""
    return tf.convert_to_tensor(value, dtype, name, preferred_dtype, as_ref=as_ref)


def internal_convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    """`tf.convert_to_tensor_or_indexed_slices`."""
    return tf.convert_to_tensor_or_indexed_slices(value, dtype, name)


def convert_n_to_tensor(
    values: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> list[Any]:
    """A tensor for each value, named `name_0`, `name_1` …; TypeError for what is no sequence."""
    return internal_convert_n_to_tensor(values, dtype, name, preferred_dtype=preferred_dtype)


def internal_convert_n_to_tensor(
    values: Any,
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
    ctx: Any = None,
) -> list[Any]:
    """`convert_n_to_tensor`, which gives variables' references with `as_ref`."""
    return [
        internal_convert_to_tensor(value, dtype, each, as_ref, preferred_dtype)
        for value, each in zip(_sequence(values), _numbered(name))
    ]


def internal_convert_n_to_tensor_or_indexed_slices(
    values: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> list[Any]:
    """A tensor or IndexedSlices for each value; a None stays."""
    return [
        None if value is None else tf.convert_to_tensor_or_indexed_slices(value, dtype, each)
        for value, each in zip(_sequence(values), _numbered(name))
    ]


def convert_to_tensor_or_composite(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A SparseTensor, IndexedSlices or other composite value as it is; anything else as a tensor."""
    if nest.is_composite(value):
        return value
    return tf.convert_to_tensor(value, dtype, name)


def convert_n_to_tensor_or_composite(values: Any, dtype: Any = None, name: str | None = None) -> list[Any]:
    """`convert_to_tensor_or_composite` of each value; a None stays."""
    return [
        None if value is None else convert_to_tensor_or_composite(value, dtype, each)
        for value, each in zip(_sequence(values), _numbered(name))
    ]


def convert_n_to_tensor_or_indexed_slices(
    values: Any, dtype: Any = None, name: str | None = None
) -> list[Any]:
    """A tensor or IndexedSlices for each value; a None stays."""
    return internal_convert_n_to_tensor_or_indexed_slices(values, dtype, name)


def _sequence(values: Any) -> Any:
    if not hasattr(values, "__iter__") or isinstance(values, (str, bytes)):
        raise TypeError("values must be a list.")
    return values


def _numbered(name: str | None) -> Iterator[str | None]:
    return (None if name is None else f"{name}_{index}" for index in itertools.count())


def is_dense_tensor_like(t: Any) -> bool:
    """Whether `t` is a tensor, a variable, or of a type that `register_dense_tensor_like_type` got."""
    return isinstance(t, _DENSE)


_DENSE: tuple[type, ...] = (tf.Tensor, tf.Variable)


def register_dense_tensor_like_type(tensor_type: Any) -> None:
    """Has `is_dense_tensor_like` accept a type. TypeError if it lacks the properties `name` and `dtype`."""
    global _DENSE
    for attribute in ("name", "dtype"):
        if not isinstance(getattr(tensor_type, attribute, None), property):
            raise TypeError(f"Type {tensor_type.__name__} does not define a `{attribute}` property")
    _DENSE = (*_DENSE, tensor_type)


# ---- graphs and sessions

_default_graph_stack = scope.graphs
_default_session_stack = scope.sessions


def default_session(session: Any) -> contextlib.AbstractContextManager[Any]:
    """A context in which `session` is the default; leaving it does not close the session."""
    return scope.sessions.entered(session)


def _get_graph_from_inputs(op_input_list: Any, graph: Any = None) -> Any:
    """The graph of the inputs, or `graph`, or the default. ValueError if they are of several graphs."""
    if graph is None:
        graphs = (getattr(each, "graph", None) for each in op_input_list)
        graph = next((each for each in graphs if each is not None), None)
    if graph is None:
        return tf.get_default_graph()
    for each in op_input_list:
        if getattr(each, "graph", graph) is not graph:
            raise ValueError(f"{each} is not from the passed-in graph.")
    return graph


def _assert_same_graph(original_item: Any, item: Any) -> None:
    """Raises ValueError unless both items are of one graph."""
    if original_item.graph is not item.graph:
        raise ValueError(f"{item} must be from the same graph as {original_item}.")


def _as_graph_element(obj: Any) -> Any:
    """What `obj` says that it is in a graph, or None."""
    convert = getattr(obj, "_as_graph_element", None)
    return convert() if convert else None


def _eval_using_default_session(tensors: Any, feed_dict: Any, graph: Any, session: Any = None) -> Any:
    """The tensors' values in `session`, or in the default session, which must be of `graph`."""
    session = scope.get_default_session() if session is None else session
    if session is None or session.graph is not graph:
        raise ValueError(
            "Cannot evaluate tensor using `eval()`: no default session is registered for its graph. Use "
            "`with sess.as_default()` or pass an explicit session to `eval(session=sess)`"
        )
    return session.run(tensors, feed_dict)


def _run_using_default_session(operation: Any, feed_dict: Any, graph: Any, session: Any = None) -> None:
    """Runs an operation in `session`, or in the default session, which must be of `graph`."""
    _eval_using_default_session(operation, feed_dict, graph, session)


def _override_helper(clazz_object: Any, operator: str, func: Callable[..., Any]) -> None:
    """Has a class compute an operator by `func`. ValueError for what is no operator of tensors."""
    if operator not in tf.Tensor.OVERLOADABLE_OPERATORS:
        raise ValueError(f"Overriding {operator} is disallowed")
    setattr(clazz_object, operator, func)


# ---- names


def _NodeDef(op_type: str, name: str, device: Any = None, attrs: dict[str, Any] | None = None) -> Any:
    """A NodeDef message: its op, name, device and attributes (AttrValue messages)."""
    node = tf.NodeDef(op=tf.compat.as_bytes(op_type), name=tf.compat.as_bytes(name))
    for key, value in (attrs or {}).items():
        node.attr[key].CopyFrom(value)
    if device is not None:
        node.device = device(node) if callable(device) else _device_string(device)
    return node


def _device_string(dev_spec: Any) -> str:
    """The name of a device that is given as a DeviceSpec or as its name."""
    return dev_spec.to_string() if isinstance(dev_spec, tf.DeviceSpec) else dev_spec


def _name_from_scope_name(name: str) -> str:
    """A scope's name without the slash at its end."""
    return name[:-1] if name.endswith("/") else name


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """The name without `export_scope` at its beginning, also behind `^` and `loc:@`.

    >>> strip_name_scope("^a/b/c", "a/b")
    '^c'
    """
    if not export_scope:
        return name
    scope_name = re.escape(export_scope.rstrip("/"))
    return re.sub(rf"^([\^]|loc:@|){scope_name}[/]+(.*)", r"\1\2", tf.compat.as_str(name), count=1)


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """The name below `import_scope`, also behind `^` and `loc:@`.

    >>> prepend_name_scope("loc:@c", "a")
    'loc:@a/c'
    """
    if not import_scope:
        return name
    scope_name = import_scope.rstrip("/")
    return re.sub(r"^([\^]|loc:@|)(.*)", rf"\1{scope_name}/\2", tf.compat.as_str(name), count=1)


_numbers = itertools.count(1)


def uid() -> int:
    """A number that no other call in this process has got."""
    return next(_numbers)


def tensor_id(tensor: Any) -> int:
    """A number that no other tensor of this process has while it lives."""
    return id(tensor)


# ---- collections


def get_all_collection_keys() -> list[Any]:
    """The names of the default graph's collections."""
    return tf.get_default_graph().get_all_collection_keys()


def _proto_function(collection_name: str, which: str) -> Any:
    found = collection_protos.proto_functions_of(collection_name)
    return None if found is None else getattr(found, which)


def get_collection_proto_type(collection_name: str) -> Any:
    """The class of message that a collection's items become; None if none is registered."""
    return _proto_function(collection_name, "proto_type")


def get_to_proto_function(collection_name: str) -> Any:
    """The function from a collection's item to its message; None if none is registered."""
    return _proto_function(collection_name, "to_proto")


def get_from_proto_function(collection_name: str) -> Any:
    """The function from a message to a collection's item; None if none is registered."""
    return _proto_function(collection_name, "from_proto")


register_proto_function = collection_protos.register_proto_function

# ---- graphs


def has_default_graph() -> bool:
    """Whether a graph was made the default one; else a default graph is made when one is needed."""
    return bool(scope.graphs.items)


def dismantle_graph(graph: Any) -> None:
    """Does nothing: a graph that nobody refers to is freed by Python's collector."""


@contextlib.contextmanager
def NullContextmanager(*args: Any, **kwargs: Any) -> Iterator[None]:
    """A context that changes nothing."""
    yield


# ---- what is registered for ops


_gradient_registry = GradientRegistry()


def get_gradient_function(op: Any) -> Any:
    """The gradient function of an operation; None if no gradient flows through it or it has no inputs."""
    return gradient_function(op) if op.inputs else None


class RegisterShape:
    """A decorator of functions that infer the shapes of an op, which leaves them as they are.

    An op that is declared here infers its shapes itself, and one without a declaration cannot be created.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function itself."""
        return f


def set_shapes_for_outputs(op: Any) -> None:
    """Does nothing: the shapes of outputs are inferred when the operation is created."""


set_shape_and_handle_data_for_outputs = set_shapes_for_outputs


class OpStats:
    """A statistic of a node: its type, such as `flops`, and its value, which may be None.

    `+=` adds another statistic of the same type.
    """

    def __init__(self, statistic_type: str, value: Any = None) -> None:
        self.statistic_type = statistic_type
        self.value = value

    def __iadd__(self, other: OpStats) -> OpStats:
        if other.statistic_type != self.statistic_type:
            raise ValueError(
                f"Can't add an OpStat of type {self.statistic_type} to one of {other.statistic_type}."
            )
        if self.value is None:
            self.value = other.value
        elif other.value is not None:
            self.value += other.value
        return self


_statistics: dict[tuple[str, str], Callable[..., OpStats]] = {}


class RegisterStatistics:
    """A decorator of functions of a graph and a NodeDef that give an OpStats of an op type.

    Raises TypeError for a type that is no string, ValueError for one with a comma, KeyError where the op has
    that statistic already.
    """

    def __init__(self, op_type: str, statistic_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string.")
        if "," in op_type:
            raise TypeError("op_type must not contain a comma.")
        if not isinstance(statistic_type, str):
            raise TypeError("statistic_type must be a string.")
        if "," in statistic_type:
            raise TypeError("statistic_type must not contain a comma.")
        self._key = op_type, statistic_type

    def __call__(self, f: Callable[..., OpStats]) -> Callable[..., OpStats]:
        """Registers the function; returns it."""
        if self._key in _statistics:
            raise KeyError(f"Registering two statistics with name '{','.join(self._key)}'!")
        _statistics[self._key] = f
        return f


def get_stats_for_node_def(graph: Any, node: Any, statistic_type: str) -> OpStats:
    """A statistic of a graph's node: by a registered function, or `flops` as `tf.profiler` counts them."""
    function = _statistics.get((node.op, statistic_type))
    if function is not None:
        return function(graph, node)
    if statistic_type == "flops":
        return OpStats("flops", float_operations(graph.get_operation_by_name(node.name), {}))
    return OpStats(statistic_type)
