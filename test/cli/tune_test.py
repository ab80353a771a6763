"""`heddle tune`, and what `--records` makes of its findings."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node

from command import HANGS, OK, ROOT, fails, find_heddle, heddle, json_of, needs_heddle, ok, save

pytestmark = needs_heddle
ONE = ("--threads", "1")


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def records(tmp_path):
    return tmp_path / "records.db"


@pytest.fixture
def model(tmp_path):
    """Two equal products and two equal softmaxes: two distinct groups."""
    random = np.random.default_rng(0)
    nodes, weights, inputs, outputs = [], {}, ["x"], []
    for i in range(2):
        weights[f"w{i}"] = random.standard_normal((48, 48)).astype(np.float32)
        nodes += [make_node("MatMul", f"x w{i}", f"m{i}", f"product{i}"),
                  make_node("Softmax", f"y{i}", f"s{i}", f"softmax{i}")]
        inputs.append(f"y{i}")
        outputs += [f"m{i}", f"s{i}"]
    return save(make_model(nodes, {name: ["batch", 48] for name in inputs},
                           {name: ["batch", 48] for name in outputs}, weights),
                tmp_path / "m.onnx")


def tune(model, records, *more, trials=12):
    """Tunes with so many trials: the time only ends what hangs."""
    return json_of("tune", model, "--records", records, "--time", 600, "--trials", trials, *ONE,
                   *more)


def rows(records, what="*"):
    return sqlite3.connect(records).execute(f"SELECT {what} FROM trial ORDER BY id").fetchall()


def prefer(records, model, **knobs):
    """Makes one candidate of the first group the best, so that a choice does not hang on the
    machine's mood."""
    tune(model, records, trials=1)
    database = sqlite3.connect(records)
    database.execute("UPDATE trial SET speedup = min(speedup, 1)")
    [row] = database.execute("SELECT * FROM trial WHERE card = 'matmul' ORDER BY id LIMIT 1")
    columns = [each[1] for each in database.execute("PRAGMA table_info(trial)")]
    made = dict(zip(columns, row))
    del made["id"]
    made["knobs"] = json.dumps({**json.loads(made["knobs"]), **knobs}, separators=(",", ":"))
    made.update(speedup=1.5, confirmed=1, failure=None)
    database.execute(f"INSERT OR REPLACE INTO trial ({', '.join(made)}) "
                     f"VALUES ({', '.join('?' * len(made))})", list(made.values()))
    database.commit()


def knobs_of(model, *more, threads=1):
    """The knobs of each group's plan."""
    done = json_of("plan", model, "--threads", threads, *more)
    return {group["name"]: group["knobs"] for group in done["groups"]}


def test_equal_groups_are_one(model, records):
    found = tune(model, records)
    by_card = {group["default"]["card"]: group for group in found["groups"]}
    assert set(by_card) == {"matmul", "reduce_rows"}
    assert all(len(group["groups"]) == 2 for group in found["groups"])
    assert found["trials"] == 12 and found["ended"] == "trials"
    assert by_card["matmul"]["sizes"] == {"batch": 32}
    assert abs(sum(group["share"] for group in found["groups"]) - 1) < 1e-6
    # Each trial is a row, and so is the default choice of each group.
    assert len(rows(records)) <= 12 + 2  # what is measured at length is the same row
    assert {threads for threads, in rows(records, "threads")} == {1}


def test_text_names_what_is_next(model, records):
    done = ok("tune", model, "--records", records, "--trials", "2", *ONE)
    assert "matmul m=" in done.output and f"records  {records}" in done.output
    found, kept = re.search(r"^kept +(\w+)$", done.output, re.M), "--chooser rules"
    if found[1] != "default" or "\nmodel " not in done.output:
        kept = f"--records {records}"
    assert f"\nnext     heddle compile {model} --threads 1 {kept} -o m.so\n" in done.output


def test_what_is_next_can_be_pasted_into_a_shell(model, tmp_path, monkeypatch):
    """All that a compilation takes as tuning did, with names that a shell would split."""
    folder = tmp_path / "a folder; it's"
    folder.mkdir()
    shutil.copy(model, folder / "my $model.onnx")
    monkeypatch.chdir(folder)
    for more in ((), ("-o", "a plan.json")):
        done = ok("tune", "my $model.onnx", "--trials", "1", "--records", "the records.db", *ONE,
                  "--dim", "batch=4", "--math", "strict", "-O2", *more)
        [line] = re.findall(r"^next +(.*)$", done.output, re.M)
        path = f"{Path(find_heddle()).parent}:{os.environ['PATH']}"
        ran = subprocess.run(["sh", "-c", line], env={**os.environ, "PATH": path}, check=False,
                             capture_output=True, text=True)
        assert ran.returncode == 0, line + ran.stderr
        assert (folder / "my $model.so").exists() and (folder / "my $model.h").exists()
        (folder / "my $model.so").unlink()
        for option in ("--threads 1", "--dim batch=4", "--math strict", "-O 2"):
            assert option in line


def test_what_is_slower_as_a_whole_is_not_kept(model, records, tmp_path):
    """One row at a time: slower, whatever the machine does beside it."""
    prefer(records, model, m=1, n=4)
    by_rule, plan = tmp_path / "by_rule.json", tmp_path / "found.json"
    ok("plan", model, "-o", by_rule, *ONE)
    assert knobs_of(model, "--records", records) != knobs_of(model)
    for more in (("-o", plan), ()):
        found = tune(model, records, *more, trials=1)
        assert found["model_times"]["ratio"] < 1 and found["kept"] == "default"
        assert found["next"].endswith(f"--plan {plan} -o m.so" if more else
                                      "--chooser rules -o m.so")
    assert plan.read_text() == by_rule.read_text()


def test_goes_on_where_it_ended(model, records):
    tune(model, records, trials=5)
    before = rows(records, "id, card, knobs")
    found = tune(model, records, trials=5)
    after = rows(records, "id, card, knobs")
    assert after[:len(before)] == before
    assert found["trials"] == 5 and len(after) > len(before)


def test_collects_candidates_of_each_group(model, records):
    found = tune(model, records, "--collect", 6, trials=3)
    assert found["trials"] == 3 and found["ended"] == "trials"
    found = tune(model, records, "--collect", 6, trials=0)
    counts = sqlite3.connect(records).execute(
        "SELECT key, count(*), sum(confirmed) FROM trial GROUP BY key").fetchall()
    # The default choice among them; what is computed per element has only that for one thread.
    assert sorted(count for _, count, _ in counts) == [1, 6]
    assert [confirmed for _, _, confirmed in counts] == [1, 1]
    assert found["ended"] == "done" and found["plan"] is None and found["model_times"] is None
    assert tune(model, records, "--collect", 6, trials=0)["trials"] == 0
    # The file says what the groups are, as modules.
    texts = dict(sqlite3.connect(records).execute("SELECT key, text FROM subject"))
    assert set(texts) == {key for key, _, _ in counts}
    for text in texts.values():
        done = subprocess.run([ROOT / "build" / "release" / "bin" / "heddle-opt"], input=text,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "graph.group" in done.stdout


def test_compile_uses_the_records(model, records):
    by_rule = knobs_of(model)
    prefer(records, model, m=2)
    tuned = knobs_of(model, "--records", records)
    assert tuned["product0"]["m"] == tuned["product1"]["m"] == 2 != by_rule["product0"]["m"]
    assert knobs_of(model) == by_rule
    for command in ("run", "bench"):
        ok(command, model, "--records", records, *ONE,
           *(("--iters", "3") if command == "bench" else ()))
    # Those of one thread say nothing of two.
    assert knobs_of(model, "--records", records, threads=2) == by_rule


def test_environment_names_the_records(model, records, monkeypatch):
    prefer(records, model, m=2)
    monkeypatch.setenv("HEDDLE_RECORDS", str(records))
    assert knobs_of(model)["product0"]["m"] == 2


def test_python_uses_the_records(model, records):
    prefer(records, model, m=2)
    code = ("import heddle, sys; print(heddle.compile(sys.argv[1], threads=1, records=sys.argv[2])"
            ".compiled.plan['groups'][0]['knobs']['m'])")
    library = Path(find_heddle()).parents[1] / "lib" / "libheddle.so"
    done = subprocess.run([sys.executable, "-c", code, model, records], capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python"),
                                          "HEDDLE_LIBRARY": str(library)})
    assert done.stdout == "2\n", done.stderr


def test_the_same_records_give_the_same_bytes(model, records, tmp_path):
    prefer(records, model, m=2)
    artefacts = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.o"
        ok("compile", model, "-o", path, "--records", records, *ONE)
        artefacts.append(path.read_bytes())
    assert artefacts[0] == artefacts[1]


def test_the_plan_gives_the_same_without_records(model, records, tmp_path):
    prefer(records, model, m=2)
    plan = tmp_path / "found.json"
    found = tune(model, records, "-o", plan, trials=1)
    assert found["plan"] == str(plan)
    objects = []
    chosen = ("--chooser", "rules") if found["kept"] == "default" else ("--records", records)
    for more in (("--plan", plan), chosen):
        path = tmp_path / "o.o"
        ok("compile", model, "-o", path, *ONE, *more)
        objects.append(path.read_bytes())
    assert objects[0] == objects[1]
    ok("plan", model, "--check", plan, *ONE)


def test_a_plan_outranks_the_records(model, records, tmp_path):
    plan = tmp_path / "by_rule.json"
    ok("plan", model, "-o", plan, *ONE)
    prefer(records, model, m=2)
    assert knobs_of(model, "--plan", plan, "--records", records) == knobs_of(model)


def test_what_does_not_end_in_time_is_survived(model, records):
    found = tune(model, records, "--trial-time", "0.001")
    assert found["trials"] == 0
    assert all(group["problem"] == "it did not end within 0.001 seconds"
               for group in found["groups"])
    assert all("did not end" in failure for failure, in rows(records, "failure"))
    found = tune(model, records, trials=1)  # what had no time is tried again with more
    assert all(group["problem"] is None for group in found["groups"])


CARD = """module attributes {{transform.with_named_sequence, heddle.card = {{
    target = "cpu", priority = 1 : i64, key = "p* {{ k:s(dot) }}"}}}} {{
  transform.named_sequence @schedule(%group: !transform.any_op {{transform.readonly}},
      %m: !transform.param<i64> {{transform.readonly,
        heddle.knob = [{m}], heddle.default = {m} : i64}},
      %n: !transform.param<i64> {{transform.readonly,
        heddle.knob = [16], heddle.default = 16 : i64}}) {{
    transform.heddle.contract %group m %m n %n : !transform.any_op
    transform.yield
  }}
}}
"""


KERNEL = """module attributes {{transform.with_named_sequence, heddle.card = {{
    target = "cpu", priority = {priority} : i64, dtypes = ["f32"], key = "p* {{ k:s(dot) }}"}}}} {{
  transform.named_sequence @schedule(%group: !transform.any_op {{transform.readonly}}) {{
    transform.heddle.kernel "product" %group from "{name}.c" : !transform.any_op
    transform.yield
  }}
}}
"""
IN_C = """/* An element at a time, the sums in memory. */
int64_t heddle_tasks(const heddle_group *g) {{ return heddle_batches(g); }}
void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *scratch) {{
  (void)scratch;
  for (int64_t b = begin; b < end; ++b)
    for (int64_t i = 0; i < heddle_rows(g); ++i)
      for (int64_t j = 0; j < heddle_columns(g); ++j) {{
        volatile heddle_element sum = 0;
        for (int64_t k = 0; k < heddle_depth(g); ++k)
          sum += heddle_read_a(g, b, i, k) * heddle_read_b(g, b, k, j);
        heddle_write(g, b, i, j, {result});
      }}
}}
"""


def kernel_card(folder, name, priority, result="sum"):
    """A card whose kernel is many times slower than those that are generated."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.mlir").write_text(KERNEL.format(name=name, priority=priority))
    (folder / f"{name}.c").write_text(IN_C.format(result=result))
    return "--schedules", folder


def test_cards_of_a_folder_are_tried_too(model, records, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "my_tile.mlir").write_text(CARD.format(m=5))
    tune(model, records, "--schedules", folder)
    assert ("my_tile", None) in {(card, failure or None)
                                 for card, failure in rows(records, "card, failure")}


def test_a_card_whose_trial_fails_is_survived(model, records, tmp_path):
    kernel_card(tmp_path / "mine", "wrong", 1, "sum + 1")
    cards = kernel_card(tmp_path / "mine", "dies", 1, "(__builtin_trap(), sum)")
    assert tune(model, records, *cards)["trials"] == 12
    failures = {card: failure for card, failure in rows(records, "card, failure") if failure}
    assert failures.keys() == {"wrong", "dies"}
    assert failures["wrong"].startswith("its numbers are not the default's: result 0: ")
    assert failures["dies"].startswith("it crashed: ")


def test_interruption_keeps_what_was_found(model, records):
    process = subprocess.Popen([find_heddle(), "tune", model, "--records", records, "--json",
                                "--time", "3600", *ONE],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def has_some():
        try:
            return records.exists() and len(rows(records)) > 3
        except sqlite3.OperationalError:  # there is no table yet
            return False

    while process.poll() is None and not has_some():
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=HANGS)
    assert process.returncode == OK, errors
    found = json.loads(output)
    assert found["ended"] in ("interrupted", "done")
    assert len(rows(records)) > 3


def test_refusals(model, records, tmp_path):
    fails("compile", model, "-o", tmp_path / "m.o", "--records", records,
          says=f"cannot use tuning records '{records}': error: ")
    records.write_text("no database at all, but a text that is long enough to be looked at")
    for command in (("compile", model, "-o", tmp_path / "m.o"), ("tune", model)):
        fails(*command, "--records", records, says="it is no SQLite file, or a damaged one")
    fails("tune", model, "--plan", "p.json", says="--plan says what to choose")
    fails("tune", model, "--records", tmp_path / "n.db", "--at", "batch=none", says="batch=none")
    fails("tune", model, "--records", tmp_path / "n.db", "--at", "rows=4",
          says=["--at 'rows=4': no input has a size named 'rows'", "batch"])
    assert not (tmp_path / "n.db").exists()


@pytest.fixture
def open_product(tmp_path):
    """A product whose columns are known only at run time."""
    return save(make_model([make_node("MatMul", "a b", "y", "product")],
                           {"a": [4, "seq", 16], "b": [4, 16, "seq"]}, {"y": [4, "seq", "seq"]}),
                tmp_path / "open.onnx")


def test_many_sizes_are_tuned_together(open_product, records, tmp_path):
    lengths = tmp_path / "lengths.txt"
    lengths.write_text("9 9 20\n33\n64\n")
    found = tune(open_product, records, "--over", f"seq=@{lengths}", trials=6)
    [group] = found["groups"]
    assert group["problem"] is None and group["default"]["versions"]
    measured = {size for size, in rows(records, "sizes")}
    assert measured <= {"9", "20", "33", "64"} and "64" in measured
    # Confirmed candidates count, too, but the default of each size does not.
    confirmed = sum(is_confirmed for is_confirmed, in rows(records, "confirmed"))
    assert found["trials"] <= 6 + confirmed - len(measured)
    # Micro-kernels are measured at one size each, but for those that are confirmed.
    card = group["default"]["card"]
    looks = [knobs for knobs, name, is_confirmed in rows(records, "knobs, card, confirmed")
             if name == card and not is_confirmed]
    assert len(looks) == len(set(looks))


def test_all_sizes_are_tuned_with_other_cards_too(open_product, records, tmp_path):
    """The least, the middle and the greatest size say whether a card is worth more."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "my_tile.mlir").write_text(CARD.format(m=5))
    found = tune(open_product, records, "--over", "seq=9,20,33,64,70", "--schedules", folder,
                 trials=40)
    tried = {(size, confirmed) for size, card, confirmed
             in rows(records, "sizes, card, confirmed") if card == "my_tile"}
    assert {"9", "33", "70"} <= {size for size, _ in tried}
    # A card is for all sizes that were measured, so it is confirmed at all of them or chosen not.
    measured = {size for size, in rows(records, "sizes")}
    if found["groups"][0]["chosen"]["card"] == "my_tile":
        assert {size for size, confirmed in tried if confirmed} == measured


def test_a_limit_of_trials_leaves_what_they_found_confirmed(model, records, tmp_path):
    slow = kernel_card(tmp_path / "mine", "slow", 100)
    found = tune(model, records, *slow, trials=4)
    assert found["ended"] == "trials"
    [group] = [each for each in found["groups"] if each["default"]["card"] == "slow"]
    assert group["chosen"]["card"] not in (None, "slow") and group["ratio"] > 1.2


def test_another_card_serves_all_sizes(open_product, records, tmp_path):
    slow = kernel_card(tmp_path / "mine", "slow", 100)
    [group] = tune(open_product, records, "--over", "seq=20,33,64", *slow, trials=20)["groups"]
    card = group["chosen"]["card"]  # which docs/spec/records.md wants to be so much faster
    assert group["default"]["card"] == "slow" != card and group["ratio"] >= 1.02
    confirmed = {size for size, name, is_confirmed in rows(records, "sizes, card, confirmed")
                 if name == card and is_confirmed}
    assert confirmed == {size for size, in rows(records, "sizes")} and confirmed >= {"20", "64"}


def test_records_of_several_sizes_become_a_decision(open_product, records):
    tune(open_product, records, "--over", "seq=8,24,100", trials=1)
    database = sqlite3.connect(records)
    columns = [each[1] for each in database.execute("PRAGMA table_info(trial)")]
    [row, *_] = database.execute("SELECT * FROM trial ORDER BY id")
    made = dict(zip(columns, row))
    del made["id"]
    database.execute("DELETE FROM trial")
    knobs = json.loads(made["knobs"])
    for size, n, speedup in ((8, 16, 1.5), (24, 32, 1.4), (100, 64, 1.0)):
        made.update(sizes=str(size), speedup=speedup, confirmed=1, failure=None,
                    knobs=json.dumps({**knobs, "m": 2, "n": n}, separators=(",", ":")))
        database.execute(f"INSERT INTO trial ({', '.join(made)}) "
                         f"VALUES ({', '.join('?' * len(made))})", list(made.values()))
    database.commit()
    done = heddle("plan", open_product, "--json", "--threads", 1, "--records", records)
    [group] = done.json["groups"]
    assert [(each["when"], each["knobs"]["m"], each["knobs"]["n"])
            for each in group["versions"][:2]] == [({"seq": 16}, 2, 16), ({"seq": 96}, 2, 32)]
    again = heddle("plan", open_product, "--json", "--threads", 1, "--records", records)
    assert again.output == done.output


@pytest.mark.parametrize("over, message", [
    ("seq", "'seq' gives no sizes to tune over; write NAME=SIZES"),
    ("seq=0", "'seq=0' gives no sizes to tune over"),
    ("length=5,9", "no group has a size 'length' to tune over; there are: seq"),
    ("seq=@nowhere.txt", "cannot read the sizes of 'seq' from 'nowhere.txt'")])
def test_what_is_no_list_of_sizes_is_refused(open_product, records, over, message):
    fails("tune", open_product, "--records", records, "--over", over, *ONE, says=message)


def test_whole_plans_are_searched_and_replay(tmp_path, records):
    """A product, a gate and a softmax, of which parts may be stored or not."""
    nodes = [make_node("MatMul", "x w", "m", "product"), make_node("Sigmoid", "m", "s", "gate"),
             make_node("Softmax", "s", "y", "first"), make_node("Mul", "s y", "z", "scaled")]
    weights = {"w": np.eye(48, dtype=np.float32)}
    path = save(make_model(nodes, {"x": [64, 48]}, {"z": [64, 48]}, weights), tmp_path / "p.onnx")
    plan = tmp_path / "found.plan"
    found = tune(path, records, "--plans", "-o", plan, trials=8)
    searched = found["plans"]
    assert found["ended"] in ("trials", "done") and 0 < found["trials"] <= 8
    assert searched["sites"] > 1 and searched["tried"] > 1 and searched["schedule"] == "joint"
    assert searched["ratio"] >= 1
    assert found["kept"] in ("default", "knobs", "plan") and found["plan"] == str(plan)
    again = tmp_path / "again.json"
    ok("compile", path, "--plan", plan, "-o", again, "--no-cache", *ONE)
    assert again.read_text() == plan.read_text()

    for strategy in ("annealing", "evolution"):
        found = tune(path, records, "--plans", "-o", plan, "--strategy", strategy, "--decide",
                     "fusion,split", "--schedule", "sequential", trials=4)
        assert found["plans"]["tried"] > 0 and found["plans"]["strategy"] == strategy
        assert not any(group["measured"] for group in found["groups"])
        assert {d["section"] for d in found["plans"]["decisions"]} <= {"fusion", "split"}
    known = sqlite3.connect(records).execute(
        "SELECT decisions, groups, speedup FROM plan WHERE failure = ''").fetchall()
    assert known  # those that were run whole
    for decisions, groups, speedup in known:
        assert json.loads(decisions)["plan"] == 1 and sum(json.loads(groups).values()) > 0
        assert speedup > 0
    knobs = tune(path, records, "--plans", "-o", plan, "--decide", "knobs", trials=2)
    assert knobs["plans"]["sites"] == 0 and knobs["plans"]["plan"] is None


def test_plans_are_searched_for_several_sizes(open_product, records, tmp_path):
    plan = tmp_path / "found.plan"
    found = tune(open_product, records, "--plans", "--over", "seq=4,40", "-o", plan, trials=8)
    assert found["kept"] in ("default", "knobs", "plan") and found["trials"] > 0
    ok("compile", open_product, "--plan", plan, "--emit", "plan", "-o", tmp_path / "again.plan",
       "--no-cache", *ONE)


def test_options_of_plans_that_do_not_fit_are_refused(model, records, tmp_path):
    def refused(*options):
        return fails("tune", model, "--records", records, *ONE, *options).errors

    output = "-o", tmp_path / "p"
    assert "--output" in refused("--plans")
    assert "--plans" in refused("--strategy", "evolution", *output)
    assert "--strategy" in refused("--plans", "--strategy", "luck", *output)
    assert "there is no decision 'loops'; there are: layouts, fusion, split, knobs" in refused(
        "--plans", "--decide", "loops", *output)
