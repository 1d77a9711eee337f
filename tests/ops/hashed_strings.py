"""The byte strings whose hashes are compared with TensorFlow's: lengths 0 to 1000, and text beyond ASCII."""

from __future__ import annotations

LENGTHS = (*range(140), *range(140, 1001, 13), 256, 512, 1000, 4096)
KEY = (123456789, -987654321012)
BUCKETS = 2**63 - 1
TEXTS = ("ä", "€uro", "日本語テキスト", "😀" * 20, "Größe\0\xff" * 30, "a\0", "\0\0\0")

STRINGS = [
    *(bytes((i * i * 7 + 13 * n + (i >> 3) * n) % 256 for i in range(n)) for n in LENGTHS),
    *(text.encode() for text in TEXTS),
]
