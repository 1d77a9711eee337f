"""Write small image files of every kind with Pillow, and ask TensorFlow what they hold.

`python tests/golden/make_codec_goldens.py files` writes `images/codec_files.npz` with Pillow; without `files`
it asks a Python that has TensorFlow. `images/codec_answers.json` came from 1.15.5, and then with the argument
`later`, which asks about GIF and WebP files only, from 2.21: 1.15 draws the frames of an animation otherwise.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import struct
import sys
import zlib
from typing import Any

import numpy as np

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
GOLDEN = pathlib.Path(__file__).parent / "images"
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops" / "images"))

Y, X = np.mgrid[0:13, 0:18]
COLOURS = np.stack([np.sin(X / 4) * 100 + 128, (Y * 15 + X * 3) % 256, (X * Y * 3) % 256], -1).astype(
    np.uint8
)
GREY = COLOURS[..., 1]
CLEAR = np.dstack([COLOURS, (X * 14) % 256]).astype(np.uint8)
WIDE = (COLOURS.astype(np.uint16) * 257 + np.arange(13 * 18 * 3).reshape(13, 18, 3) % 200).astype(np.uint16)
WIDE_CLEAR = np.dstack([WIDE, (X * 3000).astype(np.uint16)])
PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def row_bytes(row: Any, depth: int) -> Any:
    flat = row.reshape(-1)
    if depth == 16:
        return np.frombuffer(flat.astype(">u2").tobytes(), np.uint8)
    if depth == 8:
        return flat.astype(np.uint8)
    return np.packbits(np.unpackbits(flat.astype(np.uint8)[:, None], axis=1)[:, 8 - depth :].reshape(-1))


def filtered(rows: Any, depth: int, channels: int) -> bytes:
    """The rows with each of PNG's filters in turn."""
    step, above, out = max(1, channels * depth // 8), None, b""
    for i, row in enumerate(rows):
        own = row_bytes(row, depth).astype(int)
        up = np.zeros_like(own) if above is None else above
        left, corner = (np.concatenate([np.zeros(step, int), each])[: len(own)] for each in (own, up))
        guess = left + up - corner
        far = [abs(guess - each) for each in (left, up, corner)]
        nearest = np.where(
            (far[0] <= far[1]) & (far[0] <= far[2]), left, np.where(far[1] <= far[2], up, corner)
        )
        change = own - [np.zeros_like(own), left, up, (left + up) // 2, nearest][i % 5]
        out += bytes([i % 5]) + (change % 256).astype(np.uint8).tobytes()
        above = own
    return out


def png(pixels: Any, depth: int, kind: int, interlaced: int = 0, clear: bytes = b"") -> bytes:
    height, width = pixels.shape[:2]
    pixels = pixels.reshape(height, width, -1)
    parts = [pixels[y::dy, x::dx] for y, x, dy, dx in PASSES] if interlaced else [pixels]
    data = b"".join(filtered(part, depth, pixels.shape[2]) for part in parts if part.size)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    chunks = [(b"IHDR", header), (b"tRNS", clear), (b"IDAT", zlib.compress(data, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks if each[1] or each[0] == b"IEND")


def files() -> dict[str, bytes]:
    from PIL import Image, ImageDraw

    found: dict[str, bytes] = {}

    def save(name: str, image: Any, **options: Any) -> None:
        out = io.BytesIO()
        image.save(out, name.split()[0].upper(), **options)
        found[name] = out.getvalue()

    image = Image.fromarray
    few = image(COLOURS).quantize(11)
    for name, pixels in (("grey", GREY), ("colours", COLOURS), ("clear", CLEAR)):
        save(f"png {name}", image(pixels))
        save(f"bmp {name}", image(pixels))
    save("png 1 bit", image(GREY).convert("1"))
    save("png palette", few)
    save("png palette clear", few, transparency=3)
    save("png palette 1 bit", image(COLOURS).quantize(2), bits=1)
    save("png palette 2 bits", image(COLOURS).quantize(4), bits=2)
    save("png grey with a clear one", image(GREY), transparency=int(GREY[2, 3]))
    save("png colours with a clear one", image(COLOURS), transparency=tuple(map(int, COLOURS[2, 3])))
    found["png grey and alpha"] = png(CLEAR[..., [1, 3]], 8, 4)
    found["png wide grey"] = png(WIDE[..., 0], 16, 0)
    found["png wide grey with a clear one"] = png(
        WIDE[..., 0], 16, 0, 0, WIDE[2, 3, 0].astype(">u2").tobytes()
    )
    found["png wide grey and alpha"] = png(WIDE_CLEAR[..., [1, 3]], 16, 4)
    found["png wide colours"] = png(WIDE, 16, 2)
    found["png wide colours with a clear one"] = png(WIDE, 16, 2, 0, WIDE[2, 3].astype(">u2").tobytes())
    found["png wide clear"] = png(WIDE_CLEAR, 16, 6)
    found["png wide colours interlaced"] = png(WIDE, 16, 2, 1)
    found["png colours interlaced"] = png(COLOURS, 8, 2, 1)
    found["png 2 bits"], found["png 2 bits interlaced"] = png(GREY >> 6, 2, 0), png(GREY >> 6, 2, 0, 1)
    found["png 4 bits"] = png(GREY >> 4, 4, 0)
    found["png 4 bits with a clear one"] = png(GREY >> 4, 4, 0, 0, struct.pack(">H", int(GREY[2, 3] >> 4)))
    found["png cut"] = found["png wide colours"][:600]
    save("jpeg whole colours", image(COLOURS), quality=90, subsampling=0)
    save("jpeg quarter colours", image(COLOURS), quality=60, subsampling=2)
    save("jpeg grey", image(GREY))
    save("jpeg progressive", image(COLOURS), progressive=True, quality=70)
    save("jpeg cmyk", image(COLOURS).convert("CMYK"), quality=90)
    found["jpeg cut"] = found["jpeg whole colours"][:700]
    frames = [image(np.roll(COLOURS, 3 * i, 1)).quantize(15) for i in range(3)]
    square = image(COLOURS).quantize(15)
    ImageDraw.Draw(square).rectangle([3, 4, 8, 9], fill=2)
    save("gif one", frames[0])
    save("gif interlaced", frames[0], interlace=1)
    save("gif three", frames[0], save_all=True, append_images=frames[1:], duration=50)
    for disposal in (1, 2, 3):
        save(f"gif disposal {disposal}", frames[0], save_all=True, append_images=[square, frames[1]],
             duration=50, disposal=disposal)  # fmt: skip
    holes = image(np.where(CLEAR[..., 3:] > 128, CLEAR, 0).astype(np.uint8))
    save("gif clear", holes, save_all=True, append_images=[image(CLEAR)], duration=50)
    save("bmp palette", few)
    save("bmp 1 bit", image(GREY).convert("1"))
    turned = bytearray(found["bmp colours"])
    turned[22:26] = struct.pack("<i", -13)
    found["bmp top down"] = bytes(turned)
    save("tiff", image(COLOURS))
    save("webp lossy", image(COLOURS), quality=80)
    save("webp clear", image(CLEAR), lossless=True, exact=True)
    more = [image(np.roll(CLEAR, 3, 1)), image(CLEAR[::-1].copy())]
    save("webp three", image(CLEAR), save_all=True, append_images=more, duration=40, lossless=True)
    found["text"] = b"no image"
    found["nothing"] = b""
    return found


def main() -> None:
    if "files" in sys.argv[1:]:
        arrays = {name: np.frombuffer(data, np.uint8) for name, data in files().items()}
        np.savez_compressed(GOLDEN / "codec_files.npz", **arrays)
        return
    import tensorflow.compat.v1 as tf

    import codec_calls

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    with np.load(GOLDEN / "codec_files.npz") as arrays:
        asked = {name: arrays[name].tobytes() for name in arrays.files}
    path = GOLDEN / "codec_answers.json"
    found: dict[str, Any] = {}
    if "later" in sys.argv[1:]:
        found = json.loads(path.read_text(encoding="utf-8"))
        asked = {name: data for name, data in asked.items() if name.startswith(("gif", "webp"))}
    found.update(codec_calls.answers(tf, asked))
    found["written"] = codec_calls.written(tf)
    lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
