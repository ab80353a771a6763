"""Small models by torch.compile: one graph each, few compilations, and the numbers of eager."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import heddle.torch  # noqa: E402, F401
from modules import NETWORKS, TRANSFORMERS, has_transformers  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)


def compiled(model, **options):
    return torch.compile(model, backend="heddle", options={"fallback": "raise", **options})


def close(found, wanted, share, name):
    """Differences are at most this share of the largest number."""
    most = max(float(wanted.abs().max()), 1e-30)
    error = float((found - wanted).abs().max()) / most
    assert error <= share, f"{name}: {error:.1e} of the largest"


def check_inference(model, inputs, **options):
    run = compiled(model, **options)
    with torch.no_grad():
        for given in inputs:
            wanted, found = (torch.utils._pytree.tree_leaves(f(given)) for f in (model, run))
            for ours, theirs in zip(found, wanted):
                if isinstance(theirs, torch.Tensor):
                    close(ours, theirs, 1e-5, "a result")
    assert counters["stats"]["unique_graphs"] <= 2 and not counters["graph_break"]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_model_of_three_batches(name):
    make, given = NETWORKS[name]
    check_inference(make().eval(), [given(batch) for batch in (3, 5, 2)],
                    freeze=name in ("convolutional", "language"))


@pytest.mark.skipif(not has_transformers(), reason="transformers is not installed")
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_model_of_transformers(name):
    import transformers

    configuration, sizes = TRANSFORMERS[name]
    model = getattr(transformers, name)(getattr(transformers, configuration)(**sizes)).eval()
    check_inference(model, [torch.randint(0, 19, (batch, 7)) for batch in (1, 3, 4)])


@pytest.mark.parametrize("bias", [True, False])
def test_an_lstm_that_torch_has_whole(bias):
    model = torch.nn.LSTM(3, 5, 2, bias=bias, batch_first=True, bidirectional=True).eval()
    with torch._dynamo.config.patch(allow_rnn=True):
        check_inference(model, [torch.randn(batch, 7, 3) for batch in (2, 3)])
    assert counters["stats"]["unique_graphs"]


def step(model, run, given):
    """The loss of one step, and the gradients."""
    model.zero_grad()
    loss = run(given).square().mean()
    loss.backward()
    return loss.detach(), {name: value.grad.clone() for name, value in model.named_parameters()}


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients(name):
    make, given = NETWORKS[name]
    model = make().train()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    run = compiled(model)
    for batch in (4, 3):
        x = given(batch)
        model.load_state_dict(state)
        loss, wanted = step(model, model, x)
        after = {key: value.clone() for key, value in model.state_dict().items()}
        model.load_state_dict(state)
        ours, found = step(model, run, x)
        close(ours, loss, 1e-5, "the loss")
        most = max(float(value.abs().max()) for value in wanted.values())
        for key, value in wanted.items():
            assert float((found[key] - value).abs().max()) <= 1e-4 * most, key
        for key, value in model.state_dict().items():  # running statistics
            torch.testing.assert_close(value, after[key])
    assert not counters["graph_break"]


def test_the_backward_reads_the_mask_of_the_forward():
    x = torch.ones(1000, requires_grad=True)
    y = compiled(lambda x: torch.nn.functional.dropout(x * 2, 0.5))(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_what_a_backward_keeps_is_not_copied(monkeypatch):
    """Weights are kept as views of themselves, and views of a result as views of that."""
    models, made = [], heddle.torch.dynamo.translate

    def watched(*given):
        models.append(made(*given))
        return models[-1]

    monkeypatch.setattr(heddle.torch.dynamo, "translate", watched)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 4))
    run, x = compiled(model), torch.randn(3, 2, 6)
    _, wanted = step(model, model, x)
    for _ in range(2):
        _, found = step(model, run, x)
        torch.testing.assert_close(found, wanted)
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(0.5)
        _, wanted = step(model, model, x)
    kinds = [result[0] for result in models[0].results]
    assert "view of input" in kinds and "view" in kinds
    sizes = [[dim.dim_value for dim in output.type.tensor_type.shape.dim]
             for output in models[0].proto.graph.output]
    assert [5, 4] not in sizes and [4, 5] not in sizes


def test_gradients_of_inputs_and_of_a_second_call():
    run = compiled(lambda x, w: torch.tanh(x @ w))
    for _ in range(2):
        x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
        found = torch.autograd.grad(run(x, w).sum(), (x, w))
        wanted = torch.autograd.grad(torch.tanh(x @ w).sum(), (x, w))
        torch.testing.assert_close(found, wanted)


def test_an_optimiser_trains():
    model = NETWORKS["mlp"][0]()
    run, optimiser = compiled(model), torch.optim.Adam(model.parameters(), 1e-2)
    x, classes = torch.randn(32, 6), torch.arange(32) % 3
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(run(x), classes)
        loss.backward()
        optimiser.step()
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]
