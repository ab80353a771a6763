"""encoder: the half of an encoder-decoder that reads a source: a text of T5, a sound of Whisper.

A source is read once; the decoder's attention to it goes by the keys and values that come of that.
SPDX-License-Identifier: Apache-2.0
"""

import difflib
from dataclasses import dataclass

import numpy as np

from ..library import RefusedError, UsageError
from ..session import Session
from . import audio, pairs
from .network import INPUTS

TASKS = ("transcribe", "translate")


@dataclass(eq=False)
class Source:
    """A source as the encoder takes it."""

    feeds: dict
    tokens: int  # of a text; a sound has none
    begin: list  # tokens with which its text begins
    languages: tuple = ()  # tokens of which one follows the first, if that has to be found


class Encoder:
    """A compiled encoder. `ear` is that of a model that hears; `given` are the fields of
    config.json and generation_config.json."""

    def __init__(self, module, facts, threads, start, ear, given):
        self.session, self.facts, self.start, self.ear = Session(module, threads), facts, start, ear
        self._languages = self._tokens(given, "lang_to_id")
        self._tasks = self._tokens(given, "task_to_id")
        plain = given.get("no_timestamps_token_id")
        self._plain = [plain] if isinstance(plain, int) and 0 <= plain < facts.words else []

    def _tokens(self, given, key):
        table = given.get(key) or {}
        if not isinstance(table, dict) or not all(
                isinstance(each, int) and 0 <= each < self.facts.words for each in table.values()):
            raise RefusedError(f"{self.facts.where}: '{key}' is no table of tokens of the model's")
        return {name.strip("<|>"): token for name, token in table.items()}

    def hear(self, sound, language=None, task=None):
        """The Source of a sound."""
        features = audio.heard(sound, self.ear)
        if not self._languages:
            if language is not None or task not in (None, "transcribe"):
                raise UsageError(f"{self.facts.where}: knows one language and task; leave out "
                                 "'language' and 'task'")
            return Source({pairs.FEATURES: features[None]}, 0, [self.start, *self._plain])
        for what, value, known in (("language", language, self._languages),
                                   ("task", task, self._tasks)):
            if value is not None and not (isinstance(value, str) and value in known):
                near = difflib.get_close_matches(str(value), known, 1)
                raise UsageError(f"'{what}' is {value!r}, but the model knows: {', '.join(known)}"
                                 + (f"; did you mean '{near[0]}'?" if near else ""))
        end = [token for name, token in self._tasks.items() if name == (task or TASKS[0])]
        begin = [self.start, self._languages.get(language, -1), *end, *self._plain]
        return Source({pairs.FEATURES: features[None]}, 0, begin,
                      () if language else tuple(self._languages.values()))

    def read(self, tokens):
        """The Source of the tokens of a text."""
        return Source({INPUTS: np.int64([tokens])}, len(tokens), [self.start])

    def run(self, source):
        """Inputs of the decoder by name, each of one row, that a source gives."""
        names = [info.name for info in self.session.get_outputs()]
        made = dict(zip(names, self.session.run(names, source.feeds)))
        if self.ear is None:
            made[pairs.SOURCE_MASK] = np.ones((1, source.tokens), np.float32)
        return made
