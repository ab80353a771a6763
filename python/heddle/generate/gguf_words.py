"""gguf_words: the tokenizer that a GGUF file describes.

SPDX-License-Identifier: Apache-2.0
"""

from ..library import RefusedError, UsageError
from ..packages import need
from .text import Words

CONTROL, OWN = 3, 4  # types of tokens
# llama.cpp's name of how text is split before it is encoded -> the expression; None: GPT-2's.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLITS = {"default": None, "gpt-2": None, "llama-bpe": LLAMA3, "llama3": LLAMA3,
          "qwen2": LLAMA3.replace("{1,3}", "")}


def _byte_level(package, tokens, values, where):
    """BPE of bytes, as GPT-2 has it."""
    split = values.get("tokenizer.ggml.pre", "default")
    if split not in SPLITS:
        raise RefusedError(f"{where}: splits text by '{split}'; supported: {', '.join(SPLITS)}\n"
                           "note: a tokenizer.json beside the file is taken in its place")
    merges = [tuple(pair.split(" ", 1)) for pair in values.get("tokenizer.ggml.merges", [])]
    wrong = next((pair for pair in merges if len(pair) != 2 or not tokens.keys() >= {
        *pair, "".join(pair)}), None)
    if wrong is not None:  # the package would end the process
        raise RefusedError(f"{where}: merges {wrong!r}, which are not all tokens")
    made = package.Tokenizer(package.models.BPE(vocab=tokens, merges=merges, ignore_merges=split
                                                in ("llama-bpe", "llama3")))
    bytes_of = package.pre_tokenizers.ByteLevel(add_prefix_space=False,
                                                use_regex=SPLITS[split] is None)
    made.pre_tokenizer = bytes_of if SPLITS[split] is None else package.pre_tokenizers.Sequence(
        [package.pre_tokenizers.Split(package.Regex(SPLITS[split]), "isolated"), bytes_of])
    made.decoder = package.decoders.ByteLevel()
    return made


def _scored(package, tokens, values, where):
    """BPE by scores, as SentencePiece has it: a merge is as good as its result's score."""
    scores = values.get("tokenizer.ggml.scores", [])
    if len(scores) != len(tokens):
        raise RefusedError(f"{where}: has {len(scores)} scores for {len(tokens)} tokens")
    merges = []
    for token, number in tokens.items():
        splits = [(token[:at], token[at:]) for at in range(1, len(token))]
        merges += [(-scores[number], tokens[left], tokens[right], (left, right))
                   for left, right in splits if left in tokens and right in tokens]
    merges.sort()
    names = list(tokens)
    unknown = values.get("tokenizer.ggml.unknown_token_id", 0)
    made = package.Tokenizer(package.models.BPE(
        vocab=tokens, merges=[pair for *_, pair in merges], fuse_unk=True, byte_fallback=True,
        unk_token=names[unknown] if unknown < len(names) else None))
    begins = values.get("tokenizer.ggml.add_space_prefix", True)
    made.normalizer = package.normalizers.Sequence(
        [package.normalizers.Prepend("\u2581")] * bool(begins)
        + [package.normalizers.Replace(" ", "\u2581")])
    made.decoder = package.decoders.Sequence(
        [package.decoders.Replace("\u2581", " "), package.decoders.ByteFallback(),
         package.decoders.Fuse()] + [package.decoders.Strip(" ", 1, 0)] * bool(begins))
    return made


def _mark(package, made, tokens, kinds):
    """Tells a tokenizer which tokens are no text, and which are never split."""
    for kind, add in ((CONTROL, made.add_special_tokens), (OWN, made.add_tokens)):
        add([package.AddedToken(token, special=kind == CONTROL, normalized=False)
             for token, each in zip(tokens, kinds) if each == kind])


def words_of(values, where, words):
    """The Words of a file's values."""
    package = need("tokenizers", "text as tokens", "generate")
    listed, kind = values.get("tokenizer.ggml.tokens"), values.get("tokenizer.ggml.model")
    if not isinstance(listed, list):
        raise UsageError(f"{where}: has no tokenizer; put a tokenizer.json beside it, or give "
                         "tokens instead of a text")
    makers = {"gpt2": _byte_level, "llama": _scored}
    if kind not in makers:
        raise RefusedError(f"{where}: the tokenizer is '{kind}'; supported: {', '.join(makers)}\n"
                           "note: a tokenizer.json beside the file is taken in its place")
    try:
        tokens = {token: number for number, token in enumerate(listed)}
        made = makers[kind](package, tokens, values, where)
        _mark(package, made, listed, values.get("tokenizer.ggml.token_type", []))
    except (RefusedError, UsageError):
        raise
    except Exception as error:  # the package raises Exception itself
        raise RefusedError(f"{where}: the tokenizer is damaged: {error}") from error
    return Words(made, where, words)
