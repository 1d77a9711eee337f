"""`tensorflow` as another name for flowstone. Each case is a process, since installing changes one."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from flowstone.compat import module_sources
from flowstone.compat.module_paths import MODULE_PATHS, find_sources
from flowstone.contrib.module_paths import ELSEWHERE
from installed_programs import SOURCE, run, run_bare


def test_tensorflow_is_flowstone_itself() -> None:
    run("""
        import tensorflow as tf
        import tensorflow.compat.v1 as tf1
        import flowstone, tensorflow.nn, tensorflow.compat.v1.train
        from tensorflow.compat import v1
        from tensorflow import nn
        assert tf is tf1 is v1 is flowstone is tf.compat.v1
        assert nn is flowstone.nn is sys.modules["tensorflow.nn"]
        assert sys.modules["tensorflow.compat.v1.train"] is flowstone.train
        tf.disable_v2_behavior()
        tf.disable_eager_execution()
        assert not tf.executing_eagerly()
    """)


def test_the_package_of_the_estimators() -> None:
    run("""
        import tensorflow as tf
        import tensorflow_estimator
        from tensorflow_estimator.python.estimator import estimator as estimator_lib, util
        from tensorflow_estimator.python.estimator.head import regression_head
        from tensorflow_estimator.python.estimator.canned import boosted_trees
        assert tensorflow_estimator.estimator is tf.estimator
        assert estimator_lib.Estimator is tf.estimator.Estimator and util
        assert regression_head.RegressionHead is tf.estimator.RegressionHead
        assert boosted_trees.BoostedTreesRegressor is tf.estimator.BoostedTreesRegressor
        try:
            import tensorflow_estimator.python.nothing
        except ModuleNotFoundError as error:
            assert "flowstone does not have tensorflow.python.nothing" in str(error)
        else:
            raise AssertionError
    """)


@pytest.mark.parametrize(
    ("statement", "instead"),
    [
        ("import tensorflow.contrib.tensorrt", "use the graph itself"),
        ("import tensorflow.contrib.tensorrt.python.trt_convert", "use the graph itself"),
        ("from tensorflow.contrib import kafka", "use tf.data.Dataset"),
        ("from tensorflow.contrib.kafka.python.ops import kafka_dataset_ops", "use tf.data.Dataset"),
        ("import tensorflow.lite", "use flowstone freeze"),
        ("from tensorflow.lite.python import lite", "use flowstone freeze"),
    ],
)
def test_a_missing_module_says_what_is_nearest(statement: str, instead: str) -> None:
    run(f"""
        import tensorflow as tf
        assert not hasattr(tf.contrib, "kafka") and not hasattr(tf, "lite")
        try:
            {statement}
        except ImportError as error:
            assert {instead!r} in str(error), error
        else:
            raise AssertionError
    """)


def test_all_names_at_once() -> None:
    run("""
        from tensorflow.compat.v1 import *
        assert Session and cholesky and GraphDef and estimator.Estimator and train.Saver
        assert "_late_names" not in globals()
    """)


def test_internal_modules_of_layers() -> None:
    run("""
        import flowstone as tf
        from tensorflow.python.layers import base, convolutional, core, layers, maxout
        from tensorflow.python.layers import normalization, pooling, utils
        from tensorflow.python.keras.engine import base_layer, input_spec
        from tensorflow.python.keras.utils import conv_utils
        assert base.Layer is tf.layers.Layer and issubclass(tf.layers.Layer, base_layer.Layer)
        assert base.InputSpec is base_layer.InputSpec is input_spec.InputSpec is tf.layers.InputSpec
        assert base.Input is tf.layers.Input and base.InputLayer and base.Node
        assert core.Dense is core.FullyConnected is tf.layers.Dense is layers.Dense
        assert core.fully_connected is tf.layers.dense
        assert convolutional.Deconv2D is tf.layers.Conv2DTranspose
        assert convolutional.Convolution1D is tf.layers.Conv1D
        assert convolutional.separable_convolution2d is tf.layers.separable_conv2d
        assert normalization.BatchNorm is tf.layers.BatchNormalization
        assert pooling.MaxPool2D is tf.layers.MaxPooling2D
        assert pooling.avg_pool2d is tf.layers.average_pooling2d
        assert maxout.MaxOut(2).num_units == 2
        assert utils.normalize_tuple(2, 2, "n") == (2, 2) and utils.constant_value(1) is True
        assert utils.smart_cond(True, lambda: 3, lambda: 4) == 3
        assert conv_utils.conv_output_length(8, 3, "same", 2) == 4
    """)


def test_internal_modules_hold_flowstones_names() -> None:
    run("""
        import flowstone as tf
        from tensorflow.python.framework import dtypes, errors, ops, tensor_shape
        from tensorflow.python.ops import array_ops, control_flow_ops, math_ops, nn_ops, variables
        from tensorflow.python.ops.math_ops import reduce_sum
        from tensorflow.python.training.gradient_descent import GradientDescentOptimizer
        from tensorflow.python import ops as ops_package
        import tensorflow.python.ops.state_ops
        assert nn_ops.relu is tf.nn.relu
        assert reduce_sum is math_ops.reduce_sum is tf.reduce_sum
        assert array_ops.reshape is tf.reshape
        assert ops.Tensor is tf.Tensor and ops.get_default_graph is tf.get_default_graph
        assert variables.Variable is tf.Variable
        assert dtypes.float32 is tf.float32
        assert errors.NotFoundError is tf.errors.NotFoundError
        assert tensor_shape.TensorShape is tf.TensorShape
        assert GradientDescentOptimizer is tf.train.GradientDescentOptimizer
        assert ops_package.nn_ops is nn_ops
        assert tf.python.ops.state_ops.assign is tf.assign
        assert callable(control_flow_ops.with_dependencies)
    """)


def test_internal_modules_of_distributions_and_sessions() -> None:
    run("""
        import flowstone as tf
        from tensorflow.python.ops import session_ops
        from tensorflow.python.ops.distributions import bernoulli, beta, bijector_impl, categorical
        from tensorflow.python.ops.distributions import dirichlet, dirichlet_multinomial, distribution
        from tensorflow.python.ops.distributions import distributions, exponential, gamma, laplace
        from tensorflow.python.ops.distributions import identity_bijector, kullback_leibler, multinomial
        from tensorflow.python.ops.distributions import normal, special_math, student_t, uniform
        from tensorflow.python.user_ops import user_ops
        public = tf.distributions
        for module in (bernoulli, beta, categorical, dirichlet, exponential, gamma, laplace, multinomial):
            name = module.__name__.rpartition(".")[2].capitalize()
            assert getattr(module, name) is getattr(public, name)
        assert normal.Normal is public.Normal and uniform.Uniform is public.Uniform
        assert dirichlet_multinomial.DirichletMultinomial is public.DirichletMultinomial
        assert student_t.StudentT is public.StudentT is distributions.StudentT
        assert distribution.Distribution is public.Distribution
        assert distribution.ReparameterizationType is public.ReparameterizationType
        assert bijector_impl.Bijector is public.bijectors.Bijector
        assert identity_bijector.Identity is public.bijectors.Identity
        assert kullback_leibler.kl_divergence is public.kl_divergence
        assert kullback_leibler.RegisterKL is public.RegisterKL
        for name in ("ndtr", "ndtri", "log_ndtr", "log_cdf_laplace"):
            assert callable(getattr(special_math, name))
        assert session_ops.get_session_handle is tf.get_session_handle
        assert session_ops.TensorHandle.__name__ == "TensorHandle"
        assert user_ops.my_fact is tf.user_ops.my_fact
    """)


def test_names_of_an_internal_module_can_be_imported_all() -> None:
    run("""
        import flowstone as tf
        from tensorflow.python.ops.nn_ops import *
        assert relu is tf.nn.relu
    """)


def test_the_tutorials_reader_and_the_protocol_buffers() -> None:
    run("""
        from tensorflow.examples.tutorials.mnist import input_data
        from tensorflow.contrib.learn.python.learn.datasets import mnist
        from tensorflow.core.framework import graph_pb2
        from tensorflow.core.framework.node_def_pb2 import NodeDef
        assert input_data.read_data_sets is mnist.read_data_sets
        assert graph_pb2.GraphDef(node=[NodeDef(name="x")]).node[0].name == "x"
    """)


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("tf.foo", "AttributeError: flowstone does not have the name tf.foo"),
        ("nn_ops.foo", "AttributeError: flowstone does not have the name tensorflow.python.ops.nn_ops.foo"),
        ("from tensorflow.python.ops.nn_ops import foo", "ImportError: flowstone does not have"),
        ("from tensorflow.python.ops import foo_ops", "ImportError: flowstone does not have"),
        ("import tensorflow.python.foo", "ImportError: flowstone does not have tensorflow.python.foo"),
        ("import tensorflow.foo.bar", "ImportError: flowstone does not have tensorflow.foo"),
        ("from tensorflow import foo", "ImportError: cannot import name 'foo' from 'flowstone'"),
        ("tf.contrib.foo", "AttributeError: flowstone does not have the name tf.contrib.foo"),
    ],
)
def test_an_absent_name_is_named(statement: str, error: str) -> None:
    output = run(f"""
        import tensorflow as tf
        from tensorflow.python.ops import nn_ops
        try:
            {statement}
        except (AttributeError, ImportError) as error:
            kind = ImportError if isinstance(error, ImportError) else AttributeError
            print(f"{{kind.__name__}}: {{error}}")
    """)
    assert output.startswith(error)


def test_paper_era_names() -> None:
    run("""
        import numpy as np
        import tensorflow as tf
        x = tf.placeholder(name="x")
        assert x.dtype == tf.float32 and x.shape.ndims is None
        ones, twos = tf.ones([2, 3]), tf.fill([2, 3], 2.0)
        with tf.Session() as session:
            def value(tensor):
                return session.Run(tensor).tolist()
            old = tf.concat(1, [ones, twos])
            assert value(old) == value(tf.concat([ones, twos], 1)) == [[1, 1, 1, 2, 2, 2]] * 2
            assert value(tf.concat(concat_dim=0, values=[ones, twos])) == [[1] * 3] * 2 + [[2] * 3] * 2
            def shapes(tensors):
                return [tensor.shape.as_list() for tensor in tensors]
            assert shapes(tf.split(1, 3, ones)) == shapes(tf.split(ones, 3, 1)) == [[2, 1]] * 3
            assert shapes(tf.split(split_dim=0, num_split=2, value=ones)) == [[1, 3]] * 2
            assert value(tf.mul(tf.sub(twos, ones), tf.neg(twos))) == [[-2.0] * 3] * 2
            assert value(tf.pack([1, 2])) == [1, 2]
    """)


def test_the_package_tensorboard_keeps_its_own_file_access() -> None:
    run("""
        from tensorboard.compat import tf
        assert tf.__name__ != "flowstone"
        assert tf.io.gfile.exists(sys.executable)
    """)


def test_tensorflow_itself_is_not_displaced() -> None:
    program = f"import sys, types; sys.path.insert(0, {SOURCE!r})\n"
    program += "sys.modules['tensorflow'] = types.ModuleType('tensorflow')\n"
    program += "import flowstone.compat.tensorflow\n"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert "RuntimeError: TensorFlow itself is loaded already" in result.stderr


def test_one_import_does_it_for_the_whole_process() -> None:
    run_bare("""
        import flowstone.compat.tensorflow
        import tensorflow as tf
        from tensorflow.python.framework import ops
        import tensorflow.contrib.slim as slim
        assert tf is flowstone and slim is tf.contrib.slim and ops.Graph is tf.Graph
        with tf.Session() as session:
            assert session.run(tf.constant(2) * 3) == 6
        flowstone.compat.tensorflow.install()  # again, which changes nothing
        assert sum(type(finder).__name__ == "TensorFlowFinder" for finder in sys.meta_path) == 1
    """)


def test_a_library_that_imports_tensorflow_finds_flowstone(tmp_path: Path) -> None:
    (tmp_path / "layer_library.py").write_text("import tensorflow as tf\ndouble = tf.constant(1) * 2\n")
    run_bare(f"""
        import flowstone.compat.tensorflow
        sys.path.insert(0, {str(tmp_path)!r})
        from layer_library import double
        assert double.graph is flowstone.get_default_graph()
    """)


def test_only_that_import_takes_the_name() -> None:
    run_bare("""
        import importlib, pkgutil
        import flowstone.compat, flowstone.tools.check, flowstone.tools.run
        for module in pkgutil.walk_packages(flowstone.compat.__path__, "flowstone.compat."):
            if module.name != "flowstone.compat.tensorflow":
                importlib.import_module(module.name)
        flowstone.contrib.layers, flowstone.estimator.Estimator
        assert "tensorflow" not in sys.modules
        assert not [name for name in map(repr, sys.meta_path) if "TensorFlowFinder" in name]
    """)


def test_every_listed_module_has_a_listed_package_above_it() -> None:
    for name in MODULE_PATHS:
        parent = name.rpartition(".")[0]
        assert parent == "tensorflow" or parent in MODULE_PATHS, name


def test_sources_of_internal_modules() -> None:
    assert find_sources("tensorflow.python.ops") == ()
    own = "flowstone.compat.internals.ops_nn_ops"
    assert find_sources("tensorflow.python.ops.nn_ops")[:3] == (own, "flowstone.nn", "flowstone")
    assert find_sources("tensorflow.python.util.tf_contextlib") == ("contextlib",)
    assert find_sources("tensorflow.core.framework.graph_pb2")[0] == "tensorboard.compat.proto.graph_pb2"
    assert find_sources("tensorflow.python.profiler.option_builder") == ("flowstone.profiler",)
    assert find_sources("tensorflow.python.nonsense") is None


def test_modules_that_tables_name_exist() -> None:
    tables = (module_sources._PYTHON, module_sources._EXAMPLES, module_sources._MODELS, ELSEWHERE)
    named = {source for table in tables for sources in table.values() for source in sources.split()}
    own = sorted(f"flowstone.{each}" for each in named if each != "flowstone" and not each.startswith("="))
    assert [each for each in own if not _is_there(each)] == []


def _is_there(name: str) -> bool:
    """Whether a module is a file, or an attribute of its parent."""
    with contextlib.suppress(ModuleNotFoundError):
        if importlib.util.find_spec(name) is not None:
            return True
    parent, _, leaf = name.rpartition(".")
    return hasattr(importlib.import_module(parent), leaf)
