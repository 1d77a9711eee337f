"""`tf.autograph`: marks, and what is refused."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.framework.refusals import NotInGraphModeError


def test_marks_leave_functions_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    experimental = tf.autograph.experimental

    @experimental.do_not_convert
    def double(x: int) -> int:
        experimental.set_loop_options(parallel_iterations=2)
        return 2 * x

    assert double(2) == experimental.do_not_convert()(double)(2) == 4
    assert experimental.Feature.LISTS.value == "LISTS"
    tf.autograph.set_verbosity(1)
    tf.autograph.trace("a", 1)
    assert capsys.readouterr().out == "a 1\n"


def test_conversion_is_refused() -> None:
    for convert in (tf.autograph.to_graph, tf.autograph.to_code):
        with pytest.raises(NotInGraphModeError, match=r"tf\.cond and tf\.while_loop"):
            convert(lambda x: x)
