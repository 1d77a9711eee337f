"""Matrices of models with other vocabularies: the values and errors of TensorFlow 2.21."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

FILES = {"new": "a\nb\nc\nd\ne\n", "old": "c\nx\na\ne", "twice": "a\na\nb\n", "empty": ""}
errors = tf.errors
INVALID, UNKNOWN = errors.InvalidArgumentError, errors.UnimplementedError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.Variable(matrix, name="m")
        tf.get_variable("p", initializer=tf.constant(matrix + 100), partitioner=tf.fixed_size_partitioner(2))
        tf.Variable([1.0, 2.0], name="v")
        tf.Variable(np.zeros([2, 2]), name="d")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, "./model", write_meta_graph=False)


def run(make: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())


def remapped(new: str, old: str, offset: int, count: int, **more: Any) -> Any:
    words = {"new_vocab_file": new, "old_vocab_file": old, "new_vocab_offset": offset, **more}
    found = run(lambda: tf.raw_ops.GenerateVocabRemapping(num_new_vocab=count, **words))
    return found[0].tolist(), int(found[1])


def loaded(name: str, rows: Any, columns: Any, values: Any, shape: tuple[int, int], **more: Any) -> Any:
    return run(lambda: tf.raw_ops.LoadAndRemapMatrix(
        ckpt_path="model", old_tensor_name=name, row_remapping=np.array(rows, np.int64),
        col_remapping=np.array(columns, np.int64), initializing_values=np.array(values, np.float32),
        num_rows=shape[0], num_cols=shape[1], **more)).tolist()  # fmt: skip


def test_where_the_entries_of_a_vocabulary_were() -> None:
    assert remapped("new", "old", 0, 5) == ([2, -1, 0, -1, 3], 3)
    assert remapped("new", "old", 1, 3) == ([-1, 0, -1], 1)
    assert remapped("new", "old", 2, 0) == ([], 0)
    assert remapped("twice", "old", 0, 3) == ([2, 2, -1], 2)
    assert remapped("new", "old", 0, 5, old_vocab_size=2) == ([-1, -1, 0, -1, -1], 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("new", "old", 3, 3), INVALID, "new has 5 lines, but entries 3 to 6"),
        (("new", "nowhere", 0, 2), errors.NotFoundError, "nowhere"),
        (("nowhere", "old", 0, 2), errors.NotFoundError, "nowhere"),
        (("new", "twice", 0, 2), errors.FailedPreconditionError, "has the entry a twice, in lines 0 and 1"),
        (("new", "empty", 0, 2), errors.OutOfRangeError, "empty"),
    ],
)  # fmt: skip
def test_vocabularies_that_cannot_be_compared(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        remapped(*arguments)


def test_matrices_in_another_order() -> None:
    assert loaded("m", [0, 2], [], [], (2, 3)) == [[0, 1, 2], [6, 7, 8]]
    assert loaded("m", [3, -1, 0], [], [7, 8, 9], (3, 3)) == [[9, 10, 11], [7, 8, 9], [0, 1, 2]]
    assert loaded("m", [3, -1, 0], [2, 0], [7, 8], (3, 2)) == [[11, 9], [7, 8], [2, 0]]
    assert loaded("m", [-1, 1], [2, -1], [7, 8, 9], (2, 2)) == [[7, 8], [5, 9]]
    assert loaded("p", [0, 3, 2], [1], [], (3, 1)) == [[101], [110], [107]]
    assert loaded("m", [-2], [], [1, 2, 3], (1, 3)) == [[1, 2, 3]]
    assert np.array(loaded("m", [], [], [], (0, 3))).size == 0
    for most in (1, 2, 9):
        assert loaded("p", [3, 1], [2, -1], [7, 8], (2, 2), max_rows_in_memory=most) == [[111, 7], [105, 8]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("m", [0, 0], [], [], (2, 3)), UNKNOWN, "Old ID 0 is mapped to both new ID 0 and 1"),
        (("m", [0], [1, 1], [], (1, 2)), UNKNOWN, "Old ID 1 is mapped to both"),
        (("m", [4], [], [], (1, 3)), INVALID, "row_remapping names entry 4, but tensor m"),
        (("m", [0], [3], [], (1, 1)), INVALID, "col_remapping names entry 3"),
        (("m", [0, 1], [], [], (3, 3)), INVALID, "instead of being equal to num_rows=3"),
        (("m", [0], [0], [], (1, 2)), INVALID, "instead of being equal to num_cols=2"),
        (("m", [0], [], [], (1, 2)), INVALID, "size of its 2nd dimension is 3"),
        (("m", [-1], [], [1], (1, 3)), INVALID, "1 elements, but more missing values remain"),
        (("m", [0], [], [1], (1, 3)), INVALID, "but only 0 elements were used"),
        (("m", [[0]], [], [], (1, 3)), INVALID, "must be 1-D"),
        (("v", [0], [], [], (1, 1)), INVALID, "instead of expected shape of rank 2"),
        (("d", [0], [], [], (1, 2)), INVALID, "invalid type float64"),
        (("zz", [0], [], [], (1, 2)), errors.NotFoundError, "zz"),
    ],
)  # fmt: skip
def test_matrices_that_do_not_fit(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        loaded(*arguments)
