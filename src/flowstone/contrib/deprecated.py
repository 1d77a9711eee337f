"""`tf.contrib.deprecated`: the summaries of TensorFlow 0.x, whose tags are tensors.

A tag is what is given, whatever the name scope; `name` is the operation's.
"""

from __future__ import annotations

from typing import Any

import flowstone

__all__ = [
    "audio_summary",
    "histogram_summary",
    "image_summary",
    "merge_all_summaries",
    "merge_summary",
    "scalar_summary",
]


def _collected(summary: Any, collections: Any) -> Any:
    names = [flowstone.GraphKeys.SUMMARIES] if collections is None else collections
    flowstone.get_default_graph().add_to_collections(names, summary)
    return summary


def scalar_summary(tags: Any, values: Any, collections: Any = None, name: str | None = None) -> Any:
    """A summary of real numbers, one a tag: tensors of one shape."""
    made = flowstone.raw_ops.ScalarSummary(tags=tags, values=values, name=name or "ScalarSummary")
    return _collected(made, collections)


def histogram_summary(tag: Any, values: Any, collections: Any = None, name: str | None = None) -> Any:
    """A summary of how often values of each size occur."""
    made = flowstone.raw_ops.HistogramSummary(tag=tag, values=values, name=name or "HistogramSummary")
    return _collected(made, collections)


def image_summary(
    tag: Any, tensor: Any, max_images: int = 3, collections: Any = None, name: str | None = None
) -> Any:
    """A summary of up to `max_images` images [batch, height, width, channels]."""
    made = flowstone.raw_ops.ImageSummary(
        tag=tag, tensor=tensor, max_images=max_images, name=name or "ImageSummary"
    )
    return _collected(made, collections)


def audio_summary(
    tag: Any,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Any = None,
    name: str | None = None,
) -> Any:
    """A summary of up to `max_outputs` sounds [batch, frames, channels]."""
    made = flowstone.raw_ops.AudioSummaryV2(
        tag=tag, tensor=tensor, sample_rate=sample_rate, max_outputs=max_outputs, name=name or "AudioSummary"
    )
    return _collected(made, collections)


def merge_summary(inputs: Any, collections: Any = None, name: str | None = None) -> Any:
    """One summary of several."""
    return flowstone.summary.merge(inputs, collections, name)


def merge_all_summaries(key: Any = flowstone.GraphKeys.SUMMARIES) -> Any:
    """One summary of all in a collection; None if it is empty."""
    return flowstone.summary.merge_all(key)
