"""Mistakes that a session refuses: what cannot be fetched or fed, and sessions that are none.

`SESSION` maps a name to a function of `tf` and a session, and to words that the message holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .arrays import f

Session = tuple[Callable[[Any, Any], Any], str]


def _closed(tf: Any, session: Any) -> Any:
    other = tf.Session()
    other.close()
    return other.run(tf.constant(1))


def _empty(tf: Any, _: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as other:
        return other.run(tf.no_op().name + "_1")


def _foreign(tf: Any, session: Any) -> Any:
    with tf.Graph().as_default():
        other = tf.constant(1)
    return session.run(other)


def _foreign_feed(tf: Any, session: Any) -> Any:
    with tf.Graph().as_default():
        other = tf.placeholder(tf.float32)
    return session.run(tf.constant(1), {other: 1.0})


def _fed(value: Any, shape: Any = (2,), dtype: str = "float32") -> Callable[[Any, Any], Any]:
    def feed(tf: Any, session: Any) -> Any:
        x = tf.placeholder(dtype, shape, name="x")
        return session.run(tf.identity(x), {x: value})

    return feed


def _evaluated_outside(tf: Any, _: Any) -> Any:
    with tf.Graph().as_default():
        return tf.constant(1).eval()


SESSION: dict[str, Session] = {
    "fetch None": (lambda tf, s: s.run(None), "fetch None"),
    "fetch a number": (lambda tf, s: s.run(3), "Fetch 3 invalid type int"),
    "fetch a list with None": (lambda tf, s: s.run([tf.constant(1), None]), "None"),
    "fetch a missing name": (lambda tf, s: s.run("missing:0"), "missing:0"),
    "fetch a missing operation": (lambda tf, s: s.run("missing"), "missing"),
    "fetch a missing output": (lambda tf, s: s.run(tf.constant(1, name="c").op.name + ":3"), "c:3"),
    "fetch from another graph": (_foreign, "Tensor Const:0 graph"),
    "fetch from a dict": (lambda tf, s: s.run({"a": object()}), "object"),
    "feed a number": (lambda tf, s: s.run(tf.constant(1), {3: 1}), "feed_dict key Tensor"),
    "feed a missing name": (lambda tf, s: s.run(tf.constant(1), {"missing:0": 1}), "feed_dict key missing"),
    "feed an operation": (lambda tf, s: s.run(tf.constant(1), {tf.no_op(): 1}), "feed_dict key"),
    "feed into another graph": (_foreign_feed, "feed_dict key Placeholder"),
    "feed a list of feeds": (lambda tf, s: s.run(tf.constant(1), [1]), "dict list"),
    "feed a tensor": (
        lambda tf, s: s.run(tf.constant(1), {tf.placeholder(tf.int32): tf.constant(1)}),
        "tf.Tensor",
    ),
    "feed a shape": (_fed(f(3)), "shape (3,) x:0 (2,)"),
    "feed a rank": (_fed(f(2, 1)), "shape (2, 1) x:0 (2,)"),
    "feed a scalar": (_fed(1.0), "shape () x:0 (2,)"),
    "feed text": (_fed(["a", "b"]), "could not convert string to float a"),
    "feed None": (_fed([None, 1.0], dtype="int32"), "None"),
    "feed ragged lists": (_fed([[1.0], [1.0, 2.0]], None), ""),
    "feed a large integer": (_fed(2**40, (), "int32"), "int32"),
    "feed a negative unsigned": (_fed(-1, (), "uint8"), "uint8"),
    "feed 2 as a bool": (_fed(2, (), "bool"), "2 bool larger type"),
    "feed a dict": (_fed({"a": 1}, None), "dict"),
    "closed": (_closed, "closed"),
    "no such operation": (_empty, "NoOp_1"),
    "no session": (_evaluated_outside, "session"),
    "no such target": (lambda tf, s: tf.Session("nowhere"), "nowhere"),
    "graph that is none": (lambda tf, s: tf.Session(graph=3), "graph int"),
    "target that is none": (lambda tf, s: tf.Session(target=3), "target string int"),
}


def fail_in_session(tf: Any, name: str, after: Any = None) -> Exception | None:
    """What `SESSION[name]` raises; `after` as above."""
    with tf.Graph().as_default(), tf.Session() as session:
        fine = tf.placeholder(tf.float32, [2], name="fine")
        good = fine * 2.0, {fine: [1.0, 2.0]}
        found = None
        try:
            SESSION[name][0](tf, session)
        except Exception as error:
            found = error
        if after is not None:
            after(session, good)
        return found
