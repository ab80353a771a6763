"""PyTorch, TorchInductor and JAX on the same networks, with the same weights.

Every engine takes its inputs from the host's memory, and leaves its result there.
"""

import importlib.util

import numpy as np

from bench.networks import seeded
from bench.networks.transformers import sizes_of

class Failed(Exception):
    """An engine that cannot run here; the text says why."""


def missing(engine, device):
    """A reason why the engine cannot run on "cuda" or "cpu", or ""; torch's f32 is f32 then."""
    package = "jax" if engine == "jax" else "torch"
    if importlib.util.find_spec(package) is None:
        return f"there is no {package}"
    if package == "torch":
        import torch
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        return "" if device == "cpu" or torch.cuda.is_available() else "torch sees no GPU"
    if device == "cuda":
        import jax
        if all(each.platform == "cpu" for each in jax.devices()):
            return "jax sees no GPU"
        if importlib.util.find_spec("onnx") is None:
            return "there is no onnx"
    return ""


def torch_module(name, changed):
    """The network in torch, without its weights."""
    from bench.networks.published import Part
    sizes = sizes_of(name, **changed)
    if name in ("vit_b_16", "resnet50"):
        import torchvision
        if name == "vit_b_16":
            return torchvision.models.VisionTransformer(
                sizes.places, 16, sizes.layers, sizes.heads, sizes.width, sizes.inner,
                num_classes=sizes.words)
        if sizes != sizes_of(name):
            raise Failed("torchvision has no ResNet-50 of other sizes")
        return torchvision.models.resnet50()
    import transformers as hugging
    if name == "gpt2":
        config = hugging.GPT2Config(n_layer=sizes.layers, n_embd=sizes.width, n_head=sizes.heads,
                                    n_inner=sizes.inner, vocab_size=sizes.words,
                                    n_positions=sizes.places)
        return Part(hugging.GPT2LMHeadModel(config), "logits", use_cache=False, logits_to_keep=1)
    if name == "t5_small_encoder":
        config = hugging.T5Config(num_layers=sizes.layers, d_model=sizes.width, d_ff=sizes.inner,
                                  d_kv=sizes.width // sizes.heads, num_heads=sizes.heads,
                                  vocab_size=sizes.words)
        return Part(hugging.T5EncoderModel(config))
    kind = "Bert" if name == "bert_base" else "Albert"
    config = getattr(hugging, kind + "Config")(
        num_hidden_layers=sizes.layers, hidden_size=sizes.width, num_attention_heads=sizes.heads,
        intermediate_size=sizes.inner, vocab_size=sizes.words)
    return Part(getattr(hugging, kind + "Model")(config), "pooler_output")


def seeded_module(name, folder, changed):
    """The same with the graph's weights, each of which has to have its place."""
    import torch
    module = torch_module(name, changed)
    inner = getattr(module, "model", module)
    drawn = {weight.name: weight for weight in seeded.weights(folder).values()}
    known, filled = inner.state_dict(), set()
    with torch.no_grad():
        for key, weight in drawn.items():
            if key not in known:
                raise Failed(f"torch's module has no '{key}'")
            known[key].copy_(torch.from_numpy(weight.draw()))
            filled.add(known[key].data_ptr())  # tied ones share it
    for key, tensor in known.items():
        if tensor.is_floating_point() and tensor.data_ptr() not in filled:
            raise Failed(f"the graph has no weight '{key}'")
    return module.eval()


class Torch:
    """`engine` is "eager" or "inductor"; with bf16 all of the module is."""

    def __init__(self, engine, name, folder, math, device, changed):
        import torch
        self.device, self.dtype = device, torch.bfloat16 if math == "bf16" else torch.float32
        module = seeded_module(name, folder, changed).to(device, self.dtype)
        self.module = module if engine == "eager" else torch.compile(
            module, mode="max-autotune", dynamic=False)

    def call(self, feeds):
        import torch
        given = [torch.from_numpy(value) for value in feeds.values()]

        def run():
            with torch.inference_mode():
                placed = [x.to(self.device, self.dtype if x.is_floating_point() else x.dtype)
                          for x in given]
                return self.module(*placed).float().cpu().numpy()
        return run


class Jax:
    """The graph, op by op, in one function that XLA compiles."""

    def __init__(self, engine, name, folder, math, device, changed):
        import jax
        import onnx

        from bench.training import jax_onnx
        model = onnx.load(folder / seeded.MODEL, load_external_data=False)
        held = [tensor for tensor in model.graph.initializer if not tensor.data_location]
        del model.graph.initializer[:]
        model.graph.initializer.extend(held)
        self.weights = {key: jax.device_put(seeded.value(key, weight))
                        for key, weight in seeded.weights(folder).items()}
        self.function = jax.jit(jax_onnx.function_of(model))
        self.precision = "bfloat16" if math == "bf16" else "highest"

    def call(self, feeds):
        import jax

        def run():
            with jax.default_matmul_precision(self.precision):
                return np.asarray(self.function(self.weights, feeds))
        return run


def opened(engine, *given):
    return (Jax if engine == "jax" else Torch)(engine, *given)


def torch_steps(case, math, device, steps):
    """A run of `steps` steps of a chain in torch, as a graph of CUDA where there is one."""
    import torch
    dtype = torch.bfloat16 if math == "bf16" else torch.float32
    kind = case.name.split()[0]

    def made(*sizes, scale=1.0):
        return torch.randn(*sizes, device=device).mul(scale).to(dtype)

    if kind == "products":
        rows, depth, columns = case.sizes
        up = made(depth, columns, scale=depth**-0.5)
        down = made(columns, depth, scale=columns**-0.5)
        first, step = made(rows, depth), lambda x: x @ up @ down
    elif kind == "attentions":
        *sizes, is_causal = case.sizes
        first, k, v = (made(*sizes) for _ in range(3))
        step = lambda q: torch.nn.functional.scaled_dot_product_attention(  # noqa: E731
            q, k, v, is_causal=is_causal)
    else:
        first, other = (torch.ones(case.sizes, device=device) for _ in range(2))
        step = lambda x: (other if x is first else first).copy_(x)  # noqa: E731

    def work():
        x = first
        for _ in range(steps):
            x = step(x)
        return x

    with torch.inference_mode():
        work()
        if device == "cpu":
            return work
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()

    def run():
        graph.replay()
        torch.cuda.synchronize()
    return run
