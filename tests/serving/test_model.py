"""The versions of a model: which is served, and how one follows the other."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowstone.framework import errors
from flowstone.serving.model import Model, State, default_name, listed_versions
from flowstone.serving.rest import Request, answer
from flowstone.serving.servable import Servable


class Fake:
    """A servable that only knows whether it was closed."""

    def __init__(self, folder: str) -> None:
        if os.path.exists(f"{folder}/damaged"):
            raise OSError(f"{folder}: damaged")
        self.folder, self.closed = folder, False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def add(tmp_path: Path) -> Callable[..., Path]:
    def add(name: str) -> Path:
        folder = tmp_path / "half" / name
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").touch()
        return folder

    return add


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def model(tmp_path: Path, lines: list[str]) -> Any:
    return Model("half", str(tmp_path / "half"), Fake, lines.append)  # type: ignore[arg-type]


def states(model: Any) -> dict[int, str]:
    return {status.number: status.state.name for status in model.statuses("half")}


def test_the_newest_is_served(model: Any, add: Any) -> None:
    for name in ("2", "10", "old", "3"):
        add(name)
    model.refresh()
    with model.lease("half") as lease:
        assert lease.number == 10
    assert states(model) == {10: "AVAILABLE"}


def test_a_newer_version_takes_over_when_it_is_loaded(model: Any, add: Any, lines: list[str]) -> None:
    add("1")
    model.refresh()
    with model.lease("half") as old:
        add("2")
        model.refresh()
        assert states(model) == {2: "AVAILABLE", 1: "UNLOADING"}
        assert not old.servable.closed
        with model.lease("half") as new:
            assert new.number == 2
        with pytest.raises(errors.NotFoundError, match=r"Specific\(half, 1\)"), model.lease("half", 1):
            pass
    assert old.servable.closed
    assert states(model) == {2: "AVAILABLE", 1: "END"}
    assert [line.split(" from ")[0] for line in lines] == [
        "serving version 1 of half",
        "serving version 2 of half",
        "ended version 1 of half",
    ]


def test_a_damaged_version_leaves_the_older_one(model: Any, add: Any, lines: list[str]) -> None:
    add("1")
    model.refresh()
    damaged = add("2") / "damaged"
    damaged.touch()
    model.refresh()
    model.refresh()
    assert states(model) == {2: "END", 1: "AVAILABLE"}
    assert len(lines) == 2  # it is said once
    assert model.statuses("half", 2)[0].error.message.endswith("2: damaged")
    damaged.unlink()
    model.refresh()
    assert states(model) == {2: "AVAILABLE", 1: "END"}


def test_a_version_that_is_taken_away(model: Any, add: Any) -> None:
    add("1")
    newest = add("2")
    model.refresh()
    shutil.rmtree(newest)
    model.refresh()
    assert states(model) == {2: "END", 1: "AVAILABLE"}
    shutil.rmtree(newest.parent)
    model.refresh()
    assert states(model)[1] == "AVAILABLE"  # rather the last one than none


def test_the_end(model: Any, add: Any) -> None:
    add("1")
    model.refresh()
    with model.lease("half") as lease:
        model.close()
        assert not model.is_available
        assert not lease.servable.closed
    assert lease.servable.closed


def test_folders_and_names(tmp_path: Path, add: Any) -> None:
    folder = add("7")
    assert listed_versions(str(folder)) == {7: str(folder)}
    assert listed_versions(str(folder.parent)) == {7: str(folder)}
    named = add("best")
    assert listed_versions(str(named)) == {1: str(named)}
    assert listed_versions(str(tmp_path / "none")) == {}
    assert default_name("/models/half/7/") == default_name("/models/half") == "half"
    assert default_name("7") == "7"


def test_status_of_a_failure(model: Any, add: Any) -> None:
    (add("1") / "damaged").touch()
    model.refresh()
    response = answer(model, Request("GET", "/v1/models/half"))
    (status,) = json.loads(response.body)["model_version_status"]
    assert status["state"] == State.END.name
    assert status["status"]["error_code"] == "UNKNOWN"
    assert answer(model, Request("GET", "/healthz")).status == 503


def test_a_real_version_follows_another(tmp_path: Path, save_model: Callable[..., None]) -> None:
    model = Model("half", str(tmp_path), lambda folder: Servable(folder, ["serve"]))
    found = []
    for number, slope in ((1, 0.5), (2, 3.0)):
        save_model(tmp_path / str(number), slope)
        model.refresh()
        response = answer(model, Request("POST", "/v1/models/half:predict", b'{"instances": [2.0]}'))
        found.append(json.loads(response.body))
    model.close()
    assert found == [{"predictions": [3.0]}, {"predictions": [8.0]}]
