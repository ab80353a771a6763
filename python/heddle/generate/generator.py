"""generator: Generator, one text on one model.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import os
import threading
import time

import numpy as np

from ..library import Error, UsageError
from . import chat
from .batch import Batch, Prefill, check_tokens, source_into, text_of, tokens_of
from .cache import Cache
from .model import Model, open_model
from .sample import Sampler, Settings

PREFILL = 256  # tokens of a prompt that are computed at once: their logits are in memory
NGRAM = 3  # last tokens that are looked up in the text, at most


def looked_up(tokens, count):
    """Up to `count` tokens that may follow: those after the last place where the longest end of the
    text, of NGRAM tokens at most, was before; an earlier place where more of them follow."""
    for length in range(min(NGRAM, len(tokens) - 1), 0, -1):
        end, found = tokens[-length:], []
        for at in range(len(tokens) - 1, length - 1, -1):
            if tokens[at - length:at] == end and len(found) < count:
                found = max(found, tokens[at:at + count], key=len)
        if found:
            return found
    return []


class Stream:
    """Iterator of a text's pieces, which are whole characters. `result` is the Result so far."""

    def __init__(self, pieces, text):
        self.pieces, self.result = pieces, text.result

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            piece = next(self.pieces)
            if piece.text:
                return piece.text

    def close(self):
        """Ends the text here."""
        self.pieces.close()


class Draft:
    """A smaller model that guesses what a model of the same tokens goes on with."""

    def __init__(self, model, draft, count, options):
        if not hasattr(count, "__index__") or not 1 <= count <= 64:
            raise UsageError(f"'draft_tokens' is {count!r}, but must be a number from 1 to 64")
        one = Generator(draft, **({} if isinstance(draft, Model) else options))
        self._generator, self._count, self._words = one, count, model.facts.words
        names = model.facts.where, one.model.facts.where
        if model.encoder is not None or one.model.encoder is not None:
            raise UsageError(f"'draft' is {names[1]}: encoder-decoders neither have drafts nor are "
                             "such")
        if model.has_words and one.model.has_words:
            mine, other = model.words.vocabulary, one.model.words.vocabulary
            differ = [token for token in mine.keys() | other.keys()
                      if mine.get(token) != other.get(token)]
            if differ:
                wrong = min(differ)
                raise UsageError(
                    f"'draft' is {names[1]}, whose tokens are not those of {names[0]}: {wrong!r} "
                    f"has number {other.get(wrong)} there, and {mine.get(wrong)} here")
        elif model.facts.words != one.model.facts.words:
            raise UsageError(f"'draft' is {names[1]}, which has {one.model.facts.words} tokens, "
                             f"but {names[0]} {model.facts.words}")

    def guess(self, tokens, most):
        """Up to `most` tokens that the draft goes on with."""
        one, made = self._generator, []
        most = min(most, self._count, one.model.facts.context - len(tokens))
        if most < 1 or max(tokens) >= one.model.facts.words:
            return made
        with one._alone():
            one._turn_to(tokens)
            while len(made) < most:
                made.append(int(one._last().argmax()))
                if made[-1] >= self._words:  # of padding that only the draft has
                    return made[:-1]
                one._tokens.append(made[-1])
        return made


class Generator:
    """A model that goes on with a text, and the keys and values of that text.

    model       A folder or file (docs/guide/generate.md), or the `model` of another Generator,
                which both then share.
    max_length  Tokens of the longest text; default: what the model sees, 4096 at most.
    template    A chat template in place of the model's.
    prefill     Tokens of a prompt that are computed at once.
    draft       A smaller model of the same tokens, as `model`: it guesses what follows, and one run
                checks the guesses. The texts are those without it.
    draft_tokens  Tokens that it guesses at a time.
    options     Those of heddle.compile, such as `threads`.

    Settings of a text, for `generate`, `stream`, `chat` and `step`: max_tokens, temperature (0:
    always the likeliest token), top_k, top_p, min_p, repetition_penalty, presence_penalty,
    frequency_penalty, seed, stop (texts), stop_ids, ignore_eos, logit_bias ({token: number}),
    logprobs (how many tokens to tell of), grammar ("json", or one of json_schema, regex and lark:
    {"regex": "[0-9]+"}), on_logits (a function of logits [words], which may return
    others) and prompt_lookup (tokens to guess from the text: the same result in fewer runs).
    """

    def __init__(self, model, *, max_length=None, template=None, prefill=PREFILL, draft=None,
                 draft_tokens=4, **options):
        if not hasattr(prefill, "__index__") or not 1 <= prefill <= 1 << 20:
            raise UsageError(f"'prefill' is {prefill!r}, but must be a number of tokens from 1 on")
        self.model = model if isinstance(model, Model) else open_model(model, max_length, **options)
        self.template = template or self.model.facts.template
        self._prefill = prefill
        self._draft = None if draft is None else Draft(self.model, draft, draft_tokens, options)
        self._lock = threading.Lock()
        self._clear()

    def _clear(self):
        self._cache, self._tokens, self._logits = Cache(self.model.layout), [], None
        self._source = None
        self._sampler = self._settings = None

    @contextlib.contextmanager
    def _alone(self):
        """The text is changed by one caller at a time. What ends in the middle leaves no text."""
        if not self._lock.acquire(blocking=False):
            raise UsageError("the generator is in use by another thread or by a stream that has "
                             "not ended; Generator(generator.model) makes one more of this model")
        try:
            yield
        except (Error, GeneratorExit):
            raise
        except BaseException:
            self._clear()
            raise
        finally:
            self._lock.release()

    @property
    def length(self):
        """Tokens of the text so far."""
        return len(self._tokens)

    @property
    def tokens(self):
        return list(self._tokens)

    @property
    def tokenizer(self):
        return self.model.words

    @property
    def logits(self):
        """Logits [words] of the token that follows the text, a copy."""
        with self._alone():
            return self._last().copy()

    def append(self, tokens):
        """Adds tokens, or those of a text, and computes their keys and values."""
        with self._alone():
            facts = self.model.facts
            if self.model.encoder is not None and self._source is None:
                raise UsageError(f"{facts.where}: is an encoder-decoder, whose text answers a "
                                 "source: `generate` and `stream` take it; `append` goes on then")
            if isinstance(tokens, str):
                tokens = (tokens_of(self.model, tokens) if not self._tokens
                          else self.model.words.encode(tokens, special=False))
                if not tokens:
                    return
            else:
                tokens = tokens_of(self.model, tokens)
            check_tokens(facts, tokens, len(self._tokens))
            self._tokens += tokens
            self._compute()

    def rewind(self, length):
        """Leaves the first `length` tokens of the text."""
        with self._alone():
            if not hasattr(length, "__index__") or not 0 <= length <= len(self._tokens):
                raise UsageError(f"rewind to {length!r}, but the text has {len(self._tokens)} "
                                 "tokens")
            self._rewind(length)
            self._sampler = None

    def _rewind(self, length):
        if length < len(self._tokens):
            del self._tokens[length:]
            self._cache.rewind(length)
            self._logits = None

    def _turn_to(self, tokens):
        """Has these tokens as the text; what they share with the one before is kept."""
        self._rewind(next((i for i, (one, other) in enumerate(zip(self._tokens, tokens))
                           if one != other), min(len(self._tokens), len(tokens))))
        if len(self._tokens) < len(tokens):
            self._tokens, self._logits = list(tokens), None

    def step(self, **settings):
        """Chooses the next token, adds it to the text and returns it. The first step with other
        settings than the one before, or after `rewind`, begins with the seed anew."""
        with self._alone():
            if self._sampler is None or settings != self._settings:
                if settings.get("grammar") is not None:
                    raise UsageError("'grammar' is of a whole text, which `generate`, `stream` and "
                                     "`chat` make")
                facts = self.model.facts
                self._sampler = Sampler(Settings.of(settings), facts.words, self._tokens,
                                        never=(facts.never, ()))
                self._settings = dict(settings)
            if not self._tokens:
                raise UsageError("there is no text yet to go on from; `append` adds tokens")
            if len(self._tokens) >= self.model.facts.context:
                raise UsageError(f"the text has {len(self._tokens)} tokens, as many as "
                                 f"{self.model.facts.where} takes")
            token, _ = self._sampler.choose(self._last())
            self._tokens.append(token)
            self._logits = None
            return token

    def _last(self):
        """Logits of the text's last token."""
        if not self._tokens:
            raise UsageError("there is no text yet; `append` adds tokens")
        return self._compute()[-1]

    def _compute(self, guessed=()):
        """Runs the tokens that the cache lacks, then the guessed ones. Returns the logits of the
        last token of the text and of those [1 + guessed, words]."""
        if self._cache.lengths[0] == len(self._tokens) and self._logits is not None and not guessed:
            return self._logits[None]
        self._cache.rewind(len(self._tokens) - 1)  # for its logits
        waiting = self._tokens[int(self._cache.lengths[0]):]
        while len(waiting) > self._prefill:
            self._cache.run([waiting[:self._prefill]])
            waiting = waiting[self._prefill:]
        rows = self._cache.run([[*waiting, *guessed]], last=1 + len(guessed))[0]
        self._logits = rows[-1].copy() if not guessed else None
        return rows

    def _pieces(self, text):
        """The pieces of a text, as they come. A prefix that the cache has is not computed again."""
        stats = text.result.stats
        with self._alone():
            begin = time.perf_counter()
            if text.source is not self._source:
                self._clear()
                source_into(self.model, self._cache, text)
                self._source = text.source
            self._turn_to(text.prompt)
            self._sampler = None
            stats |= {"prompt_tokens": text.asked, "reused_tokens": min(
                int(self._cache.lengths[0]), len(text.prompt) - 1), "guessed_tokens": 0,
                "accepted_tokens": 0, "tokens": 0}
            if text.reason is None:
                self._last()
            stats["prompt_seconds"], begin = time.perf_counter() - begin, time.perf_counter()
            stats["seconds"] = 0.0
            while text.reason is None:
                for piece in self._step(text, stats):
                    stats["tokens"] = len(text.result.tokens)
                    stats["seconds"] = time.perf_counter() - begin
                    yield piece

    def _step(self, text, stats):
        """One run, and the pieces that it gives: more than one where guesses were right."""
        most = min(text.settings.prompt_lookup, text.left - 1)
        guessed = looked_up(self._tokens, most) if most > 0 else []
        if self._draft is not None and not guessed:
            guessed = self._draft.guess(self._tokens, text.left - 1)
        rows = self._compute(guessed)
        stats["guessed_tokens"] += len(guessed)
        before, made = len(self._tokens), []
        for i, logits in enumerate(rows):
            made.append(text.take(logits))
            if text.reason is not None or i == len(guessed) or guessed[i] != made[-1].token:
                break
            stats["accepted_tokens"] += 1
        self._tokens = list(text.tokens)
        # Keys of guesses that were not right go.
        right = before + sum(piece.token == guess for piece, guess in zip(made, guessed))
        self._cache.rewind(min(right, len(self._tokens)))
        if len(self._tokens) > before or guessed:
            self._logits = None
        return made

    def _text(self, prompt, settings):
        return text_of(self.model, prompt, Settings.of(settings))

    def generate(self, prompt, **settings):
        """The Result of going on from a prompt: a text, or a list of tokens. For an encoder-decoder
        it is the source: of Whisper a WAV file, or an array of samples. For a list of prompts it is
        a list of Results, each as if it were alone."""
        if isinstance(prompt, (list, tuple)) and any(
                isinstance(each, (str, list, tuple, os.PathLike, np.ndarray)) for each in prompt):
            return self._several(prompt, settings)
        stream = self.stream(prompt, **settings)
        for _ in stream.pieces:
            pass
        return stream.result

    def stream(self, prompt, **settings):
        """The Stream of a text that goes on from a prompt: an iterator of its pieces. The generator
        serves it alone until it ends or is closed."""
        text = self._text(prompt, settings)
        return Stream(self._pieces(text), text)

    def _several(self, prompts, settings):
        """Results of prompts, which are computed beside each other. The numbers that text i draws
        are those of the seed and i."""
        made = Settings.of(settings)
        texts = [text_of(self.model, prompt, made, row) for row, prompt in enumerate(prompts)]
        if not self.model.batches:
            with self._alone():
                self._clear()
            for text in texts:
                for _ in self._pieces(text):
                    pass
            return [text.result for text in texts]
        with self._alone():
            batch, waiting = Batch(self.model), [text for text in texts if text.reason is None]
            prefills = [Prefill(self.model, text, self._prefill) for text in waiting]
            for each in prefills:
                while not each.advance():
                    pass
            if prefills:
                batch.add(prefills)
            while batch.texts:
                for _, piece in batch.choose():
                    if isinstance(piece, Exception):
                        raise piece
                batch.run()
        for text in texts:
            text.result.stats |= {"prompt_tokens": text.asked, "tokens": len(text.result.tokens)}
        return [text.result for text in texts]

    def prompt_of(self, messages, **more):
        """The tokens of messages, by the model's chat template; `more` are its other names."""
        facts = self.model.facts
        text = chat.render(self.template, messages, facts.tokens, facts.where, **more)
        tokens = self.model.words.encode(text, special=False)
        if facts.adds_bos and facts.bos is not None and tokens[:1] != [facts.bos]:
            tokens = [facts.bos, *tokens]
        return tokens

    def chat(self, messages, *, stream=False, tools=None, **settings):
        """The Result of an answer to messages, [{'role': 'user', 'content': ...}] or the text of
        one; with `stream` its Stream. What the messages have in common with the text so far is not
        computed again."""
        tokens = self.prompt_of(messages, **({"tools": tools} if tools else {}))
        return (self.stream if stream else self.generate)(tokens, **settings)
