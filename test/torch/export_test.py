"""heddle.torch.export, to_onnx and Trainer."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import heddle  # noqa: E402
import heddle.torch  # noqa: E402
from modules import NETWORKS  # noqa: E402
from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("scales", torch.ones(3) * 2)

    def forward(self, x, shift):
        return self.drop(self.norm(self.layer(x))) * self.scales + shift


def test_an_artefact_has_the_names_of_the_module(tmp_path):
    net = Net().eval()
    path = tmp_path / "net.so"
    made = heddle.torch.export(net, (torch.randn(2, 4),), {"shift": torch.ones(3)},
                               dynamic_shapes={"x": {0: Dim("batch")}, "shift": None},
                               output=path, threads=1)
    assert [(each.name, each.shape) for each in made.inputs] == [("x", ["batch", 4]),
                                                                 ("shift", [3])]
    session = heddle.Session(path, threads=1)
    for batch in (1, 2, 7):
        x, shift = torch.randn(batch, 4), torch.randn(3)
        (y,) = session.run(None, {"x": x, "shift": shift}, tensors=torch.Tensor)
        torch.testing.assert_close(y, net(x, shift).detach())


def test_a_model_keeps_the_names_of_weights():
    proto = heddle.torch.to_onnx(Net().eval(), (torch.randn(2, 4), torch.ones(3)),
                                 dynamic_shapes=({0: Dim("batch")}, None))
    names = {each.name for each in proto.graph.initializer}
    assert {"layer.weight", "layer.bias", "norm.running_mean", "scales"} <= names
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize("name", ["convolutional", "language", "decoder"])
def test_modules_are_exported(name):
    make, given = NETWORKS[name]
    module, x = make().eval(), given(3)
    made = heddle.torch.export(module, (x,), threads=1)
    torch.testing.assert_close(torch.from_numpy(made(x)), module(x).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("module, given, said", [
    (len, (), "a torch.nn.Module is needed, but this is a builtin_function_or_method"),
    (Net(), (torch.randn(2, 4), torch.ones(3)), r"changes 'norm.*module.eval\(\) may end that"),
    (nn.Linear(2, 2), (torch.randn(2, 2, device="meta"),), "the device 'meta'"),
    (nn.Identity(), (torch.ones(2),), "a result of the module is one of its inputs")])
def test_what_cannot_be_exported_is_refused(module, given, said):
    with pytest.raises(heddle.Error, match=said):
        heddle.torch.export(module, given)


def test_an_op_without_a_rule_is_named():
    class Bessel(nn.Module):
        def forward(self, x):
            return torch.special.i1(x)

    with pytest.raises(heddle.RefusedError, match="'special_i1' .*export_test.py, line .*no rule"):
        heddle.torch.export(Bessel(), (torch.ones(2),))


def test_a_step_of_training_is_that_of_torch():
    module = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
    module[3].bias.requires_grad_(False)
    other = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
    other.load_state_dict(module.state_dict())
    other[3].bias.requires_grad_(False)
    trainer = heddle.torch.Trainer(
        module, (torch.randn(4, 6),), "cross_entropy", optimizer={"name": "sgd"}, learning_rate=0.1,
        dynamic_shapes=({0: Dim("batch")},), threads=1, recipe={"running_variance": "unbiased"})
    optimiser = torch.optim.SGD([p for p in other.parameters() if p.requires_grad], 0.1)
    for batch in (8, 5):
        x, classes = torch.randn(batch, 6), torch.arange(batch) % 3
        optimiser.zero_grad()
        wanted = nn.functional.cross_entropy(other(x), classes)
        wanted.backward()
        optimiser.step()
        loss = trainer.step({"input": x.numpy(), "labels": classes.numpy()})
        np.testing.assert_allclose(loss, wanted.item(), rtol=1e-5)
    trainer.write_back()
    assert module.training
    for name, value in other.state_dict().items():
        if name != "1.num_batches_tracked":
            torch.testing.assert_close(module.state_dict()[name], value, msg=name)
