"""The operations of `tf.contrib.boosted_trees` find what TensorFlow 1.15's do."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format
from google.protobuf.message import DecodeError

import flowstone as tf
from flowstone.framework.declarations.op_functions import positional
from flowstone.io.proto import learner_pb2, quantiles_pb2, split_info_pb2, tree_config_pb2

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import tree_programs  # noqa: E402

sys.path.remove(str(HERE))
GOLDEN = json.loads((HERE.parents[1] / "golden/contrib/boosted_trees.json").read_text())
MODULES = (tree_config_pb2, split_info_pb2, learner_pb2, quantiles_pb2)
MESSAGES = types.SimpleNamespace(
    **{name: getattr(module, name) for module in MODULES for name in module.DESCRIPTOR.message_types_by_name}
)
PROGRAMS = tree_programs.programs(MESSAGES)


def call(name: str, **inputs: Any) -> Any:
    return positional(name)(**inputs)


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    return value


def message_of(text: bytes, kind: str) -> Any:
    return json_format.MessageToDict(getattr(MESSAGES, kind).FromString(text))


KINDS = {
    "splits": "SplitInfo",
    "splits of a layer": "ObliviousSplitInfo",
    "quantiles": "QuantileStreamState",
    "even": "QuantileStreamState",
}


def check(found: Any, expected: Any, kind: str, where: str) -> None:
    if isinstance(expected, bytes):
        for each in (kind, "QuantileSummaryState"):
            try:
                texts = message_of(found, each), message_of(expected, each)
                break
            except DecodeError:
                continue
        check(*texts, kind, where)
    elif isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            check(found[key], expected[key], kind, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for at, (one, other) in enumerate(zip(found, expected, strict=True)):
            check(one, other, kind, f"{where}[{at}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=2e-5, abs=2e-6), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_programs(name: str) -> None:
    kind = "DecisionTreeEnsembleConfig"
    for start, each in KINDS.items():
        if name.startswith(start):
            kind = each
    with tf.Graph().as_default(), tf.Session() as session:
        found = plain(PROGRAMS[name](call, session.run))
    check(found, plain(GOLDEN[name]), kind, name)
