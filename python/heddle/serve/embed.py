"""embed: vectors of texts as OpenAI's interface has them, /v1/embeddings.

SPDX-License-Identifier: Apache-2.0
"""

import base64
import threading

from ..library import UsageError
from . import protocol
from .engine import Counts, FullError, LateError

MOST_TEXTS = 2048  # of a request, as OpenAI has it


class EmbedEngine:
    """Computes the texts of `slots` requests at once; `waiting` more wait, `seconds` at most."""

    def __init__(self, model, slots=1, waiting=64, seconds=600.0):
        self.model, self.slots, self.counts = model, slots, Counts()
        self.running = self.queued = 0
        self._most, self._seconds, self._is_ending = waiting, seconds, False
        self._lock = threading.Condition()

    def embed(self, tokens):
        """Vectors of lists of tokens."""
        with self._lock:
            if self._is_ending or self.queued >= self._most:
                self.counts.add("refused", len(tokens))
                raise FullError("the server is shutting down" if self._is_ending else
                                f"{self.queued} requests wait already; try again later")
            self.counts.add("requests", len(tokens))
            self.queued += 1
            is_free = self._lock.wait_for(lambda: self.running < self.slots, self._seconds)
            self.queued -= 1
            if not is_free:
                self.counts.add("failed", len(tokens))
                raise LateError(f"the request waited longer than {self._seconds:g} seconds")
            self.running += 1
        try:
            made = self.model.embed(tokens)
            self.counts.add("prompt_tokens", sum(map(len, tokens)))
            self.counts.add("finished", len(tokens))
            return made
        except Exception:
            self.counts.add("failed", len(tokens))
            raise
        finally:
            with self._lock:
                self.running -= 1
                self._lock.notify()

    def end(self, seconds=0.0):
        """Takes no more requests, and waits for those that are there."""
        with self._lock:
            self._is_ending = True
            self._lock.wait_for(lambda: not self.running and not self.queued, seconds)


def answer(engine, body, name):
    """The answer to the body of a request."""
    protocol.check_model(body, name)
    given = body.get("input")
    is_one = isinstance(given, str) or (isinstance(given, list) and given and all(
        isinstance(each, int) for each in given))
    if not is_one and not isinstance(given, list):
        raise UsageError("'input' must be a text, a list of tokens, or a list of these")
    texts = [given] if is_one else given
    if not 1 <= len(texts) <= MOST_TEXTS:
        raise UsageError(f"'input' has {len(texts)} texts, but must have 1 to {MOST_TEXTS}")
    form = body.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise UsageError(f"'encoding_format' is {form!r}, but must be float or base64")
    size = engine.model.size
    if body.get("dimensions", size) != size:
        raise UsageError(f"'dimensions' is {body['dimensions']!r}, but the model has {size}")
    tokens = [engine.model.tokens(each) for each in texts]
    rows = engine.embed(tokens)
    vectors = (row.tolist() if form == "float" else
               base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows)
    count = sum(map(len, tokens))
    return {"object": "list", "model": name, "data": [
        {"object": "embedding", "index": i, "embedding": each} for i, each in enumerate(vectors)],
        "usage": {"prompt_tokens": count, "total_tokens": count}}
