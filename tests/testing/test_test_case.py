"""`flowstone.test`: sessions of a test, comparisons that pass and fail where they should, threads, stubs,
benchmarks.
"""

from __future__ import annotations

import collections
import os
import unittest

import numpy as np
import pytest

import flowstone as tf
import flowstone.test


class Case(flowstone.test.TestCase):
    """A test case that is driven by hand."""

    def runTest(self) -> None: ...


@pytest.fixture
def case():
    with tf.Graph().as_default():
        case = Case()
        case.setUp()
        yield case
        case.tearDown()


def fails(pattern: str):
    return pytest.raises(AssertionError, match=pattern)


def test_sessions(case: Case) -> None:
    with case.test_session() as first:
        x = tf.constant([1.0, 2.0])
        assert tf.get_default_session() is first
        assert x.device == "/device:CPU:0"
        case.assertAllEqual(case.evaluate(x), [1.0, 2.0])
    with case.test_session() as again:
        assert again is first
    with pytest.raises(ValueError, match="cached session are different"), case.cached_session(force_gpu=True):
        pass
    with case.session(graph=tf.Graph()) as other:
        assert other is not first and tf.get_default_graph() is other.graph
    with pytest.raises(RuntimeError, match="closed Session"):
        other.run(x)


def test_set_up_fixes_the_seeds(case: Case) -> None:
    assert tf.get_default_graph().seed == 87654321
    drawn = np.random.rand()
    case.setUp()
    assert np.random.rand() == drawn


def test_all_close(case: Case) -> None:
    Point = collections.namedtuple("Point", "x y")
    case.assertAllClose([1.0, np.nan], np.array([1.0 + 1e-7, np.nan]))
    case.assertAllClose({"a": [1.0], "b": (2.0, [3.0, 4.0])}, {"b": (2.0, [3.0, 4.0]), "a": [1.0]})
    case.assertAllClose(Point(1.0, [2.0, 3.0]), Point(1.0, [2.0, 3.0]))
    with case.session():
        case.assertAllClose(tf.constant([2.0]), [2.0])
    with fails(r"not close where = \(array\(\[1\]\),\)"):
        case.assertAllClose([1.0, 2.0], [1.0, 2.1])
    with fails("Shape mismatch: expected \\(1,\\), got \\(2,\\)"):
        case.assertAllClose([1.0, 2.0], [1.0])
    with fails("mismatched keys"):
        case.assertAllClose({"a": 1.0}, {"b": 1.0})
    with fails("at \\['a'\\]"):
        case.assertAllClose({"a": 1.0}, {"a": 2.0})
    case.assertNotAllClose([1.0], [1.1])
    with fails("close at all elements"):
        case.assertNotAllClose([1.0], [1.0])


def test_tolerance_follows_the_type(case: Case) -> None:
    case.assertAllCloseAccordingToType(np.float16([1.0]), np.float16([1.0009]))
    with fails("not close"):
        case.assertAllCloseAccordingToType(np.float32([1.0]), np.float32([1.0009]))


def test_elements(case: Case) -> None:
    case.assertAllEqual([[1, 2]], np.array([[1, 2]]))
    case.assertAllEqual([np.nan], [np.nan])
    case.assertNotAllEqual([1], [2])
    with fails("not equal where"):
        case.assertAllEqual([1, 2], [1, 3])
    case.assertAllGreater([2, 3], 1)
    case.assertAllLessEqual([2, 3], 3)
    case.assertAllInRange([0.0, 1.0], 0.0, 1.0)
    case.assertAllInSet([1, 2, 1], {1, 2, 3})
    with fails("greater than 2"):
        case.assertAllGreater([2, 3], 2)
    with fails("outside"):
        case.assertAllInRange([0.0, 1.0], 0.0, 1.0, open_upper_bound=True)
    with fails("not in the set"):
        case.assertAllInSet([4], {1})


def test_near(case: Case) -> None:
    case.assertNear(1.0, 1.05, 0.1)
    case.assertNear(np.array(1.0), np.float32(1.05), 0.1)
    case.assertNear(np.array([1.0]), 1.05, 0.1)  # an array of one element counts as a number
    case.assertArrayNear([1.0, 2.0], [1.05, 1.95], 0.1)
    case.assertNDArrayNear(np.ones((2, 2)), np.ones((2, 2)) * 1.01, 0.1)
    for assertion, arguments in (
        (case.assertNear, (1.0, 1.2, 0.1)),
        (case.assertArrayNear, ([1.0], [1.2], 0.1)),
        (case.assertNDArrayNear, (np.ones(2), np.zeros(2), 0.1)),
    ):
        with fails(""):
            assertion(*arguments)


def test_shapes_types_devices_and_text(case: Case) -> None:
    x = tf.zeros([2, 3])
    case.assertShapeEqual(np.zeros((2, 3)), x)
    case.assertDTypeEqual(x, tf.float32)
    case.assertDeviceEqual("/cpu:0", "/device:CPU:0")
    case.assertStartsWith("flowstone", "flow")
    case.assertLen([1, 2], 2)
    case.assertEmpty([])
    case.assertItemsEqual([1, 2, 2], [2, 1, 2])
    with fails(""):
        case.assertShapeEqual(np.zeros((3, 2)), x)
    with fails("not equal"):
        case.assertDeviceEqual("/cpu:0", "/cpu:1")
    with fails("does not start with"):
        case.assertStartsWith("flowstone", "stone")
    with fails("has dtype tf.float32, expected tf.int32"):
        case.assertDTypeEqual(x, tf.int32)


def test_errors(case: Case) -> None:
    with case.session() as session:
        x = tf.placeholder(tf.float32, [None], name="given")
        y = x + tf.constant([1.0, 2.0])
        with case.assertRaisesOpError("ncompatible shapes|must match|size of tensor"):
            session.run(y, {x: [1.0, 2.0, 3.0]})
    with case.assertRaisesWithPredicateMatch(ValueError, lambda error: "seven" in str(error)):
        raise ValueError("seven")
    with fails("ValueError not raised"), case.assertRaisesWithPredicateMatch(ValueError, "seven"):
        pass
    with fails("eight"), case.assertRaisesWithPredicateMatch(ValueError, "seven"):
        raise ValueError("eight")


def test_messages(case: Case) -> None:
    config = tf.ConfigProto(allow_soft_placement=True)
    case.assertProtoEquals("allow_soft_placement: true", config)
    case.assertProtoEquals(tf.ConfigProto(allow_soft_placement=True), config)
    with fails("log_device_placement"):
        case.assertProtoEquals("log_device_placement: true", config)
    graph = tf.Graph()
    case.assertProtoEqualsVersion("", graph.as_graph_def())


def test_checked_threads(case: Case) -> None:
    seen = []
    thread = case.checkedThread(target=seen.append, args=(3,))
    thread.start()
    thread.join()
    assert seen == [3] and not thread.is_alive()

    def broken() -> None:
        raise ValueError("broken")

    thread = case.checkedThread(target=broken)
    thread.start()
    with fails("broken"):
        thread.join()
    thread = case.checkedThread(target=seen.append, args=(4,))
    thread.start()
    with fails("not joined"):
        case.tearDown()
    thread.join()


def test_graphs_are_compared_by_node() -> None:
    def graph_def(order: bool, value: float = 1.0):
        with tf.Graph().as_default() as graph:
            for name in ("a", "b") if order else ("b", "a"):
                tf.constant(value, name=name)
        return graph.as_graph_def()

    flowstone.test.assert_equal_graph_def(graph_def(True), graph_def(False))
    with fails("GraphDefs differ at node"):
        flowstone.test.assert_equal_graph_def(graph_def(True), graph_def(True, 2.0))
    with fails("although expected: node"):
        flowstone.test.assert_equal_graph_def(tf.Graph().as_graph_def(), graph_def(True))
    with pytest.raises(TypeError, match="for actual, got str"):
        flowstone.test.assert_equal_graph_def("no graph", graph_def(True))


def test_directories(case: Case) -> None:
    assert os.path.isdir(case.get_temp_dir()) and case.get_temp_dir() == case.get_temp_dir()
    assert case.get_temp_dir().startswith(flowstone.test.get_temp_dir())
    assert os.path.isabs(flowstone.test.test_src_dir_path("data"))


def test_devices() -> None:
    assert bool(flowstone.test.gpu_device_name()) == flowstone.test.is_gpu_available()
    assert flowstone.test.is_gpu_available(min_cuda_compute_capability=(1000, 0)) is False


def test_stubs() -> None:
    class Clock:
        def now(self) -> int:
            return 1

        @staticmethod
        def zone() -> str:
            return "UTC"

    stubs = flowstone.test.StubOutForTesting()
    stubs.Set(Clock, "now", lambda self: 2)
    stubs.SmartSet(Clock, "zone", staticmethod(lambda: "CET"))
    assert Clock().now() == 2 and Clock.zone() == "CET"
    with pytest.raises(AttributeError):
        stubs.SmartSet(Clock, "missing", None)
    stubs.CleanUp()
    assert Clock().now() == 1 and Clock.zone() == "UTC"


def test_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    class Addition(flowstone.test.Benchmark):
        def benchmark_add(self) -> None:
            with tf.Graph().as_default(), tf.Session() as session:
                x = tf.add(1.0, 2.0)
                result = self.run_op_benchmark(session, x, min_iters=3)
                assert result["iters"] == 3 and result["wall_time"] > 0

    flowstone.test.main(["program", "--benchmarks=Addition"])
    assert "Addition.benchmark_add: iters: 3" in capsys.readouterr().err


def test_a_class_runs_under_unittest() -> None:
    class Simple(flowstone.test.TestCase):
        def test_value(self) -> None:
            with self.test_session():
                self.assertAllEqual(tf.constant(1).eval(), 1)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Simple).run(result)
    assert result.wasSuccessful() and result.testsRun - len(result.skipped) == 1, (
        result.errors + result.failures
    )
