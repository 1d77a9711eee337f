"""The gist of explained steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import flowstone as tf
from flowstone.client.step_observation import StepObserver
from flowstone.runtime.explaining.explanation_summary import summary_text
from flowstone.tools.explain import chosen

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(autouse=True)
def source_tree_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3] / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_what_took_hardly_any_time_is_explained_only_on_request() -> None:
    observer = StepObserver(5)
    x = tf.Variable(tf.ones([500, 500]), name="x")
    with tf.Session() as session, observer.watching():
        session.run(x.initializer)
        for _ in range(60):
            session.run(tf.matmul(x, x, name="square") if _ == 0 else "square:0")
        session.run(tf.no_op("nothing"))
    kinds = observer.kinds()
    square, *others = kinds
    assert square.fetches == ("square",) and len(others) == 2
    assert chosen(kinds, 2) == kinds[:2]
    assert chosen([square, kinds[-1]], None) == [square]
    gist = summary_text([square.explanation()])
    assert re.search(
        r"^  \[1\] square\n      60 steps of .*\n      time      MatMul \d+% ", gist, re.MULTILINE
    )
