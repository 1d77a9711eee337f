"""`tensorflow.python.training.tensorboard_logging`: messages that TensorBoard's event files hold, too."""

from __future__ import annotations

import time
from typing import Any

import flowstone as tf

__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "debug",
    "error",
    "fatal",
    "get_verbosity",
    "info",
    "log",
    "set_summary_writer",
    "set_verbosity",
    "warn",
]

DEBUG, INFO, WARN, ERROR, FATAL = "DEBUG", "INFO", "WARN", "ERROR", "FATAL"
_LEVELS = [DEBUG, INFO, WARN, ERROR, FATAL]
_state: dict[str, Any] = {"writer": None, "level": WARN}


def set_summary_writer(summary_writer: Any) -> None:
    """Has messages written by this FileWriter; None for none."""
    _state["writer"] = summary_writer


def _clear_summary_writer() -> None:
    set_summary_writer(None)


def get_verbosity() -> str:
    """The lowest level that is written to event files."""
    return str(_state["level"])


def set_verbosity(verbosity: str) -> None:
    """Sets the lowest level that is written to event files. ValueError for what is no level."""
    if verbosity not in _LEVELS:
        raise ValueError(f"Level {verbosity!r} is not one of {', '.join(_LEVELS)}")
    _state["level"] = verbosity


def log(level: str, message: str, *args: Any) -> None:
    """Logs a message, and writes it as a LogMessage if its level is high enough.

    Raises ValueError for what is no level.
    """
    if level not in _LEVELS:
        raise ValueError(f"Level {level!r} is not one of {', '.join(_LEVELS)}")
    text = message % args if args else message
    writer = _state["writer"]
    if writer is not None and _LEVELS.index(level) >= _LEVELS.index(_state["level"]):
        note = tf.LogMessage(level=getattr(tf.LogMessage, level), message=text)
        writer.add_event(tf.Event(wall_time=time.time(), log_message=note))
    getattr(tf.logging, level.lower())("%s", text)


def debug(message: str, *args: Any) -> None:
    """`log` at the level DEBUG."""
    log(DEBUG, message, *args)


def info(message: str, *args: Any) -> None:
    """`log` at the level INFO."""
    log(INFO, message, *args)


def warn(message: str, *args: Any) -> None:
    """`log` at the level WARN."""
    log(WARN, message, *args)


def error(message: str, *args: Any) -> None:
    """`log` at the level ERROR."""
    log(ERROR, message, *args)


def fatal(message: str, *args: Any) -> None:
    """`log` at the level FATAL."""
    log(FATAL, message, *args)
