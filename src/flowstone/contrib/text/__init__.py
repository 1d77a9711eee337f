"""`tf.contrib.text`: pairs of words for skip-gram models."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {"flowstone.contrib.text.skip_gram_ops": "skip_gram_sample skip_gram_sample_with_text_vocab"},
)
