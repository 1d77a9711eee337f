"""Internals that libraries of TensorFlow 1.13 to 1.15 import (TFP 0.8, adanet, kfac, mesh, texar …)."""

from __future__ import annotations

import gc
import importlib
import inspect
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.compat.eras import recurrent
from flowstone.compat.module_paths import register
from flowstone.framework.names.alias_modules import alias_module
from installed_programs import run

register()


def internal(name: str) -> Any:
    """The internal module tensorflow.python.NAME."""
    return alias_module(f"tensorflow.python.{name}")


# ---- specs, modules, structures


def test_bounded_specs() -> None:
    kind = internal("framework.tensor_spec").BoundedTensorSpec
    spec = kind((3,), tf.float32, 0, [1.0, 2.0, 3.0], "n")
    assert repr(spec) == (
        "BoundedTensorSpec(shape=(3,), dtype=tf.float32, name='n', minimum=array(0., dtype=float32), "
        "maximum=array([1., 2., 3.], dtype=float32))"
    )
    assert not spec.minimum.flags.writeable and isinstance(spec, tf.TensorSpec)
    assert spec == kind((3,), tf.float32, 0, [1.0, 2.0, 3.0], "n") != kind((3,), tf.float32, 0, 1.0, "n")
    assert spec != tf.TensorSpec((3,), tf.float32, "n") and spec.is_compatible_with(tf.ones([3]))
    assert kind.from_spec(tf.TensorSpec((2,), tf.uint8)).maximum == 255 and kind.from_spec(spec) == spec
    assert kind((None, 2), tf.float32, [0, 1], 1).minimum.tolist() == [0, 1]
    for bounds, text in (
        (([0, 1], 1), "minimum is not compatible with shape"),
        ((0, [1, 2]), "maximum is not compatible with shape"),
        ((None, 1), "minimum and maximum must be provided; but saw 'None' and '1'"),
    ):
        with pytest.raises(ValueError, match=text):
            kind((3,), tf.float32, *bounds)


def test_specs_of_batches_and_elements() -> None:
    spec = tf.TensorSpec([3, 2], tf.float32)
    assert isinstance(spec, internal("framework.type_spec").BatchableTypeSpec)
    assert spec._batch(4) == tf.TensorSpec([4, 3, 2], tf.float32)
    assert spec._unbatch() == tf.TensorSpec([2], tf.float32)
    with pytest.raises(ValueError, match="rank >= 1"):
        tf.TensorSpec([], tf.float32)._unbatch()


def test_what_a_module_holds() -> None:
    class Part(tf.Module):
        def __init__(self, name: str | None = None) -> None:
            super().__init__(name)
            self.w, self.b = tf.Variable([1.0], name="w"), tf.Variable([0.0], trainable=False, name="b")

    class Whole(tf.Module):
        _TF_MODULE_IGNORED_PROPERTIES = frozenset({"hidden"})

        def __init__(self) -> None:
            super().__init__()
            self.parts, self.named = [Part(), Part()], {"x": Part("other")}
            self.hidden = tf.Variable(1.0)
            self.again = self.parts[0].w

    whole = Whole()
    is_variable = lambda each: isinstance(each, tf.Variable)  # noqa: E731
    found = dict(whole._flatten(predicate=is_variable, with_path=True))
    assert list(found) == [
        ("again",), ("named", "x", "b"), ("named", "x", "w"), ("parts", 0, "b"), ("parts", 1, "b"),
        ("parts", 1, "w"),
    ]  # fmt: skip
    assert list(whole._flatten(recursive=False, predicate=is_variable)) == [whole.again]
    assert [part.name for part in whole.submodules] == ["other", "part", "part"]
    assert len(whole.trainable_variables) == 3 and whole._no_dependency(3) == 3


def test_questions_of_structures() -> None:
    nest = internal("util.nest")
    pair = namedtuple("pair", "a b")
    assert nest._is_namedtuple(pair(1, 2), strict=True) and not nest._is_namedtuple((1, 2))
    assert nest._is_mapping({}) and not nest._is_mapping([]) and not nest._is_attrs(3)
    assert nest._sorted({"b": 1, "a": 2}) == ["a", "b"] and list(nest._yield_value({"b": 1, "a": 2})) == [
        2,
        1,
    ]
    assert nest._sequence_like(pair(1, 2), [3, 4]) == pair(3, 4) and nest._sequence_like([1], [3]) == [3]
    assert nest._sequence_like({"b": 0, "a": 0}, [1, 2]) == {"a": 1, "b": 2}
    with pytest.raises(TypeError, match="sortable keys"):
        nest._sorted({1: 0, "a": 0})


def test_dicts_and_sets_of_objects() -> None:
    identity = internal("util.object_identity")
    one, other = np.zeros(2), np.zeros(2)
    by_object = identity.ObjectIdentityDictionary()
    by_object[one], by_object[other] = "one", "other"
    assert len(by_object) == 2 and by_object[other] == "other" and one in by_object
    del by_object[one]
    with pytest.raises(KeyError):
        by_object[one]
    weak = identity.ObjectIdentityWeakKeyDictionary()
    weak[one] = 1
    kept = identity.ObjectIdentityWeakSet([one, other])
    assert len(weak) == 1 and len(kept) == 2
    del one
    gc.collect()
    assert len(weak) == 0 and len(kept) == 1
    found = identity.ObjectIdentitySet([other])
    assert len(found.difference([other])) == 0 and len(found.intersection([other, 3])) == 1


# ---- counts, summaries, TPUs, conversion


def test_counts_of_use() -> None:
    monitoring = internal("eager.monitoring")
    counter = monitoring.Counter("/a/b", "calls", "kind")
    counter.get_cell("x").increase_by(2)
    counter.get_cell("x").increase_by(3)
    assert counter.get_cell("x").value() == 5 and counter.get_cell("y").value() == 0
    gauge = monitoring.BoolGauge("/c", "set", "kind")
    gauge.get_cell("x").set(True)
    assert gauge.get_cell("x").value() is True
    buckets = monitoring.ExponentialBuckets(1.0, 2.0, 3)
    sampler = monitoring.Sampler("/d", buckets, "times")
    sampler.get_cell().add(0.5)
    assert buckets.buckets == [1, 2, 4] and sampler.get_cell().value() == [0.5]
    with pytest.raises(ValueError, match="expects taking 1 labels"):
        counter.get_cell()


def test_the_scope_of_a_summary() -> None:
    with tf.name_scope("outer"), internal("ops.summary_ops_v2").summary_scope("a b/c") as (tag, scope):
        assert (tag, scope) == ("outer/a b/c", "outer/ab/c/")


def test_names_of_tpus() -> None:
    function = internal("tpu.tpu_function")
    assert function.get_tpu_context().number_of_shards is None
    with function.tpu_shard_context(4):
        assert function.get_tpu_context().number_of_shards == 4
        with pytest.raises(NotImplementedError, match="nested"), function.tpu_shard_context(2):
            pass
    x = tf.constant(2.0)
    doubled = tf.contrib.tpu.outside_compilation(
        lambda y: y * 2, internal("tpu.ops.tpu_ops").cross_replica_sum(x)
    )
    with tf.Session() as session:
        assert session.run(doubled) == 4
    with pytest.raises(NotImplementedError, match="Topology: use "):
        internal("tpu.topology").Topology()


def test_modules_of_conversion_may_be_imported() -> None:
    transformer = internal("autograph.pyct.transformer")
    with pytest.raises(NotImplementedError, match=r"tf.cond and tf.while_loop"):
        transformer.Base()
    with pytest.raises(NotImplementedError, match=r"tf.cond and tf.while_loop"):
        internal("autograph.pyct.parser").parse_entity(len)


# ---- operations


def test_what_libraries_take_from_modules_of_operations() -> None:
    assert internal("ops.resource_variable_ops").is_resource_variable(tf.Variable(1.0, use_resource=True))
    assert not internal("ops.resource_variable_ops").is_resource_variable(
        tf.Variable(1.0, use_resource=False)
    )
    assert internal("ops.rnn_cell_impl")._like_rnncell(tf.nn.rnn_cell.GRUCell(2))
    assert not internal("ops.rnn_cell_impl")._like_rnncell(3)
    swapped = internal("ops.rnn")._transpose_batch_time(tf.zeros([2, 3, 4]))
    assert swapped.shape.as_list() == [3, 2, 4]
    x = tf.constant(2.0)
    y = internal("ops.array_ops").prevent_gradient(x, "not of this")
    with pytest.raises(LookupError, match="not of this"):
        tf.gradients(y, x)
    vector = internal("framework.constant_op")._tensor_shape_tensor_conversion_function(
        tf.TensorShape([2, 3])
    )
    triangle = tf.constant([[2.0, 0.0], [1.0, 4.0]])
    solve = internal("ops.linalg.linear_operator_util").matrix_triangular_solve_with_broadcast
    solved = solve(triangle, tf.ones([3, 2, 1]))
    with tf.Session() as session:
        assert session.run(vector).tolist() == [2, 3]
        assert session.run(solved)[2].ravel().tolist() == [0.5, 0.125]


def test_a_linear_operator_of_a_program() -> None:
    class Doubled(tf.linalg.LinearOperatorFullMatrix):
        def doubled(self, x: Any) -> Any:
            with self._name_scope("doubled", values=[x]):
                x = tf.convert_to_tensor(x)
                self._check_input_dtype(x)
                return 2 * self.matmul(x)

    made = Doubled(tf.eye(2), name="made")
    assert made.doubled(tf.ones([2, 1])).op.name.startswith("made/doubled/")
    with pytest.raises(TypeError, match="Expected argument to have dtype"):
        made.doubled(tf.ones([2, 1], tf.float64))


def test_cells_say_what_arguments_they_have() -> None:
    kept = [(cell, cell.__init__) for cell in (tf.nn.rnn_cell.GRUCell, tf.nn.rnn_cell.LSTMCell)]
    recurrent._with_size(tf.nn.rnn_cell.GRUCell, 1, joins_state=False)
    try:
        names = inspect.getfullargspec(tf.nn.rnn_cell.GRUCell.__init__).args
    finally:
        for cell, init in kept:
            cell.__init__ = init
    assert names[:3] == ["self", "num_units", "activation"]


def test_modules_are_found_by_their_names_and_classes_are_none() -> None:
    output = run(
        """
        import pydoc
        import tensorflow as tf
        from tensorflow.python import math_ops, ops, control_flow_ops
        print(pydoc.locate("tensorflow.relu"), pydoc.locate("tensorflow.layers.Dense") is tf.layers.Dense)
        assert callable(pydoc.locate("tensorflow.contrib.sparsemax.sparsemax"))
        for statement in ("from tensorflow.python.ops import nonsense", "import tensorflow.nonsense"):
            try:
                exec(statement)
            except ImportError as error:
                print(error)
        print(math_ops.add is tf.add, hasattr(control_flow_ops, "with_dependencies"))
        """
    )
    assert output.splitlines() == [
        "None True",
        "flowstone does not have tensorflow.python.ops.nonsense",
        "flowstone does not have tensorflow.nonsense",
        "True True",
    ]


# ---- Estimators


def test_an_estimator_whose_scaffold_initialises_local_variables(tmp_path: Any) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = tf.get_variable("w", [], initializer=tf.ones_initializer())
        scaffold = tf.train.Scaffold(local_init_op=tf.train.Scaffold.default_local_init_op())
        loss = tf.reduce_mean(features["x"]) * weight
        step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, scaffold=scaffold)

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensors(({"x": [1.0, 3.0]}, [0.0, 0.0])).repeat(2)

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    estimator.train(input_fn)
    assert estimator.evaluate(input_fn)["loss"] == 2


def test_a_library_may_allow_its_estimators_to_override_members() -> None:
    class Overriding(tf.estimator.Estimator):
        def train(self, *args: Any, **kwargs: Any) -> Any:
            return self

    with pytest.raises(ValueError, match="cannot override members"):
        Overriding(lambda features: None)
    kept = tf.estimator.Estimator._assert_members_are_not_overridden
    tf.estimator.Estimator._assert_members_are_not_overridden = staticmethod(lambda _: None)
    try:
        assert Overriding(lambda features: None).train()
    finally:
        tf.estimator.Estimator._assert_members_are_not_overridden = staticmethod(kept)


def test_names_that_modules_gather() -> None:
    names = {
        "training.tracking.base": ["TrackableReference", "no_automatic_dependency_tracking_scope"],
        "training.device_setter": ["_RoundRobinStrategy"],
        "saved_model.loader_impl": ["_parse_saved_model"],
        "saved_model.nested_structure_coder": ["StructureCoder"],
        "estimator.util": ["parse_input_fn_result"],
        "ops.rnn_cell_impl": ["_Linear"],
    }
    for module, found in names.items():
        for name in found:
            assert getattr(internal(module), name) is not None
    state = importlib.import_module("flowstone.train").experimental.PythonState()
    with pytest.raises(NotImplementedError):
        state.serialize()
    assert tf.train.Checkpoint(state=state).state is state


def test_profiles_under_their_first_names(capsys: Any) -> None:
    analyzer = tf.contrib.tfprof.model_analyzer
    with tf.Graph().as_default() as graph:
        tf.get_variable("w", [2, 3])
    options = analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS
    found = analyzer.print_model_analysis(graph, tfprof_options=options)
    assert found.total_parameters == 6 and "w (2x3, 6/6 params)" in capsys.readouterr().out
    assert analyzer.FLOAT_OPS_OPTIONS["select"] == ["float_ops"]


def test_public_names_of_tpus() -> None:
    assert tf.tpu.CrossShardOptimizer is tf.contrib.tpu.CrossShardOptimizer
    with tf.Graph().as_default(), tf.tpu.bfloat16_scope():
        half, full = tf.get_variable("half", [2], tf.bfloat16), tf.get_variable("full", [2])
        assert [v.dtype.base_dtype for v in tf.global_variables()] == [tf.float32, tf.float32]
    assert half.dtype == tf.bfloat16 and full.dtype.base_dtype == tf.float32


def test_a_variable_scope_without_a_name_scope() -> None:
    scopes = internal("ops.variable_scope")
    with tf.variable_scope("a"):
        with tf.name_scope("n"), scopes._pure_variable_scope("p") as scope:
            assert scope.name == "a/p" and tf.get_variable("x", [1]).op.name == "a/p/x"
            assert tf.constant(1).op.name == "a/n/Const"
        with scopes._pure_variable_scope(scope, reuse=True):
            assert tf.get_variable("x", [1]).op.name == "a/p/x"


def test_the_steps_of_a_run() -> None:
    hooks = internal("training.basic_session_run_hooks")
    made = hooks.get_or_create_steps_per_run_variable()
    assert made is hooks.get_or_create_steps_per_run_variable() and made in tf.local_variables()
    assert made.op.name == "hooks/steps_per_run" and made.dtype == tf.int32
    with tf.Session() as session:
        session.run(made.initializer)
        assert session.run(made) == 1


def test_patterns_of_operations() -> None:
    matcher = alias_module("tensorflow.contrib.quantize.python.graph_matcher")
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.nn.relu(tf.multiply(x, tf.constant(2.0, name="two"), name="scaled"), name="y")
    constant = matcher.OpTypePattern("Const", name="factor")
    product = matcher.OpTypePattern("Mul", inputs=[constant, "*"], ordered_inputs=False)
    pattern = matcher.OpTypePattern("Relu|Relu6", inputs=[matcher.OneofPattern([product])])
    (found,) = matcher.GraphMatcher(pattern).match_graph(tf.get_default_graph())
    assert found.get_op(pattern) is y.op and found.get_op("factor").name == "two"
    assert found.get_tensor(product).op.name == "scaled" and found.get_op("other") is None
    ordered = matcher.OpTypePattern("Mul", inputs=["Const", None])
    assert matcher.GraphMatcher(ordered).match_op(y.op.inputs[0].op) is None
    with pytest.raises(ValueError, match="expected to be a Pattern"):
        matcher.GraphMatcher("Mul")


def test_a_case_by_a_function_of_ones_own() -> None:
    """As prefer_static.case of TFP 0.8 does."""
    helper = internal("ops.control_flow_ops")._case_helper
    asked = []

    def choose(pred: Any, true_fn: Any, false_fn: Any, **keywords: Any) -> Any:
        asked.append((pred, keywords))
        return true_fn() if pred else false_fn()

    pairs = [(False, lambda: 1), (True, lambda: 2)]
    assert helper(choose, pairs, lambda: 3, True, "n", allow_python_preds=True, strict=True) == 2
    assert asked == [(False, {"strict": True}), (True, {"strict": True})]
    assert helper(choose, pairs[:1], lambda: 3, False, "n", allow_python_preds=True) == 3
    with pytest.raises(TypeError, match="pred must be a Tensor, got: False"):
        helper(choose, pairs, None, False, "n")
    with pytest.raises(TypeError, match="pred must be a Tensor or bool, got: 1"):
        helper(choose, [(1, lambda: 1)], None, False, "n", allow_python_preds=True)


# ---- rows in place, as of TensorFlow 1.15.5


def test_rows_in_place() -> None:
    rows = internal("ops.inplace_ops")
    x = tf.zeros([3, 2])
    pairs = [[1.0, 2.0], [3.0, 4.0]]
    programs = [
        (rows.inplace_update(x, [0, 2], pairs), [[1, 2], [0, 0], [3, 4]]),
        (rows.inplace_add(x, [0, 0], pairs), [[4, 6], [0, 0], [0, 0]]),
        (rows.inplace_sub(x, 1, [1.0, 2.0]), [[0, 0], [-1, -2], [0, 0]]),
        (rows.inplace_add(x, None, [[1.0, 2.0]] * 3), [[1, 2]] * 3),
        (rows.alias_inplace_update(x, tf.constant(1), [1.0, 2.0]), [[0, 0], [1, 2], [0, 0]]),
        (rows.inplace_update(x, [5, -2], pairs), [[0, 0], [3, 4], [1, 2]]),
        (rows.empty_like(x, True), [[0, 0]] * 3),
    ]
    with tf.Session() as session:
        for found, expected in zip(session.run([each[0] for each in programs]), programs):
            assert found.tolist() == expected[1]
    assert programs[0][0].op.type == "InplaceUpdate" and programs[0][0].op.inputs[0].op.type == "DeepCopy"
    with pytest.raises(LookupError, match="InplaceAdd"):
        tf.gradients(programs[1][0], x)


def test_a_value_that_stands_for_its_variable() -> None:
    """tensor2tensor gives a tensor the methods of the variable whose value it is."""
    variable = tf.get_variable("stood_for", initializer=1.0)
    value = tf.identity(variable)
    assert not hasattr(value, "assign")
    value.assign = variable.assign
    with tf.Session() as session:
        session.run(value.assign(3.0))
        assert session.run(value) == 3.0


def test_summaries_of_the_first_replica_alone() -> None:
    utilities = internal("ops.summary_op_util")
    assert utilities.skip_summary() is False
    strategy = tf.contrib.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    with strategy.scope():
        skipped = strategy.experimental_run_v2(lambda: tf.constant(utilities.skip_summary()))
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert session.run(list(skipped.values)) == [False, True]
