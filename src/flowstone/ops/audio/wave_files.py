"""WAV files of 16 bit samples, read and written.

A file is the bytes ``RIFF``, a size that is not asked, ``WAVE``, and chunks: four letters, a size and as many
bytes. The first chunk is the format, one of the others the samples of all channels in turn:

>>> audio, rate = decoded(encoded(np.array([[0.5], [-1.0]], np.float32), 8000))
>>> audio.tolist(), rate
([[0.5], [-1.0]], 8000)

Sizes are read from data that may be corrupt, so nothing is allocated by them before it is known that the file
is that long.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.arrays import boxed, invalid
from flowstone.ops.networks.windows import require_rank

Array = np.ndarray[Any, Any]
_FORMAT = struct.Struct("<HHIIHH")  # tag, channels, samples a second, bytes a second, bytes a frame, bits
_PCM, _BITS = 1, 16
_HALF = torch.nextafter(torch.tensor(0.5), torch.tensor(0.0))  # so that what is less than a half stays so
_LARGEST_ATTRIBUTE = 2**31 - 1


class _Reader:
    """Bytes, read from the front."""

    def __init__(self, contents: bytes) -> None:
        self.contents, self.at = contents, 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes. InvalidArgumentError if there are fewer."""
        end = self.at + count
        if end > len(self.contents):
            raise invalid(f"Data too short: {count} bytes from {self.at} on, of {len(self.contents)}")
        part, self.at = self.contents[self.at : end], end
        return part

    def number(self) -> int:
        """The next four bytes as an unsigned number."""
        return int.from_bytes(self.take(4), "little")

    def expect(self, word: bytes) -> None:
        """Reads these bytes. InvalidArgumentError if there are others."""
        found = self.take(len(word))
        if found != word:
            raise invalid(f"Header mismatch: Expected {word.decode()} but found {found!r}")


def _format(reader: _Reader) -> tuple[int, int]:
    """The channels and the samples a second, from the format chunk."""
    reader.expect(b"RIFF")
    reader.number()
    reader.expect(b"WAVE")
    reader.expect(b"fmt ")
    size = reader.number()
    if size not in (16, 18):
        raise invalid(f"Bad format chunk size for WAV: Expected 16 or 18, but got {size}")
    tag, channels, rate, bytes_a_second, bytes_a_frame, bits = _FORMAT.unpack(reader.take(16))
    reader.take(size - 16)
    if tag != _PCM:
        raise invalid(f"Bad audio format for WAV: Expected {_PCM} (PCM), but got {tag}")
    if channels < 1:
        raise invalid(f"Bad number of channels for WAV: Expected at least 1, but got {channels}")
    if bits != _BITS:
        raise invalid(f"Can only read {_BITS}-bit WAV files, but received {bits}")
    if bytes_a_frame != 2 * channels:
        raise invalid(f"Bad bytes per sample in WAV header: Expected {2 * channels} but got {bytes_a_frame}")
    if bytes_a_second != bytes_a_frame * rate:
        raise invalid(
            f"Bad bytes per second in WAV header: Expected {bytes_a_frame * rate} but got {bytes_a_second}"
        )
    return channels, rate


def decoded(contents: bytes) -> tuple[Array, int]:
    """The samples of a file, float32 [samples, channels] in [-1, 1), and how many there are a second.

    InvalidArgumentError for what is no WAV file of 16 bit samples.
    """
    reader = _Reader(contents)
    channels, rate = _format(reader)
    samples = None
    while reader.at < len(contents):
        word, size = reader.take(4), reader.number()
        if word != b"data":
            reader.take(size)
            continue
        if samples is not None:
            raise invalid("More than one data chunk found in WAV")
        frames = size // (2 * channels)
        samples = np.frombuffer(reader.take(frames * 2 * channels), "<i2").reshape(frames, channels)
    if samples is None:
        raise invalid("No data chunk found in WAV")
    return samples.astype(np.float32) / np.float32(32768), rate


def encoded(audio: Array, rate: int) -> bytes:
    """Samples, float32 [samples, channels], as a file; what lies beyond [-1, 1) is cut, NaN is silence."""
    channels = audio.shape[1]
    values = torch.mul(torch.from_numpy(audio), 32768).nan_to_num_(0.0).clamp_(-32768, 32767)
    values.add_(torch.copysign(_HALF, values))  # halves are rounded away from zero: fractions are cut off
    samples = values.to(torch.int16).numpy().astype("<i2", copy=False)
    frame = 2 * channels
    head = _FORMAT.pack(_PCM, channels, rate, frame * rate & 0xFFFFFFFF, frame & 0xFFFF, _BITS)
    body = b"WAVEfmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", samples.nbytes)
    size = struct.pack("<I", len(body) + samples.nbytes)
    return b"".join((b"RIFF", size, body, np.ascontiguousarray(samples).reshape(-1).data))


# ---- the ops: on the host, where strings are

decode_wav_op = op(
    "DecodeWav",
    "contents: string -> audio: float, sample_rate: int32",
    "desired_channels: int = -1 ; desired_samples: int = -1",
)
decode_wav_op.no_gradient()


@decode_wav_op.infer
def _(node: Node) -> Shapes:
    require_rank(node.dims(0), 0)
    sizes: list[int | None] = []
    for what in ("samples", "channels"):
        wanted = node.attributes[f"desired_{what}"]
        if wanted < -1:
            raise ValueError(f"{what} must be non-negative, got {wanted}")
        if wanted > _LARGEST_ATTRIBUTE:
            raise ValueError(f"Attr desired_{what} has value {wanted} out of range for an int32")
        sizes.append(None if wanted == -1 else wanted)
    return [tuple(sizes), ()]


@decode_wav_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    channels, samples = node.attributes["desired_channels"], node.attributes["desired_samples"]

    def run(contents: Array) -> tuple[torch.Tensor, torch.Tensor]:
        if contents.ndim:
            raise invalid(f"contents must be scalar, got shape {list(contents.shape)}")
        audio, rate = decoded(contents.item())
        if channels != -1:  # the last one stands for those that the file lacks
            audio = audio[:, np.minimum(np.arange(channels), audio.shape[1] - 1)]
        if samples != -1:
            audio = np.pad(audio[:samples], [(0, max(samples - len(audio), 0)), (0, 0)])
        known = torch.from_numpy(np.ascontiguousarray(audio))
        return known, torch.from_numpy(np.array(rate, np.uint32).astype(np.int32))

    return run


encode_wav_op = op("EncodeWav", "audio: float, sample_rate: int32 -> contents: string")
encode_wav_op.no_gradient()


@encode_wav_op.infer
def _(node: Node) -> Shapes:
    require_rank(node.dims(0), 2)
    require_rank(node.dims(1), 0)
    return ()


@encode_wav_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(audio: torch.Tensor, rate: torch.Tensor) -> Array:
        if audio.dim() != 2:
            raise invalid(f"audio must be 2-dimensional but got shape {list(audio.shape)}")
        if rate.dim():
            raise invalid(f"Input sample_rate should be a scalar tensor, got shape {list(rate.shape)}")
        if int(rate) <= 0:
            raise invalid(f"sample_rate must be in (0, 2^32), got: {int(rate)}")
        if not 0 < audio.shape[1] < 2**16:
            raise invalid(f"num_channels must be in (0, 2^16), got: {audio.shape[1]}")
        return boxed(encoded(audio.numpy(), int(rate)))

    return run


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> Any:
    """A WAV file of 16 bit samples, a string scalar, as a named tuple (audio, sample_rate).

    `audio` is float32 [samples, channels] in [-1, 1), `sample_rate` an int32 scalar. `desired_samples`: as
    many from the beginning, silence after the end. `desired_channels`: as many, the last one repeated. -1
    takes what there is. InvalidArgumentError for other bytes.
    """
    return decode_wav_op.several(
        contents, desired_channels=desired_channels, desired_samples=desired_samples, name=name
    )


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """Sound, float32 [samples, channels] in [-1, 1), as a WAV file of 16 bit samples, a string scalar.

    InvalidArgumentError without channels, with more than 65,535, or if `sample_rate` is not positive.
    """
    return encode_wav_op(audio, sample_rate, name=name)
