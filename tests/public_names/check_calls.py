"""Calls of the assertions of `tf`: each once where it holds and once where it does not."""

from class_calls import ClassCalls

VALUES = """
one = tf.constant([1, 2, 3])
two = tf.constant([2, 3, 4])
later = tf.placeholder_with_default(two, [3])
many = tf.placeholder_with_default(two, None)
def checked(make):
    try:
        return run(make())
    except Exception as error:
        return type(error)
"""
ORDERED = {
    f"assert_{name}": (
        f"[checked(lambda: tf.assert_{name}(x, y, [one], 2, 'no!', 'a'))"
        " for x, y in [(one, later), (later, one), (later, later)]]"
    )
    for name in ("equal", "greater", "greater_equal", "less", "less_equal", "none_equal")
}
SIGNED = {
    f"assert_{name}": (
        f"[checked(lambda: tf.assert_{name}(later * each, [one], 2, 'no!', 'a')) for each in [1, 0, -1]]"
    )
    for name in ("negative", "non_negative", "non_positive", "positive")
}
CALLS = {
    "Assert": (
        "[checked(lambda: tf.Assert(tf.reduce_all(later > each), [later], 2, 'a')) for each in [0, 3]]"
    ),
    "assert_integer": (
        "[checked(lambda: tf.assert_integer(each, 'no!', 'a')) for each in [one, tf.to_float(one)]]"
    ),
    "assert_proper_iterable": "[checked(lambda: tf.assert_proper_iterable(each)) for each in [one, 'ab', 3]]",
    "assert_rank": (
        "[checked(lambda: tf.assert_rank(x, each, [one], 2, 'no!', 'a')) for x in [one, many]"
        " for each in [1, 2]]"
    ),
    "assert_rank_at_least": (
        "[checked(lambda: tf.assert_rank_at_least(x, each, [one], 2, 'no!', 'a'))"
        " for x in [one, many] for each in [0, 1, 2]]"
    ),
    "assert_rank_in": (
        "[checked(lambda: tf.assert_rank_in(x, each, [one], 2, 'no!', 'a'))"
        " for x in [one, many] for each in [(0, 1), (2, 3)]]"
    ),
    "assert_same_float_dtype": (
        "[tf.assert_same_float_dtype([tf.to_float(one)], tf.float32), tf.assert_same_float_dtype(),"
        " checked(lambda: tf.assert_same_float_dtype([one], tf.float32))]"
    ),
    "assert_scalar": "[tf.assert_scalar(one[0], 'a').shape, checked(lambda: tf.assert_scalar(one, 'b'))]",
    "assert_type": (
        "[checked(lambda: tf.assert_type(one, each, 'no!', 'a')) for each in [tf.int32, tf.float32]]"
    ),
    "is_numeric_tensor": (
        "[tf.is_numeric_tensor(one), tf.is_numeric_tensor(tf.constant('s')), tf.is_numeric_tensor(3)]"
    ),
}
TABLES = [ClassCalls("tf", VALUES, {**ORDERED, **SIGNED, **CALLS})]
