"""Output to a terminal: names of sizes, completion, colours, and lines that fit."""

import json
import os
import pty
import shutil
import subprocess

import pytest

from command import DIFFERS, REFUSED, fails, find_heddle, heddle, json_of, needs_heddle, ok, save
from heddle.onnx_graph import make_model, make_node

pytestmark = needs_heddle


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """x [?, n, ?] and a scalar."""
    made = make_model([make_node("Add", "x s", "y")], {"x": [None, "n", None], "s": []},
                      {"y": None})
    return save(made, tmp_path_factory.mktemp("model") / "sizes.onnx")


@pytest.mark.parametrize("size, shape", [("n=3", [1, 3, 1]), ("x.0=2", [2, 1, 1]),
                                         ("x.1=4", [1, 4, 1]), ("x.2=5", [1, 1, 5])])
def test_one_way_to_name_a_size(model, size, shape, tmp_path):
    assert json_of("run", model, "--dim", size)["outputs"][0]["shape"] == shape
    for command in (["compile", model, "-o", tmp_path / "m.so"], ["plan", model],
                    ["explain", model], ["cards", "explain", model],
                    ["compare", model, "--against", "reference"],
                    ["bench", model, "--iters", "1"]):
        ok(*command, "--dim", size)
    fixed = json_of("run", tmp_path / "m.so")
    assert fixed["outputs"][0]["shape"] == shape


@pytest.mark.parametrize("size", ["q=3", "x.3=2", "s=2", "s.0=2"])
def test_a_wrong_name_lists_those_that_exist(model, size, tmp_path):
    fails("run", model, "--dim", size, says="(sizes that are open: n, x.0, x.2)")
    done = heddle("compile", model, "-o", tmp_path / "m.so", "--dim", size)
    if size == "s=2":
        return  # a size of the scalar s: says what its rank is
    assert done.status == REFUSED
    assert "its inputs: x, s; its sizes that are open: x.0, n, x.2" in done.errors


def completed(script, words):
    """Completions that bash offers, with the words before the cursor."""
    setup = f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _heddle"
    done = subprocess.run(["bash", "-c", f'{setup}; printf "%s\\n" "${{COMPREPLY[@]}}"'],
                          check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_bash_completes(tmp_path):
    script = tmp_path / "heddle.bash"
    script.write_text(heddle("completion", "bash").output)
    assert completed(script, ["heddle", "com"]) == ["compile", "compare", "completion"]
    assert completed(script, ["heddle", "compile", "m", "--sh"]) == ["--shape"]
    assert completed(script, ["heddle", "bench", "--vs", '""']) == ["onnxruntime"]
    assert completed(script, ["heddle", "cards", "ch"]) == ["check"]
    assert completed(script, ["heddle", "run", str(tmp_path / "hed")]) == [str(script)]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_all_commands(shell, tmp_path):
    text = heddle("completion", shell).output
    for command in ("compile", "cards", "fuzz"):
        assert command in text
    assert "--plan-out" in text if shell == "zsh" else "-l plan-out" in text
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(text)
        subprocess.run([shell, "-n", script], check=True)


def on_terminal(*arguments, **environment):
    """Output of a command to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([find_heddle(), *arguments], stdout=theirs, stderr=theirs,
                               env={**os.environ, "TERM": "xterm", **environment})
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            part = b""
        if not part:
            break
        text += part
    os.close(ours)
    process.wait()
    return text.decode()


def test_colours_are_for_terminals():
    assert "\033[" in on_terminal("ops") and "\033[" in on_terminal("xyzzy")
    assert "\033[" not in on_terminal("ops", NO_COLOR="1")
    assert "\033[" not in on_terminal("xyzzy", TERM="dumb")
    assert "\033[" not in heddle("ops").output + heddle("xyzzy").errors


def test_cards_fit_a_terminal():
    narrow = on_terminal("cards", "list", COLUMNS="80", NO_COLOR="1").splitlines()
    assert max(map(len, narrow)) <= 80 and "matmul" in narrow
    wide = heddle("cards", "list").output.splitlines()
    assert len(wide) < len(narrow) and wide[0].split()[:2] == ["card", "kind"]


def test_times_and_differences(model):
    pytest.importorskip("onnxruntime")
    done = heddle("bench", model, "--vs", "onnxruntime", "--iters", "3", "--json")
    assert done.json["agrees"] and done.json["onnxruntime"]["called"] == \
        "from Python, inputs and outputs in place"
    other = save(make_model([make_node("Sub", "x s", "y")], {"x": [None, "n", None], "s": []},
                            {"y": None}),
                 model.parent / "other.onnx")
    options = ["bench", model, "--vs", "onnxruntime", "--vs-model", other, "--iters", "3"]
    done = fails(*options, status=DIFFERS, says="output 'y'")
    assert "but outputs differ, see below" in done.output and "heddle " in done.output
    done = heddle(*options, "--json")
    assert not done.json["agrees"] and "output 'y'" in done.json["differences"]
    assert done.json["ratio"] > 0


def test_a_trace_for_perfetto_and_what_changed(model, tmp_path):
    options = ["explain", model, "--dim", "n=8"]
    ok(*options, "--trace", tmp_path / "t.json", "--time", "0.05")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    (group,) = [event for event in events if event["ph"] == "X"]
    assert group["dur"] > 0 and group["args"]["card"] == "elementwise"
    (tmp_path / "before.json").write_text(heddle(*options, "--json").output)
    done = heddle(*options, "--against", tmp_path / "before.json")
    assert done.output == "1 groups are as before\n"
    before = json.loads((tmp_path / "before.json").read_text())
    before["groups"][0]["knobs"]["chunk"] = 1
    (tmp_path / "before.json").write_text(json.dumps(before))
    assert "elementwise chunk=1 " in ok(*options, "--against", tmp_path / "before.json").output
    (tmp_path / "wrong.json").write_text('{"groups": [1]}')
    fails(*options, "--against", tmp_path / "wrong.json", says="it is no explanation")
