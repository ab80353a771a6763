"""onnxruntime_genai: the names of that package, for programs that are written for it.

    import heddle.onnxruntime_genai as og
    model = og.Model("model/")
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=200)
    generator = og.Generator(model, params)
    generator.append_tokens(og.Tokenizer(model).encode("Once upon a time"))
    while not generator.is_done():
        generator.generate_next_token()

One text at a time, by heddle.generate: no beams, adapters, images or sound.
SPDX-License-Identifier: Apache-2.0
"""

import json

import numpy as np

from . import generate
from .generate import chat
from .generate.batch import tokens_of
from .generate.model import open_model
from .generate.text import Pieces
from .library import UsageError

# Options of a search, and what they are where nobody says it.
OPTIONS = {"max_length": None, "min_length": 0, "do_sample": False, "temperature": 1.0, "top_k": 50,
           "top_p": 1.0, "repetition_penalty": 1.0, "random_seed": -1}
NEUTRAL = {"batch_size": (1,), "num_beams": (1,), "num_return_sequences": (1,),
           "no_repeat_ngram_size": (0,), "diversity_penalty": (0.0,), "length_penalty": (1.0,),
           "early_stopping": (True, False), "past_present_share_buffer": (True, False),
           "chunk_size": (0,)}


class Model:
    """A model, from a folder or file; `options` are those of heddle.compile."""

    def __init__(self, path, **options):
        self._model = open_model(path, **options)

    @property
    def type(self):
        return "decoder"

    @property
    def device_type(self):
        return "CPU"


class TokenizerStream:
    """Text of tokens as they come."""

    def __init__(self, words):
        self._pieces = Pieces(words)

    def decode(self, token):
        """Characters that are whole with this token."""
        return self._pieces.add(int(token))


class Tokenizer:
    """The model's tokenizer."""

    def __init__(self, model):
        self._model, self._facts = model._model, model._model.facts
        self._words = self._model.words

    @property
    def bos_token_id(self):
        return self._facts.bos

    @property
    def eos_token_ids(self):
        return list(self._facts.eos)

    def encode(self, text):
        return np.array(tokens_of(self._model, text) if text else [], np.int32)

    def decode(self, tokens):
        return self._words.decode([int(each) for each in tokens])

    def to_token_id(self, text):
        return self._words.token(text)

    def create_stream(self):
        return TokenizerStream(self._words)

    def apply_chat_template(self, messages, template_str=None, tools=None,
                            add_generation_prompt=True):
        """The text of messages, a list or its JSON."""
        if isinstance(messages, str):
            try:
                messages = json.loads(messages)
            except ValueError as error:
                raise UsageError(f"messages are no JSON: {error}") from error
        more = {} if tools is None else {
            "tools": json.loads(tools) if isinstance(tools, str) else tools}
        return chat.render(template_str or self._facts.template, messages, self._facts.tokens,
                           self._facts.where, add_generation_prompt=add_generation_prompt, **more)


class GeneratorParams:
    """Options of a search."""

    def __init__(self, model):
        self._options = {**OPTIONS, "max_length": model._model.facts.context}

    def set_search_options(self, **options):
        for name, value in options.items():
            if name in NEUTRAL:
                if value not in NEUTRAL[name]:
                    allowed = " or ".join(map(str, NEUTRAL[name]))
                    raise UsageError(f"'{name}' is {value!r}, but only {allowed} is supported")
            elif name in OPTIONS:
                self._options[name] = value
            else:
                raise UsageError(f"there is no option '{name}'; known: "
                                 f"{', '.join([*OPTIONS, *NEUTRAL])}")

    def get_search_options(self):
        return dict(self._options)


class Generator:
    """One text."""

    def __init__(self, model, params):
        self._facts, self._options = model._model.facts, params.get_search_options()
        most = self._options["max_length"]
        if not isinstance(most, int) or not 1 <= most <= self._facts.context:
            raise UsageError(f"'max_length' is {most!r}, but must be an integer from 1 to "
                             f"{self._facts.context}")
        self._text = generate.Generator(model._model)
        self._settings = {"repetition_penalty": self._options["repetition_penalty"]}
        if self._options["do_sample"]:
            seed = self._options["random_seed"]
            self._settings |= {name: self._options[name] for name in (
                "temperature", "top_k", "top_p")} | {"seed": None if seed < 0 else seed}
        if self._options["min_length"] > 0:
            self._settings["on_logits"] = self._without_end
        self._is_done = False

    def _without_end(self, logits):
        if self._text.length < self._options["min_length"]:
            logits[list(self._facts.eos)] = -np.inf
        return logits

    def append_tokens(self, tokens):
        tokens = np.asarray(tokens)
        if tokens.ndim == 2 and len(tokens) == 1:
            tokens = tokens[0]
        if tokens.ndim != 1:
            raise UsageError(f"tokens are of shape {list(tokens.shape)}, but must be those of one "
                             "text")
        if self._text.length + len(tokens) > self._options["max_length"]:
            raise UsageError(f"the text would have {self._text.length + len(tokens)} tokens, but "
                             f"'max_length' is {self._options['max_length']}")
        self._text.append(tokens.tolist())
        self._is_done = self._text.length >= self._options["max_length"]

    def append(self, text):
        """Adds the tokens of a text."""
        self.append_tokens(self._text.tokenizer.encode(text, special=not self._text.length))

    def generate_next_token(self):
        if self._is_done:
            raise UsageError("the text is done; `rewind_to` and `append_tokens` let it go on")
        token = self._text.step(**self._settings)
        self._is_done = (token in self._facts.eos
                         or self._text.length >= self._options["max_length"])

    def is_done(self):
        return self._is_done

    def token_count(self):
        return self._text.length

    def get_next_tokens(self):
        return np.array(self._text.tokens[-1:], np.int32)

    def get_sequence(self, index):
        if index != 0:
            raise UsageError(f"there is no sequence {index}, but one, 0")
        return np.array(self._text.tokens, np.int32)

    def get_logits(self):
        """Logits of the next token, f32 [1, 1, words]."""
        return self._text.logits.astype(np.float32)[None, None]

    def rewind_to(self, length):
        self._text.rewind(length)
        self._is_done = False
