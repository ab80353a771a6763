"""`heddle explain`: its text, its JSON, and the page, which one file has to hold."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from heddle.onnx_graph import make_graph, make_model, make_node

from command import ROOT, fails, heddle, json_of, needs_heddle, ok, save

pytestmark = needs_heddle
MOST_PAGE_BYTES = 1_000_000
CHROMIUM = shutil.which("chromium")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The machine's limits are kept in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "heddle"


@pytest.fixture
def chain(tmp_path):
    """Four products with a softmax after each: several groups, buffers and kinds."""
    random = np.random.default_rng(0)
    nodes, weights, last = [], {}, "x"
    for i in range(4):
        weights[f"w{i}"] = random.standard_normal((32, 32)).astype(np.float32)
        nodes += [make_node("MatMul", [last, f"w{i}"], f"m{i}", f"/block/{i}/product"),
                  make_node("Softmax", f"m{i}", f"s{i}", f"/block/{i}/softmax")]
        last = f"s{i}"
    return save(make_model(nodes, {"x": ["batch", 32]}, {last: ["batch", 32]}, weights),
                tmp_path / "chain.onnx")


def data_of(page):
    """The explanation that a page holds."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found[1])


def test_text_has_a_line_for_each_group(chain):
    done = ok("explain", chain)
    groups = json_of("explain", chain)["groups"]
    lines = done.output.splitlines()
    for group in groups:
        assert any(re.match(rf" *{group['number']}  {re.escape(group['name'])} ", line)
                   for line in lines), done.output
    assert "symbols  batch" in done.output


@pytest.mark.parametrize("options, json_says, text_says", [
    ((), "flush", "math     fast; subnormal results are flushed to 0 (--subnormals keep keeps"),
    (("--subnormals", "keep"), "keep", "math     fast; subnormal results are kept"),
    (("--math", "strict"), "keep", "math     strict; subnormal results are kept"),
    (("--math", "strict", "--subnormals", "flush"), "flush",
     "math     strict; subnormal results are flushed"),
    (("--target", "c"), "caller", "subnormal results are left to the program"),
])
def test_says_what_becomes_of_subnormal_results(model, options, json_says, text_says):
    assert json_of("explain", model, *options)["subnormals"] == json_says
    assert text_says in heddle("explain", model, *options).output


def test_json_says_what_was_offered_and_why_not(model):
    told = json_of("explain", model)
    [group] = told["groups"]
    assert {op["name"] for op in group["ops"]} == {"product", "positive"}
    assert group["card"] == "matmul" and "dot" in group["key"]
    answers = {offer["card"]: offer["refusal"] for offer in group["offers"]}
    offered = {card for card, reason in answers.items() if reason is None}
    assert offered - {"onednn_matmul"} == {"matmul"}  # oneDNN may be on the machine
    assert set(group["knobs"]) == set(told["cards"]["matmul"]["knobs"])
    assert "@schedule" in told["cards"]["matmul"]["text"]
    assert "batch" in group["flops"]


def test_work_and_traffic_are_numbers_where_sizes_are(model):
    [group] = json_of("explain", model, "--dim", "batch=5")["groups"]
    assert group["flops"] == 5 * 4 * (2 * 3 + 1)  # a product, and the larger of it and 0
    assert group["written_bytes"] == 5 * 4 * 4
    weights = group["weight_bytes"]
    assert weights >= 3 * 4 * 4 and group["read_bytes"] == 5 * 3 * 4 + weights
    [larger] = json_of("explain", model, "--dim", "batch=50000")["groups"]
    assert 0 < 50 * group["estimated_seconds"] < larger["estimated_seconds"]


def test_the_groups_are_those_of_the_plan(chain):
    told = json_of("explain", chain)
    plan = json_of("plan", chain)
    assert [group["name"] for group in told["groups"]] == \
        [group["name"] for group in plan["groups"]]
    assert [group["card"] for group in told["groups"]] == \
        [group.get("card") for group in plan["groups"]]
    assert [group["knobs"] for group in told["groups"]] == \
        [group.get("knobs", {}) for group in plan["groups"]]


def test_memory_plan(chain):
    told = json_of("explain", chain, "--dim", "batch=8")
    memory, last = told["memory"], len(told["groups"]) - 1
    assert memory["buffers"]
    for one in memory["buffers"]:
        assert 0 <= one["first"] <= one["last"] <= last
        assert one["offset"] + one["bytes"] <= memory["arena_bytes"]
        for other in memory["buffers"]:
            if one is not other and one["first"] <= other["last"] and \
                    other["first"] <= one["last"]:
                assert one["offset"] + one["bytes"] <= other["offset"] or \
                    other["offset"] + other["bytes"] <= one["offset"]


@pytest.mark.parametrize("name", ["positive", "product", "0"])
def test_one_group(model, name):
    done = ok("explain", model, "--group", name)
    assert "key      m:p" in done.output and "refused: " in done.output
    assert "chosen" in done.output and "product" in done.output


def test_a_card_of_the_user_and_a_plan(model, tmp_path):
    cards = tmp_path / "cards"
    cards.mkdir()
    text = (ROOT / "schedules" / "cpu" / "matmul.mlir").read_text()
    (cards / "mine.mlir").write_text(text.replace("@matmul", "@mine").replace(
        "priority = 10", "priority = 20"))
    told = json_of("explain", model, "--schedules", cards)
    [group] = told["groups"]
    assert group["card"] == "mine" and group["offers"][0]["card"] == "mine"
    assert told["cards"]["mine"]["text"] == (cards / "mine.mlir").read_text()
    done = heddle("explain", model, "--group", "0", "--schedules", cards)
    assert re.search(r"matmul +10  offered", done.output), done.output
    plan = json_of("plan", model)
    plan["groups"][0]["knobs"]["m"] = 4
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    [group] = json_of("explain", model, "--plan", tmp_path / "plan.json")["groups"]
    assert group["card"] == "matmul" and group["knobs"]["m"] == 4


def test_an_unknown_group_has_a_near_name(model):
    done = fails("explain", model, "--group", "positve",
                 says="has no group 'positve'; did you mean 'positive'?")
    assert done.output == ""


def test_a_wrong_model_and_an_artefact(tmp_path, model):
    ok("compile", model, "-o", tmp_path / "m.so")
    fails("explain", tmp_path / "m.so", says="is an artefact")


def test_measure(chain, cache):
    told = json_of("explain", chain, "--measure", "--time", "0.1", "--dim", "batch=64")
    timed = [group for group in told["groups"] if "seconds" in group]
    assert timed and all(group["seconds"] > 0 and group["flops_per_second"] >= 0
                         for group in timed)
    # Medians of the same runs: that of a part is not above that of the whole.
    assert max(group["seconds"] for group in timed) <= told["run"]["seconds"]
    assert all("seconds" in group or "launched_with" in group for group in told["groups"])
    [kept] = cache.glob("machine-*.json")
    limits = json.loads(kept.read_text())
    assert limits["all_threads_flops"] >= limits["one_thread_flops"] > 0
    # It is not measured again, unless that is asked for.
    kept.write_text(json.dumps({**limits, "one_thread_flops": 1e18, "all_threads_flops": 1e18}))
    again = json_of("explain", chain)["machine"]
    assert again["flops_per_second"] == 1e18
    anew = json_of("explain", chain, "--measure-machine")["machine"]
    assert anew["flops_per_second"] < 1e18


def test_groups_in_a_loop_are_timed(tmp_path):
    body = make_graph([make_node("Identity", "go", "still"),
                       make_node("MatMul", "state w", "product", "step"),
                       make_node("Tanh", "product", "next", "bounded")],
                      {"i": ([], 7), "go": ([], 9), "state": [8, 8]},
                      {"still": ([], 9), "next": [8, 8]})
    weights = {"w": np.eye(8, dtype=np.float32), "count": 5, "start": True}
    looped = save(make_model([make_node("Loop", "count start x", "y", body=body)], {"x": [8, 8]},
                             {"y": [8, 8]}, weights),
                  tmp_path / "loop.onnx")
    done = json_of("explain", looped, "--measure", "--time", "0")
    assert any(group.get("seconds", 0) > 0 for group in done["groups"])


@pytest.mark.parametrize("more", [[], ["--dim", "batch=8"], ["--measure", "--time", "0"]])
def test_the_page_is_one_file(chain, tmp_path, more):
    page = tmp_path / "report.html"
    assert str(page) in ok("explain", chain, "--html", page, *more).output
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) <= MOST_PAGE_BYTES
    assert set(re.findall(r"https?://[^\"'\s<)]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=", text)
    assert not re.search(r"/\*(style|scripts|data)\*/", text)
    told = data_of(text)
    assert told["groups"] and told["assembly"]["texts"]
    functions = {name for group in told["groups"] for name in group["functions"]}
    assert functions == set(told["assembly"]["functions"]) | set(told["assembly"]["cut"])


def test_the_page_tells_nodes_and_differences(tmp_path):
    model = save(make_model([make_node("Conv", "x w", "c", "first", strides=[2, 2]),
                             make_node("LeakyRelu", "c", "y", "second", alpha=0.25)],
                            {"x": [1, 3, 9, 9]}, {"y": [1, 4, 4, 4]},
                            {"w": np.ones((4, 3, 3, 3), np.float32)}),
                 tmp_path / "m.onnx")
    before = heddle("explain", model, "--json")
    about = {op["name"]: op for group in before.json["groups"] for op in group["ops"]}
    assert about["first"]["onnx"] == (
        "Conv(x f32[1, 3, 9, 9], w f32[4, 3, 3, 3]) strides=[2, 2]")
    assert about["second"]["onnx"] == "LeakyRelu(c f32[1, 4, 4, 4]) alpha=0.25"
    assert about["second"]["result"] == "1 x 4 x 4 x 4 x f32"
    (tmp_path / "before.json").write_text(before.output, encoding="utf-8")
    page = tmp_path / "report.html"
    ok("explain", model, "--html", page, "--without", "fusion", "--against",
       tmp_path / "before.json")
    assert "second" in data_of(page.read_text(encoding="utf-8"))["differences"]


def test_what_is_told_of_a_node_is_short_and_printable(tmp_path):
    nodes = [make_node("Relu", "x", "v\x1b", "first"),
             make_node("Concat", ["v\x1b"] * 12, "y", "join", axis=0)]
    model = save(make_model(nodes, {"x": [2]}, {"y": [24]}), tmp_path / "m.onnx")
    done = json_of("explain", model)
    told = {op["name"]: op["onnx"] for group in done["groups"] for op in group["ops"]}
    assert told["join"] == "Concat(" + "v\\x1b f32[2], " * 8 + "...) axis=0"


def test_names_cannot_break_the_page(tmp_path):
    evil = "</script><script>alert(1)</script><!--"
    model = save(make_model([make_node("Relu", "x", "y", evil)], {"x": [4]}, {"y": [4]}),
                 tmp_path / "m.onnx")
    page = tmp_path / "report.html"
    ok("explain", model, "--html", page)
    text = page.read_text(encoding="utf-8")
    assert text.count("<script") == 2 and data_of(text)["groups"][0]["name"] == evil


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; it opens the page")
def test_a_browser_shows_the_page(chain, tmp_path):
    page = tmp_path / "report.html"
    ok("explain", chain, "--html", page, "--measure", "--time", "0", "--dim", "batch=8")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         "--enable-logging=stderr", f"--user-data-dir={tmp_path}/profile", page.as_uri()],
        capture_output=True, text=True, timeout=900, check=False)
    assert "CONSOLE" not in done.stderr, done.stderr
    assert 'data-ready="yes"' in done.stdout, done.stderr
    told = data_of(page.read_text(encoding="utf-8"))
    shown = done.stdout
    assert shown.count('class="node') >= len(told["groups"])
    assert shown.count('class="buffer') == len(told["memory"]["buffers"])
    assert 'class="roof"' in shown and "refused: " in shown
