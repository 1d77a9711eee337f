"""Calls of the functions of `tf` on strings."""

from class_calls import ClassCalls

VALUES = """
t = tf.constant(['hello world', 'a', ''])
n = tf.constant([1.5, -22.125, 1e6])
"""
CALLS = {
    "as_string": (
        "[tf.as_string(n, 2, True, False, 12, '0', 'a'), tf.as_string(n, 3), tf.as_string([1, -5], width=4),"
        " tf.as_string(n, shortest=True), tf.as_string([True])]"
    ),
    "decode_base64": "tf.decode_base64(['aGVsbG8', 'aGk='], 'a')",
    "encode_base64": "[tf.encode_base64(t, True, 'a'), tf.encode_base64(t)]",
    "string_join": "[tf.string_join([t, 'x'], '-', 'a'), tf.string_join(['a', 'b'])]",
    "string_split": (
        "[[s.indices, s.values, s.dense_shape] for s in [tf.string_split(t, 'o', False), tf.string_split(t)]]"
    ),
    "string_to_hash_bucket": "tf.string_to_hash_bucket(t, 1000, 'a')",
    "string_to_hash_bucket_fast": "tf.string_to_hash_bucket_fast(t, 1000, 'a')",
    "string_to_hash_bucket_strong": "tf.string_to_hash_bucket_strong(t, 1000, [7, 8], 'a')",
    "string_to_number": (
        "[tf.string_to_number(['1', '-7'], tf.int64, 'a'), tf.string_to_number([' 1.5', '-1e3'])]"
    ),
    "substr": "[tf.substr(t[:1], 4, 5, 'a'), tf.substr(['abc', 'defg'], [0, -2], [1, 2])]",
}
TABLES = [ClassCalls("tf", VALUES, CALLS)]
