"""Each check says no to what it forbids, with the place first, and nothing to what it allows."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import classes  # noqa: E402
import dialect_spec  # noqa: E402
import docs  # noqa: E402
import functions  # noqa: E402
import layers  # noqa: E402
import layout  # noqa: E402
import names  # noqa: E402
import options  # noqa: E402
import packages  # noqa: E402
import places  # noqa: E402
import sizes  # noqa: E402
import tally  # noqa: E402
import words  # noqa: E402
from sources import ROOT, sources  # noqa: E402


@pytest.fixture(name="tree")
def make_tree(tmp_path):
    """A function that writes files and returns the root and their paths."""

    def write(**contents):
        for name, text in contents.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path, sources(tmp_path)

    return write


def expect(problems, complaint):
    """One problem, which says this, or none where it is None."""
    assert [complaint in each for each in problems] == ([] if complaint is None else [True])


LAYERS = {
    "LAYERS": "support:\ngraph: support\nonnx: support graph   # a comment\n",
    "compiler/graph/Uses.cpp": '// It.\n#include "compiler/support/B.h"\n',
    "compiler/onnx/Uses.cpp":
        '// It.\n#include "compiler/support/B.h"\n#include "compiler/graph/B.h"\n'}


@pytest.mark.parametrize("path, included, complaint", [
    ("compiler/graph/A.cpp", "compiler/onnx/B.h",
     "compiler/graph/A.cpp:2: 'graph' may not use 'onnx'; LAYERS lets it use only: support"),
    ("compiler/new/A.cpp", "compiler/support/B.h", "'new' has no line in LAYERS"),
    ("compiler/graph/A.cpp", "runtime/base/status.h", "'graph' may not use 'runtime/base'"),
    ("runtime/task/pool.cpp", "compiler/support/B.h", "the runtime may not use"),
    ("runtime/task/pool.cpp", "tools/heddle/cli.h", "the runtime may not use"),
    ("tools/heddle/main.cpp", "compiler/graph/B.h", "'tools' may not use"),
    ("tools/heddle/main.cpp", "runtime/base/status.h", "'tools' may not use"),
    ("include/heddle/runtime.h", "compiler/api/B.h", "a public header may not use"),
    ("compiler/onnx/A.cpp", "compiler/graph/B.h", None),
    ("compiler/onnx/A.cpp", "compiler/onnx/B.h", None),
    ("compiler/onnx/A.cpp", "mlir/IR/Builders.h", None),
    ("runtime/task/pool.cpp", "runtime/base/status.h", None),
    ("tools/heddle/main.cpp", "heddle/compiler.h", None),
    ("tools/heddle/main.cpp", "tools/heddle/cli.h", None),
    ("tools/heddle-opt/main.cpp", "compiler/graph/B.h", None),
])
def test_layers(tree, path, included, complaint):
    root, files = tree(**LAYERS, **{path: f'// A file.\n#include "{included}"\n'})
    expect(layers.check(root, files), complaint)


@pytest.mark.parametrize("line", [
    "Value x = b.create<LLVM::LoadOp>(loc, type, address, 8);",
    '#include "mlir/Dialect/LLVMIR/LLVMDialect.h"',
    'function->setAttr("llvm.linkage", linkage);',
])
def test_layers_keeps_llvm_in_targets(tree, line):
    root, files = tree(**LAYERS, **{"compiler/onnx/A.cpp": f"// LLVM::\n{line}\n"})
    (problem,) = layers.check(root, files)
    assert problem.startswith("compiler/onnx/A.cpp:2: only targets write LLVM's dialect")
    (root / "compiler/onnx/A.cpp").write_text("llvm::Error error;\n")
    (root / "LAYERS").write_text((root / "LAYERS").read_text() + "target:\n")
    (root / "compiler/target/A.cpp").parent.mkdir()
    (root / "compiler/target/A.cpp").write_text(f"{line}\n")
    assert layers.check(root, sources(root)) == []


@pytest.mark.parametrize("path, is_allowed", [
    ("compiler/cache/Cache.cpp", False), ("compiler/api/Options.cpp", True),
    ("compiler/target/testing/ArtefactTest.cpp", True), ("runtime/library/onednn.c", True)])
def test_layers_keeps_the_environment_in_the_api(tree, path, is_allowed):
    root, files = tree(**{"LAYERS": "cache:\napi:\ntarget:\n", "README.md": "", "DESIGN.md": "",
                          path: '// It.\nauto value = std::getenv("HEDDLE_CACHE");\n'})
    wanted = [] if is_allowed else [f"{path}:2: only compiler/api reads the environment; take the "
                                    "value as an option"]
    assert layers.check(root, files) == wanted


@pytest.mark.parametrize("path, line, is_allowed", [
    ("compiler/target/cpu/A.cpp", "cpu::emit();", True),
    ("compiler/target/Backends.cpp", '#include "compiler/target/cpu/Backend.h"', True),
    ("compiler/target/testing/A_test.cpp", "cpu::emit();", True),
    ("compiler/target/A.cpp", "func::emit(gcpu::x); // cpu::emit", True),
    ("compiler/target/c/A.cpp", "cpu::emit();", False),
    ("compiler/target/gpu/A.cpp", "cpu::emit();", True),
    ("compiler/target/A.cpp", "heddle::cpu::emit();", False),
    ("compiler/target/A.cpp", '#include "compiler/target/cpu/Backend.h"', False),
])
def test_layers_keeps_backends_behind_their_table(tree, path, line, is_allowed):
    root, files = tree(**LAYERS | {"LAYERS": LAYERS["LAYERS"] + "target:\n"},
                       **{"compiler/target/cpu/Backend.h": "// It.\n", path: f"// It.\n{line}\n"})
    problems = layers.check(root, files)
    assert is_allowed != any("only the table of backends names 'cpu'" in each for each in problems)


@pytest.mark.parametrize("path, text, complaint", [
    ("compiler/graph/Uses.cpp", "// It uses nothing.\n",
     "LAYERS: 'graph' may use 'support', but nothing in it does; take it out"),
    ("LAYERS", "graph: support\nsupport:\nonnx: support graph\n",
     "LAYERS: 'graph' uses 'support', which comes after it"),
])
def test_layers_refuses_arrows_without_use_or_order(tree, path, text, complaint):
    root, files = tree(**LAYERS | {path: text})
    expect(layers.check(root, files), complaint)


@pytest.mark.parametrize("page, line", [("README.md", "     {}/   text\n"),
                                        ("DESIGN.md", "| `compiler/{}` | | text |\n")])
def test_layers_refuses_pages_in_another_order(tree, page, line):
    listed = {name: line.format(name) for name in ("graph", "onnx")}
    root, files = tree(**LAYERS, **{page: listed["graph"] + listed["onnx"]})
    assert layers.check(root, files) == []
    (root / page).write_text(listed["onnx"] + listed["graph"])
    (problem,) = layers.check(root, files)
    assert problem == f"{page}: its folders are in another order than in LAYERS: graph, onnx"


PACKAGES = {
    "docs/guide/python.md": "| `heddle` | all |\n| `heddle.ops` | ops |\n",
    "python/heddle/__init__.py": 'from .library import Error, call\n__all__ = ["Error"]\n',
    "python/heddle/library.py": "class Error(Exception): pass\ndef call(): pass\n",
    "python/heddle/ops.py": "import os\nDOMAIN, _VGEMM = 'heddle', ''\ndef vgemm(): pass\n"}


@pytest.mark.parametrize("path, code, complaint", [
    ("heddle_lab/a.py", "from heddle.library import Error", "'heddle.library' is not public"),
    ("heddle_lab/a.py", "import heddle.library", "'heddle.library' is not public"),
    ("heddle_lab/a.py", "from heddle import library", "'library' is no public name of 'heddle'"),
    ("heddle_lab/a.py", "from heddle import call", "'call' is no public name of 'heddle'"),
    ("heddle_lab/a.py", "import heddle\nheddle.call()", "'call' is no public name of 'heddle'"),
    ("heddle_lab/a.py", "from heddle.ops import _VGEMM", "'_VGEMM' is no public name"),
    ("heddle_lab/a.py", "from heddle.ops import os", "'os' is no public name"),
    ("heddle_lab/go/a_test.py", "import heddle", "tests in Python are in test/"),
    ("heddle_lab/a.py", "session._handle", "'_handle' belongs to what defines it"),
    ("heddle/a.py", "from heddle_lab.go import Graph", "heddle may not use 'heddle_lab.go'"),
    ("heddle/a.py", "def f():\n    import heddle_lab", "heddle may not use 'heddle_lab'"),
    ("heddle_lab/a.py", "import heddle\nheddle.Error, heddle.ops", None),
    ("heddle_lab/a.py", "from heddle import Error, ops\nfrom heddle.ops import DOMAIN, vgemm",
     None),
    ("heddle_lab/go/a.py", "from ..library import Error\nimport onnx\nself._x = other._x", None),
    ("heddle/a.py", "from .library import call\nfrom heddle.library import Error", None),
])
def test_packages(tree, path, code, complaint):
    root, files = tree(**PACKAGES, **{f"python/{path}": f"{code}\n"})
    problems = packages.check(root, files)
    expect(problems, complaint)
    assert all(each.startswith(f"python/{path}:") for each in problems)


def test_packages_wants_the_modules_of_its_page(tree):
    root, files = tree(**PACKAGES | {"docs/guide/python.md": "| `heddle.gone` | nothing |\n"})
    assert packages.check(root, files) == [
        "docs/guide/python.md: 'heddle.gone' is listed, but there is no such module"]


@pytest.mark.parametrize("path, lines, allowed", [
    ("compiler/graph/A.cpp", 601, 600),
    ("compiler/graph/A.h", 301, 300),
    ("compiler/graph/A.td", 401, 400),
    ("include/heddle/compiler.h", 401, 400),
    ("schedules/cpu/matmul.mlir", 201, 200),
    ("dev", 601, 600),
])
def test_sizes_limits_lines(tree, path, lines, allowed):
    root, files = tree(**{path: "//\n" * lines})
    assert sizes.check(root, files) == [
        f"{path}: {lines} lines, {allowed} are allowed; split it by idea"]
    root, files = tree(**{path: "//\n" * allowed})
    assert sizes.check(root, files) == []


def test_sizes_limits_columns_and_folders(tree):
    many = {f"compiler/graph/A{i}.cpp": "//\n" for i in range(26)}
    root, files = tree(**many, **{"runtime/a.c": "// x\n" + "x" * 101})
    wide, crowded = sizes.check(root, files)
    assert wide == "runtime/a.c:2: 101 columns, 100 are allowed"
    assert crowded.startswith("compiler/graph: 26 sources, 25 are allowed")


@pytest.mark.parametrize("path, complaint", [
    ("compiler/graph/lower_snake.cpp", "UpperCamel"),
    ("compiler/graph/GraphOps.cpp", "already says"),
    ("runtime/base/Status.cpp", "lower_snake"),
    ("compiler/graph/Utils.cpp", "says nothing"),
    ("compiler/common/A.cpp", "says nothing"),
])
def test_names_refuses(tree, path, complaint):
    root, files = tree(**{path: "// A file.\n"})
    (problem,) = names.check(root, files)
    assert problem.startswith(f"{path}: ") and complaint in problem


def test_names_wants_an_opening_comment(tree):
    root, files = tree(**{"runtime/base/status.cpp": "#include <x>\n", "runtime/a.h": "int x;\n"})
    assert len(names.check(root, files)) == 2


def test_docs_follows_links_and_paths(tree):
    text = "see [there](docs/a.md), [web](https://x.org), `tools/check` and `compiler/gone/A.cpp`\n"
    root, files = tree(**{"README.md": text, "tools/check/run.py": "#\n"})
    assert docs.check(root, files) == [
        "README.md:1: the link to 'docs/a.md' leads nowhere",
        "README.md:1: there is no 'compiler/gone/A.cpp'"]


GRAPH = {
    "compiler/graph/Ops.td": """class Graph_Op<string name> {
  string opName = name;
  list<string> constraints = ["A1: a.", "A2: b.", "A3: c."];
}
def Graph_AddOp : Graph_Op<"add">;
def Graph_SubOp : Graph_Op<"sub"> { let constraints = ["A1: a.", "E1: of a trait."]; }
""",
    "compiler/graph/Ops.cpp":
        '// Ops.\nemitOpError("A1: no"); check("A2"); emitOpError("A4: no"); check("E1");\n'
        'emitOpError("F1: no");\n',
    "compiler/graph/Functions.h": "// It.\n/// F1: Of a function.\n",
    "compiler/graph/ops.mlir": """// Ops.
// expected-error @+2 {{A1: no}}
// expected-error @below {{E1: no}}
%x = graph.add %y : f32 // not graph.sub
// expected-error @+1 {{F1: no}}
func.func @f()
"""}


def test_dialect_spec_wants_labels_stated_checked_and_provoked(tree):
    root, _ = tree(**GRAPH)
    graph = dialect_spec.Dialect("graph", (), (), functions="Functions.h")
    assert list(dialect_spec.labels(root, graph, dialect_spec.records(root, graph))) == [
        "compiler/graph: no verifier has a message for constraint A3",
        "compiler/graph: constraint A4 of a verifier is in no .td file",
        "compiler/graph: no .mlir file provokes constraint A2",
        "compiler/graph: no .mlir file provokes constraint A3",
        "compiler/graph: no .mlir file provokes constraint A2 of add",
        "compiler/graph: no .mlir file provokes constraint A3 of add",
        "compiler/graph: no .mlir file provokes constraint A1 of sub"]


@pytest.mark.parametrize("name, source", [
    ("graph", "compiler/graph/Ops.td"), ("program", "compiler/program/Ops.td"),
    ("passes", "compiler/simplify/Passes.td")])
def test_dialect_spec_wants_the_page_of_today(tmp_path, name, source):
    (tmp_path / "compiler").symlink_to(ROOT / "compiler")
    page = tmp_path / "docs/spec" / f"{name}.md"
    page.parent.mkdir(parents=True)
    page.write_text("of yesterday")
    (problem,) = dialect_spec.check(tmp_path, [Path(source)])
    assert f"docs/spec/{name}.md: is not what the .td files say" in problem


def test_options_are_those_of_the_table(tmp_path):
    for path in (options.TABLE, *options.texts(ROOT)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    assert options.check(tmp_path, []) == []
    row = ('HEDDLE_OPTION(Bytes, most_bytes, mostBytes, 0, atLeast(0), Common, "--most BYTES",\n'
           '    "most=0", "Of a test.")\n')
    table = tmp_path / options.TABLE
    table.write_text(table.read_text().replace("\nHEDDLE_KEYWORD(", f"\n{row}HEDDLE_KEYWORD(", 1))
    assert len(options.check(tmp_path, [])) == 4
    texts = options.texts(tmp_path)
    assert "  /* Of a test. */\n  int64_t most_bytes;\n} heddle_" in texts[options.HEADER]
    assert '("most_bytes", c_int64),\n    ]' in texts[options.STRUCTURE]
    assert '"most": ("most_bytes", "Bytes", 9223372036854775807)' in texts[options.STRUCTURE]
    assert "kv_cache=0, kv_cache_type=None, most=0," in texts[options.FUNCTION]
    assert "    most       Of a test.\n" in texts[options.FUNCTION]
    assert "| `most_bytes` | `--most BYTES` | `most=0` |  | Of a test. |" in texts[options.PAGE]


ROW = {"compiler/mechanism/Rows.cpp": '// A row.\nconst Mechanism kRows = {.name = "rows"};\n'}


REFUSED = [
    ("compiler/plan/A.cpp", 'if (mechanism == "rows")'),
    ("compiler/plan/A.cpp", 'auto row = mechanism::find("rows");'),
    ("compiler/plan/A.cpp", 'return llvm::is_contained({"none", "rows"}, name);'),
    ("tools/a.py", f'TOOL = "clang-{19}"'),
    ("compiler/plan/A.cpp", "return 2e-6 + std::max(products / 1e11, bytes / 1e10);"),
    ("compiler/tuner/A.cpp", "constexpr double kStart = 2e-7, kFlops = 3e10;"),
    ("compiler/plan/A.cpp", "return isa<graph::AddOp, graph::SubOp,\n  MulOp, graph::DivOp>(op);"),
    ("compiler/plan/A.h", "if (isa_and_nonnull<AddOp, SubOp, MulOp, MaxOp, MinOp>(op))"),
    ("compiler/target/A.cpp",
     "isa<program::AtOp, program::LoadOp, program::CopyOp, program::FailOp>(op)"),
    ("compiler/target/A.cpp", "struct Pass : PassWrapper<Pass, Base<ModuleOp>> {"),
    ("tools/heddle-opt/a.cpp", "class Pass : public OperationPass<ModuleOp> {"),
]
ALLOWED = [
    ("compiler/plan/A.cpp", 'auto rows = knob("rows", 1);'),
    ("compiler/mechanism/A.cpp", 'auto row = find("rows");'),
    ("compiler/plan/A_test.cpp", 'EXPECT_TRUE(name == "rows");'),
    ("compiler/program/Machine.h", "double products = 1e11; double flopsRate = 3;"),
    ("compiler/plan/A.cpp", "return isa<AddOp, SubOp, MulOp>(op) || isa<DivOp, graph::ModOp>(op);"),
    ("compiler/lower/A.cpp",
     "isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, graph::DivOp>(op)"),
    ("compiler/lower/A.cpp", "isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type)"),
    ("compiler/lower/A.cpp", "struct Pass : impl::PassBase<Pass> {"),
    ("compiler/graph/ATest.cpp", "EXPECT_TRUE((isa<AddOp, SubOp, MulOp, DivOp>(op)));"),
]


@pytest.mark.parametrize("path, line", REFUSED + ALLOWED)
def test_places(tree, path, line):
    root, files = tree(**ROW, **{path: f"// A file.\n{line}\n"})
    expect(places.check(root, files), f"{path}:2: " if (path, line) in REFUSED else None)


def test_layout_names_the_place(tree):
    if not layout.find_tool():
        pytest.skip(f"{layout.TOOL} is not installed")
    root, files = tree(**{".clang-format": "BasedOnStyle: LLVM\n", "a.cpp": "int  x ;\n",
                          "b.cpp": "int x;\n"})
    (problem,) = layout.check(root, files)
    assert problem.startswith("a.cpp:1:")


REPORT = """<testsuites><testsuite><testcase name="a"/><testcase name="b"><failure/></testcase>
<testcase name="c"><skipped/></testcase></testsuite></testsuites>"""


@pytest.mark.parametrize("report, status, counts", [
    (REPORT, 1, (1, 1, 1)),
    (None, 0, (1, 0, 0)),
    (None, 2, (0, 1, 0)),
    ("<testsuite/>", 0, (0, 1, 0)),
    (REPORT.replace("<failure/>", ""), 2, (2, 1, 1)),  # died after its report: still a failure
])
def test_tally_counts(tmp_path, report, status, counts):
    path = tmp_path / "suite.xml"
    if report:
        path.write_text(report)
    assert tally.count(path, status) == counts


def test_tally_ends_with_the_sum(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tally, "TIMES", tmp_path / "build" / "times.jsonl")
    (tmp_path / "lit.xml").write_text(REPORT)
    assert tally.main(tmp_path, ["lit=1=30", "unit=0=70"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 1 failed, 1 skipped"
    assert tally.main(tmp_path, ["unit=0=7"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed"
    assert tally.compare() == 2  # no two runs of the same suites
    tally.main(tmp_path, ["unit=0=8"])
    capsys.readouterr()
    assert tally.compare() == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == [
        "7", "8", "the", "whole:", "+14%,", "more", "than", "5%"]


def test_long_functions(tree):
    line = "  x += 1;\n"
    root, files = tree(**{
        "long.cpp": "namespace a {\nint f(int x,\n      int y) {\n" + 98 * line + "}\n" +
                    "struct S {\n  int g(int x) {\n" + 97 * line + "  }\n};\n}\n",
        "fits.c": "static const int t[] = {\n" + 200 * "  1,\n" + "};\nint f(int x) {\n" +
                  98 * line + "}\n",
        "long.py": "def f(x):\n" + 100 * "    x += 1\n",
        "fits.py": "def f(x):\n" + 99 * "    x += 1\n"})
    assert functions.check(root, files) == [
        "long.cpp:2: a function of 101 lines, 100 are allowed; give its parts names",
        "long.py:1: a function of 101 lines, 100 are allowed; give its parts names"]


def test_comments_begin_with_a_verb_or_a_noun(tree):
    bad = "/// What it is.\nint x;\n  // In a loop.\n"
    root, files = tree(**{
        "compiler/A.cpp": bad + "// Rows.\n// Of all.\nint y; // is\n       // That.\n",
        "compiler/B.td": "// In place: no copy.\n// The same.\n\n// Likewise columns.\ndef A;\n",
        "bench/a.py": '"""What it is."""\n# Of all.\n# Whether it is.\nx = 1  # Of x.\n# Rows.\n'})
    assert words.check(root, files) == [
        f"{place}: a comment begins with '{word}'; begin it with a verb or a noun, and "
        "name its subject" for place, word in (
            ("bench/a.py:1", "What"), ("bench/a.py:2", "Of"), ("compiler/A.cpp:1", "What"),
            ("compiler/A.cpp:3", "In"), ("compiler/B.td:4", "Likewise"))]


def test_classes_of_many_methods(tree):
    method = "  int f(std::function<int(int)> g = nullptr) const { return h(1); }\n"
    counted = ("  explicit S(int x) : a{x}, b(x) {}\n"
               "  bool operator()(int x) const { return x < (2); }\n"
               "  template <typename T, int n = (1)> T t(T x) {\n    g(x);\n    return x;\n  }\n"
               "  virtual void p() = 0;\n  std::map<int, int> q(int x);\n")
    others = ("  // int c(); \"\n  using F = int (*)(int);\n  friend void g(S &s);\n"
              "  int a = f(1), b{2};\n  std::function<int(int)> call;\n  int (*pointer)(int);\n"
              "  enum class Kind { A, B } kind = Kind(1);\n  struct Inner {\n    void g();\n  };\n")
    root, files = tree(**{
        "many.h": "namespace a {\n\nclass S final : public T<int(int)> {\npublic:\n" + 36 * method +
                  counted + others + "};\n}\n",
        "fits.cpp": "struct S {\n" + 35 * method + counted + others + "};\n"})
    assert classes.check(root, files) == [
        "many.h:3: class 'S' has 41 methods, 40 are allowed; cut it into parts that each have "
        "what they need"]


def test_private_words_are_refused_and_terms_allowed(tree):
    root, files = tree(**{
        "compiler/A.cpp": "// A: a size that only the run knows, behind the others.\n",
        "docs/a.md": "A size known only at run time; what is left behind; one per row.\n",
        "docs/b.md": "`pip install 'heddle[go]'`\n\n`pip install build/wheel/heddle-*.whl`\n",
        "bench/notes/a.md": "What stood behind it.\n"})
    first, second, third = words.check(root, files)
    assert third.startswith("docs/b.md:1: 'pip install 'heddle'; say: pip install build/wheel")
    assert first == ("compiler/A.cpp:1: 'only the run knows'; say: known only at run time")
    assert second.startswith("compiler/A.cpp:1: 'behind'; say: after")
