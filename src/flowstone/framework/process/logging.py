"""What `flowstone.logging` says: messages with a level, on Python's own logging.

All go to the logger ``tensorflow``, the name under which programs set levels, handlers and propagation.
While the root logger has no handlers they are written to standard error as ``LEVEL:tensorflow:message``.
The level is WARN at first.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "TaskLevelStatusMessage",
    "debug",
    "error",
    "fatal",
    "flush",
    "get_logger",
    "get_verbosity",
    "info",
    "log",
    "log_every_n",
    "log_first_n",
    "log_if",
    "set_verbosity",
    "vlog",
    "warn",
    "warning",
]

DEBUG, INFO, WARN, ERROR, FATAL = (
    logging.DEBUG,
    logging.INFO,
    logging.WARNING,
    logging.ERROR,
    logging.CRITICAL,
)

_CALLER = 3  # from `Logger.log` to the program's line: through `_log` and the public function


if TYPE_CHECKING:
    _Handler = logging.StreamHandler[Any]
else:
    _Handler = logging.StreamHandler  # generic from Python 3.11


class _StandardError(_Handler):
    """Writes to what is standard error at the time, unless the root logger has handlers to do it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter(logging.BASIC_FORMAT))

    @property
    def stream(self) -> Any:
        return sys.stderr

    def filter(self, record: logging.LogRecord) -> Any:
        return not logging.getLogger().handlers and super().filter(record)


def _make_logger() -> logging.Logger:
    logger = logging.getLogger("tensorflow")
    if logger.level == logging.NOTSET:
        logger.setLevel(WARN)
    if not logger.handlers:
        logger.addHandler(_StandardError())
    return logger


_logger = _make_logger()


def get_logger() -> logging.Logger:
    """The logger that all messages go to."""
    return _logger


_counts: dict[tuple[Any, int], int] = {}
_counts_lock = threading.Lock()


def _log(level: int, msg: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    _logger.log(level, msg, *args, stacklevel=_CALLER, **keywords)


def log(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs ``msg % args`` at `level`; further keywords are Python's (``exc_info`` …)."""
    _log(level, msg, args, kwargs)


def debug(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs ``msg % args`` at level DEBUG."""
    _log(DEBUG, msg, args, kwargs)


def info(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs ``msg % args`` at level INFO."""
    _log(INFO, msg, args, kwargs)


def warn(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs ``msg % args`` at level WARN."""
    _log(WARN, msg, args, kwargs)


def warning(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs ``msg % args`` at level WARN."""
    _log(WARN, msg, args, kwargs)


def error(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs ``msg % args`` at level ERROR."""
    _log(ERROR, msg, args, kwargs)


def fatal(msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs ``msg % args`` at level FATAL; the program goes on."""
    _log(FATAL, msg, args, kwargs)


def vlog(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs ``msg % args`` at `level`."""
    _log(level, msg, args, kwargs)


def TaskLevelStatusMessage(msg: str) -> None:
    """Logs the message at level ERROR."""
    _log(ERROR, msg, (), {})


def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """Logs if `condition` holds."""
    if condition:
        _log(level, msg, args, {})


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs the first `n` times that the program's line comes here."""
    if _times_before() < n:
        _log(level, msg, args, {})


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs the first and then each `n`-th time that the program's line comes here."""
    if _times_before() % n == 0:
        _log(level, msg, args, {})


def _times_before() -> int:
    """How often the line that called the public function came here before."""
    frame = sys._getframe(2)
    key = frame.f_code, frame.f_lasti
    with _counts_lock:
        count = _counts.get(key, 0)
        _counts[key] = count + 1
    return count


def flush() -> None:
    """Flushes what the handlers hold back."""
    for handler in [*_logger.handlers, *logging.getLogger().handlers]:
        handler.flush()


def get_verbosity() -> int:
    """The level from which on messages are logged."""
    return _logger.getEffectiveLevel()


def set_verbosity(v: int | str) -> None:
    """Sets the level (a number or its name) from which on messages are logged."""
    _logger.setLevel(v)
