"""torch.compile(backend="heddle"): numbers, sizes, options, and what is refused."""

import subprocess
import sys
import threading
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import heddle.torch  # noqa: E402
from heddle.torch.fallback import FallbackWarning  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler", "fresh")


@pytest.fixture
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function, dynamic=None, **options):
    return torch.compile(function, backend="heddle", dynamic=dynamic,
                         options={"fallback": "raise", **options})


def check(function, *inputs, atol=1e-5, **options):
    """The function, compiled whole, gives what it gives eagerly."""
    with torch.no_grad():
        wanted, found = function(*inputs), compiled(function, **options)(*inputs)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=atol)
    return found


def graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def layers():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)).eval()


# Numbers.

def test_a_model_of_any_batch_is_compiled_twice():
    model = layers()
    run = compiled(model)
    before = graphs()
    with torch.no_grad():
        for batch in (1, 2, 3, 5, 9):
            x = torch.randn(batch, 6)
            torch.testing.assert_close(run(x), model(x))
    assert graphs() - before == 2  # a batch of 1, and any other


def test_batch_norm_in_training():
    norm, other = nn.BatchNorm2d(3), nn.BatchNorm2d(3)
    x = torch.randn(4, 3, 5, 5) * 3 + 1
    with torch.no_grad():
        torch.testing.assert_close(compiled(norm)(x), other(x))
    torch.testing.assert_close(norm.running_mean, other.running_mean)
    torch.testing.assert_close(norm.running_var, other.running_var)
    assert norm.num_batches_tracked == 1


def test_cumsum_of_truths():
    check(lambda x: torch.cumsum(x > 0, 1), torch.randn(3, 7), dynamic=True)


@pytest.mark.parametrize("mask", ["none", "causal", "float", "bool", "dark"])
def test_attention_with_fewer_key_heads(mask):
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    given = {"none": None, "causal": None, "float": torch.randn(5, 5),
             "bool": torch.ones(5, 5, dtype=torch.bool).tril(),
             "dark": torch.ones(5, 5, dtype=torch.bool).triu(1)}[mask]  # the last row sees nothing
    check(lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, attn_mask=given, is_causal=mask == "causal", enable_gqa=True), q, k, v)


@pytest.mark.parametrize("masks", ["none", "causal", "padding"])
@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_that_torch_has_whole(norm_first, masks):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first).eval()
    given = {"causal": {"src_mask": torch.ones(5, 5, dtype=torch.bool).triu(1)}, "none": {},
             "padding": {"src_key_padding_mask": torch.tensor([[0] * 5, [0, 0, 0, 1, 1]]).bool()}}
    check(lambda x: layer(x, **given[masks])[:, :3], torch.randn(2, 5, 8))


def test_attention_of_a_module():
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    check(lambda x: layer(x, x, x, need_weights=False)[0], torch.randn(2, 5, 8))
    check(lambda x: layer(x, x, x), torch.randn(2, 5, 8))


def test_attention_stays_fused():
    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    kinds = []
    made = heddle.torch.dynamo.translate

    def watched(*given):
        model = made(*given)
        kinds.extend(node.op_type for node in model.proto.graph.node)
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heddle.torch.dynamo, "translate", watched)
        check(attend, *(torch.randn(2, 3, 4, 8) for _ in range(3)))
    assert kinds == ["Attention"]


def test_a_copy_that_broadcasts():
    def function(x, y):
        z = torch.zeros_like(x)
        z.copy_(y)
        return z + x

    check(function, torch.randn(3, 4), torch.randn(4), dynamic=True)


def test_constants_made_in_a_model():
    check(lambda x: x * torch.tensor([1.0, 2.0, 3.0]), torch.randn(2, 3))


def test_sizes_among_results():
    found = check(lambda x: (x + x.shape[0], x.shape[0], x.numel(), x.shape[1] // 2),
                  torch.randn(4, 6), dynamic=True)
    assert found[1:] == (4, 24, 3)


def test_arithmetic_of_sizes():
    def function(x):
        n = x.shape[0]
        return (x.reshape(n // 2, 2, -1), x[: n - 1], torch.arange(n), x / n ** 0.5,
                torch.cat([x, x.new_zeros(n % 3 + 1, x.shape[1])]))

    run = compiled(function, dynamic=True)
    for size in (4, 6, 10):
        x = torch.randn(size, 3)
        torch.testing.assert_close(run(x), function(x))


def test_a_number_as_an_argument():
    def function(x, n):
        return x * n + torch.ones(n).sum()

    run = compiled(function, dynamic=True)
    for number in (3, 4, 7):
        x = torch.randn(5)
        torch.testing.assert_close(run(x, number), function(x, number))


def test_strides_of_results_are_those_of_eager():
    def function(x):
        return (x + 1).transpose(1, 3), x.sum(0), x.to(memory_format=torch.channels_last) * 2

    x = torch.randn(2, 3, 4, 5)
    for found, wanted in zip(check(function, x), function(x)):
        assert found.stride() == wanted.stride()


def test_results_that_are_arguments_and_views():
    x = torch.randn(4, 4)
    found = check(lambda x: (x, x[1], x + 0, x.t()), x)
    assert found[0] is x and found[1].data_ptr() == x[1].data_ptr()


def test_arguments_that_are_changed():
    def function(x, y):
        x.add_(y)
        return x * 2

    x, y = torch.randn(3), torch.randn(3)
    other = x.clone()
    found = compiled(function)(x, y)
    torch.testing.assert_close(found, function(other, y))
    torch.testing.assert_close(x, other)


def test_arguments_that_overlap():
    base = torch.randn(8)

    def function(x, y):
        x.mul_(2)
        return x + y

    other = base.clone()
    found = compiled(function)(base[:5], base[3:])
    torch.testing.assert_close(found, function(other[:5], other[3:]))
    torch.testing.assert_close(base, other)


@pytest.mark.parametrize("x", [torch.tensor(3.0), torch.zeros(0, 4), torch.randn(4, 6).t(),
                               torch.randn(1, 4).expand(3, 4), torch.arange(6),
                               torch.randn(3, 4, dtype=torch.float64),
                               torch.randn(3, 4).to(torch.bfloat16)],
                         ids=["scalar", "empty", "transposed", "expanded", "int", "f64", "bf16"])
def test_kinds_of_arguments(x):
    check(lambda x: (x * 2 + 1, x.sum()), x)


def test_types_are_promoted_as_torch_does():
    check(lambda a, b: (a + b, a / 2, a * 1.5, b > a, torch.where(a > 1, a, 0.5), a ** 2, b.mean()),
          torch.arange(5), torch.randn(5))


def test_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.out.weight = self.table.weight

        def forward(self, x):
            return self.out(self.table(x))

    check(Tied(), torch.tensor([1, 2, 6]))
    check(Tied(), torch.tensor([1, 2, 6]), freeze=True)


def test_sizes_known_at_run_time():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        check(lambda x: torch.nonzero(x > 0) * 2, torch.randn(6))


# Random numbers.

def test_random_numbers_follow_the_seed():
    run = compiled(lambda x: torch.rand_like(x) + F.dropout(x, 0.5))
    x = torch.ones(1000)
    torch.manual_seed(3)
    first, second = run(x), run(x)
    torch.manual_seed(3)
    assert torch.equal(run(x), first) and not torch.equal(first, second)
    dropped = compiled(lambda x: F.dropout(x, 0.25))(x)
    torch.testing.assert_close(dropped.unique(), torch.tensor([0, 4 / 3]))
    assert 0.68 < (dropped != 0).float().mean() < 0.82
    drawn = compiled(lambda: torch.randint(3, 6, (1000,)))()
    assert drawn.dtype == torch.int64 and drawn.unique().tolist() == [3, 4, 5]


# Weights.

def test_weights_that_change_are_heard():
    model = layers()
    run = compiled(model)
    x = torch.randn(3, 6)
    with torch.no_grad():
        run(x)
        model[0].weight.mul_(2)
        torch.testing.assert_close(run(x), model(x))
        model[0].weight.data = torch.randn(8, 6)
        torch.testing.assert_close(run(x), model(x))


@pytest.mark.parametrize("change", ["in place", "data"])
def test_a_frozen_weight_that_changes_is_compiled_again(change):
    model = layers()
    run = compiled(model, freeze=True)
    x = torch.randn(3, 6)
    with torch.no_grad():
        torch.testing.assert_close(run(x), model(x))
        if change == "data":
            model[0].weight.data = torch.randn(8, 6)
        else:
            model[0].weight.mul_(2)
        with pytest.warns(FallbackWarning, match="changed since it was frozen") as said:
            torch.testing.assert_close(run(x), model(x))
            model[0].weight.data.zero_()
            torch.testing.assert_close(run(x), model(x))
    assert len(said) == 1


def test_results_outlive_the_model():
    model = layers()
    run = compiled(model, freeze=True)
    with torch.no_grad():
        x = torch.randn(3, 6)
        wanted, found = model(x), run(x)
        del model, run
        torch._dynamo.reset()
        torch.testing.assert_close(found, wanted)


# Options, and what is refused.

@pytest.mark.parametrize("options, said", [
    ({"freze": True}, "there is no option 'freze'; did you mean 'freeze'"),
    ({"thread": 1}, "there is no option 'thread'; did you mean 'threads'"),
    ({"fallback": "never"}, "`fallback` is 'never', but must be one of warn, silent, raise"),
    ({"freeze": 1}, "`freeze` is 1, but must be True or False"),
    ({"output": "m.so"}, "the option 'output' of heddle.compile is not one of"),
    ({"math": "slow"}, "slow")])
def test_options_are_checked(options, said):
    with pytest.raises(Exception, match=said):
        torch.compile(layers(), backend="heddle", options=options)(torch.randn(2, 6))


def test_options_are_those_of_compile():
    model = layers()
    check(model, torch.randn(2, 6), threads=1, math="strict", opt_level=0)


class Refused(nn.Module):
    def forward(self, x):
        y = x + 1
        return torch.special.i1(y) * 2  # the line that is named


def test_a_refused_graph_runs_as_it_came():
    x = torch.randn(4)
    run = torch.compile(Refused(), backend="heddle")
    with pytest.warns(FallbackWarning, match=r"'special_i1' \(.*backend_test.py, line \d+\): there "
                                             "is no rule for aten.special_i1.default") as said:
        torch.testing.assert_close(run(x), Refused()(x))
        run(x)
    assert len([each for each in said if each.category is FallbackWarning]) == 1


def test_a_refused_graph_is_an_error_if_asked_for():
    with pytest.raises(Exception, match="heddle cannot compile a graph: 'special_i1'"):
        compiled(Refused())(torch.randn(4))


def test_a_refused_graph_may_be_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        run = torch.compile(Refused(), backend="heddle", options={"fallback": "silent"})
        run(torch.randn(4))


@pytest.mark.parametrize("x, said", [
    (torch.randn(4, dtype=torch.complex64), "complex numbers are not supported"),
    (torch.randn(4, device="meta"), "the device 'meta', but must be on the CPU")],
    ids=["complex", "meta"])
def test_tensors_that_are_not_for_heddle_run_as_they_came(x, said):
    with pytest.warns(FallbackWarning, match=said):
        found = torch.compile(lambda x: x * 2, backend="heddle")(x)
    assert found.device == x.device
    if x.device.type == "cpu":
        torch.testing.assert_close(found, x * 2)


def test_sparse_tensors_run_as_they_came():
    x = torch.eye(3).to_sparse()
    found = torch.compile(lambda x: x * 2, backend="heddle")(x)  # Dynamo leaves them out
    assert torch.equal(found.to_dense(), x.to_dense() * 2)


def test_a_function_under_vmap():
    check(torch.vmap(lambda x, w: torch.tanh(w @ x), in_dims=(0, None)), torch.randn(5, 3),
          torch.randn(2, 3))


def test_two_threads_run_one_model():
    model = layers()
    run = compiled(model, dynamic=True)
    inputs = [torch.randn(n, 6) for n in range(2, 18)]
    with torch.no_grad():
        run(inputs[0])
        found = [None] * len(inputs)

        def work(first):
            with torch.no_grad():
                for i in range(first, len(inputs), 2):
                    for _ in range(20):
                        found[i] = run(inputs[i])

        threads = [threading.Thread(target=work, args=(first,)) for first in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for ours, x in zip(found, inputs):
            torch.testing.assert_close(ours, model(x))


# The package.

def python(text, path):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": ":".join(map(str, path)), "HEDDLE_CACHE": ""})


ROOT = heddle.library.HERE.parents[1]


def test_heddle_does_not_import_torch():
    done = python("import heddle, sys; assert 'torch' not in sys.modules", [ROOT / "python"])
    assert done.returncode == 0, done.stderr


def test_torch_finds_an_installed_heddle(tmp_path):
    about = tmp_path / "heddle-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: heddle\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(
        "[torch_dynamo_backends]\nheddle = heddle.torch:backend\n")
    assert 'heddle = "heddle.torch:backend"' in (ROOT / "pyproject.toml").read_text()
    done = python("import torch; print(torch.compile(lambda x: x + 1, backend='heddle', "
                  "options={'fallback': 'raise'})(torch.ones(2)).tolist())",
                  [ROOT / "python", tmp_path])
    assert done.stdout == "[2.0, 2.0]\n", done.stderr


@pytest.mark.parametrize("found, said", [
    ("raise ImportError('none')", "heddle.torch needs the Python package 'torch', of the extra"),
    ("__version__ = '2.4.1'", "heddle.torch needs torch 2.13 or later, but torch 2.4.1 is")])
def test_a_torch_that_will_not_do(found, said, tmp_path):
    (tmp_path / "torch.py").write_text(found)
    done = python("import heddle.torch", [tmp_path, ROOT / "python"])
    assert said in done.stderr
