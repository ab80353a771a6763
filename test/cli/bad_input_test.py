"""Bad models, artefacts, feeds and disks: one clear message, the documented exit code, no signal,
and no file that is not whole."""

import fcntl
import os
import resource
import stat

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto, helper

from command import (LIMIT, OK, REFUSED, USAGE, dense_model, fails, heddle, json_of, needs_heddle,
                     ok, one_node, save)

pytestmark = needs_heddle


def edited(change, model=None):
    """A model after `change(model)`."""
    model = model or dense_model()
    change(model)
    return model


def graph_edited(change, model=None):
    return edited(lambda model: change(model.graph), model)


def cyclic():
    return make_model([make_node("Add", "x b", "a", "first"), make_node("Relu", "a", "b", "second"),
                       make_node("Relu", "b", "y", "third")],
                      {"x": [2, 3]}, {"y": [2, 3]})


def external(location):
    def change(graph):
        weights = graph.initializer[0]
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
        weights.external_data.add(key="location", value=location)
    return graph_edited(change)


def two_data_fields():
    def change(graph):
        graph.initializer[0].float_data.extend([0.0] * 12)
    return graph_edited(change)


def huge_constant():
    """A file of fewer than 200 bytes that asks for 4 TB."""
    return make_model([make_node("ConstantOfShape", "s", "y", "huge")], [], {"y": [None, None]},
                      [helper.make_tensor("s", 7, [2], [1 << 20, 1 << 20])])


def nested_functions(depth):
    """f0 calls f1 calls f2 ... down to Relu."""
    functions = []
    for i in range(depth):
        is_last = i + 1 == depth
        node = make_node("Relu" if is_last else f"f{i + 1}", "a", "b",
                         domain="" if is_last else "test")
        functions.append(helper.make_function(
            "test", f"f{i}", ["a"], ["b"], [node],
            [helper.make_opsetid("", 17), helper.make_opsetid("test", 1)]))
    return make_model([make_node("f0", "x", "y", "outer", domain="test")], {"x": [2, 3]},
                      {"y": [2, 3]}, domains={"test": 1}, functions=functions)


# name: (model or bytes, exit codes, words of the message)
MODELS = {
    "empty": (b"", [REFUSED], ["m.onnx"]),
    "truncated": (dense_model().SerializeToString()[:100], [REFUSED], ["m.onnx"]),
    "garbage": (bytes(np.random.default_rng(0).integers(0, 256, 4096, np.uint8)), [REFUSED],
                ["m.onnx"]),
    "wrong magic": (b"PK\3\4" + bytes(200), [REFUSED], ["m.onnx"]),
    "unknown op": (one_node("Sofmax"), [REFUSED], ["'n'", "Sofmax"]),
    "unknown domain": (one_node("Relu", domain="com.nobody"), [REFUSED], ["'n'", "com.nobody"]),
    "opset from the future": (edited(lambda m: setattr(m.opset_import[0], "version", 9999)),
                              [REFUSED], ["9999"]),
    "cyclic graph": (cyclic(), [REFUSED], ["first"]),
    "duplicate name": (graph_edited(lambda g: g.node[1].output.__setitem__(0, "m")), [REFUSED],
                       ["'m'"]),
    "missing name": (one_node("Add", ("x", "nowhere")), [REFUSED], ["'nowhere'"]),
    "missing output": (graph_edited(lambda g: g.output.append(make_value("z", [1]))), [REFUSED],
                       ["'z'"]),
    "external data missing": (external("weights.bin"), [USAGE, REFUSED], ["weights.bin"]),
    "external data outside": (external("../outside.bin"), [REFUSED], ["../outside.bin"]),
    "external data elsewhere": (external("/etc/passwd"), [REFUSED], ["/etc/passwd"]),
    "raw_data and float_data": (two_data_fields(), [REFUSED], ["'w'"]),
    "input not in UTF-8": (
        one_node("Relu").SerializeToString().replace(b"\x01x", b"\x01\xff"), [REFUSED],
        ["the name '\ufffd' is no UTF-8, as names in ONNX are", "note: rename it"]),
    "constant of terabytes": (huge_constant(), [LIMIT], ["4398046511104 bytes"]),
}


def assert_clear(done, statuses, words):
    """One message, not a crash, on standard error."""
    assert done.status in statuses, f"ended with {done.status}: {done.errors}"
    assert done.output == "" and done.errors.strip()
    assert "internal error" not in done.errors and "Stack dump" not in done.errors
    for word in words:
        assert word in done.errors


@pytest.mark.parametrize("name", MODELS)
def test_bad_models(name, tmp_path):
    model, statuses, words = MODELS[name]
    (tmp_path / "model").mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(48))
    path = save(model, tmp_path / "model" / "m.onnx")
    artefact = tmp_path / "made" / "m.so"
    artefact.parent.mkdir()
    if name == "constant of terabytes":  # its size may be a matter of the run
        done = heddle("run", path)
    else:
        done = heddle("compile", path, "-o", artefact)
        assert not list(artefact.parent.iterdir())
    assert_clear(done, statuses, words)


def test_all_problems_of_a_model_are_in_one_message(tmp_path):
    model = make_model([make_node("Sofmax", "x", "a", "one"), make_node("Rellu", "x", "b", "two"),
                        make_node("Add", "x nowhere", "y", "three")],
                       {"x": [2, 3]}, {"y": [2, 3]})
    done = heddle("run", save(model, tmp_path / "m.onnx"))
    assert_clear(done, [REFUSED], ["'one'", "'two'", "'three'"])


def test_nested_functions(tmp_path):
    """3,000 of them either work or are refused; they do not overflow a stack."""
    path = save(nested_functions(3000), tmp_path / "m.onnx")
    done = heddle("run", path)
    if done.status != OK:
        assert_clear(done, [REFUSED, LIMIT], ["f"])
    ok("run", save(nested_functions(20), path))


@pytest.mark.parametrize("feed, words", [
    ("x=2x3xf64=0", ["'x'", "float64", "float32"]),
    ("x=2x4xf32=0", ["'x'", "4", "3"]),
    ("x=3xf32=0", ["'x'", "[3]"]),
])
def test_wrong_feeds(model, feed, words):
    done = heddle("run", model, "--input", feed)
    assert_clear(done, [USAGE], words)


def test_nan_in_a_shape_input(tmp_path):
    model = make_model([make_node("Range", "zero limit one", "y", "count")], {"limit": []},
                       {"y": [None]},
                       [helper.make_tensor("zero", 1, [], [0.0]),
                        helper.make_tensor("one", 1, [], [1.0])])
    path = save(model, tmp_path / "m.onnx")
    assert json_of("run", path, "--input", "limit=f32=3")["outputs"][0]["first"] == [0, 1, 2]
    for limit in ["nan", "inf", "1e30"]:
        done = heddle("run", path, "--input", f"limit=f32={limit}", "--json")
        if limit == "nan" and done.status == OK:  # no number is below NaN: nothing to count
            assert done.json["outputs"][0]["shape"] == [0]
        else:
            assert_clear(done, [USAGE, REFUSED, LIMIT], ["'m'", "'count'"])


def test_a_feed_larger_than_memory(model):
    done = heddle("run", model, "--dim", f"batch={1 << 50}")
    assert_clear(done, [LIMIT], ["'x'", "larger than this machine's memory"])


@pytest.mark.parametrize("name", ["m.so", "m.mlir"])
def test_an_unwritable_output(model, tmp_path, name):
    done = heddle("compile", model, "-o", tmp_path / "none" / name)
    assert_clear(done, [USAGE], [str(tmp_path / "none")])
    (tmp_path / "folder.so").mkdir()
    assert_clear(heddle("compile", model, "-o", tmp_path / "folder.so"), [USAGE], ["folder.so"])
    assert not list((tmp_path / "folder.so").iterdir())


def full_disk():
    """Files may have 100 bytes, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@pytest.mark.parametrize("name", ["m.so", "m.mlir", "m.o", "m.json"])
def test_a_full_disk_leaves_what_was_there(model, tmp_path, name):
    output = tmp_path / "made" / name
    output.parent.mkdir()
    output.write_bytes(b"before")
    done = heddle("compile", model, "-o", output, before=full_disk)
    assert_clear(done, [USAGE, LIMIT], [])
    assert [path.name for path in output.parent.iterdir()] == [name]
    assert output.read_bytes() == b"before"


def test_a_full_disk_leaves_no_part_of_an_output(model, tmp_path):
    done = heddle("run", model, "--dim", "batch=100", "--output", f"y=@{tmp_path}/y.npy",
                  before=full_disk)
    assert_clear(done, [LIMIT], ["y.npy", "File too large"])
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.fixture(scope="module")
def artefact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("artefact")
    ok("compile", save(dense_model(), folder / "m.onnx"), "-o", folder / "m.so")
    return (folder / "m.so").read_bytes()


def npy(descr="<f4", shape="(2, 3)", data=bytes(256)):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def tensor(dtype=1, raw=None, **fields):
    made = TensorProto(data_type=dtype, dims=[2, 3], **fields)
    if raw is not None:
        made.raw_data = raw
    return made.SerializeToString()


FILES = {
    "texts": (npy("string"), ["'string'"]),
    "a negative size": (npy(shape="(-2, 3)"), ["(-2, 3)"]),
    "half a size": (npy(shape="(2, 3.0)"), ["(2, 3.0)"]),
    "a product beyond 64 bits": (npy(shape=f"({1 << 40}, {1 << 40})"), ["larger than"]),
    "a size beyond 64 bits": (npy(shape=f"({1 << 80}, 3)"), ["larger than"]),
    "too little data": (npy(data=bytes(23)), ["24 bytes", "23"]),
    "numbers of four bits": (npy("int4"), ["'x'", "int4"]),
    "numbers of two bits": (npy("int2"), ["'x'", "int2"]),
    "terabytes of nothing": (npy(shape=f"({1 << 30}, 1024)"), ["4398046511104 bytes", "256"]),
    "terabytes of texts": (TensorProto(data_type=8, dims=[1 << 40]).SerializeToString(),
                           ["1099511627776 of string is more than the 0 values"]),
    "a longer header than file": (npy()[:8] + b"\xff\xff" + npy()[10:], ["truncated"]),
    "two fields": (tensor(raw=bytes(24), float_data=[1.5] * 1000), ["two fields"]),
    "integers of floats": (tensor(int32_data=[1] * 6), ["not for float32"]),
    "floats of integers": (tensor(dtype=7, float_data=[1] * 6), ["not for int64"]),
    "bytes of texts": (tensor(dtype=8, raw=bytes(6)), ["not for string"]),
    "texts of floats": (tensor(string_data=[b"a"] * 6), ["not for float32"]),
    "too few numbers": (tensor(float_data=[1.0] * 5), ["6 values", "has 5"]),
    "no tensor": (b"\xff" * 40, ["is not an onnx.TensorProto"]),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files_of_feeds(artefact, tmp_path, name):
    path, (content, words) = save(artefact, tmp_path / "m.so"), FILES[name]
    if content.startswith(b"\x93NUMPY"):
        feed = ("--input", f"x=@{save(content, tmp_path / 'x.npy')}")
    else:
        (tmp_path / "data").mkdir()
        save(content, tmp_path / "data" / "input_0.pb")
        feed = ("--data", tmp_path / "data")
    assert_clear(heddle("run", path, *feed), [USAGE, LIMIT], words)


@pytest.mark.parametrize("part", [0, 3, 64, 0.3, 0.7, 0.99])
def test_a_truncated_artefact(artefact, tmp_path, part):
    size = part if isinstance(part, int) else int(part * len(artefact))
    done = heddle("run", save(artefact[:size], tmp_path / "m.so"))
    assert_clear(done, [REFUSED], ["m.so"])


def test_what_is_no_artefact(tmp_path):
    assert_clear(heddle("run", save(b"not ELF", tmp_path / "m.so")), [REFUSED], ["m.so"])


def test_an_artefact_for_another_cpu(model, tmp_path):
    """Sapphire Rapids has AMX; where this machine has it too, the artefact just runs."""
    ok("compile", model, "-o", tmp_path / "m.so", "--target", "sapphirerapids")
    done = heddle("run", tmp_path / "m.so")
    if done.status != OK:
        assert_clear(done, [REFUSED], ["sapphirerapids"])
    done = heddle("compile", model, "-o", tmp_path / "m.so", "--target", "x86-64-v33")
    assert_clear(done, [USAGE, REFUSED], ["x86-64-v33"])


def test_wrong_shapes_on_the_command_line(model, tmp_path):
    for option in ["--shape=z=1", "--shape=x=2x2", "--dim=batch=-1", "--shape=x"]:
        done = heddle("compile", model, "-o", tmp_path / "made.so", option)
        assert_clear(done, [USAGE, REFUSED], [])
        assert not (tmp_path / "made.so").exists()


def test_onnx_checks_our_good_model():
    onnx.checker.check_model(dense_model())


READERS = {  # what reads FILE: the command, after which each {} is the file
    "model": ["compile", "{}", "-o", "made.so"], "any": ["run", "{}"],
    "artefact": ["verify", "{}"], "tensor": ["run", "m.onnx", "--input", "x=@{}"],
    "array": ["run", "m.onnx", "--input", "x=@{}.npy"],
    "folder of data": ["run", "m.onnx", "--data", "{}.d"],
    "expected": ["run", "m.onnx", "--input", "x=1x3xf32=1", "--expect", "y=@{}"],
    "plan": ["compile", "m.onnx", "-o", "made.so", "--plan", "{}"],
    "checked plan": ["plan", "m.onnx", "--check", "{}"],
    "records": ["compile", "m.onnx", "-o", "made.so", "--records", "{}"],
    "written records": ["tune", "m.onnx", "--time", "1", "--records", "{}"],
    "sizes": ["tune", "m.onnx", "--time", "1", "--over", "batch=@{}"],
    "recipe": ["compile", "m.onnx", "-o", "made.so", "--training", "{}"],
    "function": ["compile", "m.onnx", "-o", "made.so", "--function", "{}"],
    "op": ["compile", "m.onnx", "-o", "made.so", "--custom-op", "{}"],
    "card": ["cards", "check", "{}"],
    "explanation": ["explain", "m.onnx", "--against", "{}"],
    "samples": ["train", "m.onnx", "--data", "{}", "-o", "made.onnx"],
    "checkpoint": ["train", "m.onnx", "--data", "x.npz", "--resume", "-o", "made.onnx",
                   "--checkpoint", "{}.safetensors"],
    "features": ["cost", "train", "{}", "-o", "made.onnx"],
}


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large"])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_not_read(tmp_path, monkeypatch, reader, kind):
    """Nothing waits for a pipe that nobody writes to, or reads a device that never ends."""
    monkeypatch.chdir(tmp_path)
    save(dense_model(), tmp_path / "m.onnx")
    np.savez("x.npz", x=np.zeros((4, 3), np.float32), labels=np.zeros(4, np.int64))
    os.mkdir("file.d")
    for name in ("file", "file.npy", "file.safetensors", "file.d/input_0.pb"):
        if kind == "pipe":
            os.mkfifo(name)
        elif kind == "device":
            os.symlink("/dev/zero", name)
        elif kind == "folder":
            os.mkdir(name)
        else:
            with open(name, "wb") as file:
                file.truncate(1 << 42)
    done = heddle(*(word.format("file") for word in READERS[reader]))
    assert_clear(done, [USAGE, REFUSED, LIMIT], ["file" if kind == "large" else "regular file"])


def test_an_empty_plan_is_none(model, tmp_path):
    plan = tmp_path / "m.plan"
    for text in ("", " \n"):
        plan.write_text(text)
        assert_clear(heddle("compile", model, "--plan", plan, "-o", tmp_path / "m.so"), [USAGE],
                     ["m.plan' is empty", "note: 'heddle plan MODEL -o PLAN'"])


def test_only_regular_files_are_replaced(model, tmp_path):
    pipe = tmp_path / "pipe.so"
    os.mkfifo(pipe)
    assert_clear(heddle("compile", model, "-o", pipe), [USAGE], ["pipe.so", "no regular file"])
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_file_that_a_link_names_is_replaced(model, tmp_path):
    link = tmp_path / "link.so"
    (tmp_path / "real.so").write_bytes(b"")
    link.symlink_to("real.so")
    ok("compile", model, "-o", link)
    assert link.is_symlink() and (tmp_path / "real.so").stat().st_size > 1000


def test_what_a_killed_compilation_has_left_goes_with_the_next_one(model, tmp_path):
    left, held, other = [tmp_path / name for name in
                         (".heddle-writing-aB3xY9", ".heddle-writing-cD4wZ8", ".heddle-mine")]
    for folder in (left, held, other):
        folder.mkdir()
        (folder / "artefact").write_bytes(b"x")
        os.utime(folder, (1, 1))
    descriptor = os.open(held, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # of a process that lives
    ok("compile", model, "-o", tmp_path / "m.so")
    os.close(descriptor)
    assert not left.exists() and held.exists() and other.exists()


def test_names_of_a_model_reach_the_terminal_as_text(tmp_path):
    node = make_node("No\x1b[31mSuch", "x", "y", name="red\x1b]0;title\x07\nok")
    model = make_model([node], {"x": [2]}, {"y": [2]})
    done = fails("compile", save(model, tmp_path / "m.onnx"), "-o", tmp_path / "m.so",
                 status=REFUSED, says="red\\x1b]0;title\\x07\\nok")
    assert all(character == "\n" or character.isprintable() for character in done.errors)


@pytest.mark.parametrize("part", ["input", "size", "output"])
def test_names_that_would_move_the_cursor_are_refused(tmp_path, part):
    names = {"input": "x", "size": "n", "output": "y", part: "a\x1b[2J\nb"}
    node = make_node("Neg", [names["input"]], [names["output"]])
    model = make_model([node], {names["input"]: [names["size"]]}, {names["output"]: [None]})
    done = fails("compile", save(model, tmp_path / "m.onnx"), "-o", tmp_path / "m.so",
                 status=REFUSED, says="control characters")
    assert all(character == "\n" or character.isprintable() for character in done.errors)
