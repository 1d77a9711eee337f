"""Functions of a graph's library, compiled as callables for kernels."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import FunctionCall
from flowstone.framework.functions import function
from flowstone.framework.graphs.graph import Graph
from flowstone.ops.queues.queue_state import Queue
from flowstone.ops.queues.queue_storage import BlockStorage
from flowstone.runtime.plans.function_calls import function_compiler
from flowstone.runtime.plans.session_options import plan_options
from flowstone.runtime.process import threads
from flowstone.runtime.steps.step import UNLIMITED, Step


def compiled(python_function: Any, *types: Any) -> FunctionCall:
    defined = function.Defun(*types)(python_function)
    defined.add_to_graph(tf.get_default_graph())
    body = tf.get_default_graph()._functions.body(defined.name)
    return function_compiler(plan_options(None, ResourceStore()))(body)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph, torch.inference_mode():
        yield graph


def test_results_of_arguments() -> None:
    call = compiled(lambda x, y: (x * y, x - y), tf.float32, tf.float32)
    product, difference = call(UNLIMITED, torch.tensor([2.0, 3.0]), torch.tensor(4.0))
    assert product.tolist() == [8, 12] and difference.tolist() == [-2, -1]


def test_results_are_the_callers_own() -> None:
    call = compiled(lambda x: (x, tf.constant([1.0, 2.0])), tf.float32)
    given = torch.tensor([5.0])
    same, constant = call(UNLIMITED, given)
    same.zero_()
    constant.zero_()
    assert given.tolist() == [5]
    assert call(UNLIMITED, given)[1].tolist() == [1, 2]


def test_each_compilation_has_random_numbers_of_its_own() -> None:
    defined = function.Defun(tf.float32)(lambda x: x + tf.random_uniform([], seed=3))
    defined.add_to_graph(tf.get_default_graph())
    body = tf.get_default_graph()._functions.body(defined.name)
    compiler = function_compiler(plan_options(None, ResourceStore()))
    first, second = ([call(UNLIMITED, torch.tensor(0.0))[0].item() for _ in range(3)] for call in
                     (compiler(body), compiler(body)))  # fmt: skip
    assert first == second and len(set(first)) == 3


def test_control_flow_strings_and_errors() -> None:
    call = compiled(lambda x: tf.cond(x > 0, lambda: tf.as_string(x), lambda: tf.constant("none")), tf.int32)
    assert [call(UNLIMITED, torch.tensor(n, dtype=torch.int32))[0].item() for n in (7, -7)] == [b"7", b"none"]
    failing = compiled(lambda x: tf.gather([1, 2], x), tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[\[node .*Gather"):
        failing(UNLIMITED, torch.tensor(5, dtype=torch.int32))


def test_many_threads_at_once() -> None:
    call = compiled(lambda x: tf.reduce_sum(tf.range(x)), tf.int32)
    found: dict[int, int] = {}

    def work(n: int) -> None:
        with torch.inference_mode():
            for _ in range(50):
                found[n] = call(UNLIMITED, torch.tensor(n, dtype=torch.int32))[0].item()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n * (n - 1) // 2 for n in range(8)}


def test_functions_that_wait_use_the_callers_step() -> None:
    def dequeue(handle: Any) -> Any:
        return tf.raw_ops.QueueDequeueV2(handle=handle, component_types=[tf.int32])[0]

    call, step = compiled(dequeue, tf.resource), Step()
    queue = Queue(
        "FIFOQueue", "q", (tf.int32,), ((),), 2, BlockStorage(), spare=0, device=torch.device("cpu")
    )
    threading.Timer(0.05, step.cancel).start()
    with pytest.raises(tf.errors.CancelledError):
        call(step, queue)


@pytest.mark.skipif(threads.limit() is None, reason="the number of threads is the process's")
@pytest.mark.parametrize("calls", [None, 1, 3])
def test_functions_that_run_at_once_start_no_teams(calls: int | None) -> None:
    before = torch.get_num_threads()

    def count(x: Any) -> Any:
        return np.int64(torch.get_num_threads())

    def function(x: Any) -> Any:
        wide = tf.py_func(lambda x: np.ones((2, int(x)), np.float32), [x], tf.float32)  # of any shape
        with tf.control_dependencies([tf.matmul(wide, wide, transpose_b=True)]):
            return tf.py_func(count, [x], tf.int64)

    with tf.Graph().as_default(), tf.Session() as session:
        following = tf.data.Dataset.range(1, 9).map(function, num_parallel_calls=calls)
        element = following.make_one_shot_iterator().get_next()
        torch.set_num_threads(2)
        try:
            found = {int(session.run(element)) for _ in range(8)}
            own = torch.get_num_threads()
        finally:
            torch.set_num_threads(before)
    assert found == {1 if calls == 3 else 2} and own == 2
