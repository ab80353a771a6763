"""Cases of the benchmark: models, their inputs, and the batches that make sense.

Trained models come from the catalogue; the others are exported by export.py. A `network` names the
torch module of the same weights, for engines that compile torch.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

from bench.models import catalogue, sources
from bench.models.sources import Missing

Feeds = dict[str, np.ndarray]
SEED = 7


@dataclass(frozen=True)
class Case:
    """One model; `feeds(batch, random)` makes its inputs."""

    name: str
    path: Callable[[], Path]
    feeds: Callable[[int, np.random.Generator], Feeds]
    batches: tuple = (1,)
    network: str = ""
    quantised: bool = False
    constants: tuple = ()  # inputs that engines of fixed sizes get as constants

    def make_feeds(self, batch):
        """The inputs at a batch, the same at every call."""
        return self.feeds(batch, np.random.default_rng(SEED))


def exported(name):
    """The ONNX file of one of our own networks, exported at the first call."""
    return sources.exported(name, "torchvision")


def _picture(batch, random):
    return {"input": random.standard_normal((batch, 3, 224, 224)).astype(np.float32)}


def _tokens(length, vocabulary=30000):
    return lambda batch, random: {
        "input_ids": random.integers(0, vocabulary, (batch, length)),
        "attention_mask": np.ones((batch, length), np.int64)}


def _cache(random, names, *shape):
    return {name: random.standard_normal(shape).astype(np.float32) for name in names}


def _pairs(prefix, layers):
    return [f"{prefix}.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]


def _gpt2_step(past):
    return lambda batch, random: {
        "input_ids": random.integers(0, 50000, (batch, 1)),
        "position_ids": np.full((batch, 1), past, np.int64),
        "attention_mask": np.ones((batch, past + 1), np.int64),
        **_cache(random, _pairs("past", 12), batch, 12, past, 64)}


def _t5_step(past, encoded):
    return lambda batch, random: {
        "decoder_input_ids": random.integers(0, 30000, (batch, 1)),
        "attention_mask": np.ones((batch, encoded), np.int64),
        **_cache(random, _pairs("past", 6), batch, 8, past, 64),
        **_cache(random, _pairs("encoder", 6), batch, 8, encoded, 64)}


def _classifier(name):
    return Case(name, lambda: exported(name), _picture, (1, 16), name)


def _text(name, network, feeds, batches=(1,)):
    return Case(name, lambda: exported(network), feeds, batches, network)


def _trained(name, batches=(1,), constants=()):
    """A model of the catalogue at its first shape; a batch repeats its row."""
    model = catalogue.find(name)

    def feeds(batch, _random):
        first = model.make_feeds(SEED)[0]
        return first if batch == 1 else {
            key: np.repeat(value, batch, axis=0) for key, value in first.items()}

    return Case(name, model.path, feeds, batches, quantised=model.quantised,
                constants=constants)


def cases():
    """All of them, in the order of the table."""
    return [
        *(_classifier(name) for name in (
            "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "squeezenet1_1",
            "densenet121", "shufflenet_v2_x1_0", "vgg19", "vit_b_16", "swin_t")),
        _text("bert_base_128", "bert_base", _tokens(128), (1, 16)),
        _text("bert_base_384", "bert_base", _tokens(384)),
        _text("minilm_l6_32", "minilm_l6", _tokens(32), (1, 16)),
        _text("gpt2_prefill_128", "gpt2", _tokens(128, 50000)),
        _text("gpt2_decode_256", "gpt2_step", _gpt2_step(256)),
        _text("t5_small_encoder_128", "t5_small_encoder", _tokens(128)),
        _text("t5_small_decode_64", "t5_small_step", _t5_step(64, 128)),
        _trained("ppocr_det"),
        _trained("ppocr_rec"),
        _trained("magika"),
        _trained("silero_vad", constants=("sr",)),
        _trained("fns_candy"),
        _trained("ultraface"),
        _trained("superres"),
        _trained("kws_fp32"),
        _trained("kws_qdq"),
        Case("resnet50_int8", lambda: exported("resnet50_int8"), _picture, (1, 16),
             quantised=True),
        Case("bert_base_int8_128", lambda: exported("bert_base_int8"), _tokens(128),
             quantised=True),
    ]


def of_file(path, sizes):
    """The case of an ONNX file, with random inputs; `sizes`: "NAME=N" for those that it leaves
    open but for the first of an input, which is the batch."""
    import onnx
    from google.protobuf.message import DecodeError
    from heddle.library import UsageError
    from heddle.quantize.data import RandomInputs
    from heddle.quantize.graph import Network

    try:
        network = Network(onnx.load(path, load_external_data=False), str(path), opset=None)
        inputs = RandomInputs(network, sizes)
        inputs.feed(1, np.random.default_rng(SEED))
    except (UsageError, OSError, DecodeError, ValueError) as reason:
        raise Missing(f"{path}: {reason}") from reason
    return Case(Path(path).stem, lambda: Path(path), inputs.feed)


def find(name):
    """The case of that name."""
    known = {case.name: case for case in cases()}
    if name not in known:
        raise KeyError(f"no model '{name}'; there are: {', '.join(known)}")
    return known[name]
