"""`tf.contrib.lookup` gives what TensorFlow 1.15.5 gives; `make_contrib_lookup_goldens.py` asks it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.contrib.lookup import lookup_programs

import flowstone as tf

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "contrib" / "lookup.json").read_text(encoding="utf-8")
)


def test_look_ups_names_and_errors_are_tensorflows(tmp_path: Path) -> None:
    found = lookup_programs.run(tf, tmp_path)
    assert set(found) == set(GOLDEN)
    different = {name: (found[name], GOLDEN[name]) for name in GOLDEN if found[name] != GOLDEN[name]}
    floats = {"numbers", "dense"}
    assert set(different) <= floats
    for name in floats:
        assert found[name][0] == GOLDEN[name][0]
        assert found[name][1] == pytest.approx(GOLDEN[name][1])


def test_classes_are_those_of_the_rest_of_the_module() -> None:
    lookup = tf.contrib.lookup
    with tf.Graph().as_default():
        table = lookup.HashTable(lookup.KeyValueTensorInitializer(["a"], [1]), -1)
        assert isinstance(table, lookup.InitializableLookupTableBase)
        assert isinstance(table, lookup.LookupInterface)
        assert issubclass(lookup.TextFileInitializer, lookup.TableInitializerBase)
    assert lookup.FastHashSpec == lookup.HasherSpec("fasthash", None)
    assert lookup.lookup_ops.HashTable is lookup.HashTable
