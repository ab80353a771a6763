"""Adds up the suites of `./dev test`; its last line is `N passed, N failed[, N skipped]`.

    tally.py FOLDER NAME=STATUS=SECONDS...
    tally.py --times        compares the newest run with the one before it

FOLDER/NAME.xml is a suite's JUnit report, where it writes one; a suite without report is one test.
A suite that ended with a status other than 0 has at least one failure, whatever its report says: it
may have died before it could write. So has one whose report is empty: it did not find its tests.
Seconds of each file are told, and kept in build/times.jsonl, a line a run, by which the next run
of pytest is ordered (test/conftest.py).
"""

import collections
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

TIMES = Path(__file__).resolve().parents[2] / "build" / "times.jsonl"
SEEN = 0.05  # of the whole run: what a comparison points at


def cases_of(report):
    """(file or program, name, seconds, outcome) of each test of a report."""
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        outcome = "passed"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            outcome = "skipped"
        yield (case.get("classname", ""), case.get("name", ""), float(case.get("time") or 0),
               outcome)


def count(report, status):
    """(passed, failed, skipped) of one suite."""
    found = collections.Counter(outcome for *_, outcome in cases_of(report))
    passed, failed, skipped = (found[key] for key in ("passed", "failed", "skipped"))
    if not report.exists() and status == 0:
        passed = 1
    if failed == 0 and (status != 0 or passed + skipped == 0):
        failed = 1
    return passed, failed, skipped


def compilations(folder):
    """The compiler cache's summary of this run's compilations; '' if it was not used."""
    log = folder / "ccache.log"
    if not log.exists():
        return ""
    told = subprocess.run(["ccache", "--show-log-stats", "-v"], capture_output=True, text=True,
                          env={**os.environ, "CCACHE_STATSLOG": str(log)}, check=False).stdout
    found = re.search(r"Hits: +(\d+) / +(\d+)", told)
    return f"compiler cache: {found[1]} of {found[2]} compilations found" if found else ""


def main(folder, suites):
    """Prints a line a suite, what was slow and the sum; 1 when something failed."""
    total, took, tests = [0, 0, 0], {}, []
    print(f"\n{'suite':12}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for suite in suites:
        name, status, seconds = suite.split("=")
        report = Path(folder) / f"{name}.xml"
        counts = count(report, int(status))
        total = [a + b for a, b in zip(total, counts)]
        took[name] = int(seconds)
        tests += [(taken, name, *place) for *place, taken, _ in cases_of(report)]
        print(f"{name:12}{counts[0]:8}{counts[1]:8}{counts[2]:9}{took[name]:9}")
    tests.sort(reverse=True)
    files = collections.Counter()
    for taken, suite, place, _ in tests:
        files[f"{suite} {place}"] += taken
    slowest = [(f"{suite} {place} {name}", taken) for taken, suite, place, name in tests[:20]]
    print("\nthe slowest tests:", *(f"{taken:7.1f} s  {name}" for name, taken in slowest), sep="\n")
    cache = compilations(Path(folder))
    passed, failed, skipped = total
    print(f"\n{cache}\n{passed} passed, {failed} failed"
          + (f", {skipped} skipped" if skipped else ""))
    TIMES.parent.mkdir(exist_ok=True)
    with TIMES.open("a", encoding="utf-8") as kept:
        kept.write(json.dumps({"suites": took, "files": files, "slowest": slowest, "cache": cache,
                               "passed": passed, "failed": failed}) + "\n")
    return 1 if failed or not passed else 0


def kept_runs():
    """Records of the runs of this build folder, the oldest first."""
    if not TIMES.exists():
        return []
    return [json.loads(line) for line in TIMES.read_text(encoding="utf-8").splitlines()]


def compare():
    """Prints where the newest run took another time than the last one of the same suites."""
    runs = kept_runs()
    before = [run for run in runs[:-1] if run["suites"].keys() == runs[-1]["suites"].keys()]
    if not before:
        print("there are no two runs of the same suites to compare; './dev test' keeps each")
        return 2
    old, new = before[-1], runs[-1]
    whole = sum(old["suites"].values()) or 1
    print(f"{'seconds before':>16}{'now':>8}")
    for part in ("suites", "files"):
        for name in sorted({*old[part], *new[part]}):
            was, now = old[part].get(name, 0), new[part].get(name, 0)
            if part == "suites" or abs(now - was) > SEEN * whole:
                print(f"{was:16.0f}{now:8.0f}  {name}")
    change = sum(new["suites"].values()) / whole - 1
    print(f"{whole:16.0f}{whole * (1 + change):8.0f}  the whole: {change:+.0%}"
          + (f", more than {SEEN:.0%}" if change > SEEN else ""))
    return 0


if __name__ == "__main__":
    sys.exit(compare() if sys.argv[1:] == ["--times"] else main(sys.argv[1], sys.argv[2:]))
