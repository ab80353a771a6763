"""sample: the choice of a token from logits, in NumPy.

In this order: bias, penalties, temperature, top_k, top_p, min_p, one draw.
SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
import difflib
import math
import reprlib
from collections.abc import Mapping

import numpy as np

from ..library import Error, UsageError
from . import grammar

LARGEST = 1024


def _real(name, value, least, most, open_below=False):
    """The value as a float within its range."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    low = number <= least if open_below else number < least
    if isinstance(value, bool) or math.isnan(number) or low or number > most:
        allowed = f"above {least:g} and at most {most:g}" if open_below else (
            f"from {least:g} to {most:g}")
        raise UsageError(f"'{name}' is {reprlib.repr(value)}, but must be a number {allowed}")
    return number


def _count(name, value, least, most):
    if isinstance(value, bool) or not hasattr(value, "__index__") or not (
            least <= value.__index__() <= most):
        raise UsageError(f"'{name}' is {reprlib.repr(value)}, but must be an integer from {least} "
                         f"to {most}")
    return value.__index__()


@dataclasses.dataclass
class Settings:
    """How tokens are chosen, and when generation ends."""

    max_tokens: int = 128
    temperature: float = 0.0  # 0: always the likeliest
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    stop: tuple = ()
    stop_ids: tuple = ()
    ignore_eos: bool = False
    logit_bias: dict | None = None
    logprobs: int | None = None  # likeliest tokens to tell of, beside the chosen one
    on_logits: object = None
    prompt_lookup: int = 0  # tokens to guess from the text so far
    grammar: object = None  # of the text: "json", or {kind: grammar} (grammar.py)
    language: str | None = None  # of a sound; None: the model finds it
    task: str | None = None  # with a sound: "transcribe" or "translate"

    def __post_init__(self):
        self.max_tokens = _count("max_tokens", self.max_tokens, 0, 1 << 31)
        self.temperature = _real("temperature", 0.0 if self.temperature is None
                                 else self.temperature, 0, 100)
        self.top_k = _count("top_k", 0 if self.top_k is None else self.top_k, 0, 1 << 31)
        self.top_p = _real("top_p", self.top_p, 0, 1, open_below=True)
        self.min_p = _real("min_p", self.min_p, 0, 1)
        self.repetition_penalty = _real("repetition_penalty", self.repetition_penalty, 0, 100, True)
        self.presence_penalty = _real("presence_penalty", self.presence_penalty, -100, 100)
        self.frequency_penalty = _real("frequency_penalty", self.frequency_penalty, -100, 100)
        self.prompt_lookup = _count("prompt_lookup", self.prompt_lookup, 0, 64)
        if self.seed is not None:
            self.seed = _count("seed", self.seed, 0, (1 << 64) - 1)
        if self.logprobs is not None:
            self.logprobs = _count("logprobs", self.logprobs, 0, 100)
        self.stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        for text in self.stop:
            if not isinstance(text, str) or not text:
                raise UsageError(f"'stop' has {text!r}, but must be a text that is not empty, or "
                                 "a list of such")
        given = self.stop_ids
        self.stop_ids = tuple(_count("stop_ids", each, 0, 1 << 31) for each in (
            [given] if hasattr(given, "__index__") else given or ()))
        if self.on_logits is not None and not callable(self.on_logits):
            raise UsageError("'on_logits' must be a function of logits")
        grammar.check(self.grammar)
        self._check_bias()

    def _check_bias(self):
        if self.logit_bias is None:
            return
        if not isinstance(self.logit_bias, Mapping):
            raise UsageError(f"'logit_bias' is a {type(self.logit_bias).__name__}, but must be "
                             "{token: number}")
        made = {}
        for token, bias in self.logit_bias.items():
            if isinstance(token, str) and token.isdecimal():
                token = int(token)
            made[_count("logit_bias", token, 0, 1 << 31)] = (
                float(bias) if bias in (math.inf, -math.inf)
                else _real("logit_bias", bias, -1e9, 1e9))
        self.logit_bias = made

    @classmethod
    def of(cls, options):
        """Settings from keywords; of one that is not known a message says what is near."""
        known = [each.name for each in dataclasses.fields(cls)]
        for name in options:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                raise UsageError(f"there is no setting '{name}'"
                                 + (f"; did you mean '{near[0]}'?" if near else
                                    f"; known: {', '.join(known)}"))
        return cls(**options)


@dataclasses.dataclass
class Logprobs:
    """The logarithm of a token's probability, as the model has it, and the likeliest tokens'."""

    token: int
    logprob: float
    top: list  # of (token, logprob)


def _fewest(shares, whole):
    """Places of the fewest shares that together have `whole`: mostly they are among the largest,
    which saves to sort all."""
    for count in (LARGEST, len(shares)):
        if count >= len(shares):
            order = np.argsort(-shares, kind="stable")
        else:
            order = np.argpartition(-shares, count)[:count]
            order = order[np.argsort(-shares[order], kind="stable")]
        sums = np.cumsum(shares[order])
        if sums[-1] >= whole:
            break
    return order[:int(np.searchsorted(sums, whole)) + 1]


class Sampler:
    """Chooses the tokens of one text. `prompt` are its first tokens, which penalties of repetition
    count, too; `never` are tokens that are not chosen, and those that are not chosen first; a
    `guide` knows what may follow."""

    def __init__(self, settings, words, prompt=(), row=0, never=((), ()), guide=None):
        self.settings, self.words, self.step, self.guide = settings, words, 0, guide
        self._never = [list(each) for each in never]
        seed = settings.seed
        self._random = np.random.default_rng(None if seed is None else [seed, row] if row
                                             else seed)
        self._seen = np.zeros(words, bool)
        self._seen[list(prompt)] = True
        self._counts = np.zeros(words, np.int64)
        for what, tokens in (("stop_ids", settings.stop_ids),
                             ("logit_bias", settings.logit_bias or ())):
            for token in tokens:
                if token >= words:
                    raise UsageError(f"'{what}' has token {token}, but the model has {words}")

    def choose(self, logits):
        """(token, Logprobs or None) for logits [words]; counts the token as chosen."""
        self.step += 1
        logits = np.asarray(logits, np.float64)
        if np.isnan(logits).any() or logits.max(initial=-np.inf) in (np.inf, -np.inf):
            raise Error(f"step {self.step}: the logits hold NaN or infinity: the model gives no "
                        "probabilities\nnote: 'heddle compare' finds the node that they come from")
        settings = self.settings
        for tokens in self._never[:1 if self.step > 1 else 2]:
            if tokens:
                logits = logits.copy()
                logits[tokens] = -np.inf
        if settings.on_logits is not None:
            logits = self._called(logits)
        told = logits
        if self.guide is not None:
            logits = self.guide.allowed(logits)
        logits = self._penalised(logits)
        token = int(np.argmax(logits)) if settings.temperature == 0 else (
            self._draw(*self._kept(logits)))
        if self.guide is not None:
            self.guide.take(token)
        self._seen[token] = True
        self._counts[token] += 1
        return token, None if settings.logprobs is None else log_probabilities(
            told, token, settings.logprobs)

    def _called(self, logits):
        given = self.settings.on_logits(logits.copy())
        if given is None:
            return logits
        given = np.asarray(given, np.float64)
        if given.shape != logits.shape or np.isnan(given).any() or not (
                np.isfinite(given).any() and given.max() < np.inf):
            raise UsageError(f"step {self.step}: 'on_logits' gave {list(given.shape)} numbers, but "
                             f"must give None or {list(logits.shape)} without NaN, one of them "
                             "finite")
        return given

    def _penalised(self, logits):
        settings = self.settings
        logits = logits.copy()
        for token, bias in (settings.logit_bias or {}).items():
            logits[token] += bias
        if settings.repetition_penalty != 1:
            seen = logits[self._seen]
            logits[self._seen] = np.where(seen > 0, seen / settings.repetition_penalty,
                                          seen * settings.repetition_penalty)
        if settings.presence_penalty or settings.frequency_penalty:
            logits -= (settings.presence_penalty * (self._counts > 0)
                       + settings.frequency_penalty * self._counts)
        if not logits.max() > -np.inf:
            what = "leaves" if self.guide is None else "and 'grammar' leave"
            raise UsageError(f"step {self.step}: 'logit_bias' {what} no token")
        return logits

    def _kept(self, logits):
        """(tokens that settings leave, the sums of their shares)."""
        settings = self.settings
        kept = np.arange(len(logits))
        if 0 < settings.top_k < len(logits):
            kept = np.argpartition(-logits, settings.top_k - 1)[:settings.top_k]
        shares = np.exp((logits[kept] - logits[kept].max()) / settings.temperature)
        shares /= shares.sum()
        if settings.top_p < 1:
            first = _fewest(shares, settings.top_p)
            kept, shares = kept[first], shares[first]
        if settings.min_p > 0:
            fits = shares >= settings.min_p * shares.max()
            kept, shares = kept[fits], shares[fits]
        return kept, np.cumsum(shares)

    def _draw(self, kept, sums):
        drawn = np.searchsorted(sums, self._random.random() * sums[-1], side="right")
        return int(kept[min(drawn, len(kept) - 1)])


def log_probabilities(logits, token, count):
    """The Logprobs of a token among `count` likeliest ones."""
    shifted = logits - logits.max()
    logs = shifted - np.log(np.exp(shifted).sum())
    order = np.argsort(-logs, kind="stable")[:count]
    return Logprobs(token, float(logs[token]), [(int(i), float(logs[i])) for i in order])
