"""The public namespaces offer the rooms' names, and nothing of Python's own by accident."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import flowstone as tf


def test_another_name_is_the_same_function() -> None:
    assert tf.math.log is tf.log
    assert tf.random.normal is tf.random_normal
    assert tf.linalg.diag is tf.matrix_diag
    assert tf.initializers.zeros is tf.zeros_initializer
    assert tf.debugging.assert_equal is tf.assert_equal
    assert tf.dtypes.float32 is tf.float32
    assert tf.nn.sigmoid is tf.sigmoid
    assert tf.manip.reshape is tf.reshape
    assert tf.image.extract_image_patches is tf.extract_image_patches
    assert tf.errors.OpError is tf.OpError
    assert tf.compat.v1 is tf


def test_names_of_one_namespace_stay_there() -> None:
    for name in ("relu", "conv2d", "bitwise_and", "moments"):
        assert not hasattr(tf, name)


@pytest.mark.parametrize(
    "name",
    ["ConfigProto", "GraphDef", "NodeDef", "Summary", "Event", "RunMetadata", "TensorInfo", "AttrValue"],
)
def test_messages_are_found_when_asked_for(name: str) -> None:
    message = getattr(tf, name)
    assert message.DESCRIPTOR.name == name
    assert name in dir(tf)


def test_messages_of_namespaces() -> None:
    for message in (
        tf.train.Example, tf.train.SequenceExample, tf.train.ServerDef, tf.train.SaverDef, tf.summary.Event,
        tf.summary.SummaryDescription, tf.profiler.AdviceProto, tf.profiler.OpLogProto,
    ):  # fmt: skip
        assert message().SerializeToString() == b""
    assert tf.train.ServerDef(cluster=tf.train.ClusterDef(job=[tf.train.JobDef(name="ps")])).ByteSize() == 8
    assert "Example" in dir(tf.train) and "Event" in dir(tf.summary)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"flowstone .*nonsense"):
        tf.nonsense  # noqa: B018


def test_importing_loads_no_heavy_package() -> None:
    code = (
        "import torch, sys; before = set(sys.modules); import flowstone; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(loaded.split()) <= {"flowstone", "ml_dtypes"}


def test_namespaces_are_modules_of_flowstone() -> None:
    for name in ("app", "bitwise", "flags", "linalg", "logging", "math", "nn", "random", "test", "train"):
        module = getattr(tf, name)
        assert isinstance(module, ModuleType)
        assert module.__name__ == f"flowstone.{name}"
