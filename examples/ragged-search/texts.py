"""Texts to search, and the numbers of their words.

The texts are the paragraphs, table rows and points of Markdown files: a few words or a hundred, as
what arrives at a service is. Words get their numbers by a hash; a trained model has a tokenizer.
"""

import re
import zlib

import numpy as np

VOCABULARY = 8192


def paragraphs(files):
    """The texts of Markdown files, without code."""
    found = []
    for file in files:
        content = re.sub(r"^\s*```.*?^\s*```", "", file.read_text(encoding="utf-8"),
                         flags=re.DOTALL | re.MULTILINE)
        for block in re.split(r"\n\s*\n|\n(?=\s*[-*|] |\s*\d+\. |\|)", content):
            text = " ".join(block.replace("|", " ").split())
            if re.search(r"\w{3}", text):
                found.append(text)
    return found


class Hashes:
    """Words, each the number that its hash says."""

    def __call__(self, text, longest):
        words = re.findall(r"\w+|[^\w\s]", text.lower())
        return [1 + zlib.crc32(word.encode()) % (VOCABULARY - 1) for word in words[:longest]]

    def rarity(self, texts):
        """A weight for each number, larger for words of fewer texts."""
        held = np.zeros(VOCABULARY)
        for text in texts:
            held[list(set(self(text, None)))] += 1
        return np.log((1 + len(texts)) / (1 + held))


class Trained:
    """The tokenizer of a trained model: its tokenizer.json."""

    def __init__(self, path):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.no_padding()

    def __call__(self, text, longest):
        self.tokenizer.enable_truncation(longest)
        return self.tokenizer.encode(text).ids


def padded(rows):
    """input_ids and attention_mask of a batch."""
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, numbers in zip(ids, rows):
        row[:len(numbers)] = numbers
    lengths = np.array([len(row) for row in rows])
    return ids, (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
