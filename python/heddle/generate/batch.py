"""batch: texts as they are generated, one or several beside each other.

SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass, field

import numpy as np

from ..library import UsageError
from .cache import Cache
from .grammar import Guide
from .sample import Sampler
from .text import Pieces


@dataclass
class Piece:
    """A step of a text: characters that are certain now, the token, and why it is the last one:
    "stop", "length", or None where it is not."""

    text: str
    token: int
    logprobs: object = None
    reason: str | None = None


@dataclass
class Result:
    """A text that was generated. `reason` is "stop" (a stop, or the model's end) or "length"."""

    text: str = ""
    tokens: list = field(default_factory=list)
    reason: str | None = None
    logprobs: list | None = None  # one Logprobs a token
    stats: dict = field(default_factory=dict)

    def __str__(self):
        return self.text


class Text:
    """One text: its tokens so far, the choice of the next one, and when it ends. A text of an
    encoder-decoder has a `source`, and begins with what the model says."""

    def __init__(self, model, prompt, settings, row=0, source=None):
        self.prompt, self.settings, self.source = prompt, settings, source
        self.tokens = list(prompt)
        facts = model.facts
        self._guide = None if settings.grammar is None else Guide(model, settings.grammar)
        self._sampler = Sampler(settings, facts.words, prompt, row,
                                (facts.never, facts.never_first), self._guide)
        words = model.words if model.has_words else None
        if words is None and settings.stop:
            model.words  # noqa: B018: says what lacks
        self._pieces = Pieces(words, settings.stop)
        self._ends = set(settings.stop_ids) | set(() if settings.ignore_eos else facts.eos)
        self._most = facts.context
        self.result = Result(logprobs=None if settings.logprobs is None else [])
        if settings.max_tokens == 0 or len(self.tokens) >= self._most:
            self.result.reason = "length"

    @property
    def reason(self):
        return self.result.reason

    @property
    def asked(self):
        """Tokens that were given, those with which the text begins among them."""
        return len(self.prompt) + (0 if self.source is None else self.source.tokens)

    @property
    def left(self):
        """Tokens that may still come."""
        return min(self.settings.max_tokens - len(self.result.tokens),
                   self._most - len(self.tokens))

    def take(self, logits):
        """The Piece of the next token."""
        token, told = self._sampler.choose(logits)
        result = self.result
        if token in self._ends:
            result.reason, fresh = "stop", self._pieces.finish()
        else:
            self.tokens.append(token)
            result.tokens.append(token)
            if told is not None:
                result.logprobs.append(told)
            fresh = self._pieces.add(token)
            if self._pieces.stopped is not None:
                result.reason = "stop"
            elif self._guide is not None and self._guide.is_whole:
                result.reason = "stop"
                fresh += self._pieces.finish()
            elif self.left < 1:
                result.reason = "length"
                fresh += self._pieces.finish()
                if self._pieces.stopped is not None:
                    result.reason = "stop"
        result.text += fresh
        return Piece(fresh, token, told, result.reason)


def text_of(model, prompt, settings, row=0):
    """The Text that goes on from a prompt, or that answers the source of an encoder-decoder."""
    encoder = model.encoder
    hears = encoder is not None and encoder.ear is not None
    if not hears and (settings.language is not None or settings.task is not None):
        raise UsageError(f"'language' and 'task' are of models that hear, which "
                         f"{model.facts.where} does not")
    if encoder is None:
        return Text(model, tokens_of(model, prompt), settings, row)
    source = (encoder.hear(prompt, settings.language, settings.task) if hears
              else encoder.read(tokens_of(model, prompt)))
    return Text(model, source.begin, settings, row, source)


def source_into(model, cache, text):
    """Reads the source of a text into an empty cache, and finds its language."""
    source, cache.sources = text.source, [model.encoder.run(text.source)]
    if source.languages:
        logits = cache.run([source.begin[:1]])[0, 0]
        text.prompt[1] = text.tokens[1] = max(source.languages, key=lambda token: logits[token])
        source.languages = ()


def tokens_of(model, prompt):
    """The tokens of a prompt, a text or tokens, which the model can take."""
    facts = model.facts
    if isinstance(prompt, str):
        tokens = model.words.encode(prompt)
        if facts.adds_bos and facts.bos is not None and tokens[:1] != [facts.bos]:
            tokens = [facts.bos, *tokens]
    else:
        try:
            tokens = [each.__index__() for each in prompt]
        except (TypeError, AttributeError):
            raise UsageError("a prompt must be a text, or a list of tokens, which are integers"
                             ) from None
    return check_tokens(facts, tokens)


def check_tokens(facts, tokens, before=0):
    wrong = next((each for each in tokens if not 0 <= each < facts.words), None)
    if wrong is not None:
        raise UsageError(f"token {wrong} of the prompt is none of the model's: {facts.where} has "
                         f"tokens from 0 to {facts.words - 1}")
    if not tokens:
        raise UsageError("the prompt is empty: it has no tokens; a model goes on from at least one")
    if before + len(tokens) > facts.context:
        raise UsageError(f"the prompt has {before + len(tokens)} tokens, but {facts.where} takes "
                         f"{facts.context}; 'max_length' sets that, as far as the model goes")
    return tokens


class Prefill:
    """A prompt on its way into a cache of its own, piece by piece. A cache that is given has its
    first tokens already."""

    def __init__(self, model, text, most, cache=None):
        self.text, self.cache, self._most = text, cache or Cache(model.layout), most
        self.logits, self._model, self._at = None, model, int(self.cache.lengths[0])

    def advance(self):
        """Computes one piece; True at the end."""
        if self.text.source is not None and not self.cache.sources:
            source_into(self._model, self.cache, self.text)
            self._at = int(self.cache.lengths[0])
        tokens = self.text.prompt[self._at:self._at + self._most]
        self.logits = self.cache.run([tokens])[0, -1:].copy()
        self._at += len(tokens)
        return self._at == len(self.text.prompt)


class Batch:
    """Texts beside each other: each step is one run for all of them."""

    def __init__(self, model):
        self.texts, self._cache, self._logits = [], Cache(model.layout, 0), None

    def add(self, prefills):
        """Adds texts whose prompts have been computed."""
        self._cache.join([each.cache for each in prefills])
        rows = [] if self._logits is None else [self._logits]
        self._logits = np.concatenate(rows + [each.logits for each in prefills])
        self.texts += [each.text for each in prefills]

    def drop(self, texts):
        """Leaves out texts."""
        self._keep([i for i, text in enumerate(self.texts) if text not in texts])

    def _keep(self, rows):
        if len(rows) < len(self.texts):
            self.texts = [self.texts[i] for i in rows]
            self._cache.select(rows)
            self._logits = self._logits[rows]

    def choose(self, ends=lambda tokens, cache: None):
        """[(text, Piece or the error of its choice)]; texts that have ended are left out then.
        `ends` is called with the tokens of one, and a cache that has them."""
        made = []
        for text, logits in zip(self.texts, self._logits):
            try:
                made.append((text, text.take(logits)))
            except Exception as error:  # of this text alone: the others go on
                made.append((text, error))
        ended = {id(text) for text, piece in made
                 if isinstance(piece, Exception) or piece.reason is not None}
        for i, (text, piece) in enumerate(made):
            if not isinstance(piece, Exception) and piece.reason is not None:
                ends(text.tokens[:int(self._cache.lengths[i])], self._cache.row(i))
        self._keep([i for i, text in enumerate(self.texts) if id(text) not in ended])
        return made

    def run(self):
        """Computes what follows the tokens that were chosen."""
        if self.texts:
            self._logits = self._cache.run([text.tokens[-1:] for text in self.texts])[:, -1].copy()
