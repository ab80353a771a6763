"""engine: one thread that computes the texts of all requests, a step of each at a time.

A request waits in a queue until one of `slots` is free; its prompt is computed piece by piece
between steps of the others, so that a long one does not hold them up.
SPDX-License-Identifier: Apache-2.0
"""

import collections
import queue
import threading
import time

from .. import library
from ..generate.batch import Batch, Piece, Prefill, text_of

PREFILL = 128  # tokens of a prompt between two steps
LEAST_SHARED = 8  # tokens, for which the keys of an earlier text are taken up


class FullError(library.LimitError):
    """The queue has no place for another request."""


class LateError(library.LimitError):
    """A request took longer than it may."""


class Ticket:
    """A text that is asked for. `events` has its Pieces, of which the last has a reason, or the
    exception that has ended it."""

    def __init__(self, text, seconds):
        self.text, self.events = text, queue.SimpleQueue()
        self.begun = time.monotonic()
        self.deadline = self.begun + seconds
        self.is_cancelled = False

    def cancel(self):
        """Says that nobody waits for it any more."""
        self.is_cancelled = True


class Counts:
    """Numbers of what has happened, for /metrics."""

    NAMES = {"requests": "Texts that were asked for", "refused": "Texts that found the queue full",
             "finished": "Texts that came to their end", "cancelled": "Texts whose client left",
             "failed": "Texts that an error or the time limit has ended",
             "prompt_tokens": "Tokens of prompts",
             "reused_tokens": "Tokens of prompts that were known from texts before",
             "generated_tokens": "Tokens that were generated",
             "steps": "Runs for all texts that are generated",
             "first_token_seconds": "Seconds from requests to their first tokens"}

    def __init__(self):
        self._lock, self._values = threading.Lock(), dict.fromkeys(self.NAMES, 0)

    def add(self, name, number=1):
        with self._lock:
            self._values[name] += number

    def read(self):
        with self._lock:
            return dict(self._values)


def _shared(one, other):
    """How many first tokens two lists have in common."""
    least = min(len(one), len(other))
    if one[:least] == other[:least]:
        return least
    return next(i for i in range(least) if one[i] != other[i])


class Engine:
    """Texts of a model. `seconds` bound each of them, from its request on. Keys and values of the
    last `kept` texts stay: one that begins as one of them did goes on from there."""

    def __init__(self, model, slots=4, waiting=64, seconds=600.0, kept=4):
        if model.encoder is not None and model.encoder.ear is not None:
            raise library.UsageError(f"{model.facts.where}: hears sounds, but requests are texts; "
                                     "heddle.generate takes sounds")
        self.model = model
        self.slots = slots if model.batches else 1
        self.counts = Counts()
        self._most, self._seconds = waiting, seconds
        self._lock = threading.Condition()
        self._waiting, self._is_ending = collections.deque(), False
        # (tokens, Cache); where texts have a source, keys are of that source alone.
        self._kept = collections.deque(maxlen=kept if model.encoder is None else 0)
        self._tickets = {}  # id of a text in the batch -> Ticket
        self._batch, self._prefill = Batch(model), None  # (Ticket, Prefill)
        self._thread = threading.Thread(target=self._work, name="heddle-engine", daemon=True)
        self._thread.start()

    @property
    def running(self):
        return len(self._tickets) + (self._prefill is not None)

    @property
    def queued(self):
        return len(self._waiting)

    def submit(self, prompts, settings):
        """Tickets of texts, one for each prompt, a list of tokens: all of them, or none."""
        tickets = [Ticket(text_of(self.model, prompt, settings, row), self._seconds)
                   for row, prompt in enumerate(prompts)]
        with self._lock:
            if self._is_ending:
                raise FullError("the server is shutting down")
            if len(self._waiting) + len(tickets) > self._most:
                self.counts.add("refused", len(tickets))
                raise FullError(f"{len(self._waiting)} texts wait already, and {self._most} may; "
                                "try again later")
            self._waiting += tickets
            self.counts.add("requests", len(tickets))
            self._lock.notify()
        return tickets

    def end(self, seconds=0.0):
        """Takes no more texts, lets those that were asked for go on for so long, and ends."""
        with self._lock:
            self._is_ending = True
            self._lock.notify()
        self._thread.join(seconds)
        with self._lock:
            for ticket in [*self._waiting, *self._tickets.values()]:
                ticket.deadline = 0.0
            if self._prefill is not None:
                self._prefill[0].deadline = 0.0
            self._lock.notify()
        self._thread.join()

    def _work(self):
        while True:
            with self._lock:
                while not (self._waiting or self.running or self._is_ending):
                    self._lock.wait()
                self._sweep()
                if not self._waiting and not self.running:
                    if self._is_ending:
                        return
                    continue
                self._admit()
            self._step()

    def _is_over(self, ticket):
        """Ends a ticket that is cancelled or late; True if it is."""
        if ticket.is_cancelled:
            self.counts.add("cancelled")
        elif time.monotonic() > ticket.deadline:
            self._fail(ticket, LateError(f"the text took longer than {self._seconds:g} seconds, "
                                         "or the server is shutting down"))
        else:
            return False
        return True

    def _fail(self, ticket, error):
        self.counts.add("failed")
        ticket.events.put(error)

    def _sweep(self):
        """Frees the places of texts that nobody waits for."""
        self._waiting = collections.deque(each for each in self._waiting
                                          if not self._is_over(each))
        over = [ticket for ticket in self._tickets.values() if self._is_over(ticket)]
        if over:
            self._batch.drop([ticket.text for ticket in over])
            for ticket in over:
                del self._tickets[id(ticket.text)]
        if self._prefill is not None and self._is_over(self._prefill[0]):
            self._prefill = None

    def _admit(self):
        if self._prefill is None and self._waiting and len(self._tickets) < self.slots:
            ticket = self._waiting.popleft()
            if ticket.text.reason is not None:  # of no tokens
                self.counts.add("finished")
                ticket.events.put(Piece("", -1, None, ticket.text.reason))
                return
            self._prefill = ticket, Prefill(self.model, ticket.text, PREFILL,
                                            self._known(ticket.text.prompt))

    def _known(self, prompt):
        """The cache of the kept text that has most of a prompt's beginning, or None. A text that is
        all in the prompt is replaced by what will come of it."""
        shared = [_shared(tokens, prompt) for tokens, _ in self._kept]
        most = min(max(shared, default=0), len(prompt) - 1)
        if most < LEAST_SHARED:
            return None
        at = shared.index(max(shared))
        tokens, cache = self._kept[at]
        if shared[at] == len(tokens):
            del self._kept[at]
        made = cache.row(0)
        made.rewind(most)
        self.counts.add("reused_tokens", most)
        return made

    def _step(self):
        """A piece of a prompt, then a token of each text."""
        if self._prefill is not None:
            ticket, prefill = self._prefill
            try:
                is_done = prefill.advance()
                if is_done:
                    self._batch.add([prefill])
                    self._tickets[id(ticket.text)] = ticket
                    self.counts.add("prompt_tokens", ticket.text.asked)
            except Exception as error:  # noqa: BLE001: of this text; the server goes on
                is_done = True
                self._fail(ticket, error)
            if is_done:
                self._prefill = None
        if self._tickets:
            self._deliver(self._batch.choose(lambda *text: self._kept.append(text)))
            try:
                self._batch.run()
            except Exception as error:  # noqa: BLE001: of all texts of the run
                for ticket in self._tickets.values():
                    self._fail(ticket, error)
                self._tickets, self._batch = {}, Batch(self.model)

    def _deliver(self, made):
        self.counts.add("steps")
        for text, piece in made:
            ticket = self._tickets[id(text)]
            if isinstance(piece, Exception):
                self._fail(ticket, piece)
                del self._tickets[id(text)]
                continue
            if len(text.result.tokens) <= 1 and ticket.events.empty():
                self.counts.add("first_token_seconds", time.monotonic() - ticket.begun)
            self.counts.add("generated_tokens")
            ticket.events.put(piece)
            if piece.reason is not None:
                self.counts.add("finished")
                del self._tickets[id(text)]
