"""docs/spec/graph.md, program.md and passes.md are what the .td files of dialects and passes say:
`dialect_spec.py --write` makes them.

Each constraint of an op has a label. It has to be in the list `constraints` of the .td file, in
a message of a verifier or shape rule, and in a .mlir file where that message is provoked: once for
each op that has the constraint, unless a trait checks it for all of them.
"""

import json
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from sources import LLVM, ROOT

LABEL = r"[A-Z]{1,3}\d+"
# Checked by a trait, in one function for all ops that have them.
OF_TRAITS = {"E1"}
EXPECTED = re.compile(rf"expected-error *(?:@(?P<offset>[+-]\d+|below|above))? *"
                      rf"{{{{(?:'[\w.]+' op )?(?P<label>{LABEL}): ")
KINDS = {"i64 dense array attribute": "list of i64", "f64 dense array attribute": "list of f64",
         "64-bit signless integer attribute": "i64", "64-bit float attribute": "f64",
         "bool attribute": "bool", "string attribute": "text",
         "any type attribute": "type", "flat symbol reference attribute": "function",
         "constant vector/tensor attribute": "tensor",
         "sizes of a tensor, constant or as expressions over named symbols": "[dims](#dims)"}
OUTDATED = "is not what the .td files say; run tools/check/dialect_spec.py --write"
PASSES = "docs/spec/passes.md"
PASSES_HEAD = """# The passes

Written by `tools/check/dialect_spec.py --write` from the files `Passes.td`, a section each; a check
holds it to them. `heddle-opt` runs each by its name.
"""
TABLEGEN, INCLUDES = f"llvm-tblgen-{LLVM}", f"/usr/lib/llvm-{LLVM}/include"

HEAD = """# The {name} dialect

Written by `tools/check/dialect_spec.py --write` from the .td files of `{folder}`; a check holds
it to them.

{dialect}

A section has an op's operands (`?`: may be missing, `...`: any number), its attributes with their
defaults, its results, what it is, and its constraints. The label of a constraint begins the
messages of verifiers and shape rules; each is provoked for each op in a .mlir file beside the
sources.{meaning}
"""


@dataclass(frozen=True)
class Dialect:
    """A dialect: its folder, the files of its ops with titles, the definitions of its types, and a
    header that says what functions of its ops are held to, a label a line."""

    name: str
    families: tuple
    types: tuple
    meaning: str = ""
    functions: str = ""

    @property
    def folder(self):
        """The folder of its .td files."""
        return Path("compiler") / self.name

    @property
    def page(self):
        """The page that says what it is."""
        return Path("docs/spec") / f"{self.name}.md"

    @property
    def prefix(self):
        """The prefix of its definitions' names."""
        return self.name.capitalize()


DIALECTS = (
    Dialect("graph",
            (("Elementwise", "Elementwise.td"), ("Movement", "Movement.td"),
             ("Contractions and reductions", "Contraction.td"), ("Control flow", "Control.td"),
             ("Routines", "hosted/Routine.td"),
             ("Lists, strings and images", "hosted/Hosted.td")),
            ("Graph_DimsAttr", "Graph_StoredAttr", "Graph_BitsAttr", "Graph_Float4Type",
             "Graph_Scale8Type", "Graph_StringType", "Graph_ListType"),
            " What an op\nmeans is what `compiler/reference` computes.", "Function.h"),
    Dialect("program",
            (("Memory", "Memory.td"), ("The run", "Run.td"), ("Threads", "Threads.td"),
             ("Values", "Values.td")),
            ("Program_PtrType",)))


def _records(root, path):
    """All records of the .td file, as llvm-tblgen prints them."""
    printed = subprocess.run(
        [TABLEGEN, "--dump-json", f"-I{INCLUDES}", f"-I{root}", root / path],
        capture_output=True, text=True, check=True).stdout
    return json.loads(printed)


def records(root, dialect):
    """All records of the dialect."""
    return _records(root, dialect.folder / "Ops.td")


def _joined(text):
    """Paragraphs without the line breaks of their source."""
    paragraphs = re.split(r"\n\s*\n", textwrap.dedent(text).strip())
    return "\n\n".join(each if each.startswith("|") else " ".join(each.split())
                       for each in paragraphs)


def of_functions(root, dialect):
    """The constraints of functions, as the dialect's header says them: {label: text}."""
    if not dialect.functions:
        return {}
    text = (root / dialect.folder / dialect.functions).read_text(encoding="utf-8")
    return dict(re.findall(rf"^/// ({LABEL}): (.*)$", text, re.MULTILINE))


def ops(dialect, found):
    """The ops by the file that defines them, in its order."""
    by_file = {}
    for name in found["!instanceof"][f"{dialect.prefix}_Op"]:
        file, line = found[name]["!locs"][0].split(":")
        by_file.setdefault(file, []).append((int(line), name))
    return {file: [found[name] for _, name in sorted(listed)] for file, listed in by_file.items()}


def _kind(found, definition):
    """An attribute's type and what it is by default."""
    record = found[definition]
    if definition == "UnitAttr":
        return "flag"
    default = record.get("defaultValue")
    kind = record.get("baseAttr", {}).get("def") if default else definition
    if "enumerants" in found[kind]:
        words = (found[each["def"]]["str"] for each in found[kind]["enumerants"])
        return "one of " + ", ".join(words)
    name = KINDS.get(found[kind]["summary"], found[kind]["summary"])
    return f"{name} = {default}" if default not in (None, "") else name


def _is_plain(op):
    """Tells whether a formula says all: a function of operands of one shape."""
    labels = [each.split(":")[0] for each in op["constraints"]]
    return labels == ["E1"] and not op.get("description", "").strip() and not any(
        kind["def"] != "Graph_Tensor" for kind, _ in op["arguments"]["args"])


def _plain(listed):
    """A table of ops that are plain."""
    lines = ["| op | element of the result |", "|---|---|"]
    for op in listed:
        formula = op["summary"].replace("|", r"\|").replace("*", r"\*")
        operands = ", ".join(f"`{name}`" for _, name in op["arguments"]["args"])
        lines.append(f"| {op['opName']} {operands} | {formula} |")
    return [*lines, "", f"- **E1**:{listed[0]['constraints'][0].split(':', 1)[1]}", ""]


def _signature(found, op):
    """Operands, attributes and results in one line."""
    values, attributes = [], []
    for kind, name in op["arguments"]["args"]:
        bases = found[kind["def"]]["!superclasses"]
        if "Attr" in bases:
            attributes.append(f"`{name}`: {_kind(found, kind['def'])}")
        else:
            mark = "..." if "Variadic" in bases else "?" if "Optional" in bases else ""
            values.append(f"`{name}`{mark}")
    results = [f"`{name}`" + ("..." if "Variadic" in found[kind["def"]]["!superclasses"] else "")
               for kind, name in op["results"]["args"]]
    given = f" {{{', '.join(attributes)}}}" if attributes else ""
    return f"{', '.join(values) or 'nothing'}{given} -> {', '.join(results) or 'nothing'}"


def _section(found, op):
    summary = _joined(op["summary"]).replace("*", r"\*")
    lines = [f"### {op['opName']}", "", f"{_signature(found, op)}: {summary}."]
    if op.get("description", "").strip():
        lines += ["", _joined(op["description"])]
    if op["constraints"]:
        lines += ["", *[f"- **{each.split(':', 1)[0]}**:{each.split(':', 1)[1]}"
                        for each in op["constraints"]]]
    return [*lines, ""]


def page(root, dialect, found):
    """The text of the dialect's page."""
    about = _joined(found[f"{dialect.prefix}_Dialect"]["description"])
    lines = [HEAD.format(name=dialect.name, folder=dialect.folder, dialect=about,
                         meaning=dialect.meaning)]
    by_file = ops(dialect, found)
    for title, file in dialect.families:
        lines += [f"## {title}", "", f"`{dialect.folder}/{file}`", ""]
        listed = by_file.pop(Path(file).name)
        plain = [op for op in listed if _is_plain(op)]
        if plain:
            lines += _plain(plain)
        for op in listed:
            if op not in plain:
                lines += _section(found, op)
    if by_file:
        sys.exit(f"dialect_spec: {', '.join(by_file)} is in no family")
    if functions := of_functions(root, dialect):
        lines += ["## Functions", "", f"`{dialect.folder}/{dialect.functions}`: what the ops of a "
                  "function are held to together, between the stages.", ""]
        lines += [*[f"- **{label}**: {text}" for label, text in functions.items()], ""]
    lines += ["## Types", ""]
    for name in dialect.types:
        lines += [f"### {found[name]['mnemonic']}", "", found[name]["summary"] + ".", "",
                  _joined(found[name]["description"]), ""]
    return "\n".join(lines)


def _checked(root, dialect):
    """The labels in messages of verifiers and shape rules."""
    found = set()
    for path in (root / dialect.folder).glob("**/*.cpp"):
        if "Fuzz" not in path.name and "Test" not in path.name:
            found |= set(re.findall(rf'"({LABEL})(?:: |")', path.read_text(encoding="utf-8")))
    return found


def _provoked(root, dialect):
    """The pairs (op, label) whose message a .mlir file expects: the op is the one of that line."""
    found = set()
    for path in (root / dialect.folder).glob("**/*.mlir"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            for expected in EXPECTED.finditer(line):
                offset = {None: 0, "below": 1, "above": -1}.get(expected["offset"])
                target = number + (int(expected["offset"]) if offset is None else offset)
                named = re.search(rf"\b{dialect.name}\.(\w+)", lines[target].split("//")[0])
                found.add((named[1] if named else "", expected["label"]))
    return found


def labels(root, dialect, found):
    """Complaints about labels that are missing in one of the three places."""
    pairs = [(op["opName"], each.split(":")[0]) for file in ops(dialect, found).values()
             for op in file for each in op["constraints"]]
    stated = {label for _, label in pairs} | of_functions(root, dialect).keys()
    checked, provoked = _checked(root, dialect), _provoked(root, dialect)
    for label in sorted(stated - checked):
        yield f"{dialect.folder}: no verifier has a message for constraint {label}"
    for label in sorted(checked - stated):
        yield f"{dialect.folder}: constraint {label} of a verifier is in no .td file"
    for label in sorted(stated - {label for _, label in provoked}):
        yield f"{dialect.folder}: no .mlir file provokes constraint {label}"
    for op, label in sorted(pairs):
        if label not in OF_TRAITS and (op, label) not in provoked:
            yield f"{dialect.folder}: no .mlir file provokes constraint {label} of {op}"


def _pass_section(found, name):
    """The section of one pass: its summary, its description and its options."""
    each = found[name]
    text = f"### `{each['argument']}`\n\n{each['summary'][0].upper()}{each['summary'][1:]}."
    if each["description"].strip():
        text += "\n\n" + _joined(each["description"])
    options = [found[option["def"]] for option in each["options"]]
    if options:
        text += "\n\n| option | default | |\n|---|---|---|"
    for option in options:
        default = option["defaultValue"] if "Option" == option["!superclasses"][-1] else ""
        text += f"\n| `{option['argument']}` | {default} | {option['description']} |"
    return text


def passes_page(root):
    """docs/spec/passes.md: the passes of all Passes.td, each in the order of its file."""
    text = PASSES_HEAD
    for path in sorted(each for top in ("compiler", "tools")
                       for each in Path(root, top).rglob("Passes.td")):
        path = path.relative_to(root)
        found = _records(root, path)
        names = sorted(found["!instanceof"]["PassBase"],
                       key=lambda name: int(found[name]["!locs"][0].rsplit(":", 1)[1]))
        text += f"\n## {path.parent}\n\n"
        text += "\n\n".join(_pass_section(found, name) for name in names) + "\n"
    return text


def _is_written(path, text):
    return path.exists() and path.read_text(encoding="utf-8") == text


def check(root, files):
    """Pages that are out of date, and labels that are not stated, checked and provoked."""
    root, problems = Path(root), []
    for dialect in DIALECTS:
        if dialect.folder / "Ops.td" not in files:
            continue
        if not shutil.which(TABLEGEN):
            return [f"{dialect.folder}: {TABLEGEN} is missing; install llvm-{LLVM}-dev"]
        found = records(root, dialect)
        problems += labels(root, dialect, found)
        if not _is_written(root / dialect.page, page(root, dialect, found)):
            problems.append(f"{dialect.page}: {OUTDATED}")
    if any(path.name == "Passes.td" for path in files):
        if not _is_written(root / PASSES, passes_page(root)):
            problems.append(f"{PASSES}: {OUTDATED}")
    return problems


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: dialect_spec.py --write")
    for each in DIALECTS:
        text = page(Path(ROOT), each, records(Path(ROOT), each))
        (ROOT / each.page).write_text(text, encoding="utf-8")
    (ROOT / PASSES).write_text(passes_page(Path(ROOT)), encoding="utf-8")
