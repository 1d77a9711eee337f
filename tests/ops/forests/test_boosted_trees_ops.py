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
from flowstone.io.proto import boosted_trees_pb2, quantiles_pb2
from flowstone.ops.forests import quantile_accumulators
from flowstone.ops.forests.stats_accumulators import Sums
from flowstone.ops.forests.weighted_quantiles import Summary

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


def compressed_slowly(summary: Summary, size: int, least_error: float) -> np.ndarray[Any, Any]:
    """What `Summary.compressed` keeps, one entry after the other."""
    entries = summary.entries
    count, gap = len(entries), summary.total_weight * max(1.0 / size, least_error)
    before, after = (entries[:, 3] - entries[:, 1]).tolist(), (entries[:, 2] + entries[:, 1]).tolist()
    kept, credit = [0], 0
    while kept[-1] + 1 < count:
        ahead = kept[-1] + 1
        while ahead < count and credit < count and before[ahead] - after[kept[-1]] <= gap:
            credit, ahead = credit + size, ahead + 1
        kept.append(max(kept[-1] + 1, ahead - 1))
        credit -= count
    return entries[kept]


@pytest.mark.parametrize("spread", [0.0, 0.5, 4.0])
def test_a_compressed_summary_keeps_entries_by_gap_and_credit(spread: float) -> None:
    draws = np.random.RandomState(3)
    for count in (3, 40, 700):
        values, weights = draws.rand(count), 10 ** (spread * draws.randn(count))
        summary = Summary.of(values.astype(np.float32), weights.astype(np.float32))
        for size, error in ((2, 0.0), (30, 0.0), (300, 0.1)):
            if count > size:
                expected = compressed_slowly(summary, size, error)
                np.testing.assert_array_equal(summary.compressed(size, error).entries, expected)


def test_summaries_are_written_and_read_as_messages() -> None:
    draws = np.random.RandomState(5)
    entries = draws.randn(40, 4).astype(np.float32)
    entries[draws.rand(40, 4) < 0.3] = 0.0
    entries[7, 2] = -0.0
    message = quantiles_pb2.QuantileSummaryState()
    for value, weight, least, greatest in entries.tolist():
        message.entries.add(value=value, weight=weight, min_rank=least, max_rank=greatest)
    text = message.SerializeToString()
    assert quantile_accumulators._serialized(Summary(entries)) == text
    in_other_order = b"\x0a\x0a" + b"\x15\0\0\x80\x3f" + b"\x0d\0\0\0\x40"
    for each, known in ((text, entries), (b"", np.zeros((0, 4))), (in_other_order, [[2.0, 1.0, 0.0, 0.0]])):
        np.testing.assert_array_equal(quantile_accumulators._summary_of_text(each).entries, known)


@pytest.mark.parametrize("widest", [9, 1 << 40])
def test_rows_of_a_node_and_feature_are_summed_in_the_order_in_which_they_come(widest: int) -> None:
    draws = np.random.RandomState(7)
    nodes, ids = draws.randint(0, 4, 300).astype(np.int32), draws.choice([-1, 2, widest], 300)
    features, terms = np.stack([ids, draws.randint(0, 2, 300)], 1), draws.randn(300, 2, 2).astype(np.float32)
    found = Sums(nodes, features, terms, terms[:, 0]).summed()
    known: dict[tuple[int, int, int], Any] = {}
    for node, (feature, dimension), term in zip(nodes.tolist(), features.tolist(), terms, strict=True):
        key = node, dimension, feature
        known[key] = known.get(key, np.float32(0)) + term
    keys = sorted(known)
    assert [(node, b, a) for node, (a, b) in zip(found.nodes, found.features.tolist(), strict=True)] == keys
    np.testing.assert_array_equal(found.gradients, np.stack([known[key] for key in keys]))
    np.testing.assert_array_equal(found.hessians, found.gradients[:, 0])
