"""Internal modules as TensorFlow 1.5 to 1.15 had them; the expected values are 1.15.5's own."""

from __future__ import annotations

import collections
import gc
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.compat.module_paths import register
from flowstone.framework.names.alias_modules import alias_module

register()


def internal(name: str) -> Any:
    """The internal module tensorflow.python.NAME."""
    return alias_module(f"tensorflow.python.{name}")


# ---- control flow

KINDS = {
    "while/Enter": {"IsLoopEnter", "IsInWhileLoop"},
    "while/Merge": {"IsMerge", "IsLoopMerge", "IsInWhileLoop"},
    "while/Switch": {"IsSwitch", "IsLoopSwitch", "IsInWhileLoop"},
    "while/Greater/Enter": {"IsLoopEnter", "IsLoopConstantEnter", "IsInWhileLoop"},
    "while/Greater": {"IsInWhileLoop"},
    "while/cond/Switch": {"IsSwitch", "IsCondSwitch", "IsInWhileLoop"},
    "while/cond/switch_t": {"IsInWhileLoop", "IsInCond"},
    "while/cond/mul": {"IsInWhileLoop", "IsInCond"},
    "while/cond/while/Switch_1": {"IsSwitch", "IsLoopSwitch", "IsInWhileLoop", "IsInCond"},
    "while/cond/while/Exit": {"IsLoopExit", "IsInWhileLoop", "IsInCond"},
    "while/cond/Merge": {"IsMerge", "IsCondMerge", "IsInWhileLoop"},
    "while/Exit": {"IsLoopExit", "IsInWhileLoop"},
    "y": set(),
}


@pytest.fixture
def control_flow() -> Any:
    """A graph with a loop that has a conditional, one of whose branches has a loop."""
    with tf.Graph().as_default() as graph:
        x, y = tf.constant(3.0, name="x"), tf.placeholder(tf.float32, [], name="y")

        def body(i: Any, a: Any) -> Any:
            def inner() -> Any:
                return tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b + x), [0, a])[1]

            return i + 1, tf.cond(tf.greater(a, y), lambda: a * y, inner)

        tf.while_loop(lambda i, a: i < 3, body, [0, x])
        yield graph


def test_kinds_of_control_flow(control_flow: Any) -> None:
    util = internal("ops.control_flow_util")
    questions = sorted(set().union(*KINDS.values()))
    for name, expected in KINDS.items():
        operation = control_flow.get_operation_by_name(name)
        assert {each for each in questions if getattr(util, each)(operation)} == expected, name


def test_contexts_of_control_flow(control_flow: Any) -> None:
    util = internal("ops.control_flow_util")
    context = {
        name: control_flow.get_operation_by_name(name)._get_control_flow_context()
        for name in ("while/Switch", "while/cond/mul", "while/cond/while/Switch_1")
    }
    loop, branch, inner = context.values()
    assert (loop.IsWhileContext(), branch.IsCondContext(), inner.IsWhileContext()) == (True, True, True)
    assert (loop.IsCondContext(), branch.IsXLAContext()) == (False, False)
    assert branch.GetWhileContext() is loop
    assert inner.GetWhileContext() is inner
    assert util.GetContainingWhileContext(branch) is loop
    assert util.GetContainingCondContext(loop) is None
    assert util.IsContainingContext(inner, loop)
    assert not util.IsContainingContext(loop, inner)
    greater, outside = (
        control_flow.get_tensor_by_name("while/Greater:0"),
        control_flow.get_tensor_by_name("y:0"),
    )
    assert util.OpInContext(greater.op, loop)
    assert util.TensorInContext(greater, loop)
    assert not util.TensorInContext(outside, loop)
    assert util.GetLoopConstantEnter(greater.op.inputs[1]).name == "while/Greater/Enter"
    assert util.GetOutputContext(control_flow.get_operation_by_name("while/Exit")) is None
    util.CheckInputFromValidContext(greater.op, outside.op)
    with pytest.raises(ValueError, match="Cannot use 'while/Greater' as input to 'y'"):
        util.CheckInputFromValidContext(outside.op, greater.op)


# ---- nested structures

Pair = collections.namedtuple("Pair", "x y")
NESTED = {"b": [1, (2, 3)], "a": Pair(4, {"k": 5})}
PATHS = [("a", "x"), ("a", "y", "k"), ("b", 0), ("b", 1, 0), ("b", 1, 1)]


def test_paths_of_nested_structures() -> None:
    nest = internal("util.nest")
    assert list(nest.yield_flat_paths(NESTED)) == PATHS
    assert list(nest.yield_flat_paths(3)) == [()]
    assert nest.flatten_with_tuple_paths(NESTED) == list(zip(PATHS, [4, 5, 1, 2, 3]))
    joined = nest.flatten_with_joined_string_paths(NESTED, separator="-")
    assert joined[1] == ("a-y-k", 5)
    assert nest.flatten_with_joined_string_paths(3) == [("", 3)]
    mapped = nest.map_structure_with_paths(lambda path, a, b: (path, a + b), NESTED, NESTED)
    assert mapped == {
        "b": [("b/0", 2), (("b/1/0", 4), ("b/1/1", 6))],
        "a": Pair(("a/x", 8), {"k": ("a/y/k", 10)}),
    }
    assert nest.map_structure_with_tuple_paths(lambda path, a: path, [5]) == [(0,)]
    with pytest.raises(TypeError, match="don't have the same sequence type"):
        nest.map_structure_with_paths(lambda path, a, b: a, NESTED, [1])


def test_paths_up_to_a_shallow_structure() -> None:
    nest = internal("util.nest")
    shallow = {"b": [0, 0], "a": 0}
    assert nest.flatten_with_tuple_paths_up_to(0, NESTED) == [((), NESTED)]
    assert nest.flatten_with_tuple_paths_up_to(shallow, NESTED)[2] == (("b", 1), (2, 3))
    other = {"b": [8, 9], "a": 7}
    mapped = nest.map_structure_with_tuple_paths_up_to(shallow, lambda *parts: parts, NESTED, other)
    assert mapped["b"] == [(("b", 0), 1, 8), (("b", 1), (2, 3), 9)]
    with pytest.raises(ValueError, match="same sequence length"):
        nest.map_structure_with_tuple_paths_up_to({"b": [0] * 3, "a": 0}, lambda *parts: parts, NESTED)
    with pytest.raises(ValueError, match="no sequences"):
        nest.map_structure_with_tuple_paths_up_to(shallow, lambda *parts: parts)


# ---- tests of programs


def outcome(case: type[unittest.TestCase], name: str) -> str:
    """How a test of a test case ends."""
    result = unittest.TestResult()
    case(name).run(result)
    return "skipped" if result.skipped else "ended" if result.wasSuccessful() else "failed"


def test_decorators_of_tests() -> None:
    util = internal("framework.test_util")
    kept: list[Any] = []
    begun: list[str] = []

    class Case(tf.test.TestCase):
        @util.run_v2_only
        def test_later(self) -> None:
            begun.append("later")

        @util.run_gpu_only
        def test_gpu(self) -> None:
            begun.append("gpu")

        @util.force_cpu
        def test_cpu(self) -> None:
            self.assertEqual(tf.constant(1).device, "/device:CPU:0")

        @util.disable_xla("a reason")
        @util.deprecated_graph_mode_only
        def test_graph(self) -> None:
            begun.append("graph")

        @util.assert_no_new_tensors
        def test_kept(self) -> None:
            kept.append(tf.constant(1))

        @util.assert_no_new_tensors
        def test_not_kept(self) -> None:
            tf.constant(1)

        @util.assert_no_garbage_created
        def test_garbage(self) -> None:
            cycle: list[Any] = []
            cycle.append(cycle)

        @util.assert_no_garbage_created
        def test_no_garbage(self) -> None:
            begun.append("clean")

        def test_of_absl(self) -> None:
            self.assertContainsSubset([1], [1, 2])
            self.assertSameElements([1, 1], [1])

    gc.collect()
    has_gpu = tf.test.is_gpu_available()
    expected = {
        "test_later": "skipped",
        "test_gpu": "ended" if has_gpu else "skipped",
        "test_cpu": "ended",
        "test_graph": "ended",
        "test_kept": "failed",
        "test_not_kept": "ended",
        "test_garbage": "failed",
        "test_no_garbage": "ended",
        "test_of_absl": "ended",
    }
    assert {name: outcome(Case, name) for name in expected} == expected
    assert begun == [*(["gpu"] if has_gpu else []), "graph", "clean"]


def test_helpers_of_tests() -> None:
    util = internal("framework.test_util")
    combinations = util.generate_combinations_with_testcase_name(mode=["graph", "eager"], b=[1, None], c="x")
    assert len(combinations) == 4
    assert list(combinations[1].items()) == [
        ("b", 1),
        ("c", "x"),
        ("mode", "eager"),
        ("testcase_name", "_test_b_1_c_x_mode_eager"),
    ]
    assert util.NHWCToNCHW_VECT_C([2, 3, 5, 8]) == [2, 2, 3, 5, 4]
    assert util.NCHW_VECT_CToNHWC([2, 2, 3, 5, 4]) == [2, 3, 5, 8]
    value = np.arange(2 * 3 * 5 * 8, dtype=np.float32).reshape(2, 3, 5, 8)
    with tf.Session() as session:
        packed = util.NHWCToNCHW_VECT_C(tf.constant(value))
        assert np.array_equal(session.run(packed)[1, 1, 2, 4], value[1, 2, 4, 4:])
        assert np.array_equal(session.run(util.NCHW_VECT_CToNHWC(packed)), value)
    with pytest.raises(ValueError, match="multiple of 4"):
        util.NHWCToNCHW_VECT_C([2, 3, 5, 7])
    graph = tf.Graph()
    util.set_producer_version(graph, 11)
    assert graph.graph_def_versions.producer == 11
    assert util.get_node_def_from_graph("a", graph.as_graph_def()) is None

    class Case:
        def test_one(self) -> str:
            return "one"

        def other(self) -> str:
            return "other"

    util.for_all_test_methods(lambda suffix: lambda method: lambda self: method(self) + suffix, "!")(Case)
    assert (Case().test_one(), Case().other()) == ("one!", "other")


# ---- distributions


def test_what_is_known_of_shapes() -> None:
    util = internal("ops.distributions.util")
    known, unknown = tf.ones([2, 3]), tf.placeholder_with_default(np.ones([2, 2], "f"), [None, None])
    with tf.Session() as session:
        assert util.prefer_static_shape(known).tolist() == [2, 3]
        assert session.run(util.prefer_static_shape(unknown)).tolist() == [2, 2]
        assert (util.prefer_static_rank(unknown), util.dimension_size(known, 1)) == (2, 3)
        assert session.run(util.dimension_size(unknown, -1)) == 2
        assert util.maybe_get_static_value(3, np.float32).dtype == np.float32
        assert util.maybe_get_static_value(unknown) is None
        assert util.prefer_static_broadcast_shape([2, 1], [3]).as_list() == [2, 3]
        dynamic = util.prefer_static_broadcast_shape(tf.shape(unknown), [3, 1, 1])
        assert session.run(dynamic).tolist() == [3, 2, 2]
        same = [util.same_dynamic_shape(unknown, tf.ones(shape)) for shape in ([2, 2], [2, 3], [2])]
        assert session.run(same) == [True, False, False]


def test_checks_of_parameters() -> None:
    util = internal("ops.distributions.util")
    failures = [
        lambda: util.assert_integer_form(tf.constant([1.0, 2.5])),
        lambda: util.assert_symmetric(tf.constant([[1.0, 2.0], [3.0, 1.0]])),
        lambda: util.embed_check_nonnegative_integer_form(tf.constant([-1.0])),
        lambda: util.get_logits_and_probs(probs=[1.2], validate_args=True)[1],
        lambda: util.get_logits_and_probs(probs=[0.2, 0.9], multidimensional=True, validate_args=True)[1],
        lambda: util.embed_check_integer_casting_closed(tf.constant([1, 2000]), tf.uint8),
        lambda: util.embed_check_integer_casting_closed(tf.constant([2.5]), tf.int32),
    ]
    with tf.Session() as session:
        for make in failures:
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(make())
        logits, probs = session.run(util.get_logits_and_probs(probs=[0.2, 0.8]))
        np.testing.assert_allclose(logits, [-1.3862944, 1.3862944], rtol=1e-6)
        logits, probs = session.run(util.get_logits_and_probs(logits=[[0.0, 1.0]], multidimensional=True))
        np.testing.assert_allclose(probs, [[0.26894143, 0.7310586]], rtol=1e-6)
        checked = util.embed_check_integer_casting_closed(tf.constant([1.0, 2.0]), tf.int32)
        assert session.run(checked).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Must pass probs or logits, but not both"):
        util.get_logits_and_probs()
    with pytest.raises(ValueError, match="at least 2 events"):
        util.embed_check_categorical_event_shape(tf.ones([1]))
    with pytest.raises(ValueError, match=r"shape \(5000\) cannot exceed 2048"):
        util.embed_check_categorical_event_shape(tf.ones([2, 5000], tf.float16))
    with pytest.raises(TypeError, match="must be integer-type"):
        util.embed_check_integer_casting_closed(tf.constant([1.0]), tf.float16)


def test_parts_of_distributions() -> None:
    util = internal("ops.distributions.util")
    unknown = tf.placeholder_with_default(False, [])
    with tf.Session() as session:
        assert util.pick_vector(True, [1, 2], [3]) == [1, 2]
        assert session.run(util.pick_vector(unknown, [1, 2], [3])).tolist() == [3]
        padded = util.pad([[1, 2], [3, 4]], -1, front=True, value=9)
        assert session.run(padded).tolist() == [[9, 1, 2], [9, 3, 4]]
        assert padded.shape.as_list() == [2, 3]
        both = util.pad(tf.ones([1, 2]), 0, front=True, back=True, count=2)
        assert session.run(both)[:, 0].tolist() == [0, 0, 1, 0, 0]
        grid, probs = session.run(util.process_quadrature_grid_and_probs(None, tf.float32, False))
        np.testing.assert_allclose(grid[4:], [0.381187, 1.1571937, 1.9816568, 2.9306374], rtol=1e-6)
        np.testing.assert_allclose(probs.sum(), 1.0, rtol=1e-6)
        given = util.process_quadrature_grid_and_probs(([1.0, 2.0], [2.0, 2.0]), tf.float32, True)
        assert session.run(given[1]).tolist() == [0.5, 0.5]
    with pytest.raises(TypeError, match="does not match"):
        util.pick_vector(unknown, [1, 2], [3.0])
    with pytest.raises(ValueError, match="front"):
        util.pad([1], 0)
    with pytest.raises(ValueError, match="same-length"):
        util.process_quadrature_grid_and_probs(([1.0, 2.0], [0.5]), tf.float32, True)

    def outer(a: int, b: int = 2, *rest: int, **more: int) -> Any:
        return util.parent_frame_arguments()

    assert outer(1, 3, x=4) == {"a": 1, "b": 3, "x": 4}

    @util.AppendDocstring("A note.", {"b": ["two", "words"], "a": "one"})
    def noted() -> None:
        """Head."""

    assert noted.__doc__ == "Head.\nA note.\n\n##### `kwargs`:\n\n*  a: one\n*  b: two words"


# ---- graphs in files


def test_a_saved_model_in_steps(tmp_path: Path) -> None:
    loader = internal("saved_model.loader_impl")
    folder, asset = str(tmp_path / "model"), tmp_path / "asset.txt"
    asset.write_text("words")
    with tf.Session(graph=tf.Graph()) as session:
        v, x = tf.Variable(3.0, name="v"), tf.placeholder(tf.float32, [], name="x")
        tf.add(v * x, 1.0, name="y")
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, tf.constant(str(asset), name="a"))
        main = tf.group(tf.assign(v, 4.0), name="main")
        session.run(v.initializer)
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        assets = tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)
        builder.add_meta_graph_and_variables(session, ["serve"], assets_collection=assets, main_op=main)
        builder.save()
    steps = loader.SavedModelLoader(folder)
    assert (steps.export_dir, steps.variables_path) == (folder, f"{folder}/variables/variables")
    meta = steps.get_meta_graph_def_from_tags(["serve"])
    with pytest.raises(RuntimeError, match="tags 'x' could not be found"):
        steps.get_meta_graph_def_from_tags(["x"])
    graph = tf.Graph()
    saver, elements = steps.load_graph(graph, ["serve"], return_elements=["y:0", "x"])
    assert [each.name for each in elements] == ["y:0", "x"]
    with tf.Session(graph=graph) as session:
        steps.restore_variables(session, saver)
        assert session.run("y:0", {"x:0": 2.0}) == 7.0
        steps.run_init_ops(session, ["serve"])
        assert session.run("y:0", {"x:0": 2.0}) == 9.0
        assert loader.get_init_op(meta).name == "main"
        assert loader.get_train_op(meta) is None
    assert loader.get_asset_tensors(folder, meta) == {"a:0": f"{folder}/assets/asset.txt".encode()}
    assert loader.parse_saved_model(folder) == steps.saved_model
    with tf.Session(graph=tf.Graph()) as session:
        steps.load(session, ["serve"], import_scope="z")
        assert session.run("z/y:0", {"z/x:0": 2.0}) == 9.0


def test_parts_of_meta_graphs() -> None:
    module = internal("framework.meta_graph")
    with tf.Graph().as_default() as graph:
        with tf.variable_scope("from"):
            tf.identity(tf.get_variable("w", [2]), name="q")
        tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]), name="product")
        assert list(module.copy_scoped_meta_graph("from", "to")) == ["w:0"]
        assert [v.name for v in tf.global_variables()] == ["from/w:0", "to/w:0"]
        assert graph.get_operation_by_name("to/q").inputs[0].op.name == "to/w/read"
        with pytest.raises(ValueError, match="need to be different"):
            module.copy_scoped_meta_graph("from", "from")
    meta = tf.train.export_meta_graph(graph=graph)
    assert module.ops_used_by_graph_def(meta.graph_def) >= {"MatMul", "VariableV2", "Identity"}
    module.strip_graph_default_valued_attrs(meta)
    (product,) = [node for node in meta.graph_def.node if node.name == "product"]
    assert set(product.attr) == {"T", "_output_shapes"}
    with tf.Graph().as_default():
        variables, elements = module.import_scoped_meta_graph_with_return_elements(
            meta, import_scope="i", return_elements=["product:0"]
        )
        assert sorted(variables) == ["from/w:0", "to/w:0"]
        assert elements[0].name == "i/product:0"


def test_composite_values() -> None:
    ops = internal("framework.ops")
    sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 2])
    assert ops.convert_to_tensor_or_composite(sparse) is sparse
    values = ops.convert_n_to_tensor_or_composite([1, sparse, None], name="v")
    assert (values[0].op.name, values[1:]) == ("v_0", [sparse, None])
    with pytest.raises(TypeError, match="list"):
        ops.convert_n_to_tensor_or_composite(3)
    with tf.Graph().as_default():
        assert ops.has_default_graph()
    with ops.NullContextmanager(1, b=2) as nothing:
        assert nothing is None


def test_functions_that_are_not_converted(capsys: pytest.CaptureFixture[str]) -> None:
    marked = tf.autograph.experimental.do_not_convert
    assert marked(len) is len
    assert marked()(len) is len
    assert internal("autograph.impl.api").do_not_convert is marked
    tf.autograph.set_verbosity(3)
    tf.autograph.trace("a", 1)
    assert capsys.readouterr().out == "a 1\n"
    with pytest.raises(NotImplementedError, match="object conversion is not yet supported"):
        tf.autograph.to_graph(len)


def test_where_libraries_find_functions_and_conversion() -> None:
    assert internal("eager.def_function").function is tf.function
    assert isinstance(tf.function(abs), internal("eager.def_function").Function)
    assert internal("eager.function").defun is tf.contrib.eager.defun
    api, contexts = internal("autograph.impl.api"), internal("autograph.core.ag_ctx")
    older = tf.contrib.autograph

    def absolute(x: Any) -> Any:
        if x > 0:
            return x
        return -x

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(-2.0)
        made = [
            api.converted_call(absolute, None, (x,), {}),
            api.tf_convert(absolute, contexts.control_status_ctx())(x),
            older.convert()(absolute)(x),
            older.converted_call(absolute, None, (x,), {}),
            older.to_graph(absolute, verbose=True)(x),
            older.stack([x, x])[0] * -1.0,
        ]
        assert session.run(made) == [2.0] * 6
        with contexts.ControlStatusCtx(contexts.Status.DISABLED), pytest.raises(TypeError, match="bool"):
            api.tf_convert(absolute, contexts.control_status_ctx())(x)
    assert older.to_code(absolute).startswith("def tf__absolute")
    assert internal("autograph.lang.directives").set_loop_options(parallel_iterations=1) is None
    assert older.tensor_list((1, 2)) == [1, 2]
    assert older.set_element_type([], tf.int32) is None
