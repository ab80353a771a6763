"""docs/spec/graph.md is what the .td files of compiler/graph say: `graph_spec.py --write` makes it.

Each constraint of an op has a label. It has to be in the list `constraints` of the .td file, in
a message of a verifier or shape rule, and in a .mlir file where that message is provoked.
"""

import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from sources import ROOT

GRAPH, PAGE = Path("compiler/graph"), Path("docs/spec/graph.md")
FAMILIES = (("Elementwise", "Elementwise.td"), ("Movement", "Movement.td"),
            ("Contractions and reductions", "Contraction.td"), ("Control flow", "Control.td"),
            ("Routines", "hosted/Routine.td"), ("Lists, strings and images", "hosted/Hosted.td"))
LABEL = r"[A-Z]{1,3}\d+"
KINDS = {"i64 dense array attribute": "list of i64", "f64 dense array attribute": "list of f64",
         "64-bit signless integer attribute": "i64", "64-bit float attribute": "f64",
         "bool attribute": "bool", "string attribute": "text",
         "constant vector/tensor attribute": "tensor",
         "sizes of a tensor, constant or as expressions over named symbols": "[dims](#dims)"}
TABLEGEN, INCLUDES = "llvm-tblgen-19", "/usr/lib/llvm-19/include"

HEAD = """# The graph dialect

Written by `tools/check/graph_spec.py --write` from the .td files of `compiler/graph`; a check holds
it to them.

{dialect}

A section has an op's operands (`?`: may be missing, `...`: any number), its attributes with their
defaults, its results, what it is, and its constraints. The label of a constraint begins the
messages of verifiers and shape rules; each is provoked in a .mlir file beside the sources. What an
op means is what `compiler/reference` computes.
"""


def records(root):
    """All records of the dialect, as llvm-tblgen prints them."""
    printed = subprocess.run(
        [TABLEGEN, "--dump-json", f"-I{INCLUDES}", f"-I{root}", root / GRAPH / "Ops.td"],
        capture_output=True, text=True, check=True).stdout
    return json.loads(printed)


def _joined(text):
    """Paragraphs without the line breaks of their source."""
    paragraphs = re.split(r"\n\s*\n", textwrap.dedent(text).strip())
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def ops(found):
    """The ops by the file that defines them, in its order."""
    by_file = {}
    for name in found["!instanceof"]["Graph_Op"]:
        file, line = found[name]["!locs"][0].split(":")
        by_file.setdefault(file, []).append((int(line), name))
    return {file: [found[name] for _, name in sorted(listed)] for file, listed in by_file.items()}


def _kind(found, definition):
    """An attribute's type and what it is by default."""
    record = found[definition]
    default = record.get("defaultValue")
    kind = record.get("baseAttr", {}).get("def") if default else definition
    name = KINDS.get(found[kind]["summary"], found[kind]["summary"])
    return f"{name} = {default}" if default not in (None, "") else name


def _is_plain(op):
    """Whether a formula says all: a function of operands of one shape."""
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


def page(found):
    """The text of docs/spec/graph.md."""
    lines = [HEAD.format(dialect=_joined(found["Graph_Dialect"]["description"]))]
    by_file = ops(found)
    for title, file in FAMILIES:
        lines += [f"## {title}", "", f"`compiler/graph/{file}`", ""]
        listed = by_file.pop(Path(file).name)
        plain = [op for op in listed if _is_plain(op)]
        if plain:
            lines += _plain(plain)
        for op in listed:
            if op not in plain:
                lines += _section(found, op)
    if by_file:
        sys.exit(f"graph_spec: {', '.join(by_file)} is in no family")
    lines += ["## Types", ""]
    for name in ("Graph_DimsAttr", "Graph_StoredAttr", "Graph_ListType"):
        lines += [f"### {found[name]['mnemonic']}", "", found[name]["summary"] + ".", "",
                  _joined(found[name]["description"]), ""]
    return "\n".join(lines)


def _labels_in(root, pattern, expression):
    found = set()
    for path in (root / GRAPH).glob(pattern):
        if "Fuzz" not in path.name and "Test" not in path.name:
            found |= set(re.findall(expression, path.read_text(encoding="utf-8")))
    return found


def labels(root, found):
    """Complaints about labels that are missing in one of the three places."""
    stated = {each.split(":")[0] for file in ops(found).values() for op in file
              for each in op["constraints"]}
    checked = _labels_in(root, "**/*.cpp", rf'"({LABEL})(?:: |")')
    provoked = _labels_in(root, "**/*.mlir", rf"expected-error.*{{{{(?:'[\w.]+' op )?({LABEL}): ")
    for label in sorted(stated - checked):
        yield f"{GRAPH}: no verifier has a message for constraint {label}"
    for label in sorted(checked - stated):
        yield f"{GRAPH}: constraint {label} of a verifier is in no .td file"
    for label in sorted(stated - provoked):
        yield f"{GRAPH}: no .mlir file provokes constraint {label}"


def check(root, files):
    """A page that is out of date, and labels that are not stated, checked and provoked."""
    root = Path(root)
    if GRAPH / "Ops.td" not in files:
        return []
    if not shutil.which(TABLEGEN):
        return [f"{GRAPH}: {TABLEGEN} is missing; install llvm-19-dev"]
    found = records(root)
    problems = list(labels(root, found))
    if not (root / PAGE).exists() or (root / PAGE).read_text(encoding="utf-8") != page(found):
        problems.append(f"{PAGE}: is not what the .td files say; run tools/check/graph_spec.py "
                        "--write")
    return problems


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: graph_spec.py --write")
    (ROOT / PAGE).write_text(page(records(Path(ROOT))), encoding="utf-8")
