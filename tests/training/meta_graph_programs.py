"""Graphs with conditionals and loops, for flowstone or TensorFlow (`tf`): what they export, and what comes of
importing it.

`python tests/training/meta_graph_programs.py DIR` writes flowstone's MetaGraphDefs to the folder DIR.
"""

from __future__ import annotations

import sys
from typing import Any

SCOPES = ("", "there")


def conditionals(tf: Any, x: Any, w: Any) -> Any:
    """A cond inside a cond."""

    def inner() -> Any:
        return tf.cond(x > 2.0, lambda: x * x * w, lambda: w - x)

    return tf.cond(x > 0.0, inner, lambda: x * 3.0)


def loop_with_condition(tf: Any, x: Any, w: Any) -> Any:
    """A cond inside a loop, whose result a cond takes."""

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(a < 3.0, lambda: a * w, lambda: a + x)

    _, a = tf.while_loop(lambda i, a: i < 4, body, [0, x], name="loop")
    return tf.cond(x > 1.0, lambda: a * x, lambda: a - w)


def loops_in_loops(tf: Any, x: Any, w: Any) -> Any:
    """A loop inside a loop, with a bound."""

    def body(a: Any) -> Any:
        return tf.while_loop(lambda b: b < 20.0, lambda b: b * w + x, [a], maximum_iterations=2)

    return tf.while_loop(lambda a: a < 50.0, body, [x], maximum_iterations=3)


PROGRAMS = {function.__name__: function for function in (conditionals, loop_with_condition, loops_in_loops)}
FED = (-1.0, 1.5, 3.0)


def exported(tf: Any, name: str, filename: str | None = None) -> Any:
    """The MetaGraphDef of a program, with its input and output in collections."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        w = tf.Variable(2.0, name="w")
        y = tf.identity(PROGRAMS[name](tf, x, w), name="y")
        tf.add_to_collection("ends", x)
        tf.add_to_collection("ends", y)
        return tf.train.export_meta_graph(filename, as_text=True, strip_default_attrs=True)


def imported(tf: Any, meta: Any, scope: str) -> list[list[float]]:
    """y, dy/dx and dy/dw of an imported program at some x."""
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta, import_scope=scope or None)
        x, y = tf.get_collection("ends")
        (w,) = tf.global_variables()
        fetches = [y, *tf.gradients(y, [x, w])]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return [[float(value) for value in session.run(fetches, {x: at})] for at in FED]


if __name__ == "__main__":
    import flowstone

    for program in PROGRAMS:
        exported(flowstone, program, f"{sys.argv[1]}/{program}.pbtxt")
