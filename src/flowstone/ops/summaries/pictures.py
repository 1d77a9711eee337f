"""Summaries of images, as PNG files, and of sounds, as WAV files."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.audio.wave_files import encoded
from flowstone.ops.summaries.summaries import collect, new_summary, serialized, summary_scope, tag_of

__all__ = ["audio", "image"]

_BAD_COLOR = (255, 0, 0, 255)
_CHANNELS = (1, 3, 4)  # grey, RGB, RGBA
_SMALL = 1e-6  # of an image without contrast


def image_bytes(images: np.ndarray[Any, Any], bad_color: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pixels of 0 to 255 of float images [batch, height, width, channels], each by itself.

    Non-negative ones are scaled so that the largest is 255, others so that the largest distance from zero is
    127, and zero is 128. A pixel that is not finite gets the bad color.
    """
    finite = np.isfinite(images)
    is_finite = finite.all()
    values = images if is_finite else np.where(finite, images, 0).astype(images.dtype)
    axes = (1, 2, 3)
    least = values.min(axes, keepdims=True, initial=0)
    largest = values.max(axes, keepdims=True, initial=0)
    has_sign = least < 0
    most = np.maximum(-least, largest)
    tops = np.where(has_sign, 127, 255).astype(images.dtype)
    flat = most < _SMALL
    scales = np.where(flat, 0, tops / np.where(flat, 1, most)).astype(images.dtype)
    scaled = values * scales + np.where(has_sign, 128, 0).astype(images.dtype)
    pixels: np.ndarray[Any, Any] = scaled.astype(np.uint8)
    if not is_finite:
        pixels[~finite.all(-1)] = bad_color[: images.shape[-1]]
    return pixels


image_summary_op = op(
    "ImageSummary", "tag: string, tensor: T -> summary: string",
    "max_images: int >= 1 = 3 ; T: type in [uint8, float, half, double] = float ; bad_color: tensor",
)  # fmt: skip
image_summary_op.attributes["bad_color"].default = np.array(_BAD_COLOR, np.uint8)
image_summary_op.infer(lambda node: ())
image_summary_op.not_differentiable()


@image_summary_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    from flowstone.io.image_files.png import encode_png

    most, bad_color = node.attributes["max_images"], np.asarray(node.attributes["bad_color"])

    def summarize(tag: np.ndarray[Any, Any], tensor: torch.Tensor) -> np.ndarray[Any, Any]:
        name = tag_of(tag)
        if tensor.dim() != 4 or tensor.shape[3] not in _CHANNELS:
            raise invalid(
                f"Tensor must be 4-D with last dim 1, 3, or 4, not {format_dims(tuple(tensor.shape))}"
            )
        if bad_color.size < tensor.shape[3]:
            raise invalid(f"expected depth >= {tensor.shape[3]}, but bad_color has {bad_color.size} elements")
        summary = new_summary()
        count, height, width, channels = tensor.shape
        if count and not height * width:
            raise invalid("PNG encoding failed: an image without pixels")
        pictures = tensor[:most].numpy()
        if pictures.dtype != np.uint8:
            pictures = image_bytes(pictures, bad_color)
        for number, pixels in enumerate(pictures):
            value = summary.value.add(tag=_tag(name, "image", most, number))
            value.image.height, value.image.width, value.image.colorspace = height, width, channels
            value.image.encoded_image_string = encode_png(pixels)
        return serialized(summary)

    return summarize


def _tag(name: str, kind: str, most: int, number: int) -> str:
    return f"{name}/{kind}" if most == 1 else f"{name}/{kind}/{number}"


# ---- sounds

audio_summary_op = op(
    "AudioSummary", "tag: string, tensor: float -> summary: string",
    "sample_rate: float ; max_outputs: int >= 1 = 3", deprecated=(15, "AudioSummaryV2"),
)  # fmt: skip
audio_summary_v2_op = op(
    "AudioSummaryV2", "tag: string, tensor: float, sample_rate: float -> summary: string",
    "max_outputs: int >= 1 = 3",
)  # fmt: skip
for _declared in (audio_summary_op, audio_summary_v2_op):
    _declared.infer(lambda node: ())
    _declared.not_differentiable()


@audio_summary_op.kernel(CPU)
@audio_summary_v2_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    most, known = node.attributes["max_outputs"], node.attributes.get("sample_rate")

    def summarize(tag: Any, tensor: torch.Tensor, sample_rate: Any = known) -> np.ndarray[Any, Any]:
        name, rate = tag_of(tag), float(sample_rate)
        if tensor.dim() not in (2, 3):
            raise invalid(f"Tensor must be 3-D or 2-D, got: {format_dims(tuple(tensor.shape))}")
        if rate <= 0:
            raise invalid("sample_rate must be > 0")
        summary = new_summary()
        for number, sound in enumerate(tensor[:most]):
            frames = sound.numpy() if sound.dim() == 2 else sound.numpy()[:, None]
            value = summary.value.add(tag=_tag(name, "audio", most, number))
            value.audio.sample_rate, value.audio.length_frames = rate, len(frames)
            value.audio.num_channels, value.audio.content_type = frames.shape[1], "audio/wav"
            value.audio.encoded_audio_string = encoded(frames, round(rate))
        return serialized(summary)

    return summarize


# ---- functions


def image(
    name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: str | None = None
) -> Tensor:
    """A summary of up to `max_outputs` images; see `scalar` for the other arguments.

    `tensor`: [batch, height, width, channels] of 1, 3 or 4 channels, grey, RGB or RGBA: uint8, or floats,
    which are scaled image by image (see `image_bytes`). Tags are ``TAG/image/0`` …, ``TAG/image`` if there is
    to be one.
    """
    with summary_scope(name, family) as (tag, scope):
        summary: Tensor = image_summary_op(tag, tensor, max_images=max_outputs, name=scope)
        collect(summary, collections)
    return summary


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Any = None,
    family: str | None = None,
) -> Tensor:
    """A summary of up to `max_outputs` sounds; see `scalar` for the other arguments.

    `tensor`: float32 [batch, frames] or [batch, frames, channels] of numbers between -1 and 1;
    `sample_rate`: frames a second. Tags are ``TAG/audio/0`` …, ``TAG/audio`` if there is to be one.
    """
    with summary_scope(name, family) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        summary: Tensor = audio_summary_v2_op(tag, tensor, rate, max_outputs=max_outputs, name=scope)
        collect(summary, collections)
    return summary
