"""Tests of flowstone.framework.graphs.device_name; the tables are TensorFlow's own answers."""

from __future__ import annotations

import doctest
from types import SimpleNamespace
from typing import Any

import pytest

from flowstone.framework.graphs import device_name
from flowstone.framework.graphs.device_name import (
    DeviceSpec,
    canonical_name,
    check_valid,
    merge_device,
    merge_names,
)


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(device_name).failed == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", ""),
        ("/", ""),
        ("/job:w/replica:0/task:1/device:GPU:0", "/job:w/replica:0/task:1/device:GPU:0"),
        ("/job:localhost/replica:0/task:0/cpu:0", "/job:localhost/replica:0/task:0/device:CPU:0"),
        ("/gpu:0", "/device:GPU:0"),
        ("gpu:0", "/device:GPU:0"),
        ("//gpu:0", "/device:GPU:0"),
        ("/GPU:0", "/device:GPU:0"),
        ("/cpu:*", "/device:CPU:*"),
        ("/cpu", "/device:CPU:*"),
        ("/device:gpu:0", "/device:GPU:0"),
        ("/device:GPU:*", "/device:GPU:*"),
        ("/tpu:0", "/device:TPU:0"),
        ("/device:tpu:0", "/device:tpu:0"),
        ("/device:XPU:3", "/device:XPU:3"),
        ("/device:*:0", "/device:*:0"),
        ("/replica:1/job:w", "/job:w/replica:1"),
        ("/job:w/job:v", "/job:v"),
        ("/job:*", "/job:*"),
    ],
)
def test_canonical_name(name: str, expected: str) -> None:
    assert canonical_name(name) == expected
    assert canonical_name(expected) == expected
    assert canonical_name(DeviceSpec.from_string(name)) == expected
    assert DeviceSpec.from_string(name).to_string() == expected
    check_valid(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("foo", "Unknown attribute 'foo' is encountered while parsing the device spec: 'foo'"),
        ("/foo:1", "Unknown attribute 'foo'"),
        ("/job", "Unknown attribute 'job'"),
        ("/device", "Unknown attribute 'device'"),
        ("/device:GPU", "Unknown attribute 'device'"),
        ("/device:GPU:0:1", "Unknown attribute 'device'"),
        ("/gpu:0:1", "Unknown attribute 'gpu'"),
        ("/gpu:x", "invalid literal for int"),
        ("/job:w/task:*", "invalid literal for int"),
        ("/gpu:0/cpu:0", "Multiple device types are not allowed"),
        ("/gpu/device:CPU:0", "Multiple device types are not allowed"),
    ],
)
def test_malformed_names(name: str, message: str) -> None:
    for function in (canonical_name, check_valid, DeviceSpec.from_string, merge_device):
        for _ in range(2):  # the answer is remembered, the error is raised again
            with pytest.raises(ValueError, match=message):
                function(name)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("/job:w/gpu:0", "/task:1/cpu:1", "/job:w/task:1/device:CPU:1"),
        ("/gpu:0", "/cpu:*", "/device:CPU:0"),
        ("/gpu:0", "/cpu", "/device:CPU:0"),
        ("/job:w/gpu:0", "/gpu:*", "/job:w/device:GPU:0"),
        ("/job:a/gpu:*", "/job:*", "/job:*/device:GPU:*"),
        ("/gpu:1", "/job:w", "/job:w/device:GPU:1"),
        ("/task:2", "/task:0", "/task:0"),
        ("", "/gpu:0", "/device:GPU:0"),
        ("/gpu:0", "", "/device:GPU:0"),
        ("", "", ""),
    ],
)
def test_the_inner_name_wins_field_by_field(outer: str, inner: str, expected: str) -> None:
    assert merge_names(outer, inner) == expected
    assert merge_device(outer)(SimpleNamespace(device=inner)) == expected
    assert merge_device(DeviceSpec.from_string(outer))(SimpleNamespace(device=inner)) == expected
    spec = DeviceSpec.from_string(outer)
    merged = spec.make_merged_spec(DeviceSpec.from_string(inner))
    assert (merged.to_string(), spec.to_string()) == (expected, canonical_name(outer))
    spec.merge_from(DeviceSpec.from_string(inner))
    assert spec.to_string() == expected


def test_merge_device_without_a_name() -> None:
    node = SimpleNamespace(device=None)
    assert merge_device(None)(node) == ""
    assert merge_device("/gpu:0")(node) == "/device:GPU:0"
    assert merge_device("/gpu:0") is merge_device("/device:GPU:0")
    assert canonical_name(None) == ""


def test_fields() -> None:
    spec = DeviceSpec(job="w", replica="0", task=1, device_type="gpu", device_index="2")  # type: ignore[arg-type]
    fields: tuple[Any, ...] = (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index)
    assert fields == ("w", 0, 1, "GPU", 2)
    assert spec.to_string() == "/job:w/replica:0/task:1/device:GPU:2"
    assert repr(spec) == "<DeviceSpec(job=w, replica=0, task=1, device_type=GPU, device_index=2)>"
    spec.job, spec.replica, spec.task, spec.device_type, spec.device_index = "ps", None, "4", "cpu", None
    assert spec.to_string() == "/job:ps/task:4/device:CPU:*"
    assert spec.task == 4
    with pytest.raises(ValueError):
        spec.task = "x"
    assert DeviceSpec(device_index=1).to_string() == ""
    assert DeviceSpec.from_string("/gpu:*").device_index is None


def test_parsing_forgets_what_was_said() -> None:
    spec = DeviceSpec(job="w", task=1)
    assert spec.parse_from_string("/gpu:0") is spec
    assert spec.to_string() == "/device:GPU:0"


def test_parsed_specs_do_not_share_state() -> None:
    first, second = DeviceSpec.from_string("/gpu:0"), DeviceSpec.from_string("/gpu:0")
    first.device_index = 1
    assert (second.device_index, canonical_name("/gpu:0")) == (0, "/device:GPU:0")


def test_replace() -> None:
    spec = DeviceSpec(job="w")
    assert spec.replace(task=2, device_type="gpu").to_string() == "/job:w/task:2/device:GPU:*"
    assert spec.to_string() == "/job:w"
    with pytest.raises(TypeError):
        spec.replace(colour="red")


def test_equality() -> None:
    spec = DeviceSpec.from_string("/gpu:0")
    assert spec == DeviceSpec(device_type="GPU", device_index=0)
    assert hash(spec) == hash(DeviceSpec(device_type="GPU", device_index=0))
    assert spec != DeviceSpec(device_type="GPU", device_index=1)
    assert spec != "/device:GPU:0"
