"""Cards of the kinds call and kernel, as a user meets them."""

import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node

import heddle
from command import LLVM, REFUSED, ROOT, fails, ok

pytestmark = pytest.mark.usefixtures("compiler")
random = np.random.default_rng(3)


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32)


def node(op, inputs, output, **attributes):
    return make_node(op, inputs, [output], name=output, **attributes)


def model(nodes, inputs, constants):
    return make_model(nodes, inputs, {"y": None}, constants)


def dense():
    """A product whose depth and columns are small, a bias, a residual and a relu."""
    return model([node("MatMul", ["x", "w"], "product"), node("Add", ["product", "bias"], "sum"),
                  node("Add", ["sum", "z"], "whole"), node("Relu", ["whole"], "y")],
                 {"x": ["n", 48], "z": ["n", 37]}, {"w": normal(48, 37), "bias": normal(37)})


def product():
    return model([node("MatMul", ["a", "b"], "y")], {"a": ["n", "k"], "b": ["k", "m"]}, {})


def convolution():
    return model([node("Conv", ["x", "w", "b"], "sum", pads=[1, 1, 1, 1], strides=[2, 2]),
                  node("Relu", ["sum"], "y")], {"x": ["n", 8, "h", "w"]},
                 {"w": normal(24, 8, 3, 3), "b": normal(24)})


def normalisation():
    return model([node("LayerNormalization", ["x", "s", "b"], "y", axis=-1)],
                 {"x": ["n", "m", 50]}, {"s": normal(50), "b": normal(50)})


def root_mean_square():
    return model([node("Mul", ["x", "x"], "square"),
                  node("ReduceMean", ["square"], "mean", axes=[-1]), node("Sqrt", ["mean"], "root"),
                  node("Div", ["x", "root"], "y")], {"x": ["n", "m", 50]}, {})


def deciding(plan):
    """The group with the product, convolution or reduction."""
    return next(group for group in plan["groups"] if group["card"] != "elementwise")


def compiled_with(source, card, **options):
    """The model with this card on the group that decides."""
    plan = heddle.compile(source, **options).compiled.plan
    deciding(plan).update(card=card, knobs={}, versions=[], card_hash="")
    return heddle.compile(source, plan=plan, **options)


def agree(source, card, feeds, **options):
    module = compiled_with(source, card, **options)
    assert deciding(module.compiled.plan)["card"] == card
    found, wanted = module.run(None, feeds)[0], heddle.compile(source).run(None, feeds)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


FOLDER = str(ROOT / "examples" / "cards")
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 3e38], np.float32)


def special(*shape):
    """Numbers of which each row has at most one that is not finite."""
    values = normal(*shape)
    flat = values.reshape(-1, shape[-1])
    for i in range(0, len(flat), 2):
        flat[i, i % shape[-1]] = SPECIAL[i // 2 % len(SPECIAL)]
    return values


@pytest.mark.parametrize("rows", [1, 5, 17, 64])
def test_numbers_that_are_not_finite_pass_as_in_generated_code(rows):
    feeds = {"x": special(rows, 48), "z": special(rows, 37)}
    with np.errstate(all="ignore"):
        agree(dense(), "onednn_matmul", feeds)
        agree(dense(), "small_matmul", feeds, schedules=FOLDER)
        agree(normalisation(), "onednn_layer_norm", {"x": special(rows, 3, 50)})
        agree(root_mean_square(), "row_norm", {"x": special(rows, 3, 50)}, schedules=FOLDER)


@pytest.mark.parametrize("n, k, m", [(3, 0, 5), (0, 4, 5), (3, 4, 0), (1, 1, 1), (33, 65, 129)])
def test_sizes_that_only_the_run_knows_also_none(n, k, m):
    agree(product(), "onednn_matmul", {"a": normal(n, k), "b": normal(k, m)})


def test_one_session_takes_many_shapes():
    module = compiled_with(product(), "onednn_matmul")
    for size in [*range(1, 80), *range(1, 80)]:  # more than a session keeps
        a, b = normal(size, 7), normal(7, 3)
        np.testing.assert_allclose(module.run(None, {"a": a, "b": b})[0], a @ b, rtol=1e-4,
                                   atol=1e-4)


def test_a_convolution_of_images_of_any_size():
    for height, width in [(1, 1), (9, 14), (32, 32)]:
        agree(convolution(), "onednn_conv", {"x": normal(2, 8, height, width)})


def test_generated_code_is_the_default():
    for source in (dense(), convolution(), normalisation()):
        cards = {group["card"] for group in heddle.compile(source).compiled.plan["groups"]}
        assert not any(card.startswith("onednn") for card in cards)


def test_an_artefact_needs_its_library_where_it_runs(tmp_path, monkeypatch):
    artefact = tmp_path / "dense.so"
    compiled_with(dense(), "onednn_matmul", output=str(artefact))
    ok("run", artefact, "--dim", "n=3")
    monkeypatch.setenv("HEDDLE_ONEDNN", "/nowhere/libdnnl.so")
    fails("run", artefact, "--dim", "n=3", status=REFUSED,
          says=["group 'y' calls oneDNN, as card 'onednn_matmul' has it, but "
                "'/nowhere/libdnnl.so' cannot be opened", "install Debian's 'libdnnl2'"])


def test_a_call_is_only_offered_where_the_library_is(monkeypatch):
    monkeypatch.setenv("HEDDLE_ONEDNN", "/nowhere/libdnnl.so")
    fails("cards", "check", ROOT / "schedules/cpu/onednn_matmul.mlir", "--count", "4",
          says="oneDNN is not on this machine: /nowhere/libdnnl.so")


def test_a_kernel_in_c_needs_clang_where_the_model_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    fails("cards", "check", ROOT / "examples/cards/small_matmul.mlir",
          says=f"there is no 'clang-{LLVM}' or 'clang' in PATH")


def test_a_kernel_leaves_no_files_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ok("cards", "check", ROOT / "examples/cards/small_matmul.mlir", "--count", "4")
    fails("cards", "check", ROOT / "test/cards/wrong/kernel_c_error.mlir")
    assert not list(tmp_path.iterdir())


CPP = """// Products, a row at a time.
extern "C" int64_t heddle_tasks(const heddle_group *g) { return heddle_batches(g); }
template <typename T> static T sumOf(const heddle_group *g, int64_t b, int64_t i, int64_t j) {
  T sum = 0;
  for (int64_t k = 0; k < heddle_depth(g); ++k)
    sum += heddle_read_a(g, b, i, k) * heddle_read_b(g, b, k, j);
  return sum;
}
extern "C" void heddle_kernel(const heddle_group *g, int64_t begin, int64_t end, void *) {
  for (int64_t b = begin; b < end; ++b)
    for (int64_t i = 0; i < heddle_rows(g); ++i)
      for (int64_t j = 0; j < heddle_columns(g); ++j)
        heddle_write(g, b, i, j, sumOf<heddle_element>(g, b, i, j));
}
"""
CARD = """module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 30 : i64, dtypes = ["f32"], key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly}) {
    transform.heddle.kernel "product" %group from "plain.cpp" : !transform.any_op
    transform.yield
  }
}
"""


def test_a_kernel_in_cpp_is_chosen_by_its_priority(tmp_path):
    (tmp_path / "plain.mlir").write_text(CARD, encoding="utf-8")
    (tmp_path / "plain.cpp").write_text(CPP, encoding="utf-8")
    source = dense()
    module = heddle.compile(source, schedules=str(tmp_path))
    assert [group["card"] for group in module.compiled.plan["groups"]] == ["plain"]
    feeds = {"x": normal(6, 48), "z": normal(6, 37)}
    np.testing.assert_allclose(module.run(None, feeds)[0],
                               heddle.compile(source).run(None, feeds)[0], rtol=1e-4, atol=1e-4)


def test_lists_and_drafts_know_the_kinds():
    listed = ok("cards", "list", "--schedules", FOLDER).output
    kinds = {line.split()[0]: line.split()[1] for line in listed.splitlines()[1:]}
    assert kinds["matmul"] == "schedule" and kinds["onednn_matmul"] == "call"
    assert kinds["small_matmul"] == kinds["row_norm"] == "kernel"
