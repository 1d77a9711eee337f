"""The clock, the end and the fact of the process that runs a step."""

from __future__ import annotations

import signal
import time

import pytest

import flowstone as tf
import forked

_ABORT = """
import flowstone as tf
from flowstone.framework.declarations.operation import registry
tf.Session().run(registry["Abort"].operation(error_msg="farewell", exit_without_error={quiet}))
print("still here")
"""


def test_timestamp() -> None:
    node = tf.timestamp(name="now")
    assert (node.op.name, node.dtype, node.shape.as_list()) == ("now", tf.float64, [])
    before = time.time()
    with tf.Session() as session:
        first, second = session.run(node), session.run(node)
    assert before <= first <= second <= time.time()
    assert first < second  # a step reads the clock


def test_fact() -> None:
    with tf.Session() as session:
        assert session.run(tf.user_ops.my_fact()) == b"0! == 1"


@pytest.mark.parametrize("quiet, code", [(True, 0), (False, -signal.SIGABRT)])
def test_abort(quiet: bool, code: int) -> None:
    script = _ABORT.format(quiet=quiet)
    ended = forked.run(code=script)
    assert ended.returncode == code
    assert "farewell" in ended.stderr
    assert "still here" not in ended.stdout
