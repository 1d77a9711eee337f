"""tf.contrib.learn.datasets: CSV files, drawn points as TensorFlow draws them, fetching."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.learn import learn_points

import flowstone as tf

datasets = tf.contrib.learn.datasets
GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "contrib_learn" / "points.json").read_text())


@pytest.mark.parametrize("case", range(len(learn_points.CASES)))
def test_points_are_drawn_as_tensorflow_draws_them(case: int) -> None:
    points, labels = learn_points.answer(datasets.make_dataset, case)
    expected_points, expected_labels = GOLDEN[case]
    assert labels == expected_labels
    np.testing.assert_allclose(points, expected_points, rtol=1e-6, atol=1e-12)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="Synthetic dataset not found"):
        datasets.make_dataset("zz")
    with pytest.raises(ValueError, match="Name of dataset is not found: zz"):
        datasets.load_dataset("zz")
    with pytest.raises(ValueError, match="Cannot generate spiral with mode zz"):
        datasets.synthetic.spirals(mode="zz")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "headed.csv").write_text("3,2,x,y\n1,2,0\n3,4,1\n5,6,1\n")
    (tmp_path / "bare.csv").write_text("1,2,0\n3,4,1\n5,6,1\n")
    (tmp_path / "houses.csv").write_text('2,2,,\n"A","B","PRICE"\n1,2,24.5\n3,4,21\n')
    return tmp_path


def test_files_with_and_without_a_header(folder: Path) -> None:
    base = datasets.base
    headed = base.load_csv_with_header(str(folder / "headed.csv"), np.int32, np.float32)
    assert headed.data.tolist() == [[1, 2], [3, 4], [5, 6]] and headed.data.dtype == np.float32
    assert headed.target.tolist() == [0, 1, 1] and headed.target.dtype == np.int32
    first = base.load_csv_with_header(str(folder / "headed.csv"), np.int32, np.float64, target_column=0)
    assert first.data.tolist() == [[2, 0], [4, 1], [6, 1]] and first.target.tolist() == [1, 3, 5]
    bare = base.load_csv_without_header(str(folder / "bare.csv"), np.int32, np.float32, target_column=1)
    assert bare.data.tolist() == [[1, 0], [3, 1], [5, 1]] and bare.target.tolist() == [2, 4, 6]


def test_a_header_that_lies(folder: Path) -> None:
    (folder / "short.csv").write_text("3,2\n1,2,0\n")
    with pytest.raises(ValueError, match=r"shape \(1, 2\), but its header says 3 examples of 2"):
        datasets.base.load_csv_with_header(str(folder / "short.csv"), np.int32, np.float32)
    with pytest.raises(ValueError, match="its header says 3, 2"):
        datasets.load_boston(str(folder / "short.csv"))


def test_irises_and_houses_come_from_the_programs_files(folder: Path) -> None:
    assert datasets.load_iris(str(folder / "headed.csv")).target.tolist() == [0, 1, 1]
    houses = datasets.load_boston(str(folder / "houses.csv"))
    assert houses.data.tolist() == [[1, 2], [3, 4]] and houses.target.tolist() == [24.5, 21]
    for name in ("iris", "boston"):
        with pytest.raises(ValueError, match=rf"load_{name}\(data_path=…\)"):
            datasets.load_dataset(name)


def test_each_so_many_lines_remain(folder: Path) -> None:
    datasets.base.shrink_csv(str(folder / "bare.csv"), 2)
    assert (folder / "bare_small.csv").read_text() == "1,2,0\n5,6,1\n"


def test_a_function_is_called_again_until_it_succeeds() -> None:
    calls: list[int] = []

    @datasets.base.retry(initial_delay=0.001, max_delay=0.01)
    def third_time() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("not yet")
        return len(calls)

    @datasets.base.retry(initial_delay=0.001, max_delay=0.003, is_retriable=lambda error: "yet" in str(error))
    def never(message: str) -> None:
        calls.append(1)
        raise OSError(message)

    assert third_time() == 3
    for message, count in (("not yet", 3), ("no", 1)):
        calls.clear()
        with pytest.raises(OSError, match=message):
            never(message)
        assert len(calls) == count
    with pytest.raises(ValueError, match="factor must be >= 1"):
        datasets.base.retry(1, 2, factor=0.5)
    with pytest.raises(ValueError, match="jitter must be < 1"):
        datasets.base.retry(1, 2, jitter=1)


def test_a_file_is_fetched_once(folder: Path) -> None:
    source, kept = folder / "bare.csv", folder / "kept"
    fetched = datasets.base.maybe_download("data.csv", str(kept), source.as_uri())
    assert Path(fetched).read_text() == source.read_text()
    source.write_text("changed")
    assert datasets.base.maybe_download("data.csv", str(kept), source.as_uri()) == fetched
    assert Path(fetched).read_text() != "changed"


def test_texts_of_dbpedia(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with tarfile.open(folder / "data.tar.gz", "w:gz") as archive:
        for part in ("train", "test"):
            text = "".join(f'{i % 14 + 1},"{part} {i}","About, {i}."\n' for i in range(1500)).encode()
            entry = tarfile.TarInfo(f"dbpedia_csv/{part}.csv")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    monkeypatch.setattr(datasets.text_datasets, "DBPEDIA_URL", (folder / "data.tar.gz").as_uri())
    small = datasets.load_dataset("dbpedia")
    assert small.train.data.tolist() == [["train 0", "About, 0."], ["train 1000", "About, 1000."]]
    assert small.test.target.tolist() == [1, 1000 % 14 + 1]
    assert len(datasets.load_dataset("dbpedia", size="large").train.data) == 1500


def test_texts_made_up() -> None:
    found: Any = datasets.load_dataset("dbpedia", test_with_fake_data=True)
    assert found.validation is None
    assert found.train.data.shape == (2, 2) and found.train.target.tolist() == [1, 2]
