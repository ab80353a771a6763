"""Words: comments, pages and messages use the terms of the field, as the table says.

A phrase of the table is a complaint, with the term to use instead. So is a comment of C++ or
TableGen, and a comment or docstring of Python, that begins with a word that stands for a noun or
leaves the subject out.
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
OPENING = re.compile(
    r"\s*//[/!]? (What|Of|Where|Which|That|By|Likewise|The same|In(?! place))\b")
OPENING_OF_PYTHON = re.compile(r"\s*(?:#+ |r?\"\"\")(What|Of|Where|Whether)\b")
C_SUFFIXES = (".cpp", ".c", ".h", ".td", ".inc")


def openings(path, lines):
    """Comments that begin badly: the first lines of blocks, each at its line."""
    opening, mark = (OPENING_OF_PYTHON, "#") if path.suffix == ".py" else (OPENING, "//")
    before = ""
    for number, line in enumerate(lines, 1):
        found = opening.match(line)
        if found and not 0 <= before.find(mark) == line.find(mark):
            yield (f"{path}:{number}: a comment begins with '{found[1]}'; begin it with a verb or "
                   "a noun, and name its subject")
        before = line


def check(root, files):
    """Phrases of the table and bad openings of comments, each at its line."""
    problems = []
    for path in files:
        name = path.as_posix()
        if path.suffix not in SUFFIXES or name.startswith(LEFT_OUT):
            continue
        text = (Path(root) / path).read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines()
        if path.suffix in (*C_SUFFIXES, ".py"):
            problems += openings(path, lines)
        for number, line in enumerate(lines, 1):
            for phrase, term in TERMS.items():
                found = phrase.search(line)
                if found:
                    problems.append(f"{path}:{number}: '{found.group()}'; say: {term}")
    return problems
