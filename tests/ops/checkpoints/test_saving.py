"""Save, restore and merge as operations: both formats, parts, names of shards, and bad input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import errors
from flowstone.framework.declarations.operation import F

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_both_formats_and_parts(session: Any, tmp_path: Path) -> None:
    new, old = str(tmp_path / "new" / "m"), str(tmp_path / "old")
    session.run(F.SaveV2.operation(new, ["m", "t"], ["", "4 0,2"], [MATRIX, [b"a", b"b"]]))
    session.run(F.SaveV2.operation(new + "2", ["t"], ["4 2,2"], [[b"c", b"d"]]))
    session.run(F.MergeV2Checkpoints.operation([new, new + "2"], str(tmp_path / "merged")))
    session.run(F.SaveSlices.operation(old, ["m", "m"], ["3 4 0,1:-", "3 4 1,2:-"], [MATRIX[:1], MATRIX[1:]]))
    session.run(F.Save.operation(old + "-whole", ["m"], [MATRIX]))
    m, t = session.run(
        F.RestoreV2(str(tmp_path / "merged"), ["m", "t"], ["", ""], dtypes=[tf.float32, tf.string])
    )
    assert m.tolist() == MATRIX.tolist() and t.tolist() == [b"a", b"b", b"c", b"d"]
    part = F.RestoreSlice(old, "m", "3 4 1,2:0,3", dt=tf.float32)
    assert part.shape.as_list() == [2, 3]
    assert session.run(part).tolist() == MATRIX[1:, :3].tolist()
    assert session.run(F.Restore(old + "-whole", "m", dt=tf.float32)).tolist() == MATRIX.tolist()
    assert not (tmp_path / "new").exists()  # merging takes the old folders away


def test_names_of_shards(session: Any) -> None:
    assert session.run(F.ShardedFilename("m", 3, 12)) == b"m-00003-of-00012"
    assert session.run(F.ShardedFilespec("m", 12)) == b"m-?????-of-00012"


@pytest.mark.parametrize(
    ("names", "parts", "values", "message"),
    [
        (["a"], ["", ""], [MATRIX], "Got 2 shapes and slices but 1 tensor names"),
        (["a", "b"], ["", ""], [MATRIX], "Got 2 tensor names but 1 tensors"),
        (["a"], ["3 4"], [MATRIX], "Expected a pair of numbers"),
        (["a"], ["3 4 0,9:-"], [MATRIX], "has no part"),
        (["a"], ["x 4 0,1:-"], [MATRIX], "dimensions of a shape"),
        (["a"], ["3 4 0,2:-"], [MATRIX], "is not the shape of part"),
        (["a", "a"], ["", ""], [MATRIX, MATRIX], "Adding duplicate key: a"),
    ],
)
def test_bad_input_is_named(
    session: Any, tmp_path: Path, names: Any, parts: Any, values: Any, message: str
) -> None:
    save = F.SaveV2.operation(str(tmp_path / "m"), names, parts, values)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        session.run(save)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_is_not_there(session: Any, tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="No such checkpoint"):
        session.run(F.RestoreV2(str(tmp_path / "m"), ["a"], [""], dtypes=[tf.float32]))


def test_a_step_with_a_time_limit_does_not_wait_for_a_file(session: Any, tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "m")
    restore = F.Restore(str(tmp_path / "m"), "a", dt=tf.float32)
    with pytest.raises(errors.DeadlineExceededError):
        session.run(restore, options=tf.RunOptions(timeout_in_ms=100))
    with open(tmp_path / "m", "wb"):  # the reader's thread ends
        pass


def test_variables_in_another_order_are_written_in_their_shapes(session: Any, tmp_path: Path) -> None:
    """A filter lies in its kernel's order in memory after a step with it."""
    filters = np.random.default_rng(0).standard_normal((3, 3, 8, 16)).astype(np.float32)
    variable = tf.Variable(filters, name="filters")
    result = tf.nn.conv2d(tf.ones([2, 16, 16, 8]), variable, [1, 1, 1, 1], "SAME")
    session.run(variable.initializer)
    for _ in range(3):
        session.run(result)
    path = tf.train.Saver([variable]).save(session, str(tmp_path / "m"))
    assert np.array_equal(tf.train.load_variable(path, "filters"), filters)
