"""Checkpoints of TensorFlow's, small, and whether TensorFlow reads ours.

    $TF_PYTHON tests/golden/make_checkpoint_goldens.py write     writes tests/golden/checkpoints
    python tests/golden/make_checkpoint_goldens.py ours FOLDER   writes the same tensors by ours
    $TF_PYTHON tests/golden/make_checkpoint_goldens.py read FOLDER

The last compares what TensorFlow reads from FOLDER with what it should, and notes in
`checkpoints/read_by_tensorflow.json` which release read which files, whose bytes have which checksum: the
tests write the same files again and compare the checksums.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "checkpoints"
NOTE = FOLDER / "read_by_tensorflow.json"
TYPES = [
    "bool",
    "complex128",
    "complex64",
    "float16",
    "float32",
    "float64",
    "int16",
    "int32",
    "int64",
    "int8",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]
ROWS = ((0, 2), (2, 1), (3, 2))  # (start, length) of the parts of a matrix with five rows


def tensors() -> dict[str, Any]:
    """Name and values of all tensors; those of "parts" are saved in parts."""
    values = {}
    for number, name in enumerate(TYPES):
        array = (np.arange(6) * 37 + number).reshape(2, 3) % 120
        values[f"types/{name}"] = (array % 2 == 0) if name == "bool" else array.astype(name)
    values["scalar"] = np.float32(2.5)
    values["empty"] = np.zeros((0, 4), np.float32)
    values["strings"] = np.array([[b"", b"abc"], [b"\x00\xff" * 3, "é".encode() * 100]], object)
    values["string"] = np.array(b"one", object)
    values["no_strings"] = np.zeros((0,), object)
    values["parts"] = np.arange(20, dtype=np.float32).reshape(5, 4)
    values["cube"] = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    values["scope/w é"] = np.arange(300, dtype=np.int64)
    for number in range(40):
        values[f"layer_{number:02d}/kernel"] = np.full((2,), number, np.float32)
    return values


V1_TYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8", "complex64")


def v1_tensors() -> dict[str, Any]:
    """What the older format can hold."""
    kept = {name: value for name, value in tensors().items() if not name.startswith(("types/", "no_str"))}
    del kept["empty"]
    return {**{f"types/{name}": tensors()[f"types/{name}"] for name in V1_TYPES}, **kept}


def pieces(values: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """(name, shape and slice, values) of all that is saved."""
    found = []
    for name, value in values.items():
        if name == "parts":
            found += [(name, f"5 4 {at},{size}:-", value[at : at + size]) for at, size in ROWS]
        elif name == "cube":
            ends = ((0, 3), (3, 1))
            found += [(name, f"2 3 4 -:0,3:{at},{size}", value[:, :, at : at + size]) for at, size in ends]
        else:
            found.append((name, "", value))
    return found


# ---- by TensorFlow


def write() -> None:
    import tensorflow as tf

    tf = tf.compat.v1
    FOLDER.mkdir(exist_ok=True)
    for name, values in (("v2", tensors()), ("v1", v1_tensors())):
        saved = pieces(values)
        with tf.Graph().as_default(), tf.Session() as session:
            data = [tf.constant(value) for _, _, value in saved]
            names = [each[0] for each in saved]
            slices = [each[1] for each in saved]
            prefix = str(FOLDER / name)
            if name == "v2":
                args = {"prefix": prefix, "shape_and_slices": slices, "tensors": data}
                session.run(tf.raw_ops.SaveV2(tensor_names=names, **args))
            else:
                args = {"filename": prefix, "shapes_and_slices": slices, "data": data}
                session.run(tf.raw_ops.SaveSlices(tensor_names=names, **args))


def restored(tf: Any, path: str, name: str, text: str, value: Any) -> Any:
    """What TensorFlow reads."""
    dtype = tf.as_dtype(value.dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        if path.endswith("v2"):
            args = {"tensor_names": [name], "shape_and_slices": [text], "dtypes": [dtype]}
            (tensor,) = tf.raw_ops.RestoreV2(prefix=path, **args)
        else:
            args = {"file_pattern": path, "tensor_name": name, "shape_and_slice": text, "dt": dtype}
            tensor = tf.raw_ops.RestoreSlice(**args)
        got = session.run(tensor)
    return np.array(got, object) if value.dtype == object else np.asarray(got)


def read(folder: Path) -> None:
    import tensorflow as tf

    release = tf.__version__
    tf = tf.compat.v1
    note = json.loads(NOTE.read_text()) if NOTE.exists() else {}
    for name, values in (("v2", tensors()), ("v1", v1_tensors())):
        reader = tf.train.NewCheckpointReader(str(folder / name))
        assert set(reader.get_variable_to_shape_map()) == set(values)
        part = np.float32(values["parts"][1:4, 1:3])
        wanted = [*((key, "", value) for key, value in values.items()), ("parts", "5 4 1,3:1,2", part)]
        for key, text, value in wanted:
            got = restored(tf, str(folder / name), key, text, value)
            assert got.dtype == value.dtype and got.shape == value.shape, (key, got.dtype, got.shape)
            assert np.all(got == value), (key, got, value)
        files = sorted(folder.glob(f"{name}*"))
        digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        releases = note.get(name, {}).get("releases", ())
        note[name] = {"files": digests, "releases": sorted({*releases, release})}
        print(release, "read", name, ":", len(values), "tensors")
    NOTE.write_text(json.dumps(note, indent=1, sort_keys=True) + "\n")


# ---- by ours


def ours(folder: Path) -> None:
    from flowstone.io.checkpoint_files.bundle_writer import write_bundle
    from flowstone.io.checkpoint_files.slices import TensorSlice
    from flowstone.io.checkpoint_files.v1_files import write_v1

    def parts(values: dict[str, Any]) -> Any:
        for name, text, value in pieces(values):
            *shape, part = text.split() or [""]
            yield name, value, (tuple(map(int, shape)), TensorSlice.parse(part)) if text else None

    write_bundle(folder / "v2", parts(tensors()))
    write_v1(folder / "v1", parts(v1_tensors()))


if __name__ == "__main__":
    {"write": write, "read": read, "ours": ours}[sys.argv[1]](*map(Path, sys.argv[2:]))
