"""text: tokenizers, and text as it comes token by token.

SPDX-License-Identifier: Apache-2.0
"""

from ..library import RefusedError, UsageError
from ..packages import need

BROKEN = "\N{REPLACEMENT CHARACTER}"  # of bytes that are no whole character yet
MOST_HELD = 8  # tokens: no character has more bytes than 4


class Words:
    """A tokenizer of the package `tokenizers`."""

    def __init__(self, made, where, words):
        self._made, self.where, self._guided = made, where, None
        size = made.get_vocab_size(with_added_tokens=True)
        if size > words:
            raise RefusedError(f"{where}: the tokenizer has {size} tokens, but the model {words}: "
                               "they are not of one model")

    @classmethod
    def read(cls, path, words, longest=None):
        """The tokenizer of a tokenizer.json, which cuts texts to so many tokens."""
        tokenizers = need("tokenizers", "text as tokens", "generate")
        try:
            made = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises Exception itself
            raise RefusedError(f"'{path}': is no tokenizer: {error}") from error
        made.no_padding()
        made.no_truncation()
        if longest is not None:
            made.enable_truncation(longest)
        return cls(made, f"'{path}'", words)

    def guided(self, facts):
        """The tokenizer as llguidance has it, for the model of these Facts."""
        if self._guided is None:
            package = need("llguidance", "the setting 'grammar'", "grammar")
            try:
                self._guided = package.LLTokenizer(self._made.to_str(), n_vocab=facts.words,
                                                   eos_token=list(facts.eos) or None)
            except Exception as error:  # the package raises several
                raise UsageError(f"{self.where}: llguidance does not take this tokenizer: {error}"
                                 ) from error
        return self._guided

    @property
    def vocabulary(self):
        """Numbers of tokens by their texts."""
        return self._made.get_vocab(with_added_tokens=True)

    def encode(self, text, special=True):
        """Tokens of a text, with those that the tokenizer adds at its ends if `special`."""
        if not isinstance(text, str):
            raise UsageError(f"a text is of type {type(text).__name__}, but must be a str")
        try:
            return self._made.encode(text, add_special_tokens=special).ids
        except Exception as error:  # lone surrogates, which no encoding has
            raise UsageError(f"{self.where}: cannot encode the text: {error}") from error

    def decode(self, tokens, special=False):
        return self._made.decode(list(tokens), skip_special_tokens=not special)

    def token(self, text):
        """The number of a token, or None."""
        return self._made.token_to_id(text)


class Pieces:
    """Text of tokens as they come: only whole characters, and nothing that may become a stop.

    `add` gives what is certain after each token, `finish` the rest; `stopped` says which stop has
    ended the text, which is cut before it."""

    def __init__(self, words, stops=()):
        self._words, self._stops = words, stops
        self._tokens, self._start, self._read = [], 0, 0
        self._held, self.stopped = "", None

    def _fresh(self, is_last):
        """Text that the last tokens add. A token's text depends on those before it: both are
        decoded, and the difference is taken."""
        before = self._words.decode(self._tokens[self._start:self._read])
        now = self._words.decode(self._tokens[self._start:])
        waits = now.endswith(BROKEN) and len(self._tokens) - self._read < MOST_HELD
        if (waits and not is_last) or len(now) <= len(before):
            return ""
        self._start, self._read = self._read, len(self._tokens)
        return now[len(before):]

    def add(self, token):
        if self._words is None:
            return ""
        self._tokens.append(token)
        return self._passed(self._fresh(is_last=False))

    def finish(self):
        """The rest of the text."""
        if self._words is None or self.stopped is not None:
            return ""
        text = self._passed(self._fresh(is_last=True))
        held, self._held = self._held, ""
        return text + held

    def _passed(self, fresh):
        text = self._held + fresh
        found = [(text.find(stop), stop) for stop in self._stops if stop in text]
        if found:
            at, self.stopped = min(found)
            self._held = ""
            return text[:at]
        keep = max((n for stop in self._stops for n in range(1, len(stop))
                    if text.endswith(stop[:n])), default=0)
        self._held = text[len(text) - keep:]
        return text[:len(text) - keep]
