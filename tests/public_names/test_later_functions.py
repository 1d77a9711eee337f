"""Functions of later TensorFlows that no table calls: without a CPU kernel there, or about files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf


def value(tensor: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor)


IMAGES = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)
FILTER = np.arange(8, dtype=np.float32).reshape(2, 2, 2, 1)
GRADIENT = IMAGES[..., :1]


def test_gradients_by_the_other_tensor() -> None:
    how: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    by_filter = tf.conv2d_backprop_filter_v2(IMAGES, FILTER, GRADIENT, **how)
    by_input = tf.conv2d_backprop_input_v2(IMAGES, FILTER, GRADIENT, **how)
    wanted = tf.nn.conv2d_backprop_filter(IMAGES, [2, 2, 2, 1], GRADIENT, **how)
    np.testing.assert_allclose(*value([by_filter, wanted]))
    wanted = tf.nn.conv2d_backprop_input([1, 4, 4, 2], FILTER, GRADIENT, **how)
    np.testing.assert_allclose(*value([by_input, wanted]))


def test_convolution_behind_more_dimensions_and_in_groups() -> None:
    several = np.stack([IMAGES, IMAGES + 1])
    found = tf.conv(several, FILTER, [1, 1, 1, 1], "SAME", batch_dims=2)
    wanted = [tf.nn.conv2d(each, FILTER, 1, "SAME") for each in several]
    np.testing.assert_allclose(*value([found, tf.stack(wanted)]))
    volumes = tf.conv(IMAGES[:, None], FILTER[None], [1] * 5, "VALID")
    np.testing.assert_allclose(*value([volumes[:, 0], tf.nn.conv2d(IMAGES, FILTER, 1, "VALID")]))
    for bad in ({"groups": 3}, {"data_format": "NHWC"}, {"batch_dims": 0}):
        with pytest.raises(ValueError):
            tf.conv(IMAGES, FILTER, [1, 1, 1, 1], "SAME", **bad)


def test_the_k_largest_and_smallest() -> None:
    x = np.array([[3.0, 1, 2, 9], [5, 4, 8, 7]], np.float32)
    least, where = value(tf.math.approx_min_k(x, 2))
    np.testing.assert_array_equal(least, [[1, 2], [4, 5]])
    np.testing.assert_array_equal(where, [[1, 2], [1, 0]])
    assert tf.nn.approx_min_k is tf.math.approx_min_k
    most = value(tf.approx_top_k(x, 1, reduction_dimension=0))
    np.testing.assert_array_equal(most.values, [[5, 4, 8, 9]])
    for bad in ({"recall_target": 0.0}, {"reduction_dimension": 2}):
        with pytest.raises(ValueError):
            tf.approx_top_k(x, 1, **bad)


def test_batched_functions_take_tensors() -> None:
    with pytest.raises(ValueError, match="supposed to be Tensors"):
        tf.nondifferentiable_batch_function(1, 10, 0)(lambda a: a)(3)


def test_a_python_function_is_callable() -> None:
    x = tf.constant([1.0])
    with pytest.raises(ValueError, match="callable"):
        tf.py_function(3, [x], tf.float32)


# ---- arguments in two orders

DILATED = (1, 2, 2, 1)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (tf.nn.conv2d, (IMAGES, FILTER, [1, 1, 1, 1], "SAME", True, "NHWC")),
        (tf.nn.conv2d_backprop_filter, (IMAGES, [2, 2, 2, 1], GRADIENT, [1] * 4, "SAME", True, "NHWC")),
        (tf.nn.conv2d_backprop_input, ([1, 4, 4, 2], FILTER, GRADIENT, [1] * 4, "SAME", True, "NHWC")),
        (tf.nn.depthwise_conv2d_native, (IMAGES, FILTER, [1, 1, 1, 1], "SAME", "NHWC")),
    ],
)
def test_names_and_dilations_in_either_order(function: Any, arguments: tuple[Any, ...]) -> None:
    wanted = function(*arguments, dilations=DILATED)
    for tail, more in (
        (("n", DILATED), {}), ((DILATED, "n"), {}), ((DILATED,), {"name": "n"}),
        (("n",), {"dilations": DILATED}),
    ):  # fmt: skip
        found = function(*arguments, *tail, **more)
        assert found.op.name.startswith("n")
        np.testing.assert_array_equal(*value([found, wanted]))
    with pytest.raises(TypeError, match="multiple values"):
        function(*arguments, DILATED, dilations=DILATED)


def test_maxima_with_places_in_either_order() -> None:
    given = (IMAGES, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    for found in (
        tf.nn.max_pool_with_argmax(*given, tf.int32, "m"),
        tf.nn.max_pool_with_argmax(*given, "NHWC", tf.int32, "m"),
        tf.nn.max_pool_with_argmax(*given, "NHWC", Targmax=tf.int32, name="m"),
    ):
        assert found[1].dtype == tf.int32
        assert found[1].op.name.startswith("m")


def test_scans_in_either_order() -> None:
    x = np.array([1.0, 2.0, 3.0], np.float32)
    of = (lambda a, e: a + e, x, None, 10, True, False, True)
    assert value(tf.scan(*of, "older")).tolist() == [1, 3, 6]
    assert value(tf.scan(*of, True, "later")).tolist() == [6, 5, 3]
    assert value(tf.scan(*of, name="both", reverse=True)).tolist() == [6, 5, 3]


def test_axes_by_either_name() -> None:
    x = np.array([[3.0, 4.0], [6.0, 8.0]], np.float32)
    for function in (tf.nn.softmax, tf.nn.log_softmax, tf.nn.l2_normalize):
        by_place, by_dim, by_axis = value([function(x, 0), function(x, dim=0), function(x, axis=0)])
        np.testing.assert_array_equal(by_place, by_dim)
        np.testing.assert_array_equal(by_place, by_axis)
    for name in ("targets", "labels"):
        found = tf.nn.weighted_cross_entropy_with_logits(**{name: x}, logits=x, pos_weight=2.0)
        wanted = tf.nn.weighted_cross_entropy_with_logits(x, x, 2.0)
        np.testing.assert_array_equal(*value([found, wanted]))


def test_an_older_variable_scope_by_position() -> None:
    with tf.Graph().as_default():
        with tf.variable_op_scope([], "s", None, tf.constant_initializer(3.0)):
            v = tf.get_variable("v", [1])
        assert v.name == "s/v:0"
        assert value(v).tolist() == [3.0]


# ---- files


def test_where_the_package_is() -> None:
    assert os.path.isdir(tf.sysconfig.get_include())
    assert os.path.isdir(tf.sysconfig.get_lib())
    assert f"-I{tf.sysconfig.get_include()}" in tf.sysconfig.get_compile_flags()
    assert f"-L{tf.sysconfig.get_lib()}" in tf.sysconfig.get_link_flags()
    assert tf.sysconfig.get_build_info()["is_tensorrt_build"] is False
    assert tf.CXX11_ABI_FLAG == tf.sysconfig.CXX11_ABI_FLAG in (0, 1)
    assert tf.CXX_VERSION == tf.sysconfig.CXX_VERSION >= 201703
    assert tf.MONOLITHIC_BUILD == tf.sysconfig.MONOLITHIC_BUILD == 0


def test_files_beside_the_program() -> None:
    folder = str(Path(__file__).parent)
    assert tf.resource_loader.get_data_files_path() == folder
    assert tf.resource_loader.get_root_dir_with_all_resources() == folder
    assert tf.resource_loader.get_path_to_datafile("a/b") == os.path.join(folder, "a/b")
    assert tf.resource_loader.readahead_file_path("x") == "x"
    assert tf.resource_loader.load_resource("__init__.py").startswith(b'"""Flowstone')
    with pytest.raises(OSError, match="nothing"):
        tf.resource_loader.load_resource("nothing")


def test_future_features_are_initializers_by_accident() -> None:
    for name in ("absolute_import", "division", "print_function"):
        assert getattr(tf.initializers, name).getMandatoryRelease()[0] == 3


IO_OF_OTHERS = {
    "tf": "FixedLenFeature FixedLenSequenceFeature PaddingFIFOQueue PriorityQueue QueueBase"
    " RandomShuffleQueue"
    " SparseFeature VarLenFeature decode_base64 decode_compressed decode_csv decode_json_example decode_raw"
    " deserialize_many_sparse encode_base64 matching_files parse_example parse_single_example"
    " parse_single_sequence_example parse_tensor read_file serialize_many_sparse serialize_sparse"
    " serialize_tensor write_file",
    "tf.image": "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg"
    " encode_png extract_jpeg_shape is_jpeg",
    "tf.python_io": "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
    "tf.train": "match_filenames_once write_graph",
}


def test_names_of_files_are_those_elsewhere() -> None:
    for owner, names in IO_OF_OTHERS.items():
        other = tf if owner == "tf" else getattr(tf, owner.removeprefix("tf."))
        for name in names.split():
            assert getattr(tf.io, name) is getattr(other, name)
    assert "parse_sequence_example" in dir(tf.io)


def test_another_method_for_a_signature(tmp_path: Path) -> None:
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [], "x")
        v = tf.Variable(2.0)
        session.run(v.initializer)
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": x * v})
    assert tf.saved_model.contains_saved_model(folder)
    updater = tf.saved_model.signature_def_utils.MethodNameUpdater(folder)
    updater.replace_method_name("serving_default", "another", tags="serve")
    updater.save(str(tmp_path / "other"))
    updater.replace_method_name("serving_default", "one/more")
    updater.save()
    for where, name in ((tmp_path / "other", "another"), (folder, "one/more")):
        changed = tf.saved_model.signature_def_utils.MethodNameUpdater(str(where))
        assert changed._model.meta_graphs[0].signature_def["serving_default"].method_name == name
    for key, method, tags in (("", "m", None), ("k", "", None), ("k", "m", None), ("k", "m", ["gpu"])):
        with pytest.raises(ValueError):
            updater.replace_method_name(key, method, tags)


def test_warm_start(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("a\nb\nc\n")
    (tmp_path / "new").write_text("c\nd\na\n")
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("table", initializer=[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        before = tf.get_variable("before", initializer=[4.0])
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "ck"))
        del table, before
    info = tf.train.VocabInfo(
        str(tmp_path / "new"), 3, 1, str(tmp_path / "old"), backup_initializer=tf.constant_initializer(9.0)
    )
    with tf.Graph().as_default():
        table = tf.get_variable("table", [4, 2])
        after = tf.get_variable("after", [1])
        with pytest.raises(ValueError, match="not warm-started"):
            tf.train.warm_start(path, "after", {"table": info})
        tf.train.warm_start(str(tmp_path), ".*", {"table": info}, {"after": "before"})
        found = value([table, after])
    np.testing.assert_array_equal(found[0], [[3, 3], [9, 9], [1, 1], [9, 9]])
    np.testing.assert_array_equal(found[1], [4])


@pytest.mark.parametrize("wanted", [3, [3], ["w", 3]])
def test_warm_start_refuses_other_lists(wanted: Any) -> None:
    with pytest.raises(ValueError, match="vars_to_warm_start must be"):
        tf.train.warm_start("/nowhere", wanted)


def test_warm_start_of_named_variables(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", initializer=[1.0])
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "ck"))
    for wanted in (["v"], None, "v"):
        with tf.Graph().as_default():
            v = tf.get_variable("v", initializer=[5.0])
            tf.get_variable("w", initializer=[6.0])
            tf.train.warm_start(path, [v] if wanted == "v" else wanted)
            assert value(v).tolist() == [5.0 if wanted is None else 1.0]
