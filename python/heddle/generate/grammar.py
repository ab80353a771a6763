"""grammar: texts that a JSON schema, a regular expression or a grammar allows, token by token.

The package llguidance says which tokens may follow; its limits bound what a grammar may cost.
SPDX-License-Identifier: Apache-2.0
"""

import json

import numpy as np

from ..library import Error, UsageError
from ..packages import need

KINDS = ("json_schema", "regex", "lark")
SPACES = r"[ \n]{0,20}"  # between parts of JSON: a model that likes blanks comes to an end


def check(given):
    """Refuses a setting that is none of "json" and {kind: grammar}."""
    if given is None or given == "json":
        return
    kind, value = (next(iter(given.items())) if isinstance(given, dict) and len(given) == 1
                   else (None, None))
    types = {"json_schema": (dict, str)}.get(kind, (str,))
    if kind not in KINDS or not isinstance(value, types):
        raise UsageError("'grammar' must be 'json', {'json_schema': a dictionary or its JSON}, "
                         f"{{'regex': a text}} or {{'lark': a text}}, not {given!r:.80}")


class Guide:
    """The place of one text in a grammar."""

    def __init__(self, model, given):
        self._words, matcher = model.facts.words, need(
            "llguidance", "the setting 'grammar'", "grammar").LLMatcher
        kind, value = ("json_schema", {"type": "object"}) if given == "json" else next(
            iter(given.items()))
        try:
            if kind == "json_schema":
                text = value if isinstance(value, str) else json.dumps(value)
                made = matcher.grammar_from_json_schema(
                    text, overrides={"whitespace_pattern": SPACES})
            else:
                made = getattr(matcher, f"grammar_from_{kind}")(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise UsageError(f"'grammar': is no {kind}: {error}") from error
        self._made = matcher(model.words.guided(model.facts), made, log_level=0)
        if self._made.is_error():
            raise UsageError(f"'grammar': is no {kind} that is supported: "
                             f"{self._made.get_error()}")

    def allowed(self, logits):
        """The logits, -inf where a token may not follow."""
        bits = np.frombuffer(self._made.compute_bitmask(), np.uint8)
        self._check()
        may = np.unpackbits(bits, bitorder="little", count=self._words).astype(bool)
        return np.where(may, logits, -np.inf)

    def take(self, token):
        """Goes on by a token that was allowed."""
        self._made.consume_token(token)
        self._check()

    @property
    def is_whole(self):
        """The text is all that the grammar allows: nothing may follow."""
        return self._made.is_stopped()

    def _check(self):
        if self._made.is_error():
            raise Error(f"'grammar' goes over a limit: {self._made.get_error()}")
