"""heddle.generate: text from language models.

    generator = heddle.generate.Generator("model/")
    print(generator.generate("Once upon a time", max_tokens=64, temperature=0.7))
    for piece in generator.chat("Who are you?", stream=True):
        print(piece, end="", flush=True)

`heddle generate` is the same as a command (docs/guide/generate.md). In the order of the work:
model.py finds a model; families.py, safetensors.py, gguf.py, gguf_words.py and rope.py read one
that is no ONNX model, and network.py writes it as one; pairs.py, encoder.py and audio.py are of T5
and Whisper; cache.py runs it and has the keys and values; text.py, chat.py and sample.py are of
texts, messages and choices; batch.py has texts beside each other, and generator.py one; embed.py
gives vectors of texts. Texts need the package tokenizers, messages jinja2.
SPDX-License-Identifier: Apache-2.0
"""

from .batch import Piece, Result
from .embed import Embedder
from .generator import Generator, Stream
from .sample import Logprobs

__all__ = ["Embedder", "Generator", "Logprobs", "Piece", "Result", "Stream"]
