"""h5py as version 2 was, in a program that `flowstone run` runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flowstone.compat.older_python import stored_arrays
from installed_programs import run_as_program


def test_text_can_be_decoded() -> None:
    text = stored_arrays.Text("word")
    assert text.decode("utf8") == text == "word"
    assert not stored_arrays._decodable(np.array([]))


def test_files(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    result = run_as_program(
        f"""
        import h5py
        name = {str(tmp_path / "a.h5")!r}
        with h5py.File(name) as f:
            f["x"] = [[1, 2]]
            f.attrs["name"] = "dense"
            f.attrs["names"] = [b"one", b"three"]
        f = h5py.File(name)
        f["y"] = 3
        print(f["x"].value.tolist(), f["y"].value, f.attrs["name"].decode("utf8"), f.attrs["names"].dtype)
        print(isinstance(f, h5py.File), type(f["x"].attrs).__name__, f.mode)
        """,
        tmp_path,
    )
    assert result.stdout.splitlines() == [
        "[[1, 2]] 3 dense |S5",
        "True AttributeManager r+",
    ], result.stderr
