"""The golden files of the op table: what the oracle answered to each case of one family.

One npz a family, read and written as a whole: `{case id: {key: entry}}`. An entry is an array or plain JSON
data. To stay small, all arrays of one dtype lie end to end in one array of the npz, and the JSON text `index`
says for each case and key `[dtype, shape, first element]`, or `{"json": data}`.

Keys of a case (an input in a list argument has a position like `1.0`):

- `dtypes`: the names of the outputs' dtypes; `out/<output>`: the values;
- `shape/constants`, `shape/placeholders`, `shape/unknown`: the static shapes inferred for the outputs when
  the inputs are constants, placeholders of the full shape, placeholders of unknown rank; a shape is a list,
  null where unknown;
- `grad/<input>`: the gradient with respect to an input, densified; null where the oracle says None;
- `nograd`: why the oracle has no gradients for this case;
- `after/<input>`: the value of a variable after the run, absent if it is uninitialized;
- `error`: for each of `constants`, `placeholders`, `unknown`: `[stage, class]`, the stage being `build`,
  `run` or `none`.

>>> import tempfile
>>> path = tempfile.mkdtemp() + "/sample.npz"
>>> write(path, {"Add-2": {"out/0": np.array([1.5, 2.0], np.float32), "error": {"unknown": ["run", "X"]}}})
>>> read(path)
{'Add-2': {'error': {'unknown': ['run', 'X']}, 'out/0': array([1.5, 2. ], dtype=float32)}}
"""

from __future__ import annotations

import json
import os
import pathlib
import zipfile
from typing import Any

import ml_dtypes
import numpy as np

DIRECTORY = pathlib.Path(__file__).parents[1] / "golden" / "ops"
Entries = dict[str, dict[str, Any]]
EARLIEST = (1980, 1, 1, 0, 0, 0)


def read(path: str | os.PathLike[str]) -> Entries:
    """The entries of a golden file; bfloat16 as `ml_dtypes.bfloat16`, strings as object arrays of bytes."""
    with np.load(path) as file:
        stored = {name: file[name] for name in file.files}
    index = json.loads(stored.pop("index").tobytes())
    return {
        name: {key: _unpack(place, stored) for key, place in entries.items()}
        for name, entries in index.items()
    }


def write(path: str | os.PathLike[str], cases: Entries) -> None:
    """Write a golden file. Equal entries give an equal file, byte for byte."""
    index: dict[str, dict[str, Any]] = {}
    parts: dict[str, list[np.ndarray]] = {}
    lengths: dict[str, int] = {}
    for name, entries in sorted(cases.items()):
        index[name] = {}
        for key, value in sorted(entries.items()):
            if not isinstance(value, np.ndarray):
                index[name][key] = {"json": value}
            elif value.dtype == object:
                texts = [item.decode("latin-1") for item in value.reshape(-1)]
                index[name][key] = ["string", list(value.shape), texts]
            else:
                dtype = value.dtype.name
                flat = value.reshape(-1)
                parts.setdefault(dtype, []).append(flat.view(np.uint16) if dtype == "bfloat16" else flat)
                index[name][key] = [dtype, list(value.shape), lengths.get(dtype, 0)]
                lengths[dtype] = lengths.get(dtype, 0) + flat.size
    text = json.dumps(index, separators=(",", ":")).encode()
    arrays = {"index": np.frombuffer(text, np.uint8)}
    arrays |= {dtype: np.concatenate(parts[dtype]) for dtype in sorted(parts)}
    with zipfile.ZipFile(path, "w") as archive:
        for dtype, array in arrays.items():
            place = zipfile.ZipInfo(f"{dtype}.npy", EARLIEST)
            place.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(place, "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _unpack(place: Any, stored: dict[str, np.ndarray]) -> Any:
    if isinstance(place, dict):
        return place["json"]
    dtype, shape, start = place
    if dtype == "string":
        array = np.empty(len(start), object)
        array[:] = [text.encode("latin-1") for text in start]
        return array.reshape(shape)
    flat = stored[dtype][start : start + int(np.prod(shape))]
    return (flat.view(ml_dtypes.bfloat16) if dtype == "bfloat16" else flat).reshape(shape)
