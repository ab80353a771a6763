"""ir: changes the text of valid IR, and holds heddle-opt to what it does with it.

A mutant of a module in the dialect `graph` is planned and lowered, one with groups is lowered, one
in `program` becomes ops of LLVM and text of C: each goes through, or is refused with a message. A
signal, a run without end and a failure without a message are findings. `./dev fuzz-ir 600` looks
for them; the seed and number in the name of a finding make it again.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "release" / "bin" / "heddle-opt"
OPT = str(BUILT) if BUILT.exists() else shutil.which("heddle-opt")
FOUND = ROOT / "build" / "fuzz" / "found"
# Folders of each dialect's modules, and the passes that take those of each kind.
FOLDERS = {"graph": ("compiler/graph", "compiler/partition", "compiler/pipeline", "compiler/lower",
                     "compiler/simplify", "compiler/mechanism", "compiler/reference",
                     "schedules/cpu/Inputs"),
           "program": ("compiler/program", "compiler/target")}
PLAN, LOWER = "--heddle-plan", "--heddle-lower"
COMMANDS = {"graph": ((PLAN, LOWER),), "planned": ((LOWER,), (PLAN,)),
            "program": (("--heddle-lower-program",), ("--canonicalize", "--heddle-print-c"))}
# MLIR's own parser ends on some text that it should refuse: in a region, the definition of what the
# op around it has as an operand takes the place of a value that this op still names.
PARSER, OURS = "mlir::parseAsmSourceFile(", re.compile(r"\s*#\d+ .* heddle::")
DERIVED = 24  # modules that are planned and lowered for seeds of the other kinds
LONGEST = 300  # lines of a seed
SECONDS = 30  # of one run, which takes a tenth of one

TYPES = ("f32", "f64", "f16", "bf16", "i1", "i4", "i8", "ui8", "i16", "i32", "i64", "si64", "index",
         "none", "!graph.float4", "!graph.scale8", "!graph.string", "!program.ptr", "vector<8xf32>",
         "vector<4xi1>", "vector<16xi32>", "vector<2x4xf32>", "tensor<f32>", "tensor<4xf32>",
         "tensor<2x3xf32>", "tensor<0x3xf32>", "tensor<1xi64>", "tensor<?xf32>",
         "tensor<4x!graph.float4>", "tensor<2x3x!graph.scale8>", "tensor<1x!graph.string>",
         'tensor<?x3xf32, #graph.dims<"n", 3>>', 'tensor<!graph.list<"sequence", f32, 1>>')
NUMBERS = ("-9223372036854775808", "-1", "0", "1", "2", "3", "7", "16", "33", "1000003",
           "2147483648", "9223372036854775807")
SIZES = ('"n"', '"m"', '"n + 1"', '"2*n"', '"n floordiv 2"', '"max(n, 3)"', '"$late"', "0", "1",
         "3", "-1")
TEXTS = ('"sum"', '"max"', '"none"', '"average"', '"pointwise"', '"rows"', '"contraction"',
         '"place"', '"attention"', '"stitch"', '"window"', '"serial"', '"kernel.nest"', '""', '"x"')
VALUE, OP = r"%[\w$.]+(?:#\d+)?", r"\b(?:graph|program|arith|scf|vector|func)\.\w+"
TYPE = (r"tensor<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>|vector<[^<>]*>|![\w.]+"
        r"|\b(?:bf16|f16|f32|f64|[su]?i\d+|index)\b")


@dataclass(frozen=True)
class Finding:
    """A thing that heddle-opt must not do with a mutant."""

    number: int
    why: str
    command: tuple
    text: str


def seeds(dialect):
    """The valid modules of the tests of a dialect, without comments."""
    found = []
    for folder in FOLDERS[dialect]:
        for path in sorted((ROOT / folder).glob("**/*.mlir")):
            for part in path.read_text(encoding="utf-8").split("// -----"):
                lines = [line.split("//")[0].rstrip() for line in part.splitlines()]
                text = "\n".join(line for line in lines if line)
                if "expected-error" not in part and f"{dialect}." in text and "func.func" in text:
                    found.append(_named_main(text) if dialect == "graph" else text)
    return found


def derived(texts, command):
    """Outputs of heddle-opt for the texts that it takes."""
    made = []
    for text in texts:
        done = subprocess.run([OPT, "-", *command], input=text, text=True, capture_output=True,
                              timeout=SECONDS, check=False)
        if done.returncode == 0 and len(done.stdout.splitlines()) < LONGEST:
            made.append(done.stdout)
    return made


def _named_main(text):
    """The stages take a function @main."""
    if "@main" in text:
        return text
    return re.sub(r"func\.func (private )?@\w+", "func.func @main", text, count=1)


def _replace(generator, text, pattern, choose):
    """One place that the pattern matches gets what `choose` makes of it."""
    places = list(re.finditer(pattern, text))
    if not places:
        return text
    place = generator.choice(places)
    return text[:place.start()] + choose(place[0]) + text[place.end():]


def _drop_line(generator, text):
    lines = text.splitlines()
    del lines[generator.randrange(len(lines))]
    return "\n".join(lines)


def _move_line(generator, text):
    lines = text.splitlines()
    line = lines.pop(generator.randrange(len(lines)))
    lines.insert(generator.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def _repeat_line(generator, text):
    lines = text.splitlines()
    place = generator.randrange(len(lines))
    again = re.sub(r"^(\s*%\w+)", r"\1_again", lines[place])
    lines.insert(place + 1, again)
    return "\n".join(lines)


def _other(pattern):
    """Replaces one match by another one of the same text."""
    def change(generator, text):
        found = sorted(set(re.findall(pattern, text)))
        return _replace(generator, text, pattern, lambda _: generator.choice(found))
    return change


def _from(pattern, pool):
    """Replaces one match by one of the pool."""
    def change(generator, text):
        return _replace(generator, text, pattern, lambda _: generator.choice(pool))
    return change


def _all_types(generator, text):
    """Replaces a type wherever it is, so that more of what is said of it still holds."""
    found = sorted(set(re.findall(TYPE, text)))
    if not found:
        return text
    return text.replace(generator.choice(found), generator.choice((*found, *TYPES)))


def _drop_attribute(generator, text):
    attribute = r"[\w.]+ = (?:array<[^<>]*>|\"[^\"]*\"|[\w.-]+)(?: : i64)?,? ?"
    return _replace(generator, text, attribute, lambda _: "")


def _dims(generator, text):
    return _replace(generator, text, r"(?<=#graph\.dims<)[^<>]*(?=>)", lambda sizes: ", ".join(
        generator.choice((size, generator.choice(SIZES))) for size in sizes.split(", ")))


def _all_sizes(generator, text):
    """Gives each size of a number, or each symbol of a name, another one: shapes stay in step."""
    sizes = sorted(set(re.findall(r"(?<=[<x])\d+(?=x)", text)))
    names = sorted(set(re.findall(r'(?<=[< ])"[\w$.]+"(?=[,>])', text)))
    if not sizes or (names and generator.random() < 0.3):
        return text.replace(generator.choice(names), generator.choice(SIZES)) if names else text
    size = generator.choice(sizes)
    other = generator.choice(("0", "1", "2", "5", "31", "65", "1009"))
    text = re.sub(rf"(?<=[<x]){size}(?=x)", other, text)
    return re.sub(rf"(#graph\.dims<[^<>]*)\b{size}\b(?=[,>])", rf"\g<1>{other}", text)


def _shape(generator, text):
    return _replace(generator, text, r"(?<=[<x])\d+(?=x)",
                    lambda _: generator.choice(("0", "1", "2", "3", "17", "64", "100003")))


def _knob(generator, text):
    """Another number for a knob of a schedule."""
    return _replace(generator, text, r"(?<= = )-?\d+(?= : i64[,}])",
                    lambda _: generator.choice(NUMBERS))


def changes(names):
    """All ways to change a text; `names` are those of the dialect's ops."""
    return (_drop_line, _move_line, _repeat_line, _other(VALUE), _other(TYPE), _from(TYPE, TYPES),
            _all_types, _all_sizes, _all_sizes, _knob,
            _from(r"(?<![\w.<x])-?\d+(?![\w.x])", NUMBERS), _drop_attribute, _dims,
            _shape, _from(r"\"[^\"]*\"", TEXTS), _other(OP), _from(OP, names), _other(r"@\w+"),
            _other(r"[a-z_]\w*(?= = )"))


def mutant(generator, texts, ways):
    """One of the texts with one to three changes, some of which may change nothing."""
    text = changed = generator.choice(texts)
    count = generator.choice((1, 1, 1, 2, 3))
    while changed == text or count > 0:
        changed = generator.choice(ways)(generator, changed) or text
        count -= 1
    return changed


def run(text, command):
    """(how heddle-opt ended, what is wrong with that or None)"""
    try:
        done = subprocess.run([OPT, "-", *command, "-o", os.devnull], input=text, text=True,
                              capture_output=True, timeout=SECONDS, errors="replace")
    except subprocess.TimeoutExpired:
        return None, f"no end after {SECONDS} s"
    if done.returncode not in (0, 1):
        of_mlir = PARSER in done.stderr and not any(map(OURS.match, done.stderr.splitlines()))
        return done.returncode, None if of_mlir else f"ended with {done.returncode}: {_told(done)}"
    if done.returncode == 1 and "error:" not in done.stderr:
        return 1, f"refused without a message: {_told(done)}"
    return done.returncode, None


def _told(done):
    """The first message of heddle-opt, and the first functions of ours on its stack."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    ours = [line for line in lines if OURS.match(line)]
    return " | ".join(line[:200] for line in lines[:1] + ours[:3])


class Campaign:
    """Mutants by their numbers: the same ones for the same seed."""

    def __init__(self, seed):
        self.seed = seed
        graphs, programs = seeds("graph"), seeds("program")
        planned = [text for text in graphs if "graph.group" in text]
        graphs = [text for text in graphs if "graph.group" not in text]
        planned += derived(random.Random(seed).sample(graphs, DERIVED), (PLAN,))
        programs += derived(planned, (LOWER, "--canonicalize", "--cse"))
        self.texts = {"graph": graphs, "planned": planned, "program": programs}
        names = {kind: sorted(set(re.findall(OP, " ".join(texts))))
                 for kind, texts in self.texts.items()}
        self.ways = {kind: changes(known) for kind, known in names.items()}
        self.accepted = 0

    def __call__(self, number):
        """A finding, or None."""
        generator = random.Random(f"{self.seed} {number}")
        kind = generator.choice(list(COMMANDS))
        text = mutant(generator, self.texts[kind], self.ways[kind])
        command = generator.choice(COMMANDS[kind])
        code, why = run(text, command)
        self.accepted += code == 0
        return why and Finding(number, why, command, text)


def main():
    """Reports findings as they come, and keeps them as files."""
    parser = argparse.ArgumentParser(description="changed IR through heddle-opt")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, help="print this mutant instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    campaign = Campaign(options.seed)
    if options.number is not None:
        found = campaign(options.number)
        print(f"{found.text}\n// {' '.join(found.command)}: {found.why}" if found else "fine")
        return 0
    end, number, findings = time.monotonic() + options.seconds, 0, 0
    FOUND.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        while time.monotonic() < end:
            for finding in filter(None, pool.map(campaign, range(number, number + 100))):
                path = FOUND / f"ir-{options.seed}-{finding.number}.mlir"
                path.write_text(f"// {' '.join(finding.command)}\n{finding.text}\n",
                                encoding="utf-8")
                print(f"{path}: {finding.why}", flush=True)
                findings += 1
            number += 100
    print(f"{number} mutants, {campaign.accepted} went through, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
