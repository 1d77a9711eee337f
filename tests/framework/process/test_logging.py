"""Messages with a level."""

from __future__ import annotations

import logging as python_logging

import pytest

from flowstone.framework.process import logging


@pytest.fixture(autouse=True)
def verbosity(caplog: pytest.LogCaptureFixture):
    before = logging.get_verbosity()
    logging.set_verbosity(logging.INFO)
    yield
    logging.set_verbosity(before)


def test_levels(caplog: pytest.LogCaptureFixture) -> None:
    logging.debug("hidden")
    logging.info("step %d", 3)
    logging.warn("careful")
    logging.error("wrong")
    logging.fatal("very wrong")
    levels = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert levels == [
        ("INFO", "step 3"),
        ("WARNING", "careful"),
        ("ERROR", "wrong"),
        ("CRITICAL", "very wrong"),
    ]
    assert {record.filename for record in caplog.records} == {"test_logging.py"}
    assert logging.get_verbosity() == logging.INFO == 20


def test_the_first_and_every_nth_time(caplog: pytest.LogCaptureFixture) -> None:
    for i in range(5):
        logging.log_first_n(logging.INFO, "first %d", 2, i)
        logging.log_every_n(logging.INFO, "every %d", 2, i)
        logging.log_if(logging.INFO, "if %d", i == 3, i)
    found = sorted(record.getMessage() for record in caplog.records)
    assert found == ["every 0", "every 2", "every 4", "first 0", "first 1", "if 3"]


def test_written_to_standard_error_while_nothing_else_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_logging.getLogger(), "handlers", [])
    logging.info("seen")
    logging.flush()
    assert capsys.readouterr().err == "INFO:tensorflow:seen\n"
