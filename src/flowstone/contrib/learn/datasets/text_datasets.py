"""DBpedia: names of things with a sentence on each, in fourteen classes (Zhang et al., 2015)."""

from __future__ import annotations

import tarfile
from os import path

import numpy as np

from flowstone.contrib.learn.datasets import base

__all__ = ["DBPEDIA_URL", "load_dbpedia", "maybe_download_dbpedia"]

DBPEDIA_URL = "https://github.com/le-scientifique/torchDatasets/raw/master/dbpedia_csv.tar.gz"

_FOLDER = "dbpedia_data"

# Some lines in the form of the data, for tests of programs: class, name, sentence.
_FAKE = (
    ("1", "Harbour Works", "Harbour Works is a company that builds cranes."),
    ("2", "Mountain School", "Mountain School is a school in the hills."),
)


def maybe_download_dbpedia(data_dir: str) -> None:
    """Fetches and unpacks the data set, unless ``DATA_DIR/dbpedia_csv/train.csv`` is there."""
    if path.exists(path.join(data_dir, "dbpedia_csv", "train.csv")):
        return
    archive = base.maybe_download("dbpedia_csv.tar.gz", data_dir, DBPEDIA_URL)
    with tarfile.open(archive, "r:*") as files:
        files.extractall(data_dir, filter="data")


def load_dbpedia(size: str = "small", test_with_fake_data: bool = False) -> base.Datasets:
    """The texts, arrays [n, 2] of names and sentences, with their classes, 1 to 14, for training and test.

    Args:
        size: "small": every thousandth line, else all.
        test_with_fake_data: whether two lines made up take the place of the data.

    The data are looked for in ``dbpedia_data/dbpedia_csv`` and fetched if they are not there.
    """
    if test_with_fake_data:
        made_up = base.Dataset(
            data=np.array([row[1:] for row in _FAKE]),
            target=np.array([int(row[0]) for row in _FAKE], np.int32),
        )
        return base.Datasets(train=made_up, validation=None, test=made_up)
    maybe_download_dbpedia(_FOLDER)
    files = [path.join(_FOLDER, "dbpedia_csv", f"{part}.csv") for part in ("train", "test")]
    if size == "small":
        for file, ratio in zip(files, (1000, 1000), strict=True):
            base.shrink_csv(file, ratio)
        files = [file.replace(".csv", "_small.csv") for file in files]
    train, test = (_texts(file) for file in files)
    return base.Datasets(train=train, validation=None, test=test)


def _texts(file: str) -> base.Dataset:
    return base.load_csv_without_header(file, target_dtype=np.int32, features_dtype=str, target_column=0)
