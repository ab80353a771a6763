"""images_test: ImageDecoder beyond ONNX's own tests: formats and depths, damaged files, a machine
without the library that reads images. SPDX-License-Identifier: Apache-2.0
"""

import ctypes.util
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto

pytestmark = pytest.mark.skipif(
    not any(map(ctypes.util.find_library, ("MagickWand-6.Q16", "MagickWand-7.Q16"))),
    reason="ImageMagick's library is not there: libmagickwand-6.q16-6")
RGB = np.random.default_rng(1).integers(0, 256, (5, 7, 3), np.uint8)


def decoder(pixel_format="RGB"):
    node = make_node("ImageDecoder", "x", "y", name="decode", pixel_format=pixel_format)
    model = make_model([node], {"x": (["n"], TensorProto.UINT8)},
                       {"y": ([None, None, None], TensorProto.UINT8)}, opset=20)
    return heddle.compile(model.SerializeToString(), threads=1)


def decode(data, pixel_format="RGB"):
    return decoder(pixel_format).run(None, {"x": np.frombuffer(data, np.uint8)})[0]


def pnm(pixels):
    kind = b"P6" if pixels.shape[2] == 3 else b"P5"
    return kind + b"\n%d %d\n255\n" % (pixels.shape[1], pixels.shape[0]) + pixels.tobytes()


def png(pixels, colour_type, depth=8):
    def chunk(name, data):
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def luma(pixels):
    weighted = pixels.astype(np.int64) @ np.array([19595, 38470, 7471])
    return ((weighted + 32768) >> 16).astype(np.uint8)[..., None]


@pytest.mark.parametrize("pixel_format, wanted", [
    ("RGB", RGB), ("BGR", RGB[..., ::-1]), ("Grayscale", luma(RGB))])
def test_formats_of_pixels(pixel_format, wanted):
    np.testing.assert_array_equal(decode(pnm(RGB), pixel_format), wanted)
    np.testing.assert_array_equal(decode(png(RGB, 2), pixel_format), wanted)


def test_alpha_is_dropped_and_gray_spread():
    alpha = np.concatenate([RGB, np.full((5, 7, 1), 255, np.uint8)], axis=2)
    np.testing.assert_array_equal(decode(png(alpha, 6)), RGB)
    gray = RGB[..., :1]
    np.testing.assert_array_equal(decode(png(gray, 0)), np.repeat(gray, 3, axis=2))
    wide = (RGB.astype(np.uint16) * 257).astype(">u2")
    np.testing.assert_array_equal(decode(png(wide, 2, 16)), RGB)


def test_one_module_reads_images_of_any_size():
    module = decoder()
    for size in [(1, 1), (3, 40), (64, 2)]:
        pixels = np.random.default_rng(2).integers(0, 256, (*size, 3), np.uint8)
        found = module.run(None, {"x": np.frombuffer(pnm(pixels), np.uint8)})[0]
        np.testing.assert_array_equal(found, pixels)


@pytest.mark.parametrize("data", [
    b"", b"BM", b"P6\n", png(RGB, 2)[:40], b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    b"%!PS-Adobe-3.0\nshowpage", bytes(100), pnm(RGB)[:5]])
def test_what_is_no_image_ends_the_run(data):
    with pytest.raises(heddle.Error, match="node 'decode' .*: its "
                                                 f"{len(data)} bytes are no image"):
        decode(data)


def test_a_machine_without_the_library(tmp_path):
    artefact = tmp_path / "model.so"
    decoder().compiled.write(artefact)
    script = (f"import numpy as np, heddle\n"
              f"heddle.load({str(artefact)!r}).run(None, {{'x': np.zeros(9, np.uint8)}})")
    path = str(Path(heddle.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path,
                               "HEDDLE_MAGICKWAND": "/none/library.so"})
    assert "install Debian's 'libmagickwand-6.q16-6'" in done.stderr
