"""Names tell what a thing is: checks those of files and folders, and the opening comment.

Files of compiler/ are UpperCamel, those of runtime/, tools/ and python/ lower_snake; no name such
as `Utils` that fits anything; every source opens with a comment that says what it is for.
"""

import re
from pathlib import Path

EMPTY_WORDS = {"common", "utils", "util", "core", "misc", "impl", "helpers", "manager", "new", "v2"}
SOURCES = (".cpp", ".c", ".h", ".py")
OPENINGS = {".py": ('"""', "#")}  # all others: a comment of C
UPPER_CAMEL = re.compile(r"[A-Z][A-Za-z0-9]*(_test)?$")
LOWER_SNAKE = re.compile(r"[a-z_][a-z0-9_]*$")


def problem_of(path):
    """The fault of a source's name, or None."""
    for part in (*path.parts[:-1], path.stem):
        if part.lower() in EMPTY_WORDS:
            return f"'{part}' says nothing of what is inside; name the one thing in it"
    if path.parts[0] == "compiler" and path.suffix in (".cpp", ".h"):
        if not UPPER_CAMEL.match(path.stem):
            return f"a file of compiler/ is UpperCamel, '{path.stem}' is not"
        folder = path.parent.name
        if len(path.stem) > len(folder) and path.stem.startswith(folder.capitalize()) \
                and path.stem[len(folder)].isupper():
            return f"the folder '{folder}' already says what '{path.stem}' repeats"
    elif path.parts[0] in ("runtime", "tools", "python", "bench", "test", "examples"):
        if path.suffix in SOURCES and not LOWER_SNAKE.match(path.stem):
            return f"a file of {path.parts[0]}/ is lower_snake, '{path.stem}' is not"
    return None


def check(root, files):
    """Badly named sources, and sources that do not say what they are for."""
    problems = []
    for path in files:
        if path.suffix not in SOURCES:
            continue
        why = problem_of(path)
        if why:
            problems.append(f"{path}: {why}")
        text = (Path(root) / path).read_text(encoding="utf-8", errors="replace").lstrip()
        if text and not text.startswith(OPENINGS.get(path.suffix, ("//", "/*"))):
            problems.append(f"{path}:1: it has no opening comment; say what is in it and why")
    return problems
