"""ONNX's backend suite, every test in every mode, against a list of failures that is exact.

A test of expected_failures.tsv that passes fails here too: its line has to go. The results of the
run are written to build/onnx-suite.json, which docs/generated/onnx-support.md is made of.
"""

import functools
import json
import os
from pathlib import Path

import pytest

import gpu
import suite
import support

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "onnx-suite.json"
LEVEL = os.environ.get("HEDDLE_TEST_OPT")
OPTIONS = {"threads": 1, "verify_stages": True} | ({"opt_level": int(LEVEL)} if LEVEL else {})


def cases():
    from heddle.onnx_backend import HeddleBackend

    return [pytest.param(name, mode, marks=[] if mode == "dynamic" else pytest.mark.long)
            for mode in suite.MODES for name in sorted(suite.tests_of(HeddleBackend, mode))]


@functools.cache
def results_of(mode):
    """{test: record}"""
    return suite.run(mode, OPTIONS)


@pytest.fixture(scope="module")
def results():
    """{mode: {test: record}}"""
    found = {mode: results_of(mode) for mode in suite.MODES}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
    return found


EXPECTED = suite.expected_failures()


@pytest.mark.parametrize("name, mode", cases())
def test_node(name, mode):
    record = results_of(mode)[name]
    reason = EXPECTED.get((mode, name))
    if reason is None:
        assert record["status"] == "passed", record["text"]
    elif record["status"] == "passed":
        pytest.fail(f"it passes now: take it out of {suite.EXPECTED.name} ({reason})")
    else:
        pytest.xfail(reason)


@pytest.mark.skipif(not gpu.DRIVER.exists(), reason="`ninja heddle-emulated-cuda` makes the driver")
@pytest.mark.parametrize("share", [16, pytest.param(1, marks=pytest.mark.long)])
def test_nodes_on_a_device(share):
    """One single node in so many is run with all groups that a device takes on the emulated one."""
    from heddle.onnx_backend import HeddleBackend

    tests = suite.tests_of(HeddleBackend, "static")
    names = sorted(name for name in tests if suite.kind_of(tests[name]) == "Node")[::share]
    found = suite.run("static", OPTIONS | {"device": True}, f"^({'|'.join(names)})$")
    assert [*sorted(found)] == names
    wrong = {name: record["text"] for name, record in found.items()
             if (record["status"] == "passed") == (("static", name) in EXPECTED)}
    assert not wrong


@pytest.mark.long
def test_the_list_names_tests_that_exist(results):
    unknown = [key for key in EXPECTED if key[1] not in results[key[0]]]
    assert not unknown


@pytest.mark.long
def test_at_least_98_percent_of_the_node_tests_pass(results):
    for mode, records in results.items():
        node = [record for record in records.values() if record["kind"] == "Node"]
        share = sum(record["status"] == "passed" for record in node) / len(node)
        assert share >= 0.98, f"{mode}: {share:.2%}"


def test_the_support_page_has_the_operators_that_there_are():
    rows = [line[2:-2].split(" | ") for line in support.PAGE.read_text("utf-8").splitlines()]
    found = [(*row[:3], row[-1]) for row in rows if len(row) == 9]
    assert found[1:] == [(row["op"], row["domain"], row["opsets"], row["remarks"])
                         for row in support.operators()], support.OLD


@pytest.mark.long
def test_the_support_page_is_what_the_results_say(results):
    kept = support.PAGE.read_text(encoding="utf-8")
    assert without_errors(kept) == without_errors(support.page(results)), support.OLD


def without_errors(page):
    """The page without the column of errors, which another CPU's kernels may round otherwise."""
    rows = [line.split(" | ") for line in page.splitlines()]
    return [row[:6] + row[7:] if len(row) == 9 else row for row in rows]
