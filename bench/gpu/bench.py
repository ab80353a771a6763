"""Models on an NVIDIA GPU: right numbers, time beside PyTorch, TorchInductor and JAX, and what
kernels take beside cuBLAS and SDPA.

    ./dev bench gpu [--all] [--sections numbers kernels]    # here, where there is a GPU
    ./dev bench gpu --prepare build/gpu                     # for a machine without a network
    HEDDLE_BENCH_RESULTS=OUT python3 -m bench.gpu.bench --all --artefacts build/gpu    # there
    ./dev bench gpu --write OUT/gpu.json                    # docs/generated/gpu.md
    ./dev bench gpu --emulated --tiny                       # tries all of it without a GPU

`--prepare` leaves a folder with Heddle's wheel, and the models without weights, which are drawn
there from their names; only Python with NumPy is needed there, and a driver. Sections come in the
order of their worth, each in a process with a limit of its own, within --seconds in all; what was
found is written as it comes, and a section that fails or is stopped keeps its rows.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from bench.kernels import report
from bench.models import tool

# Seconds, of SECONDS in all; in the order of their worth.
LIMITS = {"numbers": 190, "models": 110, "kernels": 80, "sanitizer": 60, "ragged": 40,
          "training": 60, "inductor": 150, "jax": 90}
ABOUT = {
    "numbers": "Results of the device beside those of the CPU's form of the same artefact: the "
               "greatest difference, in parts of the largest number.",
    "models": "PyTorch eager. All engines take inputs from the host's memory and leave results "
              "there; bf16 is `--math bf16` here, and the whole module in PyTorch.",
    "kernels": "A step of a chain on the device, by the difference of a long chain and a short "
               "one. Of `products` a step is two of them; torch's steps are a CUDA graph.",
    "ragged": "BERT-base over batches of texts of different lengths.",
    "training": "A step: forward, backward and Adam, in f32.",
    "inductor": "TorchInductor with `max-autotune`, as far as the time goes.",
    "jax": "The graph, op by op, compiled by XLA, as far as the time goes; bf16 is the precision "
           "of products.",
    "sanitizer": "CUDA's compute-sanitizer over the section `numbers` of tiny sizes."}
DRIVER = tool.ROOT / "build" / "release" / "lib" / "libheddle-emulated-cuda.so"
PAGE = tool.ROOT / "docs" / "generated" / "gpu.md"
PACKED_LIMIT = 60 * 2**20
SECONDS, LEAST_SECONDS = 540, 5
SAID = 4000  # last characters of what a section printed


def card():
    """(name and driver of the first card, its kernels' target)."""
    if shutil.which("nvidia-smi"):
        asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,compute_cap",
                                "--format=csv,noheader"], capture_output=True, text=True)
        if asked.returncode == 0 and asked.stdout.strip():
            name, driver, capability = asked.stdout.splitlines()[0].split(", ")
            chips = [chip for chip in (80, 86, 89, 90) if chip <= float(capability) * 10]
            return f"{name}, driver {driver}", f"sm_{max(chips, default=80)}"
    return "unknown card (no nvidia-smi)", "sm_80"


def write_models(folder, is_tiny):
    """The models without weights; those of an earlier time go, with all that was made of them."""
    from bench.gpu import cases
    from bench.networks import seeded
    shutil.rmtree(folder / "models", ignore_errors=True)
    for case in cases.all_cases(is_tiny):
        seeded.save(case.make(), folder / "models" / case.folder)
    if not is_tiny:
        write_models(folder / "tiny", True)  # of the sanitizer


def prepare(folder, is_tiny):
    """All that a machine without a network needs beside the sources."""
    write_models(folder, is_tiny)
    shutil.rmtree(folder / "site", ignore_errors=True)
    for old in folder.glob("heddle-*.whl"):
        old.unlink()
    subprocess.run([tool.ROOT / "dev", "wheel"], check=True)
    wheel, = (tool.ROOT / "build" / "wheel").glob("heddle-*.whl")
    shutil.copy(wheel, folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 2**20:.1f} MiB\ncarry it and the sources, then run there\n"
          f"  python3 -m bench.gpu.bench --all --artefacts {folder}")
    if size > PACKED_LIMIT:
        raise SystemExit(f"{folder} is larger than {PACKED_LIMIT / 2**20:.0f} MiB")


def unpacked(folder):
    """The folder that Python finds Heddle in: what the wheel holds, else this checkout's."""
    wheels, site = sorted(folder.glob("heddle-*.whl")), folder / "site"
    if not wheels:
        return tool.ROOT / "python"
    if not site.exists():
        with zipfile.ZipFile(wheels[-1]) as wheel:
            wheel.extractall(folder / "site.part")
        for path in (folder / "site.part" / "heddle" / "bin").iterdir():
            path.chmod(0o755)  # which a zip's reader does not do
        (folder / "site.part").replace(site)
    return site


class Contest:
    """Sections, one after the other, and the report of what they have found so far."""

    def __init__(self, given):
        self.given, self.begin = given, time.monotonic()
        self.folder = Path(given.artefacts).resolve()
        site = unpacked(self.folder)
        if site == tool.ROOT / "python":  # this checkout's, which may have changed
            write_models(self.folder, given.tiny)
        name, chip = ("emulated driver", "sm_90") if given.emulated else card()
        self.settings = {"tiny": given.tiny, "emulated": given.emulated, "chip": given.chip or chip,
                         "rounds": given.rounds, "turn": given.turn}
        self.found = {"machine": f"{name}; {report.machine()}", "settings": self.settings,
                      "seconds": {}, "rows": {}, "said": {}}
        for place in (tool.RESULTS, self.folder / "rows"):
            place.mkdir(parents=True, exist_ok=True)
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(site), str(tool.ROOT)]),
            "HEDDLE_CACHE": "", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        if given.emulated:
            self.environment["HEDDLE_CUDA_DRIVER"] = str(DRIVER)

    def run(self, section):
        """Rows of a section, in a process that is ended when its time is over."""
        begin, place = time.monotonic(), self.folder / "rows" / f"{section}.jsonl"
        left = self.given.seconds - (begin - self.begin)
        limit = min(LIMITS[section] * self.given.seconds / SECONDS, left)
        place.unlink(missing_ok=True)
        command = self.command(section, place)
        if not command:
            told = {"found": "there is no compute-sanitizer on PATH"}
        elif limit < LEAST_SECONDS:
            told = {"error": "no time was left"}
        else:
            log = place.with_suffix(".log")
            told = self.ended(section, command, log, limit)
            said = log.read_text(encoding="utf-8", errors="replace")
            self.found["said"][section] = said[-SAID:]
        last = [{"case": section, **told}] if told else []
        self.found["rows"][section] = read_rows(place) + last
        self.found["seconds"][section] = round(time.monotonic() - begin, 1)
        self.write()

    def ended(self, section, command, log, limit):
        """Runs the command to its end, or that of its time; gives what is to be told of it."""
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(command, env=self.environment, stdout=out,
                                       stderr=subprocess.STDOUT, cwd=tool.ROOT,
                                       start_new_session=True)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                return {"error": f"stopped after {limit:.0f} s"}
            finally:
                end(process)
        said = [line for line in log.read_text(encoding="utf-8", errors="replace").split("\n")
                if line.strip()] or [""]
        last = next((line for line in said if "ERROR SUMMARY" in line), said[-1])[:300]
        if status:
            return {"error": f"ended with status {status}: {last}"}
        return {"found": last} if section == "sanitizer" else {}

    def command(self, section, place):
        """The command of a section; nothing where compute-sanitizer is missing."""
        python = [sys.executable, "-m", "bench.gpu.sections"]
        if section != "sanitizer":
            return [*python, section, str(self.folder), str(place), json.dumps(self.settings)]
        sanitizer = shutil.which("compute-sanitizer")
        tiny = self.folder if self.given.tiny else self.folder / "tiny"
        return sanitizer and [
            sanitizer, "--error-exitcode", "9", "--target-processes", "all", *python, "numbers",
            str(tiny), str(place), json.dumps(self.settings | {"tiny": True})]

    def write(self):
        (tool.RESULTS / "gpu.json").write_text(json.dumps(self.found, indent=1) + "\n",
                                               encoding="utf-8")
        (tool.RESULTS / "gpu.md").write_text("\n".join(lines(self.found)) + "\n", encoding="utf-8")


def end(process):
    """Ends it and all that it started."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass
    process.wait()


def read_rows(place):
    """Those that were written whole."""
    if not place.exists():
        return []
    told = place.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in told]


def is_wrong(rows):
    """Tells whether something failed, or gave other results."""
    return any("error" in row or row.get("agrees", "yes") != "yes"
               for section in rows.values() for row in section)


def cell(value):
    if isinstance(value, dict):
        return report.spread(value)
    return f"{value:.3g}" if isinstance(value, float) else str(value).replace("|", "/")


def lines(found):
    """The page."""
    yield from ("# Heddle on a GPU", "", "Written by `./dev bench gpu`; `bench/README.md` says how "
                "it is measured.", "", f"{found['machine']}.")
    if found["settings"]["emulated"]:
        yield "The driver is the emulated one: **times mean nothing**."
    yield "Ratios are a peer's time over Heddle's: above 1, Heddle is faster."
    for section, rows in found["rows"].items():
        yield from ("", f"## {section}", "", ABOUT[section], "")
        heads = list(dict.fromkeys(key for row in rows for key in row))
        yield from report.table(heads, [[cell(row.get(head, "")) for head in heads]
                                        for row in rows])


def write_page(results):
    found = json.loads(Path(results).read_text(encoding="utf-8"))
    if found["settings"]["emulated"] or found["settings"]["tiny"]:
        raise SystemExit(f"{results} is of the emulated driver or of tiny sizes: its times mean "
                         "nothing; run './dev bench gpu --all' where there is a GPU")
    PAGE.write_text("\n".join(lines(found)) + "\n", encoding="utf-8")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sections", nargs="+", default=["numbers", "models"], choices=LIMITS)
    options.add_argument("--all", action="store_true", help="all sections")
    options.add_argument("--prepare", metavar="FOLDER", type=Path)
    options.add_argument("--artefacts", metavar="FOLDER", default=tool.ROOT / "build" / "gpu")
    options.add_argument("--write", metavar="RESULTS.json")
    options.add_argument("--seconds", type=float, default=SECONDS, help="of all sections")
    options.add_argument("--emulated", action="store_true", help="no GPU: times mean nothing")
    options.add_argument("--tiny", action="store_true", help="tiny sizes")
    options.add_argument("--chip", help="the target of kernels (default: the card's)")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--turn", type=float, default=60, help="milliseconds of a turn")
    given = options.parse_args()
    if given.write:
        write_page(given.write)
        return
    if given.prepare:
        prepare(given.prepare.resolve(), given.tiny)
        return
    contest = Contest(given)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and the section ends, too
    for section in LIMITS if given.all else given.sections:
        contest.run(section)
        print(f"{section}: {len(contest.found['rows'][section])} rows", file=sys.stderr, flush=True)
    print((tool.RESULTS / "gpu.md").read_text(encoding="utf-8"))
    sys.exit(is_wrong(contest.found["rows"]))


if __name__ == "__main__":
    main()
