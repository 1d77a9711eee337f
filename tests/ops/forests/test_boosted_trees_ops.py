"""Operations of boosted trees against what TensorFlow 1.15 answered
(`tests/golden/make_boosted_trees_goldens.py`).
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.io.proto import boosted_trees_pb2

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE.parents[1] / "golden" / "estimators" / "boosted_trees_ops.json").read_text())


def _programs() -> Any:
    spec = importlib.util.spec_from_file_location("programs", HERE / "boosted_trees_programs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


programs = _programs()


def flat(value: Any) -> list[Any]:
    """The numbers and strings of nested lists."""
    return [one for each in value for one in flat(each)] if isinstance(value, list) else [value]


def close(found: Any, known: Any) -> None:
    """Asserts that nested lists of numbers are equal but for rounding."""
    assert np.shape(flat(found)) == np.shape(flat(known))
    np.testing.assert_allclose(
        np.array(flat(found), float), np.array(flat(known), float), rtol=2e-4, atol=2e-4
    )


def test_quantiles_and_buckets() -> None:
    for found, known in zip(programs.quantiles(tf), GOLDEN["quantiles"], strict=True):
        assert found == known


def test_best_splits() -> None:
    close(programs.gains(tf), GOLDEN["gains"])


@pytest.mark.parametrize(("case", "fields"), [(0, "nodes"), (1, "nodes"), (2, "meta"), (3, "meta")])
def test_growth(case: int, fields: str) -> None:
    found, known = programs.growth(tf)[case], GOLDEN["growth"][case]
    close(found[0], known[0])
    close(found[1], known[1])
    assert found[2] == known[2]
    own, theirs = (
        boosted_trees_pb2.TreeEnsemble.FromString(bytes.fromhex(each[3])) for each in (found, known)
    )
    assert without_numbers(own) == without_numbers(theirs)
    pruned = any(metadata.post_pruned_nodes_meta for metadata in theirs.tree_metadata)
    assert pruned == (fields == "meta")
    for mine, its in zip(found[4], known[4], strict=True):
        way, known_way = (
            boosted_trees_pb2.DebugOutput.FromString(bytes.fromhex(each)) for each in (mine, its)
        )
        assert way.feature_ids == known_way.feature_ids
        np.testing.assert_allclose(way.logits_path, known_way.logits_path, atol=1e-5)


def without_numbers(ensemble: Any) -> str:
    """The text of an ensemble, its floats rounded."""
    words = str(ensemble).split()
    return " ".join(f"{float(word):.3f}" if "." in word or "e-" in word else word for word in words)


def test_a_bucket_more_than_there_are_counts_as_the_last() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        summary = tf.raw_ops.BoostedTreesMakeStatsSummary(
            node_ids=[0, 1],
            gradients=[[1.0], [2.0]],
            hessians=[[1.0], [1.0]],
            bucketized_features_list=[[2, 1]],
            max_splits=2,
            num_buckets=2,
        )
        np.testing.assert_array_equal(session.run(summary)[0, :, :, 0], [[0, 1], [0, 2]])


@pytest.mark.parametrize("place", [-1, 2])
def test_nodes_out_of_range_are_refused(place: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        summary = tf.raw_ops.BoostedTreesMakeStatsSummary(
            node_ids=[place],
            gradients=[[1.0]],
            hessians=[[1.0]],
            bucketized_features_list=[[0]],
            max_splits=2,
            num_buckets=2,
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match="nodes must be in"):
            session.run(summary)


def test_resources_before_they_are_made() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ensemble = tf.raw_ops.BoostedTreesEnsembleResourceHandleOp(container="", shared_name="")
        streams = tf.raw_ops.BoostedTreesQuantileStreamResourceHandleOp(container="", shared_name="")
        ready = [
            tf.raw_ops.IsBoostedTreesEnsembleInitialized(tree_ensemble_handle=ensemble),
            tf.raw_ops.IsBoostedTreesQuantileStreamResourceInitialized(
                quantile_stream_resource_handle=streams
            ),
        ]
        assert session.run(ready) == [False, False]
        with pytest.raises(tf.errors.FailedPreconditionError, match="run its initializer"):
            session.run(tf.raw_ops.BoostedTreesSerializeEnsemble(tree_ensemble_handle=ensemble))
        with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to parse"):
            session.run(
                tf.raw_ops.BoostedTreesCreateEnsemble(
                    tree_ensemble_handle=ensemble, stamp_token=0, tree_ensemble_serialized=b"\xff"
                )
            )
