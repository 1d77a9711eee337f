"""Cases of sound: files that are whole and files that are not, spectrograms, cepstral coefficients."""

import struct
from collections.abc import Iterator

import numpy as np

from op_cases import case, literal, normal, positive, strings

INVALID = "InvalidArgumentError"
SAMPLES = [0, 1, -1, 100, 32767, -32768]


def format_chunk(channels=1, rate=8000, bits=16, tag=1, size=16, second=None, frame=None) -> bytes:
    """The chunk that describes the samples."""
    frame = channels * bits // 8 & 0xFFFF if frame is None else frame
    second = rate * channels * bits // 8 & 0xFFFFFFFF if second is None else second
    return b"fmt " + struct.pack("<IHHIIHH", size, tag, channels, rate, second, frame, bits)


def chunk(word: bytes = b"data", body: bytes | None = None, size: int | None = None) -> bytes:
    """Another chunk: samples, or these bytes."""
    body = np.array(SAMPLES, "<i2").tobytes() if body is None else body
    return word + struct.pack("<I", len(body) if size is None else size) + body


def wav(*chunks: bytes, riff: bytes = b"RIFF", wave: bytes = b"WAVE", size: int = 1) -> bytes:
    """A file."""
    return riff + struct.pack("<I", size) + wave + b"".join(chunks)


LIST = chunk(b"LIST", b"abcd")
WHOLE = {
    "mono": wav(format_chunk(), chunk()),
    "stereo": wav(format_chunk(2), chunk()),
    "six": wav(format_chunk(6, 44100), chunk()),
    "size": wav(format_chunk(), chunk(), size=0xFFFFFFFF),
    "long format": wav(format_chunk(size=18) + b"\0\0", chunk()),
    "list before": wav(format_chunk(), LIST, chunk()),
    "list after": wav(format_chunk(), chunk(), LIST),
    "odd list": wav(format_chunk(), chunk(b"LIST", b"abc"), chunk()),
    "no samples": wav(format_chunk(), chunk(body=b"")),
    "no rate": wav(format_chunk(rate=0), chunk()),
}
BROKEN = {
    "nothing": b"",
    "short": b"RIFF",
    "riff": wav(format_chunk(), chunk(), riff=b"RIFX"),
    "wave": wav(format_chunk(), chunk(), wave=b"WAVX"),
    "no data": wav(format_chunk()),
    "no format": wav(chunk()),
    "list first": wav(LIST, format_chunk(), chunk()),
    "data too long": wav(format_chunk(), chunk(size=100)),
    "data huge": wav(format_chunk(), chunk(size=0xFFFFFFF0)),
    "half a sample": wav(format_chunk(), chunk(body=b"abcde")),
    "half a frame": wav(format_chunk(2), chunk(body=b"abcdef")),
    "no channels": wav(format_chunk(0), chunk()),
    "many channels": wav(format_chunk(0xFFFF), chunk()),
    "rate": wav(format_chunk(rate=0x80000000, second=0), chunk()),
    "tag": wav(format_chunk(tag=3), chunk()),
    **{f"{bits} bits": wav(format_chunk(bits=bits), chunk()) for bits in (0, 8, 12, 24, 32)},
    "second": wav(format_chunk(second=1), chunk()),
    "frame": wav(format_chunk(second=24000, frame=3), chunk()),
    **{
        f"format {size}": wav(format_chunk(size=size), chunk())
        for size in (0, 14, 20, 0x7FFFFFFF, 0xFFFFFFFF)
    },
    "list huge": wav(format_chunk(), chunk(b"LIST", b"abc", 0xFFFFFFFF), chunk()),
    "two": wav(format_chunk(), chunk(), chunk()),
    "cut": wav(format_chunk(), chunk())[:-3],
    "trailing": wav(format_chunk(), chunk()) + b"xx",
}


def files() -> Iterator:
    """Read and written."""
    op = "DecodeWav"
    for label, contents in WHOLE.items():
        yield case(op, strings(contents), label=label)
    for label in ("mono", "stereo"):
        for wanted in ((1, -1), (3, 2), (-1, 4), (-1, 9), (0, -1), (-1, 0)):
            sizes = {"desired_channels": wanted[0], "desired_samples": wanted[1]}
            yield case(op, strings(WHOLE[label]), label=label, **sizes)
    for label, contents in BROKEN.items():
        yield case(op, strings(contents), label=label, error=INVALID)
    yield case(op, strings([WHOLE["mono"]]), label="vector", error=INVALID)
    yield case(op, strings(WHOLE["mono"]), desired_samples=-2, error="ValueError")
    yield case(op, strings(WHOLE["mono"]), desired_channels=2**31, error="ValueError")
    op, rate = "EncodeWav", literal(8000, "int32")
    halves = [0.5, -0.5, 1.5, -1.5, 32766.5, 32767.4, -32767.5, -32768.4, 0, 99999, -99999]
    yield case(op, (np.array(halves) / 32768).astype(np.float32)[:, None], rate)
    yield case(op, np.array([[np.nan, np.inf, -np.inf]], np.float32), rate)
    yield case(op, normal(5, 3), literal(44100, "int32"))
    yield case(op, normal(0, 2), rate)
    yield case(op, normal(1, 65536), rate, error=INVALID)
    yield case(op, normal(2, 0), rate, error=INVALID)
    yield case(op, normal(2), rate, error=INVALID)
    yield case(op, normal(2, 1), literal(0, "int32"), error=INVALID)
    yield case(op, normal(2, 1), literal(-1, "int32"), error=INVALID)
    yield case(op, normal(2, 1), literal([1], "int32"), error=INVALID)


def spectra() -> Iterator:
    """Windows of powers of two and others; sound shorter than a window; no sound."""
    op, near = "AudioSpectrogram", {"rtol": 1e-5, "atol": 1e-5}
    for window, stride in ((16, 8), (10, 7), (2, 1), (33, 50)):
        for squared in (True, False):
            mode = {"window_size": window, "stride": stride, "magnitude_squared": squared}
            yield case(op, normal(100, 2), **mode, **near)
    yield case(op, normal(20, 1), window_size=30, stride=4)
    yield case(op, normal(0, 2), window_size=30, stride=4)
    yield case(op, normal(40, 0), window_size=30, stride=4)
    yield case(op, np.full((20, 1), np.nan, np.float32), window_size=8, stride=4)
    yield case(op, normal(20), window_size=8, stride=4, error=INVALID)
    for window, stride in ((1, 1), (0, 1), (-3, 1), (8, 0), (8, -1)):
        yield case(op, normal(20, 1), window_size=window, stride=stride, error="ValueError")


def coefficients() -> Iterator:
    """Of strong, weak and silent spectra; limits and counts of all kinds."""
    op, rate, near = "Mfcc", literal(16000, "int32"), {"rtol": 1e-5, "atol": 2e-5}
    yield case(op, positive(2, 3, 129), rate, **near)
    yield case(op, positive(2, 3, 33), rate, **near)
    yield case(op, positive(1, 2, 65), literal(8000, "int32"), **near)
    limits = {"upper_frequency_limit": 3000.0, "lower_frequency_limit": 100.0}
    counts = {"filterbank_channel_count": 10, "dct_coefficient_count": 10}
    yield case(op, positive(1, 2, 65), rate, **limits, **counts, **near)
    yield case(op, positive(1, 2, 65), rate, lower_frequency_limit=0.0, **counts, **near)
    yield case(op, np.zeros((1, 2, 65), np.float32), rate, **near)
    yield case(op, np.full((1, 2, 65), -1, np.float32), rate)
    yield case(op, positive(1, 2, 65), literal(4000, "int32"), label="ends too early")
    yield case(op, positive(0, 2, 65), rate)
    yield case(op, positive(1, 0, 65), rate)
    for wrong in (
        {"dct_coefficient_count": 41},
        {"dct_coefficient_count": 0},
        {"filterbank_channel_count": 0},
        {"filterbank_channel_count": -1},
        {"upper_frequency_limit": 10.0},
        {"lower_frequency_limit": -1.0},
    ):
        yield case(op, positive(1, 2, 65), rate, error=INVALID, **wrong)
    yield case(op, positive(1, 2, 65), literal(0, "int32"), error=INVALID)
    yield case(op, positive(1, 2, 65), literal(-1, "int32"), error=INVALID)
    yield case(op, positive(1, 2, 65), literal([1], "int32"), error=INVALID)
    yield case(op, positive(2, 65), rate, error=INVALID)
    yield case(op, positive(1, 2, 1), rate, error=INVALID)
    yield case(op, positive(1, 2, 0), rate, error=INVALID)


CASES = [*files(), *spectra(), *coefficients()]
