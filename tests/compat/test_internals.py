"""TensorFlow's internal modules: what they share with public names, and what only they have."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.compat import internals
from flowstone.compat.module_paths import MODULE_PATHS, PUBLIC_TWINS, find_object, register
from flowstone.framework.names.alias_modules import alias_module

register()


def internal(name: str) -> Any:
    """The internal module tensorflow.python.NAME."""
    return alias_module(f"tensorflow.python.{name}")


TWINS = [(module, name) for module, names in PUBLIC_TWINS.items() for name in names]


def test_every_twin_is_the_public_object() -> None:
    others = []
    for module, name in TWINS:
        path = find_object(module, name)
        assert path is not None
        public = functools.reduce(getattr, path.split(".")[1:], tf)
        if getattr(alias_module(module), name) is not public:
            others.append(f"{module}.{name}")
    assert len(TWINS) > 700
    assert others == []


@pytest.mark.parametrize(
    "path", sorted(Path(internals.__file__ or "").parent.glob("[!_]*.py")), ids=lambda p: p.stem
)
def test_every_file_is_a_module_of_tensorflow(path: Path) -> None:
    source = f"flowstone.compat.internals.{path.stem}"
    module = [name for name, sources in MODULE_PATHS.items() if source in sources]
    assert len(module) == 1
    own = importlib.import_module(source)
    for name in own.__all__:
        assert getattr(alias_module(module[0]), name) is not None


def test_a_module_below_comes_before_a_name() -> None:
    assert internal("framework.ops").name_scope is tf.name_scope
    assert internal("ops").array_ops is alias_module("tensorflow.python.ops.array_ops")


# ---- graphs


def test_nodes_and_names() -> None:
    ops = internal("framework.ops")
    node = ops._NodeDef("MatMul", "product", device="/cpu:0", attrs={"a": tf.AttrValue(b=True)})
    assert (node.op, node.name, node.device, node.attr["a"].b) == ("MatMul", "product", "/cpu:0", True)
    assert ops.strip_name_scope("loc:@a/b/c", "a/b") == "loc:@c"
    assert ops.strip_name_scope("x/c", "a") == "x/c"
    assert ops.prepend_name_scope("^c", "a/") == "^a/c"
    assert ops._name_from_scope_name("a/b/") == "a/b"
    assert ops.uid() != ops.uid()


def test_default_stacks() -> None:
    ops = internal("framework.ops")
    with tf.Graph().as_default() as graph:
        assert ops._default_graph_stack.items[-1] is graph
        with tf.Session() as session, ops.default_session(session):
            assert ops._default_session_stack.items[-1] is session
            assert ops._eval_using_default_session(tf.constant(3), {}, graph) == 3


def test_many_conversions() -> None:
    ops = internal("framework.ops")
    with tf.Graph().as_default():
        tensors = ops.convert_n_to_tensor([1, 2.0], name="n")
        assert [each.op.name for each in tensors] == ["n_0", "n_1"]
        assert ops.internal_convert_n_to_tensor_or_indexed_slices([None, 1])[0] is None
        with pytest.raises(TypeError, match="values must be a list"):
            ops.convert_n_to_tensor(3)
        variable = tf.Variable(1.0)
        assert ops.internal_convert_to_tensor(variable, as_ref=True).dtype.name == "float32_ref"
        assert ops.is_dense_tensor_like(variable) and not ops.is_dense_tensor_like(3)


def test_graphs_of_inputs() -> None:
    ops = internal("framework.ops")
    graphs = [tf.Graph(), tf.Graph()]
    tensors = []
    for graph in graphs:
        with graph.as_default():
            tensors.append(tf.constant(1))
    assert ops._get_graph_from_inputs(tensors[:1]) is graphs[0]
    with graphs[1].as_default():
        assert ops._get_graph_from_inputs(tensors[:1]) is graphs[0]
    with pytest.raises(ValueError):
        ops._get_graph_from_inputs(tensors)
    with pytest.raises(ValueError, match="must be from the same graph"):
        ops._assert_same_graph(*tensors)


def test_statistics() -> None:
    ops = internal("framework.ops")
    with tf.Graph().as_default() as graph:
        product = tf.matmul(tf.ones([2, 3]), tf.ones([3, 4]))
        flops = ops.get_stats_for_node_def(graph, product.op.node_def, "flops")
    assert flops.value == 48
    flops += ops.OpStats("flops", 2)
    assert flops.value == 50
    ops.RegisterStatistics("MatMul", "weights")(lambda graph, node: ops.OpStats("weights", 7))
    assert ops.get_stats_for_node_def(graph, product.op.node_def, "weights").value == 7
    with pytest.raises(KeyError, match="Registering two statistics"):
        ops.RegisterStatistics("MatMul", "weights")(lambda graph, node: None)


def test_scopes_by_their_collection() -> None:
    variable_scope = internal("ops.variable_scope")
    with tf.Graph().as_default():
        with tf.variable_scope("a"):
            scopes = tf.get_collection_ref(variable_scope._VARSCOPE_KEY)
            assert [each.name for each in scopes] == ["a"]
            other = variable_scope.VariableScope(False, "b")
            scopes[0] = other
            assert tf.get_variable("x", []).name == "b/x:0"
        assert tf.get_variable_scope().name == ""
        store = variable_scope._get_default_variable_store()
        assert list(store._vars) == ["b/x"]
        assert tf.get_collection(variable_scope._VARSTORE_KEY) == [store]


def test_a_scope_put_there_before_the_first_variable() -> None:
    variable_scope = internal("ops.variable_scope")
    with tf.Graph().as_default():
        tf.get_collection_ref(variable_scope._VARSCOPE_KEY).append(variable_scope.VariableScope(False, "c"))
        assert tf.get_variable("x", []).name == "c/x:0"


# ---- shapes and values


def test_common_shapes() -> None:
    shapes = internal("framework.common_shapes")
    assert shapes.broadcast_shape([2, 1, None], [5, 3]).as_list() == [2, 5, 3]
    assert not shapes.is_broadcast_compatible([2], [3])
    with pytest.raises(ValueError, match="Incompatible shapes"):
        shapes.broadcast_shape([2], [3])
    assert shapes.get2d_conv_output_size(7, None, 3, 3, 2, 2, b"SAME") == (4, None)
    assert shapes.get2d_conv_output_size(7, 8, 3, 3, 2, 2, "VALID") == (3, 3)
    with tf.Graph().as_default():
        op = tf.placeholder(tf.float32, [2, 3]).op
        identity = tf.identity(op.outputs[0]).op
        assert shapes.unchanged_shape(identity)[0].as_list() == [2, 3]
        with pytest.raises(ValueError):
            shapes.unchanged_shape_with_rank(3)(identity)


def test_values_of_tensors() -> None:
    util = internal("framework.tensor_util")
    with tf.Graph().as_default():
        assert util.constant_value(tf.constant([1, 2])).tolist() == [1, 2]
        assert util.constant_value_as_shape(tf.constant([1, -1])).as_list() == [1, None]
    proto = util.make_tensor_proto([[1.0, 2.0]])
    assert util.MakeNdarray(proto).tolist() == [[1.0, 2.0]]
    assert util.ShapeEquals(proto, [1, 2]) and not util.ShapeEquals(proto, proto.tensor_shape.__class__())
    assert util.ExtractBitsFromFloat16(1.0) == 0x3C00


def test_reduced_shape() -> None:
    math_ops = internal("ops.math_ops")
    with tf.Graph().as_default(), tf.Session() as session:
        axes = tf.placeholder(tf.int32)
        shape = math_ops.reduced_shape(tf.constant([2, 3, 5]), axes)
        assert session.run(shape, {axes: [0, -1]}).tolist() == [1, 3, 1]
        assert math_ops.reduced_shape(tf.constant([2, 3]), tf.constant([1])).tolist() == [2, 1]


def test_ops_by_name() -> None:
    library = internal("framework.op_def_library").OpDefLibrary()
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(library.apply_op("AddN", inputs=[tf.constant(1), tf.constant(2)], name="sum")) == 3
        with pytest.raises(RuntimeError, match="Unrecognized Op name Nonsense"):
            library.apply_op("Nonsense")
    assert internal("framework.op_def_registry").get_registered_ops()["MatMul"].attr[0].name == "transpose_a"


def test_nodes_of_variables() -> None:
    state_ops = internal("ops.state_ops")
    with tf.Graph().as_default(), tf.Session() as session:
        handle = state_ops.variable_op_v2([2], tf.float32, name="v")
        session.run(state_ops.init_variable(handle, lambda shape, dtype: tf.ones(shape, dtype)))
        assert handle.op.type == "VariableV2" and session.run(handle).tolist() == [1, 1]
        assert state_ops.variable_op([2], tf.float32, set_shape=False).shape.ndims is None


def test_truncated_normal_values() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        draw = internal("ops.random_ops").parameterized_truncated_normal(
            [1000], minvals=0.0, maxvals=1.0, seed=1
        )
        values = session.run(draw)
    assert values.min() >= 0 and values.max() <= 1 and values.std() > 0.2


def test_resources() -> None:
    resources = internal("ops.resources")
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(1.0, use_resource=True, name="r")
        resources.register_resource(
            variable.handle, variable.initializer, tf.is_variable_initialized(variable), is_shared=False
        )
        report = resources.report_uninitialized_resources()
        assert session.run(report).tolist() == [b"r:0"]
        session.run(resources.initialize_resources(resources.local_resources()))
        assert session.run(report).tolist() == [] and resources.shared_resources() == []


# ---- sessions


class Squared:
    def __init__(self, tensor: tf.Tensor) -> None:
        self.tensor = tensor


def test_other_things_to_fetch_and_feed() -> None:
    session_module = internal("client.session")
    session_module.register_session_run_conversion_functions(
        Squared, lambda s: ([s.tensor], lambda values: values[0] ** 2), lambda s, value: [(s.tensor, value)]
    )
    with pytest.raises(ValueError, match="already been registered"):
        session_module.register_session_run_conversion_functions(Squared, lambda s: ([], None))
    with tf.Graph().as_default(), tf.Session() as session:
        squared = Squared(tf.placeholder(tf.float32))
        doubled = squared.tensor * 2
        assert session.run([squared, doubled], {squared: 3.0}) == [9.0, 6.0]
        assert session.make_callable(squared, [squared.tensor])(4.0) == 16.0


# ---- nests, decorators, names


def test_shallow_structures() -> None:
    nest = internal("util.nest")
    assert nest.flatten_up_to({"a": 0, "b": 0}, {"b": [1, 2], "a": 3}) == [3, [1, 2]]
    assert nest.map_structure_up_to([0, 0], lambda a, b: (a, b), [1, [2]], [3, 4]) == [(1, 3), ([2], 4)]
    with pytest.raises(TypeError, match="input must also be a sequence"):
        nest.assert_shallow_structure([1], 2)
    with pytest.raises(ValueError, match="same sequence length"):
        nest.assert_shallow_structure([1], [2, 3])
    assert nest.flatten_dict_items({(1, (2,)): ("a", ("b",)), 3: "c"}) == {1: "a", 2: "b", 3: "c"}
    with pytest.raises(ValueError, match="not unique"):
        nest.flatten_dict_items({(1, 2): (0, 0), 1: 5})
    deep = nest.get_traverse_shallow_structure(lambda each: isinstance(each, list), [1, [2, (3,)], (4,)])
    assert deep == [False, [False, False], False]
    assert nest.map_structure(lambda a, b: a + b, [1], (2,), check_types=False) == [3]


def test_structures_of_elements() -> None:
    nest = internal("data.util.nest")
    assert nest.flatten(({"a": [1, 2]}, 3)) == [[1, 2], 3]
    assert nest.map_structure(lambda x: x * 2, (1, {"k": 2})) == (2, {"k": 4})
    with pytest.raises(ValueError, match="Could not pack sequence"):
        nest.pack_sequence_as((1, 2), [3])


def test_decorators() -> None:
    tf_decorator, tf_inspect = internal("util.tf_decorator"), internal("util.tf_inspect")

    def plain(a: int, b: int = 2, *rest: int, **more: int) -> int:
        """Adds."""
        return a + b

    wrapped = tf_decorator.make_decorator(plain, lambda *args: plain(*args) * 10, "tens")
    assert wrapped(1) == 30 and wrapped.__doc__ == "Adds."
    assert tf_inspect.getargspec(wrapped) == (["a", "b"], "rest", "more", (2,))
    assert tf_decorator.unwrap(wrapped)[1] is plain
    assert tf_decorator.TFDecorator("d", plain)(3) == 5
    assert internal("util.keyword_args").keyword_args_only(plain)(a=1) == 3
    with pytest.raises(ValueError, match="Must use keyword args to call plain"):
        internal("util.keyword_args").keyword_args_only(plain)(1)
    deprecation = internal("util.deprecation")
    assert deprecation.deprecated is tf.contrib.framework.deprecated
    with pytest.raises(ValueError, match="Cannot specify both 'old' and 'new'"):
        deprecation.deprecated_argument_lookup("new", 1, "old", 2)


def test_lazy_modules_and_exports() -> None:
    names: dict[str, Any] = {}
    lazy = internal("util.lazy_loader").LazyLoader("fractions", names, "fractions")
    assert not names and lazy.Fraction(1, 2) * 2 == 1 and "fractions" in names
    export = internal("util.tf_export").tf_export

    @export("a.b")
    def exported() -> None:
        pass

    assert exported._tf_api_names == ("a.b",)
    registry = internal("framework.registry").Registry("things")
    registry.register(exported)
    assert registry.lookup("exported") is exported
    with pytest.raises(LookupError):
        registry.lookup("nothing")


# ---- files


def test_events_and_records_by_the_wrapper(tmp_path: Path) -> None:
    wrapper = internal("pywrap_tensorflow")
    writer = wrapper.EventsWriter(tf.compat.as_bytes(str(tmp_path / "events")))
    writer.WriteEvent(tf.Event(step=3))
    writer.Flush()
    events = list(tf.train.summary_iterator(tf.compat.as_str(writer.FileName())))
    writer.Close()
    assert events[-1].step == 3
    path = str(tmp_path / "records")
    records = wrapper.PyRecordWriter_New(path, "")
    records.WriteRecord(b"one")
    records.Close()
    reader = tf.pywrap_tensorflow.PyRecordReader_New(path, 0, "", None)
    reader.GetNext()
    assert reader.record() == b"one"
    with pytest.raises(tf.errors.OutOfRangeError):
        reader.GetNext()


def test_messages_for_tensorboard(tmp_path: Path) -> None:
    board = internal("training.tensorboard_logging")
    writer = internal("summary.writer.event_file_writer").EventFileWriter(str(tmp_path), filename_suffix=".x")
    board.set_summary_writer(writer)
    board.warn("at %d", 7)
    board.info("too low")
    board._clear_summary_writer()
    writer.close()
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".x")
    notes = [
        each.log_message.message
        for each in tf.train.summary_iterator(str(path))
        if each.HasField("log_message")
    ]
    assert notes == ["at 7"]
    with pytest.raises(ValueError, match="is not one of"):
        board.set_verbosity("LOUD")


def test_tests_of_programs() -> None:
    test_util = internal("framework.test_util")
    assert test_util.NHWCToNCHW([1, 2, 3, 4]) == [1, 4, 2, 3]
    with tf.Graph().as_default() as graph:
        assert test_util.NCHWToNHWC(tf.ones([1, 2, 3, 4])).shape.as_list() == [1, 3, 4, 2]
        tf.constant(1, name="c")
        assert test_util.assert_ops_in_graph({"c": "Const"}, graph)["c"].op == "Const"
        with pytest.raises(ValueError, match="Expected op for node d is missing"):
            test_util.assert_ops_in_graph({"d": "Const"}, graph)

    class Case(test_util.TensorFlowTestCase):
        @test_util.run_in_graph_and_eager_modes()
        def test_it(self) -> None:
            assert self.evaluate(tf.constant(2)) == 2
            internal("util.protobuf.compare").assertProtoEqual(self, "step: 1", tf.Event(step=1))
            with self.assertRaises(AssertionError):
                internal("util.protobuf.compare").assertProtoEqual(self, "step: 1", tf.Event(step=2))

    case = Case("test_it")
    result = case.run()
    assert result is not None and result.wasSuccessful(), result


def test_signatures() -> None:
    util = internal("saved_model.signature_def_utils_impl")
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 2])
        signature = tf.saved_model.predict_signature_def({"x": x}, {"y": x})
    assert util.get_signature_def_input_types(signature) == {"x": tf.float32}
    assert util.get_signature_def_output_shapes(signature)["y"].as_list() == [None, 2]


def test_arrays_of_datasets_by_their_kinds() -> None:
    datasets = internal("data.ops.dataset_ops")
    with tf.Graph().as_default(), tf.Session() as session:
        data = datasets.BatchDataset(datasets.MapDataset(datasets.RangeDataset(4), lambda x: x * 2), 2)
        value = data.make_one_shot_iterator().get_next()
        assert np.array_equal([session.run(value) for _ in range(2)], [[0, 2], [4, 6]])


# ---- shapes


def test_sizes_as_operations() -> None:
    array_ops = internal("ops.array_ops")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, None])
        value = np.zeros([2, 3], np.float32)
        assert session.run(array_ops.shape_internal(x, out_type=tf.int64), {x: value}).dtype == np.int64
        known = tf.zeros([2, 3])
        found = [
            array_ops.shape_internal(known, optimize=False),
            array_ops.size_internal(known, optimize=False),
            array_ops.rank_internal(known, optimize=False),
        ]
        assert [each.op.type for each in found] == ["Shape", "Size", "Rank"]
        plain = [array_ops.size_internal(x), array_ops.rank_internal(x)]
        assert [each.tolist() for each in session.run(found + plain, {x: value})] == [[2, 3], 6, 2, 6, 2]


def test_shapes_of_states_are_joined() -> None:
    join = internal("ops.rnn_cell_impl")._concat
    assert join(3, 4, static=True) == [3, 4]
    assert join(tf.TensorShape([2]), 4, static=True) == [2, 4]
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(join(tf.constant([3]), tf.constant(4))).tolist() == [3, 4]
        zeros = internal("ops.rnn_cell_impl")._zero_state_tensors((2, tf.TensorShape([3])), 4, tf.float32)
        assert [each.shape for each in session.run(zeros)] == [(4, 2), (4, 3)]


def test_stacks_of_matrices_are_broadcast() -> None:
    util = internal("ops.linalg.linear_operator_util")
    a, b = np.ones([2, 1, 3, 4], np.float32), np.arange(20, dtype=np.float32).reshape(5, 4, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        product = session.run(util.matmul_with_broadcast(a, b))
        np.testing.assert_array_equal(product, np.matmul(a, b))
        first, second = session.run(util.broadcast_matrix_batch_dims([a, b]))
        assert first.shape == (2, 5, 3, 4) and second.shape == (2, 5, 4, 1)


def test_modules_of_later_versions() -> None:
    assert internal("framework.device_spec").DeviceSpecV1 is tf.DeviceSpec
    assert internal("ops.linalg.linear_operator").LinearOperator is tf.linalg.LinearOperator
    assert internal("ops.linalg.linear_operator_diag").LinearOperatorDiag is tf.linalg.LinearOperatorDiag
    assert internal("ops.linalg.linear_operator_addition").add_operators is not None
    assert internal("training.training_ops").resource_apply_gradient_descent is not None
    assert internal("training.evaluation")._StopAfterNEvalsHook is tf.contrib.training.StopAfterNEvalsHook
    assert internal("ops.distributions.beta").BetaWithSoftplusConcentration is not None
    assert internal("ops.map_fn").map_fn is tf.map_fn
    with internal("eager.tape").stop_recording():
        assert internal("framework.tensor_util").constant_value(1) == 1


def test_the_function_behind_custom_gradients() -> None:
    decorator = internal("ops.custom_gradient")._graph_mode_decorator
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(3.0)
        y = decorator(lambda t: (t * t, lambda upstream: upstream * 10), x)
        assert session.run([y, tf.gradients(y, x)[0]]) == [9.0, 10.0]


def test_parts_of_metrics() -> None:
    module = internal("ops.metrics_impl")
    labels, predictions = tf.constant([[1], [0]]), tf.constant([0.9, 0.2])
    predictions, labels, weights = module._remove_squeezable_dimensions(predictions, labels, [[1.0], [2.0]])
    assert (labels.shape, predictions.shape, weights.shape) == ([2], [2], [2])
    assert module._remove_squeezable_dimensions([1.0], None, None)[1:] == (None, None)
    values, updates = module._confusion_matrix_at_thresholds(
        labels, predictions, [0.1, 0.5], None, ("tp", "fp")
    )
    with pytest.raises(ValueError, match="Invalid key: xy"):
        module._confusion_matrix_at_thresholds(labels, predictions, [0.5], includes=("xy",))
    shared = module._aggregate_variable(values["tp"], ["shared"])
    assert tf.get_collection("shared") == [shared]
    count, counting = module._streaming_sparse_true_positive_at_k([[1, 2]], [[2, 3]], 2)
    precision, measuring = module._streaming_sparse_average_precision_at_top_k([[1, 2]], [[2, 3]])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run([updates, counting, measuring])
        assert session.run([shared, values["fp"]])[0].tolist() == [1, 1]
        assert session.run(values["fp"]).tolist() == [1, 0]
        assert session.run([count, precision]) == [1, 0.5]
        assert session.run(module._safe_div([1.0, 1.0], [0.0, 2.0])).tolist() == [0, 0.5]
        assert session.run(module._safe_scalar_div(1.0, 0.0)) == 0


def test_modules_of_the_debugger() -> None:
    debugger = internal("debug")
    assert internal("debug.lib.debug_data").DebugDumpDir is debugger.DebugDumpDir
    assert internal("debug.lib.debug_utils").watch_graph is debugger.watch_graph
    assert internal("debug.wrappers.hooks").DumpingDebugHook is debugger.DumpingDebugHook
    wrappers = internal("debug.wrappers.local_cli_wrapper")
    assert wrappers.LocalCLIDebugWrapperSession is debugger.LocalCLIDebugWrapperSession


def test_names_code_and_keywords_of_functions() -> None:
    functions = internal("util.function_utils")

    class Model:
        def call(self, x: int, *, y: int = 0, **more: int) -> None:
            pass

        def __call__(self, x: int) -> None:
            pass

    model = Model()
    bound = functools.partial(model.call, 1)
    assert functions.fn_args(model.call) == ("x", "y")
    assert (functions.get_func_name(model.call), functions.get_func_name(len)) == (
        "Model.call",
        "<class 'builtin_function_or_method'>",
    )
    assert (functions.has_kwargs(bound), functions.has_kwargs(model)) == (True, False)
    assert functions.get_func_code(model) is Model.__call__.__code__
    assert functions.get_func_code(bound) is None
    for function in (functions.has_kwargs, functions.get_func_name, functions.get_func_code):
        with pytest.raises((TypeError, ValueError), match=r"callable|function-like"):
            function(3)


def test_derivatives_of_every_element() -> None:
    gradients = internal("ops.parallel_for.gradients")
    x, w = tf.placeholder(tf.float32, [None, 3]), tf.constant(np.arange(6.0).reshape(3, 2), tf.float32)
    y = tf.matmul(x * x, w)
    by_x, by_w, by_none = gradients.jacobian(y, [x, w, tf.constant(1.0)])
    by_row = gradients.batch_jacobian(y, x)
    assert by_none is None and by_w.shape.as_list() == [None, 2, 3, 2]
    values = np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 2.0]], np.float32)
    with tf.Session() as session:
        dx, dw, rows, weights = session.run([by_x, by_w, by_row, w], {x: values})
    expected = 2 * values[:, None, :] * weights.T
    np.testing.assert_allclose(rows, expected)
    np.testing.assert_allclose(dx[[0, 1], :, [0, 1]], expected)
    assert not dx[0, :, 1].any() and not dx[1, :, 0].any()
    np.testing.assert_allclose(dw[1, 0, :, 0], values[1] ** 2)
    assert gradients.batch_jacobian(y, tf.placeholder(tf.float32, [None, 2])) is None
    with pytest.raises(ValueError, match="first dimension"):
        gradients.batch_jacobian(tf.zeros([2, 3]), tf.zeros([3, 3]))


def test_loops_whose_results_are_stacked() -> None:
    loops = internal("ops.parallel_for.control_flow_ops")
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.Session() as session:
        number, (row, nothing) = loops.pfor(lambda i: (2 * i, [tf.gather(x, i), None]), 2)
        assert nothing is None
        assert session.run(number).tolist() == [0, 2]
        assert session.run(row).tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert session.run(loops.for_loop(lambda i: tf.to_float(i) ** 2, tf.float32, 4)).tolist() == [
            0,
            1,
            4,
            9,
        ]
    with pytest.raises(ValueError, match="parallel_iterations"):
        loops.for_loop(lambda i: i, tf.int32, 2, parallel_iterations=0)


def test_what_is_made_of_several_tensors() -> None:
    kind = internal("framework.composite_tensor").CompositeTensor
    assert isinstance(tf.SparseTensor([[0]], [1.0], [2]), kind)
    assert not isinstance(tf.constant(1.0), kind)
    assert internal("ops.unconnected_gradients").UnconnectedGradients is tf.UnconnectedGradients


def test_names_of_1_15_that_libraries_import() -> None:
    ops, api = internal("framework.ops"), internal("autograph.impl.api")
    datasets = internal("data.ops.dataset_ops")
    assert datasets.DatasetV1 is datasets.DatasetV2 is tf.data.Dataset
    tracking = internal("training.tracking.tracking")
    assert internal("training.checkpointable.tracking").AutoTrackable is tracking.AutoTrackable
    assert internal("training.tracking.data_structures").NoDependency(3) == 3
    evaluate = internal("pywrap_tensorflow").TF_TryEvaluateConstant_wrapper
    with tf.Graph().as_default() as graph:
        assert evaluate(graph._c_graph, tf.constant(3)._as_tf_output()) == 3
        assert evaluate(graph._c_graph, tf.placeholder(tf.int32)._as_tf_output()) is None
    with tf.Graph().as_default(), tf.name_scope("a"), tf.name_scope("b") as scope:
        assert ops.name_from_scope_name(scope) == ops.get_name_scope() == "a/b"

    @api.do_not_convert
    def double(x: int) -> int:
        return 2 * x

    assert double(2) == api.do_not_convert()(double)(2) == 4
    assert internal("framework.type_spec").TypeSpec is tf.TypeSpec
    assert internal("ops.sort_ops").argsort is tf.argsort
    assert internal("ops.manip_ops").roll is tf.manip.roll
    assert callable(internal("ops.stateless_random_ops").stateless_random_uniform)
