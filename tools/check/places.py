"""Places: checks that no other file repeats a fact that has its place.

- The version of clang, LLVM and MLIR is in cmake/llvm-version.
- A mechanism's abilities are in its row (compiler/mechanism). No other folder of compiler/ decides
  by the name of one: it compares rows, or asks for a property of the row.
- How many operations or bytes a machine does in a second is in compiler/program/Machine.h.
- What ops have in common is a trait, beside the op in its .td file: no `isa` lists four of our ops
  or more. MLIR's ops have no traits of ours.
- A pass is declared in the Passes.td of its room, from which its page is made.
"""

import re
from pathlib import Path

VERSION = re.compile(r"\b(?:clang|clang\+\+|clang-format|clang-rt|lld|llvm|mlir)-\d\d\b")
VERSIONED = (".py", ".cpp", ".h", ".c", ".cmake", ".txt", ".json", ".toml", "")
NAME = re.compile(r'\.name = "([a-z_.]+)"')
DECIDES = r'(?:[=!]=|\bfind\(|[Mm]echanism = |is_contained\(\{{[^}}]*){space}"(?:{names})"'
RATE = re.compile(r"/\s*[\d.]+e\+?(?:9|\d\d)\b|[Ff]lops\w*\s*=\s*[\d.]+e\d")

LIST = re.compile(r"\bisa(?:_and_\w+)?<([^<>(){};]*)>")
OUR_OP = re.compile(r"(?:(?:heddle::)?(?:graph|program)::)?\w+Op")
MOST_OPS = 3
UNDECLARED = re.compile(r"\bPassWrapper<|\bOperationPass<")


def _mechanisms(root, files):
    """The names of all rows."""
    names = set()
    for path in files:
        if path.parts[:2] == ("compiler", "mechanism") and path.suffix == ".cpp":
            names |= set(NAME.findall((Path(root) / path).read_text(encoding="utf-8")))
    return names


def _is_test(path):
    return "test" in path.parts or path.stem.lower().endswith("test")


def _long_lists(path, text):
    """Lists of ops that should be a trait."""
    for found in LIST.finditer(text):
        ours = [each for each in found[1].split(",") if OUR_OP.fullmatch(each.strip())]
        if len(ours) > MOST_OPS:
            number = text.count("\n", 0, found.start()) + 1
            yield (f"{path}:{number}: it lists {len(ours)} ops, {MOST_OPS} are allowed; say what "
                   "they have in common by a trait in their .td file (compiler/graph/Graph.h)")


def check(root, files):
    """Lines that repeat what is said elsewhere."""
    problems = []
    names = _mechanisms(root, files)
    known = "|".join(map(re.escape, sorted(names)))
    decides = re.compile(DECIDES.format(space=r"\s*", names=known))
    for path in files:
        if path.suffix not in VERSIONED or path.parts[0] == "docs":
            continue
        in_compiler = path.parts[0] == "compiler" and path.suffix in (".cpp", ".h")
        in_product = in_compiler and not _is_test(path)
        asks = names and in_product and path.parts[1] != "mechanism"
        text = (Path(root) / path).read_text(encoding="utf-8", errors="replace")
        if in_product:
            problems += _long_lists(path, text)
        for number, line in enumerate(text.splitlines(), 1):
            if VERSION.search(line):
                problems.append(f"{path}:{number}: the version of LLVM is in cmake/llvm-version; "
                                "read it there")
            if asks and decides.search(line):
                problems.append(f"{path}:{number}: it decides by the name of a mechanism; ask for "
                                "a property of its row in compiler/mechanism, or compare rows")
            if path.suffix in (".cpp", ".h") and UNDECLARED.search(line):
                problems.append(f"{path}:{number}: it defines a pass that no Passes.td declares; "
                                "declare it in that of its room, and derive from its base")
            if in_product and path.name != "Machine.h" and RATE.search(line):
                problems.append(f"{path}:{number}: rates of a machine are in "
                                "compiler/program/Machine.h; ask estimate::secondsOf")
    return problems
