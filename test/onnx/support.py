"""support: writes docs/generated/onnx-support.md from the importer's table and the suite's results.

    python test/onnx/support.py      # after pytest test/onnx, which leaves build/onnx-suite.json
"""

import collections
import json
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.defs

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test" / "onnx")]

import suite  # noqa: E402

PAGE = ROOT / "docs" / "generated" / "onnx-support.md"
OLD = "docs/generated/onnx-support.md is old: run python test/onnx/support.py"
BOUNDS = (0, 1, 4, 16, 64, 256, 1024)

HEAD = """# ONNX operators

Written by `test/onnx/support.py` from the importer's table and from onnx's backend suite (onnx
{version}), which runs through import, compilation and the compiled code.

A test runs in three modes: *static* as it is, *dynamic* with a symbol for every size of its inputs,
*constant* with its inputs as constants. `12/13` says that 12 of 13 tests that hold the operator
pass. *Error* is the largest difference from what the suite expects, over all passing static tests
of the operator's own, in units of the last place, rounded up to {bounds};
elements below a thousandth of the largest are measured as if they were that large. The suite's own
numbers are rounded too.
"""


def model_of(name):
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    for kind in ("node", "simple", "pytorch-operator", "pytorch-converted"):
        path = data / kind / name / "model.onnx"
        if path.exists():
            return onnx.load(path, load_external_data=False)
    return None


def operators_of(model):
    """{(domain, op)} of a model, and the element types of its inputs and outputs."""
    found, types = set(), set()

    def visit(nodes):
        for node in nodes:
            found.add((node.domain or "ai.onnx", node.op_type))
            for attribute in node.attribute:
                visit(attribute.g.node)

    visit(model.graph.node)
    for function in model.functions:
        visit(function.node)
    for value in (*model.graph.input, *model.graph.output):
        kind = value.type
        while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
            kind = getattr(kind, kind.WhichOneof("value")).elem_type
        if kind.HasField("tensor_type"):
            name = onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type)
            types.add(name.lower())
    return found, types


def bucket(error):
    return next((f"{bound}" for bound in BOUNDS if error <= bound), f"> {BOUNDS[-1]}")


def operators():
    """The importer's ops, by domain and name: {op, domain, opsets, remarks}."""
    heddle = ROOT / "build" / "release" / "bin" / "heddle"
    table = json.loads(subprocess.check_output([heddle, "ops", "--json"], text=True))["ops"]
    return sorted(table, key=lambda row: (row["domain"], row["op"]))


def page(results):
    table = operators()
    counts = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    types, errors = collections.defaultdict(set), {}
    for name in results["static"]:
        model = model_of(name)
        if model is None:
            continue
        found, elements = operators_of(model)
        own = len(found) == 1
        for op in found:
            for mode in suite.MODES:
                passed = results[mode][name]["status"] == "passed"
                counts[op][mode][0] += passed
                counts[op][mode][1] += 1
            if own and results["static"][name]["status"] == "passed":
                types[op] |= elements
                errors[op] = max(errors.get(op, 0.0), results["static"][name]["ulps"])
    lines = [HEAD.format(version=onnx.__version__, bounds=", ".join(map(str, BOUNDS)))]
    lines += summary(results, table)
    lines += ["## Operators", "", "| operator | domain | opsets | static | dynamic | constant "
              "| error | element types tested | limits |", "|---|---|---|---|---|---|---|---|---|"]
    for row in table:
        op = row["domain"], row["op"]
        shares = [
            "{}/{}".format(*counts[op][mode]) if op in counts else "" for mode in suite.MODES
        ]
        error = bucket(errors[op]) if op in errors else ""
        cells = [row["op"], row["domain"], row["opsets"], *shares, error]
        cells += [" ".join(sorted(types[op])), row["remarks"]]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "## Operators of ONNX that are not there", "", missing(table), ""]
    lines += ["## Tests that fail", "", "| modes | test | why |", "|---|---|---|"]
    reasons = collections.defaultdict(list)
    for (mode, name), reason in suite.expected_failures().items():
        reasons[name, reason].append(mode)
    for (name, reason), modes in sorted(reasons.items()):
        where = "all" if len(modes) == len(suite.MODES) else ", ".join(modes)
        lines.append(f"| {where} | {name} | {reason} |")
    return "\n".join(lines) + "\n"


def summary(results, table):
    kinds = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for mode, records in results.items():
        for record in records.values():
            kinds[record["kind"]][mode][0] += record["status"] == "passed"
            kinds[record["kind"]][mode][1] += 1
    lines = [f"{len(table)} operators.", "", "| tests | static | dynamic | constant |",
             "|---|---|---|---|"]
    for kind in sorted(kinds):
        cells = ["{} of {} ({:.1f} %)".format(passed, count, 100 * passed / count) if count else "-"
                 for passed, count in (kinds[kind][mode] for mode in suite.MODES)]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def missing(table):
    have = {(row["domain"], row["op"]) for row in table}
    lacking = sorted(
        f"`{schema.domain or 'ai.onnx'}.{schema.name}`"
        for schema in onnx.defs.get_all_schemas()
        if (schema.domain or "ai.onnx", schema.name) not in have and not schema.deprecated
    )
    return ", ".join(lacking) if lacking else "None."


if __name__ == "__main__":
    saved = ROOT / "build" / "onnx-suite.json"
    if not saved.exists():
        sys.exit(f"{saved} is missing: run pytest test/onnx first")
    PAGE.write_text(page(json.loads(saved.read_text(encoding="utf-8"))), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
