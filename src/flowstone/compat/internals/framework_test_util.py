"""`tensorflow.python.framework.test_util`: what tests of programs use beside `tf.test`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import flowstone as tf

__all__ = [
    "CudaSupportsHalfMatMulAndConv",
    "IsGoogleCudaEnabled",
    "NCHWToNHWC",
    "NHWCToNCHW",
    "TensorFlowTestCase",
    "assert_meta_graph_protos_equal",
    "assert_ops_in_graph",
    "device",
    "disable_c_api",
    "enable_c_api",
    "run_all_in_graph_and_eager_modes",
    "run_deprecated_v1",
    "run_in_graph_and_eager_modes",
    "run_v1_only",
    "skip_if",
    "with_c_api",
]

TensorFlowTestCase = tf.test.TestCase


def IsGoogleCudaEnabled() -> bool:
    """Whether operations can be placed on GPUs of CUDA."""
    return bool(tf.test.is_built_with_cuda())


def CudaSupportsHalfMatMulAndConv() -> bool:
    """Whether there is a GPU; all that torch supports compute in float16."""
    return bool(tf.test.is_gpu_available(cuda_only=True))


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


def _as_it_is(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    return function if callable(function) else _as_it_is


enable_c_api = disable_c_api = with_c_api = run_v1_only = run_deprecated_v1 = _as_it_is
run_all_in_graph_and_eager_modes = _as_it_is


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
