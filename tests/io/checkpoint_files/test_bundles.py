"""V2 checkpoints: what is written is read; what is damaged, missing or does not fit is said so."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowstone as tf
from flowstone.framework import errors
from flowstone.io.checkpoint_files import bundle_reader, bundle_writer
from flowstone.io.checkpoint_files.bundle_reader import BundleReader
from flowstone.io.checkpoint_files.bundle_writer import BundleWriter, merge_bundles, write_bundle
from flowstone.io.checkpoint_files.slices import TensorSlice

A = np.arange(12, dtype=np.float32).reshape(3, 4)


def read(prefix: Any, name: str, part: str | None = None) -> Any:
    with BundleReader(prefix) as reader:
        return reader.read(name, None if part is None else TensorSlice.parse(part))


def data(prefix: Path) -> Path:
    return Path(f"{prefix}.data-00000-of-00001")


# ---- values


@pytest.mark.parametrize("prefix", ["memory://checkpoints/m", "local"])
def test_values_of_all_kinds(tmp_path: Path, prefix: str) -> None:
    prefix = str(tmp_path / "m") if prefix == "local" else prefix
    values = {
        "bfloat16": np.arange(5).astype(ml_dtypes.bfloat16),
        "columns": np.asfortranarray(A),
        "strided": A[:, ::2],
        "big": A.astype(">f4"),
        "strings": np.array([b"a", b"b" * 300], object),
        "scalar": np.float64(1.5),
        "empty": np.zeros((3, 0)),
    }
    write_bundle(prefix, [(name, value, None) for name, value in values.items()])
    with BundleReader(prefix) as reader:
        assert reader.names() == sorted(values)
        for (name, value), array in zip(values.items(), ThreadPoolExecutor(3).map(reader.read, values)):
            assert array.shape == value.shape and np.array_equal(array, value), name
            assert array.dtype == value.dtype.newbyteorder("="), name
            assert array.flags.writeable or array.size == 0
    if prefix.startswith("memory"):
        tf.gfile.DeleteRecursively("memory://checkpoints")


def test_quantised_types(tmp_path: Path) -> None:
    values = np.array([1, 2, 200], np.uint8)
    with BundleWriter(tmp_path / "m") as writer:
        writer.add("q", values.view(tf.quint8.as_numpy_dtype), tf.quint8)
    with BundleReader(tmp_path / "m") as reader:
        assert reader.entry("q").dtype is tf.quint8
        assert np.array_equal(reader.read("q").view(np.uint8), values)


def test_files_of_a_big_endian_machine(tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", [("v", A.byteswap(), None)])
    with BundleReader(tmp_path / "m") as reader:
        header, entries = reader.header, reader._raw
    header.endianness = header.BIG
    with open(tmp_path / "m.index", "wb") as file:
        table = bundle_writer.TableWriter(file)
        table.add(b"", header.SerializeToString())
        table.add(b"v", entries[b"v"])
        table.finish()
    assert np.array_equal(read(tmp_path / "m", "v"), A)


def test_more_than_a_piece(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 256, (1 << 21) + 12345, np.uint8)
    write_bundle(tmp_path / "m", [("a", A, None), ("v", values, None), ("b", A, None)])
    with BundleReader(tmp_path / "m") as reader:
        for name, array in zip("avb", map(reader.read, "avb")):
            assert np.array_equal(array, values if name == "v" else A)


names = st.text(min_size=1, max_size=8).filter(lambda name: name[0] != "\0")
arrays = st.sampled_from(
    [A, A[:0], A.astype(np.int8), np.float16(2), np.array([b"", b"\xff"], object), np.ones((2, 1, 2), bool)]
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(names, arrays, max_size=30))
def test_any_names(values: dict[str, Any]) -> None:
    prefix = "memory://any/m"
    write_bundle(prefix, [(name, value, None) for name, value in values.items()])
    with BundleReader(prefix) as reader:
        assert set(reader.names()) == set(values)
        assert all(np.array_equal(reader.read(name), value) for name, value in values.items())


def test_many_tensors(tmp_path: Path) -> None:
    """So many that the index has several blocks."""
    values = {f"scope/{'x' * 60}/{n:05d}": np.int32(n) for n in range(6000)}
    write_bundle(tmp_path / "m", [(name, value, None) for name, value in values.items()])
    assert (tmp_path / "m.index").stat().st_size < 6000 * 40  # keys share their beginnings
    with BundleReader(tmp_path / "m") as reader:
        assert reader.names() == sorted(values)
        assert reader.read(f"scope/{'x' * 60}/05999") == 5999


# ---- parts


def test_parts(tmp_path: Path) -> None:
    rows = [TensorSlice.parse("0,1:-"), TensorSlice.parse("1,2:-")]
    write_bundle(tmp_path / "m", [("w", A[part.where(A.shape)], (A.shape, part)) for part in reversed(rows)])
    assert np.array_equal(read(tmp_path / "m", "w"), A)
    assert np.array_equal(read(tmp_path / "m", "w", "0,2:1,3"), A[:2, 1:])
    assert read(tmp_path / "m", "w", "2,1:3,1").shape == (1, 1)
    with BundleReader(tmp_path / "m") as reader:
        assert reader.names() == ["w"] and reader.entry("w").slices == tuple(reversed(rows))


def test_a_part_that_is_all(tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", [("w", A, (A.shape, TensorSlice.parse("0,3:-")))])
    with BundleReader(tmp_path / "m") as reader:
        assert reader.entry("w").slices == ()
        assert np.array_equal(reader.read("w", TensorSlice.parse("1,1:2,2")), A[1:2, 2:])


def test_parts_that_are_missing(tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", [("w", A[:1], (A.shape, TensorSlice.parse("0,1:-")))])
    assert np.array_equal(read(tmp_path / "m", "w", "0,1:1,2"), A[:1, 1:3])
    with pytest.raises(
        errors.NotFoundError, match=r"m; the checkpoint has not all of part 0,2:- of tensor w"
    ):
        read(tmp_path / "m", "w", "0,2:-")
    for part in ("-", "0,4:-", "-:2,3", "1,3:-"):
        with pytest.raises(errors.InvalidArgumentError, match=r"tensor w of shape \(3, 4\) has no part"):
            read(tmp_path / "m", "w", part)


def test_what_a_writer_refuses(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "m")
    writer.add("a", A)
    part = TensorSlice.parse("0,1:-")
    writer.add_slice("w", A.shape, part, A[:1])
    for act in (
        lambda: writer.add("a", A),
        lambda: writer.add("", A),
        lambda: writer.add("\0a", A),
        lambda: writer.add("w", A),
        lambda: writer.add_slice("a", A.shape, part, A[:1]),
        lambda: writer.add_slice("w", (4, 4), part, A[:1]),
        lambda: writer.add_slice("w", A.shape, TensorSlice.parse("1,1:-"), A),
        lambda: writer.add_slice("w", A.shape, TensorSlice.parse("1,1:-"), np.zeros((1, 4))),
        lambda: writer.add_slice("x", A.shape, TensorSlice.parse("3,1:-"), A[:1]),
    ):
        with pytest.raises(errors.InvalidArgumentError):
            act()
    writer.discard()
    assert list(tmp_path.iterdir()) == []


# ---- several checkpoints as one


def test_merging(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for number in (0, 1):
        part = TensorSlice.parse(f"{number},{number + 1}:-")
        tensors = [(f"v{number}", A + number, None), ("w", A[part.where(A.shape)], (A.shape, part))]
        write_bundle(tmp_path / f"t/part-{number}", tensors)
    merge_bundles([tmp_path / "t/part-0", tmp_path / "t/part-1"], tmp_path / "m")
    assert list((tmp_path / "t").iterdir()) == []
    assert sorted(path.name for path in tmp_path.glob("m*")) == [
        "m.data-00000-of-00002", "m.data-00001-of-00002", "m.index",
    ]  # fmt: skip
    with BundleReader(tmp_path / "m") as reader:
        assert reader.names() == ["v0", "v1", "w"]
        assert np.array_equal(reader.read("v1"), A + 1) and np.array_equal(reader.read("w"), A)


def test_merging_one_name_twice(tmp_path: Path) -> None:
    for name in "ab":
        write_bundle(tmp_path / name, [("v", A, None)])
    with pytest.raises(errors.InvalidArgumentError, match="Duplicate tensor keyed by v"):
        merge_bundles([tmp_path / "a", tmp_path / "b"], tmp_path / "m")
    assert np.array_equal(read(tmp_path / "a", "v"), A)


# ---- bad input


def test_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match=r"m\.index; No such file"):
        BundleReader(tmp_path / "m")
    write_bundle(tmp_path / "m", [("v", A, None)])
    with pytest.raises(errors.NotFoundError, match=r"Key w not found in checkpoint .*m$"):
        read(tmp_path / "m", "w")
    data(tmp_path / "m").unlink()
    with pytest.raises(errors.NotFoundError, match=r"m\.data-00000-of-00001; No such file"):
        read(tmp_path / "m", "v")


def test_flipped_bits_of_data(tmp_path: Path) -> None:
    strings = np.array([b"ab", b"", b"c" * 200], object)
    write_bundle(tmp_path / "m", [("v", A, None), ("s", strings, None)])
    whole = data(tmp_path / "m").read_bytes()
    for bit in range(0, 8 * len(whole), 3):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        data(tmp_path / "m").write_bytes(damaged)
        name = "v" if bit // 8 < A.nbytes else "s"
        with pytest.raises(errors.DataLossError, match=rf"m\.data-00000-of-00001; tensor {name} is corrupt"):
            read(tmp_path / "m", name)
        assert read(tmp_path / "m", "s" if name == "v" else "v").shape in ((3, 4), (3,))


def test_truncated_data(tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", [("v", A, None)])
    whole = data(tmp_path / "m").read_bytes()
    for end in range(len(whole)):
        data(tmp_path / "m").write_bytes(whole[:end])
        with pytest.raises(errors.DataLossError, match=f"tensor v is corrupt: bytes 0 to 48 of {end}"):
            read(tmp_path / "m", "v")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    folder = tmp_path_factory.mktemp("index")
    part = TensorSlice.parse("0,1:-")
    tensors = [("v", A, None), ("w", A[:1], (A.shape, part)), ("s", np.array([b"x"], object), None)]
    write_bundle(folder / "m", tensors, durable=False)
    return folder / "m", (folder / "m.index").read_bytes()


def read_everything(prefix: Path) -> None:
    with BundleReader(prefix) as reader:
        for name in reader.names():
            assert reader.read(name).nbytes < 10**5


def test_every_flipped_bit_of_the_index(index: tuple[Path, bytes]) -> None:
    prefix, whole = index
    unused = range(len(whole) - 48, len(whole) - 8)  # the footer's places are padded
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        Path(f"{prefix}.index").write_bytes(damaged)
        if bit // 8 in unused:
            continue
        with pytest.raises(errors.DataLossError, match=r"m\.index; corrupt at \d+: "):
            BundleReader(prefix)


def test_every_truncation_of_the_index(index: tuple[Path, bytes]) -> None:
    prefix, whole = index
    for end in range(len(whole)):
        Path(f"{prefix}.index").write_bytes(whole[:end])
        with pytest.raises(errors.DataLossError, match=r"m\.index; corrupt at"):
            BundleReader(prefix)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_entries_that_lie(index: tuple[Path, bytes], chosen: st.DataObject) -> None:
    """Messages with any bytes, under checksums that hold: an error of TensorFlow's, and nothing large."""
    prefix, _ = index
    with BundleReader(FOLDER_OF_GOLDENS / "v2") as golden:
        raw = dict(golden._raw)
    with open(f"{prefix}.index", "wb") as file:
        table = bundle_writer.TableWriter(file)
        header = bundle_writer.BundleHeaderProto(num_shards=1).SerializeToString()
        table.add(b"", chosen.draw(st.sampled_from([header, header, header, b"", b"\xff", b"\x08\x7f"])))
        for key in (b"\0parts\0\1\1\2\x80\x82\x80\x7f", b"parts", b"scalar", b"strings"):
            value = bytearray(raw[key])
            for _ in range(chosen.draw(st.integers(0, 2))):
                value[chosen.draw(st.integers(0, len(value) - 1))] = chosen.draw(st.integers(0, 255))
            table.add(key, bytes(value))
        table.finish()
    try:
        read_everything(prefix)
    except (errors.DataLossError, errors.NotFoundError, errors.UnimplementedError) as error:
        assert str(prefix) in error.message


FOLDER_OF_GOLDENS = Path(__file__).parents[2] / "golden/checkpoints"


def test_later_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bundle(tmp_path / "m", [("v", A, None)])
    monkeypatch.setattr(bundle_reader, "_VERSION", -1)
    with pytest.raises(errors.InvalidArgumentError, match="the format has version 0, which -1 does not read"):
        BundleReader(tmp_path / "m")


def test_types_without_values(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "m")
    with pytest.raises(errors.UnimplementedError, match="Tensor r of type resource cannot be written"):
        writer.add("r", np.zeros(1), tf.resource)
    writer.discard()


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = bundle_writer.open_file
    monkeypatch.setattr(
        bundle_writer, "open_file", lambda path, mode: real("/dev/full" if "data" in path else path, mode)
    )
    with pytest.raises(errors.ResourceExhaustedError, match=r"m\.data.*No space left"):
        write_bundle(tmp_path / "m", [("v", np.zeros(10**6), None)])
    assert list(tmp_path.iterdir()) == []


# ---- crashes


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", [("v", A, None)])
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(KeyError), BundleWriter(tmp_path / "m") as writer:
        writer.add("v", A + 1)
        raise KeyError
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert np.array_equal(read(tmp_path / "m", "v"), A)


def test_replacing_ends_with_the_usual_names(tmp_path: Path) -> None:
    for number in range(3):
        write_bundle(tmp_path / "m", [("v", A + number, None)])
        assert sorted(path.name for path in tmp_path.iterdir()) == ["m.data-00000-of-00001", "m.index"]
        assert np.array_equal(read(tmp_path / "m", "v"), A + number)


@pytest.mark.parametrize("step", range(6))
def test_each_instant_of_replacing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Stops before each change of names; what is there is the old checkpoint or the new one, whole."""
    write_bundle(tmp_path / "m", [("v", A, None)])
    done = 0

    class Killed(BaseException):
        pass

    def counted(change: Any) -> Any:
        def act(*args: Any, **kwargs: Any) -> Any:
            nonlocal done
            if done == step:
                raise Killed
            done += 1
            return change(*args, **kwargs)

        return act

    for name in ("link", "replace", "rename"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    monkeypatch.setattr(bundle_writer, "delete_file", counted(bundle_writer.delete_file))
    monkeypatch.setattr(BundleWriter, "discard", lambda self: None)
    try:
        write_bundle(tmp_path / "m", [("v", A + 1, None)])
    except Killed:
        assert step < 5
    else:
        assert step == 5
    monkeypatch.undo()
    assert np.array_equal(read(tmp_path / "m", "v"), A if step < 2 else A + 1)
    write_bundle(tmp_path / "m", [("v", A + 2, None)])
    assert np.array_equal(read(tmp_path / "m", "v"), A + 2)


SAVES = """
import sys, numpy as np
from flowstone.io.checkpoint_files.bundle_writer import write_bundle
print("ready", flush=True)
for number in range(10**6):
    write_bundle(sys.argv[1], [(f"v{k}", np.full(20000, number), None) for k in range(4)], durable=False)
    if number == 1:
        print("saved", flush=True)
"""


def test_killed_processes_leave_a_whole_checkpoint(tmp_path: Path) -> None:
    rng = random.Random(1)
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVES, str(tmp_path / "m")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "saved\n"]
        time.sleep(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with BundleReader(tmp_path / "m") as reader:
            values = [reader.read(name) for name in reader.names()]
        assert len(values) == 4 and all((value == values[0][0]).all() for value in values)
