"""Words: comments, pages and messages use the terms of the field, as the table says.

A phrase of the table is a complaint, with the term to use instead.
"""

import re
from pathlib import Path

SUFFIXES = (".cpp", ".c", ".h", ".py", ".md", ".mlir", ".td", ".inc")
# History, what is made of other texts, and the table with its test.
LEFT_OUT = ("bench/notes/", "docs/generated/", "tools/check/")
TERMS = {re.compile(phrase): term for phrase, term in {
    r"\bonly (the|a) run (knows|finds|can tell|counts)\b": "known only at run time",
    r"\b(that|which) the run (computes|knows)\b": "computed (known) at run time",
    r"(?<!left )(?<!leaves )\bbehind\b(?! (it is|the C API|one C))":
        "after, beyond",
    r"\bstands? (before|behind|between|beside|in the)\b": "is (before, after, between, beside, in)",
    r"\b(a|the|their|its|no|of) folds?\b(?!-)(?! of)": "reduction; a fold is of constants",
    r"\b(one|once) an? (element|row|task|head|channel|node|call)\b": "one per ..., once per ...",
    r"pip install\b.*\bheddle\b(?!-)":
        "pip install build/wheel/heddle-*.whl; what PyPI calls heddle is another project's",
    r"\bopen sizes?\b": "dynamic size",
}.items()}


def check(root, files):
    """Phrases of the table, each at its line."""
    problems = []
    for path in files:
        name = path.as_posix()
        if path.suffix not in SUFFIXES or name.startswith(LEFT_OUT):
            continue
        text = (Path(root) / path).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            for phrase, term in TERMS.items():
                found = phrase.search(line)
                if found:
                    problems.append(f"{path}:{number}: '{found.group()}'; say: {term}")
    return problems
