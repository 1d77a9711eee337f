"""V1 checkpoints: what is written is read; what is damaged or does not fit is said so."""

from __future__ import annotations

import random
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from flowstone.framework import errors
from flowstone.io.checkpoint_files.slices import TensorSlice
from flowstone.io.checkpoint_files.v1_files import V1Reader, write_v1

A = np.arange(12, dtype=np.float32).reshape(3, 4)
GOLDEN = Path(__file__).parents[2] / "golden/checkpoints/v1"


def test_values(tmp_path: Path) -> None:
    values = {
        "bfloat16": np.arange(5).astype(ml_dtypes.bfloat16),
        "columns": np.asfortranarray(A),
        "complex": np.array([1 + 2j, 3]),
        "scalar": np.int64(-(2**60)),
        "strings": np.array([[b"", b"\xff\0"]], object),
        "empty": A[:0],
    }
    write_v1(tmp_path / "m", [(name, value, None) for name, value in values.items()])
    with V1Reader(tmp_path / "m") as reader:
        assert reader.names() == sorted(values)
        for name, value in values.items():
            array = reader.read(name)
            assert array.dtype == value.dtype and array.shape == value.shape, name
            assert np.array_equal(array, value), name


def test_files_of_a_pattern(tmp_path: Path) -> None:
    for number in (0, 1):
        part = TensorSlice.parse(f"{number},{number + 1}:-")
        tensors = [(f"v{number}", A, None), ("w", A[part.where(A.shape)], (A.shape, part))]
        write_v1(tmp_path / f"m-{number:05d}-of-00002", tensors)
    with V1Reader(tmp_path / "m-?????-of-?????") as reader:
        assert reader.names() == ["v0", "v1", "w"]
        assert np.array_equal(reader.read("w"), A)
        assert np.array_equal(reader.read("w", TensorSlice.parse("0,2:1,2")), A[:2, 1:3])
    with (
        V1Reader(tmp_path / "m-00000-of-00002") as reader,
        pytest.raises(errors.NotFoundError, match="has not all of part -:- of tensor w"),
    ):
        reader.read("w")


def test_what_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="no; No such file"):
        V1Reader(tmp_path / "no")
    write_v1(tmp_path / "m", [("v", A, None)])
    with V1Reader(tmp_path / "m") as reader:
        with pytest.raises(errors.NotFoundError, match="Key w not found in checkpoint"):
            reader.read("w")
        with pytest.raises(
            errors.InvalidArgumentError, match=r"tensor v of shape \(3, 4\) has no part 0,4:-"
        ):
            reader.read("v", TensorSlice.parse("0,4:-"))
    part = TensorSlice.parse("0,1:-")
    for tensors in (
        [("v", A, None), ("v", A, None)],
        [("v", A, (A.shape, part))],
        [("v", A[:1], (A.shape, part)), ("v", A.astype(int)[1:2], (A.shape, TensorSlice.parse("1,1:-")))],
        [("v", A[:1], ((1, 4, 1), part))],
    ):
        with pytest.raises(errors.InvalidArgumentError, match="tensor v"):
            write_v1(tmp_path / "new", tensors)
    assert not (tmp_path / "new").exists()


def test_flipped_bits(tmp_path: Path) -> None:
    """Of a file of TensorFlow's, which is compressed."""
    whole = GOLDEN.read_bytes()
    rng = random.Random(0)
    for _ in range(300):
        damaged = bytearray(whole)
        bit = rng.randrange(8 * (len(whole) - 48))
        damaged[bit // 8] ^= 1 << bit % 8
        (tmp_path / "m").write_bytes(damaged)
        with pytest.raises(errors.DataLossError, match="m; corrupt at"), V1Reader(tmp_path / "m") as reader:
            for name in reader.names():
                reader.read(name)


def test_truncations(tmp_path: Path) -> None:
    whole = GOLDEN.read_bytes()
    for end in (0, 1, 47, 48, 49, len(whole) // 2, len(whole) - 1):
        (tmp_path / "m").write_bytes(whole[:end])
        with pytest.raises(errors.DataLossError, match="not an sstable"):
            V1Reader(tmp_path / "m")


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(errors.DataLossError, match="Is a directory"):
        V1Reader(tmp_path)
