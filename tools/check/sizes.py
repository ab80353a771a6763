"""No file so long that nobody reads it: the limits on lines, and on sources in one folder."""

from collections import Counter
from pathlib import Path

# Suffix: from how many lines on a file has to be split.
LIMITS = {".cpp": 600, ".c": 600, ".h": 300, ".td": 400, ".mlir": 400, ".py": 600, ".cmake": 300,
          ".md": 600, "": 600}
PUBLIC_HEADER = 400
CARD = 200
COLUMNS = 100
FOLDER = 25
SOURCES = (".cpp", ".c", ".h", ".td", ".py")

# Tables that are data, and generated pages: path -> why it may be longer.
EXEMPT = {
    "compiler/graph/LoopNestTest.cpp": "a table of keys, each on one line as people write it",
    "docs/spec/graph.md": "generated, a section an op",
    "test/ops/control.cpp": "a table of graphs as text, an op a line",
}


def limit_of(path):
    """The limit of lines for a path, or None when it has none."""
    if path.as_posix() in EXEMPT or path.parts[:2] == ("docs", "generated"):
        return None
    if path.parts[0] == "schedules" and path.suffix == ".mlir" and "Inputs" not in path.parts:
        return CARD
    if path.parts[0] == "include" and path.suffix == ".h":
        return PUBLIC_HEADER
    return LIMITS.get(path.suffix)


def check(root, files):
    """Files over the limit of lines or columns, and folders of too many sources."""
    problems, folders = [], Counter()
    for path in files:
        limit = limit_of(path)
        if path.suffix in SOURCES:
            folders[path.parent] += not path.stem.endswith(("_test", "Test"))
        if limit is None or (path.suffix == "" and path.name not in ("dev", "LAYERS")):
            continue
        lines = (Path(root) / path).read_text(encoding="utf-8", errors="replace").splitlines()
        if len(lines) > limit:
            problems.append(f"{path}: {len(lines)} lines, {limit} are allowed; split it by idea")
        if path.suffix in (".cpp", ".c", ".h", ".py"):
            problems += [f"{path}:{number}: {len(line)} columns, {COLUMNS} are allowed"
                         for number, line in enumerate(lines, 1) if len(line) > COLUMNS]
    problems += [f"{folder}: {count} sources, {FOLDER} are allowed; make it two folders"
                 for folder, count in sorted(folders.items()) if count > FOLDER]
    return problems
