"""`tensorflow.python.framework.test_util`: what tests of programs use beside `tf.test`."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import flowstone as tf

__all__ = [
    "CudaSupportsHalfMatMulAndConv",
    "GpuSupportsHalfMatMulAndConv",
    "InstallStackTraceHandler",
    "IsBuiltWithROCm",
    "IsGoogleCudaEnabled",
    "IsMklEnabled",
    "NCHWToNHWC",
    "NCHW_VECT_CToNHWC",
    "NHWCToNCHW",
    "NHWCToNCHW_VECT_C",
    "TensorFlowTestCase",
    "also_run_as_tf_function",
    "assert_meta_graph_protos_equal",
    "assert_no_garbage_created",
    "assert_no_new_pyobjects_executing_eagerly",
    "assert_no_new_tensors",
    "assert_ops_in_graph",
    "build_as_function_and_v1_graph",
    "deprecated_graph_mode_only",
    "device",
    "disable_c_api",
    "disable_control_flow_v2",
    "disable_xla",
    "enable_c_api",
    "enable_c_shapes",
    "enable_control_flow_v2",
    "enable_output_all_intermediates",
    "enable_tf_xla_constant_folding",
    "for_all_test_methods",
    "force_cpu",
    "force_gpu",
    "generate_combinations_with_testcase_name",
    "get_node_def_from_graph",
    "is_xla_enabled",
    "no_xla_auto_jit",
    "py_func_if_in_function",
    "run_all_in_graph_and_eager_modes",
    "run_cuda_only",
    "run_deprecated_v1",
    "run_gpu_only",
    "run_in_graph_and_eager_modes",
    "run_v1_only",
    "run_v2_only",
    "set_producer_version",
    "skip_if",
    "use_deterministic_cudnn",
    "use_gpu",
    "with_c_api",
    "with_c_shapes",
    "with_control_flow_v2",
    "xla_allow_fallback",
]

TensorFlowTestCase = tf.test.TestCase


def IsGoogleCudaEnabled() -> bool:
    """Whether operations can be placed on GPUs of CUDA."""
    return bool(tf.test.is_built_with_cuda())


def CudaSupportsHalfMatMulAndConv() -> bool:
    """Whether there is a GPU; all that torch supports compute in float16."""
    return bool(tf.test.is_gpu_available(cuda_only=True))


GpuSupportsHalfMatMulAndConv = CudaSupportsHalfMatMulAndConv


def IsBuiltWithROCm() -> bool:
    """Whether torch was built for AMD's GPUs."""
    return bool(tf.test.is_built_with_rocm())


def IsMklEnabled() -> bool:
    """False: what TensorFlow's build with MKL did otherwise holds nowhere here."""
    return False


def is_xla_enabled() -> bool:
    """False: there is no compiler that clusters nodes by itself and changes what tests see."""
    return False


def InstallStackTraceHandler() -> None:
    """Does nothing: Python's `faulthandler` is the user's to choose."""


def _permuted(value: Any, orders: Mapping[int, list[int]]) -> Any:
    """A tensor transposed, or a shape permuted, by the order for its rank."""
    if isinstance(value, tf.Tensor):
        return tf.transpose(value, orders[len(value.shape.as_list())])
    return [value[index] for index in orders[len(value)]]


def NHWCToNCHW(input_tensor: Any) -> Any:
    """A tensor or shape with channels last, with the channels after the batch; of rank 4 or 5."""
    return _permuted(input_tensor, {4: [0, 3, 1, 2], 5: [0, 4, 1, 2, 3]})


def NCHWToNHWC(input_tensor: Any) -> Any:
    """A tensor or shape with the channels after the batch, with channels last; of rank 4 or 5."""
    return _permuted(input_tensor, {4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]})


def NHWCToNCHW_VECT_C(input_shape_or_tensor: Any) -> Any:
    """A tensor or shape [batch, …, channels] as [batch, channels / 4, …, 4]. ValueError unless the number of
    channels is a multiple of four.
    """
    is_tensor = isinstance(input_shape_or_tensor, tf.Tensor)
    shape = input_shape_or_tensor.shape.as_list() if is_tensor else list(input_shape_or_tensor)
    if shape[-1] % 4:
        raise ValueError("NHWCToNCHW_VECT_C: the number of channels must be a multiple of 4.")
    split = [*shape[:-1], shape[-1] // 4, 4]
    order = [0, len(shape) - 1, *range(1, len(shape) - 1), len(shape)]
    if is_tensor:
        return tf.transpose(tf.reshape(input_shape_or_tensor, split), order)
    return [split[index] for index in order]


def NCHW_VECT_CToNHWC(input_shape_or_tensor: Any) -> Any:
    """A tensor or shape [batch, channels / 4, …, 4] as [batch, …, channels]."""
    is_tensor = isinstance(input_shape_or_tensor, tf.Tensor)
    shape = input_shape_or_tensor.shape.as_list() if is_tensor else list(input_shape_or_tensor)
    order = [0, *range(2, len(shape) - 1), 1, len(shape) - 1]
    whole = [shape[0], *shape[2:-1], shape[1] * shape[-1]]
    return tf.reshape(tf.transpose(input_shape_or_tensor, order), whole) if is_tensor else whole


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    """The node of a GraphDef with this name; None if there is none."""
    return next((node for node in graph_def.node if node.name == node_name), None)


def set_producer_version(graph: Any, producer_version: int) -> None:
    """Has a graph say that a TensorFlow with this version of GraphDef made it."""
    graph_def = tf.GraphDef()
    graph_def.versions.producer = producer_version
    with graph.as_default():
        tf.import_graph_def(graph_def)


def assert_ops_in_graph(expected_ops: Mapping[str, str], graph: Any) -> dict[str, Any]:
    """The nodes of a graph by name, of which `expected_ops` gives types by name.

    Raises ValueError for a node that is missing or has another type.
    """
    nodes = {node.name: node for node in graph.as_graph_def().node}
    for name, kind in expected_ops.items():
        if name not in nodes:
            raise ValueError(f"Expected op for node {name} is missing.")
        if nodes[name].op != kind:
            raise ValueError(
                f"Expected op for node {name} is different. Expected: {kind}, got: {nodes[name].op}"
            )
    return {name: nodes[name] for name in expected_ops}


def assert_meta_graph_protos_equal(tester: Any, a: Any, b: Any) -> None:
    """Has a test case fail unless two MetaGraphDefs are equal: their graphs, collections and the rest."""
    tf.test.assert_equal_graph_def(a.graph_def, b.graph_def)
    tester.assertEqual(set(a.collection_def), set(b.collection_def))
    rest = [type(each).FromString(each.SerializeToString()) for each in (a, b)]
    for each in rest:
        each.ClearField("graph_def")
        each.ClearField("meta_info_def")
    tester.assertProtoEquals(rest[0], rest[1])


@contextlib.contextmanager
def device(use_gpu: bool) -> Iterator[None]:
    """A context on the first GPU if there is one and `use_gpu`; else on the CPU."""
    name = tf.test.gpu_device_name() if use_gpu else ""
    with tf.device(name or "/device:CPU:0"):
        yield


# ---- decorators of test methods


def _as_it_is(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    return function if callable(function) else _as_it_is


# Graphs are built, always, as TensorFlow 1 builds them.
enable_c_api = disable_c_api = with_c_api = enable_c_shapes = with_c_shapes = _as_it_is
run_v1_only = run_deprecated_v1 = deprecated_graph_mode_only = run_all_in_graph_and_eager_modes = _as_it_is
enable_control_flow_v2 = with_control_flow_v2 = disable_control_flow_v2 = _as_it_is
enable_output_all_intermediates = also_run_as_tf_function = build_as_function_and_v1_graph = _as_it_is
py_func_if_in_function = assert_no_new_pyobjects_executing_eagerly = use_deterministic_cudnn = _as_it_is
disable_xla = no_xla_auto_jit = xla_allow_fallback = enable_tf_xla_constant_folding = _as_it_is


def _skipping(reason: str, is_skipped: Callable[[], bool]) -> Callable[..., Any]:
    def decorate(method: Any) -> Any:
        if isinstance(method, type):
            raise ValueError("This decorator is of methods, not of classes.")

        @functools.wraps(method)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_skipped():
                self.skipTest(reason)
            return method(self, *args, **kwargs)

        return run

    def optional(method: Any = None) -> Any:
        return decorate if method is None else decorate(method)

    return optional


run_v2_only = _skipping("Test is only compatible with v2", lambda: True)
run_gpu_only = _skipping("Test requires GPU", lambda: not tf.test.is_gpu_available())
run_cuda_only = _skipping("Test requires CUDA GPU", lambda: not tf.test.is_gpu_available(cuda_only=True))


def _on_device(name: Callable[[], str]) -> Callable[[Any], Any]:
    def decorate(method: Any) -> Any:
        @functools.wraps(method)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            with tf.device(name()):
                return method(self, *args, **kwargs)

        return run

    return decorate


use_gpu = force_gpu = _on_device(lambda: tf.test.gpu_device_name() or "/device:CPU:0")
force_cpu = _on_device(lambda: "/device:CPU:0")


def assert_no_new_tensors(f: Any) -> Any:
    """A decorator of test methods, which fail if tensors that they made outlive them and their graphs."""

    def tensors() -> dict[int, Any]:
        return {id(each): each for each in gc.get_objects() if isinstance(each, tf.Tensor)}

    @functools.wraps(f)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = tensors()
        with tf.Graph().as_default():
            result = f(self, *args, **kwargs)
        gc.collect()
        left = [each for number, each in tensors().items() if number not in before]
        if left:
            raise AssertionError(f"{len(left)} Tensors not deallocated after test: {left[:10]}")
        return result

    return run


def assert_no_garbage_created(f: Any) -> Any:
    """A decorator of test methods, which fail if they leave objects that only the collector can free."""

    @functools.wraps(f)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        gc.collect()
        before, flags = len(gc.garbage), gc.get_debug()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            result = f(self, *args, **kwargs)
            gc.collect()
            made = len(gc.garbage) - before
        finally:
            del gc.garbage[before:]
            gc.set_debug(flags)
        if made:
            raise AssertionError(f"Expected no new objects in gc.garbage, but {made} were added.")
        return result

    return run


def for_all_test_methods(decorator: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator of test cases that applies `decorator(*args, **kwargs)` to each of their tests."""

    def decorate(case: Any) -> Any:
        for name in [each for each in dir(case) if each.startswith("test") and each != "test_session"]:
            if callable(getattr(case, name)):
                setattr(case, name, decorator(*args, **kwargs)(getattr(case, name)))
        return case

    return decorate


def generate_combinations_with_testcase_name(**kwargs: Any) -> list[OrderedDict[str, Any]]:
    """All choices of one value for each key, in the keys' alphabetical order, with a `testcase_name` that
    tells them.
    """
    values = {key: each if isinstance(each, list) else [each] for key, each in sorted(kwargs.items())}
    combinations = [OrderedDict(zip(values, chosen)) for chosen in itertools.product(*values.values())]
    for each in combinations:
        parts = [
            f"_{''.join(filter(str.isalnum, key))}_{''.join(filter(str.isalnum, str(value)))}"
            for key, value in each.items()
        ]
        each["testcase_name"] = "_test" + "".join(parts)
    return combinations


def run_in_graph_and_eager_modes(
    __unused__: Any = None,
    graph: Any = None,
    config: Any = None,
    use_gpu: bool = False,
    force_gpu: bool = False,
    reset_test: bool = True,
    **later: Any,
) -> Any:
    """A decorator of test methods, or the decorated method: it runs once, in a graph and a test session."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **kwargs: Any) -> None:
            with self.test_session(graph=graph, config=config, use_gpu=use_gpu, force_gpu=force_gpu):
                method(self, *args, **kwargs)

        run.__name__ = method.__name__
        return run

    return decorate(__unused__) if callable(__unused__) else decorate


def skip_if(condition: Any) -> Callable[..., Any]:
    """A decorator of test methods that do nothing where `condition`, or what it returns, is true."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **kwargs: Any) -> None:
            if condition() if callable(condition) else condition:
                self.skipTest("the test's condition for skipping holds")
            method(self, *args, **kwargs)

        run.__name__ = method.__name__
        return run

    return decorate
