"""Adds up the suites of `./dev test`; its last line is `N passed, N failed[, N skipped]`.

    tally.py FOLDER NAME=STATUS...

FOLDER/NAME.xml is a suite's JUnit report, where it writes one; a suite without report is one test.
A suite that ended with a status other than 0 has at least one failure, whatever its report says: it
may have died before it could write. So has one whose report is empty: it did not find its tests.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree


def count(report, status):
    """(passed, failed, skipped) of one suite."""
    passed = failed = skipped = 0
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
            elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
                skipped += 1
            else:
                passed += 1
    elif status == 0:
        passed = 1
    if failed == 0 and (status != 0 or passed + skipped == 0):
        failed = 1
    return passed, failed, skipped


def main(folder, suites):
    """Prints a line a suite and the sum; 1 when something failed."""
    total = [0, 0, 0]
    print(f"\n{'suite':12}{'passed':>8}{'failed':>8}{'skipped':>9}")
    for suite in suites:
        name, status = suite.rsplit("=", 1)
        counts = count(Path(folder) / f"{name}.xml", int(status))
        total = [a + b for a, b in zip(total, counts)]
        print(f"{name:12}{counts[0]:8}{counts[1]:8}{counts[2]:9}")
    passed, failed, skipped = total
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
