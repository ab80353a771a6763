"""Says whether this tree compiles models to the same plans and objects as another commit.

    ./dev replay [COMMIT] [--models NAME...] [--targets CPU...]

Models are those of `bench.models.catalogue` and the rows of `bench.ops.cases`, each compiled for
every target without a cache. Without a commit, what this tree makes is kept as that of its HEAD, in
`build/replay/COMMIT.json`; what is not kept of a commit, its own build makes (in
`build/replay/tree`). Prints what differs, of a plan the first lines; exit status 1 when there is
any, 2 when a commit could not be built.
"""

import argparse
import concurrent.futures
import dataclasses
import difflib
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.models import catalogue
from bench.ops import cases

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "replay"
HEDDLE = ROOT / "build" / "release" / "bin" / "heddle"
TARGETS = ("x86-64-v3", "x86-64-vnni", "aarch64")
DIFF_LINES = 6


@dataclasses.dataclass
class Compilation:
    """A model compiled for a target: its plan, and the digest of its object or the message of
    the compiler that refused it."""
    plan: str
    digest: str


def compile_model(heddle, model, target):
    """Compiles a model file with the given command."""
    with tempfile.TemporaryDirectory() as folder:
        made, plan = Path(folder, "model.o"), Path(folder, "plan.json")
        done = subprocess.run(
            [heddle, "compile", model, "--target", target, "-o", made, "--emit", "o", "--plan-out",
             plan, "--no-cache", "--jobs", "1"], capture_output=True, text=True, check=False)
        if done.returncode:
            return Compilation("", done.stderr.strip())
        return Compilation(plan.read_text(), hashlib.sha256(made.read_bytes()).hexdigest())


def fetch_models(names, folder):
    """Paths of the models by name: the catalogue's, and the rows of bench.ops, written here."""
    paths, named = {}, {"ops"}
    for model in catalogue.models():
        if names and model.name not in names:
            continue
        named.add(model.name)
        try:
            paths[model.name] = model.path()
        except catalogue.Missing as reason:
            print(f"{model.name}: left out: {reason}")
    for row in cases.all_rows():
        name = f"op {row.name}"
        # All are made: they draw their constants from one generator.
        model, _ = row.model(row.feeds(row.sizes[len(row.sizes) // 2]))
        if not names or name in names or "ops" in names:
            # Its name is in the object, so it must not depend on what else was asked for.
            paths[name] = folder / (re.sub(r"\W+", "_", name) + ".onnx")
            paths[name].write_bytes(model.SerializeToString())
    unknown = set(names) - set(paths) - named
    if unknown:
        raise SystemExit(f"replay: no model '{sorted(unknown)[0]}'; there are 'ops', the rows of "
                         "bench/ops as 'op NAME', and " +
                         ", ".join(model.name for model in catalogue.models()))
    return paths


def compile_all(heddle, paths, targets):
    """Compilations by model and target, as many at once as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {(name, target): pool.submit(compile_model, heddle, path, target)
                for (name, path), target in itertools.product(paths.items(), targets)}
        return {key: job.result() for key, job in jobs.items()}


def build(commit):
    """The command of that commit, built in a worktree of its own."""
    tree = KEPT / "tree"
    if not tree.exists():
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
        subprocess.run(["git", "worktree", "add", "--detach", tree, commit], cwd=ROOT, check=True)
    subprocess.run(["git", "checkout", "-q", "--detach", commit], cwd=tree, check=True)
    subprocess.run([tree / "dev", "build"], cwd=tree, check=True)
    return tree / "build" / "release" / "bin" / "heddle"


def known(commit):
    """The file of what was compiled by a commit, and what it holds."""
    file = KEPT / f"{commit}.json"
    entries = json.loads(file.read_text()) if file.exists() else []
    return file, {(name, target): Compilation(plan, digest)
                  for name, target, plan, digest in entries}


def keep(commit, found):
    """Writes what a commit makes beside what is known of it."""
    file, before = known(commit)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([[*key, each.plan, each.digest]
                                for key, each in (before | found).items()]))


def compile_with(commit, paths, targets):
    """Compilations of a commit: those that are known, and the rest, built and kept."""
    _, found = known(commit)
    missing = {name: path for name, path in paths.items()
               if any((name, target) not in found for target in targets)}
    if missing:
        made = compile_all(build(commit), missing, targets)
        keep(commit, made)
        found |= made
    return found


def difference(before, after):
    """Differences between two compilations, as lines; none if they are equal."""
    if before == after:
        return []
    if not before.plan or not after.plan:
        return [f"  was: {before.digest or 'compiled'}", f"  is:  {after.digest or 'compiled'}"]
    if before.plan == after.plan:
        return ["  equal plans, another object"]
    lines = difflib.unified_diff(before.plan.splitlines(), after.plan.splitlines(), n=0,
                                 lineterm="")
    changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    left = len(changed) - DIFF_LINES
    return ["  another plan:", *(f"    {line[:160]}" for line in changed[:DIFF_LINES]),
            *([f"    and {left} more lines"] if left > 0 else [])]


def compare(commit, name, paths, targets):
    """Prints what this tree compiles otherwise than the commit of that name; the exit status."""
    try:
        before = compile_with(commit, paths, targets)
    except subprocess.CalledProcessError as error:
        print(f"replay: {name} could not be built: {error}", file=sys.stderr)
        return 2
    after = compile_all(HEDDLE, paths, targets)
    differing = 0
    for (model, target), made in after.items():
        lines = difference(before[model, target], made)
        differing += bool(lines)
        if lines:
            print("\n".join([f"{model}, {target}:", *lines]))
    print(f"{len(after)} compilations of {len(paths)} models: {differing or 'none'} "
          f"{'differ' if differing > 1 else 'differs'} from {name}")
    return 1 if differing else 0


def git(*arguments):
    """The output of git, or None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    return None if done.returncode else done.stdout.strip()


def main():
    """Compares, or keeps what this tree makes."""
    parser = argparse.ArgumentParser(prog="./dev replay", description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?",
                        help="what this tree is compared with; without it, what this tree makes "
                        "is kept for later comparisons")
    parser.add_argument("--models", nargs="+", default=[], metavar="NAME",
                        help="only these of the catalogue; 'ops' for all rows of bench/ops")
    parser.add_argument("--targets", nargs="+", default=TARGETS, metavar="CPU")
    options = parser.parse_args()
    commit = git("rev-parse", "--verify", "-q", f"{options.commit or 'HEAD'}^{{commit}}")
    if not commit:
        parser.error(f"'{options.commit}' is no commit of this repository")
    if not options.commit and git("status", "--porcelain"):
        parser.error("this tree has changes, so what it makes is not that of its HEAD; commit them "
                     "or name the commit to compare with")
    with tempfile.TemporaryDirectory() as folder:
        paths = fetch_models(options.models, Path(folder))
        if options.commit:
            return compare(commit, options.commit, paths, options.targets)
        keep(commit, compile_all(HEDDLE, paths, options.targets))
        print(f"kept what {len(paths)} models become with {commit[:12]}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
