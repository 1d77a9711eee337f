"""Checkpoints of TensorFlow's are read, and what TensorFlow read of ours is written still, byte by byte."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowstone.io.checkpoint_files.checkpoints import checkpoint_exists, checkpoint_paths, open_checkpoint
from flowstone.io.checkpoint_files.slices import TensorSlice

GOLDEN = Path(__file__).parents[2] / "golden"
FOLDER = GOLDEN / "checkpoints"


@pytest.fixture(scope="module")
def goldens() -> Any:
    """The script that makes them."""
    sys.path.insert(0, str(GOLDEN))
    try:
        import make_checkpoint_goldens
    finally:
        sys.path.remove(str(GOLDEN))
    return make_checkpoint_goldens


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_tensorflows_are_read(goldens: Any, name: str) -> None:
    values = goldens.tensors() if name == "v2" else goldens.v1_tensors()
    with open_checkpoint(FOLDER / name) as reader:
        assert reader.names() == sorted(values)
        for key, value in values.items():
            read = reader.read(key)
            entry = reader.entry(key)
            assert read.dtype == value.dtype and read.shape == value.shape == entry.shape, key
            assert np.array_equal(read, value), key
            assert key in reader
        assert "no" not in reader


@pytest.mark.parametrize("name", ["v1", "v2"])
@pytest.mark.parametrize("part", ["1,3:1,2", "-:-", "0,2:-", "4,1:3,1", "2,1:-"])
def test_parts_of_parts(goldens: Any, name: str, part: str) -> None:
    whole = goldens.tensors()["parts"]
    wanted = TensorSlice.parse(part)
    with open_checkpoint(FOLDER / name) as reader:
        assert np.array_equal(reader.read("parts", wanted), whole[wanted.where(whole.shape)])
        strings = reader.read("strings", TensorSlice.parse("1,1:-"))
        assert np.array_equal(strings, goldens.tensors()["strings"][1:])


def test_what_tensorflow_read_is_what_is_written(goldens: Any, tmp_path: Path) -> None:
    goldens.ours(tmp_path)
    note = json.loads(goldens.NOTE.read_text())
    for name in ("v1", "v2"):
        files = sorted(tmp_path.glob(f"{name}*"))
        made = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        assert made == note[name]["files"]
        assert note[name]["releases"] == ["1.15.5", "2.21.0"]


def test_files_of_a_checkpoint() -> None:
    def names(prefix: str) -> list[str]:
        return [Path(path).name for path in checkpoint_paths(FOLDER / prefix)]

    assert names("v2") == ["v2.index", "v2.data-00000-of-00001"] and names("v1") == ["v1"]
    assert checkpoint_exists(FOLDER / "v2") and checkpoint_exists(FOLDER / "v?")
    assert not checkpoint_exists(FOLDER / "v3") and names("v3") == []
