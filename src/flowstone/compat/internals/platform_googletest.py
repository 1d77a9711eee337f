"""`tensorflow.python.platform.googletest`: tests as programs."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["GetTempDir", "StatefulSessionAvailable", "g_main"]


def GetTempDir() -> str:
    """A folder for files of tests, which goes with the process."""
    return str(tf.test.get_temp_dir())


def StatefulSessionAvailable() -> bool:
    """False: there are no sessions of Google's test servers."""
    return False


def g_main(argv: Any = None) -> None:
    """Runs the tests of the program, as `tf.test.main`."""
    tf.test.main(argv)
