"""What the processor and torch offer: addresses, widths, and reasons why there is nothing."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import pathlib

import pytest
import torch

from flowstone.framework import flags
from flowstone.framework.declarations.containers import Variable
from flowstone.native.codegen import host


def test_there_is_a_tier_here() -> None:
    assert host.reason() == ""
    assert host.lanes() in (4, 8, 16)
    assert host.has("aoti_torch_get_data_ptr") and not host.has("aoti_torch_no_such_function")
    assert host.symbols()["flowstone_tensor_type"] == id(torch.Tensor)


def test_without_llvmlite_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert host.reason.__wrapped__() == "the package llvmlite is not installed"


def test_a_torch_without_a_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "has", lambda name: name != "aoti_torch_get_numel")
    assert host.reason.__wrapped__() == "this build of torch has no aoti_torch_get_numel"


def test_another_layout_of_tensors_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "HANDLE_OFFSET", 24)
    assert "another layout" in host.reason.__wrapped__()


def test_a_variable_says_where_its_tensor_is() -> None:
    variable = Variable("v")
    variable.tensor = torch.ones(2)
    place = id(variable) + host.variable_offset()
    assert ctypes.c_int64.from_address(place).value == id(variable.tensor)
    del variable.tensor
    assert ctypes.c_int64.from_address(place).value == 0


def test_llvm_is_asked_once_for_a_processor(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(host, "_described", lambda: iter(["model name: one"]))
    told = host.features.__wrapped__()
    (path,) = (tmp_path / "flowstone" / "native").glob("*.json")
    assert tuple(json.loads(path.read_text())) == told
    path.write_text(json.dumps(["another", "+wide"]))
    assert host.features.__wrapped__() == ("another", "+wide")
    path.write_text("damaged")
    assert host.features.__wrapped__() == told
    monkeypatch.setattr(host, "_described", lambda: iter(["model name: two"]))
    path.write_text(json.dumps(["another", "+wide"]))
    assert host.features.__wrapped__() == told


def test_what_a_system_does_not_describe_is_not_kept(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(host, "_described", lambda: iter([]))
    assert host.features.__wrapped__() == host.features() and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("told", "lanes"),
    [
        ("flags\t\t: fpu avx avx2", 8),
        ("flags\t: avx2 avx512f", 16),
        ("flags : sse2", 4),
        ("Features : asimd", 4),
    ],
)
def test_lanes_are_known_without_llvm(told: str, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_described", lambda: iter(["model name : one", told]))
    asked = []
    monkeypatch.setattr(host, "features", lambda: (asked.append(1), ("one", "+neon"))[1])
    assert host.lanes.__wrapped__() == lanes and len(asked) == (not told.startswith("flags"))


def test_lanes_are_those_of_llvms_features() -> None:
    found = host.features()[1].split(",")
    assert host.lanes() == (16 if "+avx512f" in found else 8 if "+avx2" in found else 4)


def test_a_processors_speed_is_no_part_of_its_description() -> None:
    assert not [line for line in host._described() if "MHz" in line]
