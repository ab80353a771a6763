"""The benchmarks: `./dev bench NAME`.

    python -m bench NAME [OPTION...]    # as ./dev bench does, which also builds and installs
    python -m bench NAME --quick        # the smallest run, whose figures say nothing
    python -m bench --list              # what each answers
    python -m bench --needs NAME        # "FILE ENVIRONMENT": what goes into build/ENVIRONMENT

A benchmark is a module of bench, run in the environment that its requirements were installed into.
A quick run takes the tests' environment where that is not there, and keeps its results apart.
"""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("-", "python")
MODELS = ("bench/requirements.txt", "python")
PEERS = ("bench/peers/requirements.txt", "peers")
LLM = ("bench/llm/requirements.txt", "llm")
LEARNING = ("bench/learning/requirements.txt", "python")


@dataclass
class Benchmark:
    """A module below bench, the question that it answers, the options of its smallest run, and what
    is installed for it."""

    module: str
    title: str
    quick: str
    needs: tuple = TESTS


BENCHMARKS = {
    "models": Benchmark(
        "models.bench",
        "how long does every model take beside ONNX Runtime, with one and two threads?",
        "--models light_squeezenet --threads 1", MODELS),
    "peers": Benchmark(
        "peers.bench",
        "how fast is Heddle beside ONNX Runtime, OpenVINO, TorchInductor, IREE and TVM? "
        "`--callers`: and with several callers at once?",
        "--models silero_vad --engines onnxruntime --threads 1 --seconds 0.1 --rounds 1 --callers "
        "2", PEERS),
    "llm": Benchmark(
        "llm.bench",
        "how long do a token and a prompt of a decoder take beside ONNX Runtime, its GenAI, "
        "OpenVINO and llama.cpp, and how much memory?",
        "--sizes tiny --kinds int4 --pasts 20 --prompts 9 --threads 1 --engines heddle onnxruntime "
        "--rounds 1 --turn 1", LLM),
    "serving": Benchmark(
        "llm.serving",
        "how long do first tokens and tokens take where many clients ask `heddle serve`, beside "
        "llama.cpp's servers?",
        "--sizes tiny --clients 2 --engines heddle --rounds 1 --turn 100", LLM),
    "peers-table": Benchmark(
        "peers.table", "writes what `peers` found into README.md and docs/generated/peers.md",
        "--into build/bench/quick", PEERS),
    "compile-time": Benchmark(
        "compile_time",
        "how does compile time grow with nodes, operands, inputs, outputs, named sizes, equal "
        "groups, trees and classes?",
        "chain --most 1250"),
    "start": Benchmark(
        "start",
        "what do a session and its first run take in a new process, beside ONNX Runtime: "
        "seconds and memory?",
        "--models light_squeezenet --rounds 1"),
    "calls": Benchmark(
        "calls", "what does a call from Python cost, beside ONNX Runtime?",
        "--rounds 1 --turn 0.1"),
    "cards": Benchmark(
        "cards",
        "which card takes which groups of the catalogue, by which loops, and which take none?",
        "--models light_squeezenet"),
    "ops": Benchmark(
        "ops.bench", "how fast is every op alone beside ONNX Runtime, small, usual and large?",
        "--match Relu --sizes small --rounds 1 --turn 1"),
    "ablation": Benchmark(
        "ablation",
        "what is each layer of the partitioner worth, in the transformers of PluS's Table 1 and in "
        "steps of training?",
        "--only wide_deep --rounds 1", PEERS),
    "go": Benchmark(
        "learning.go",
        "are plans for several devices by the learned policy better than those of HEFT, METIS "
        "and simulated annealing?",
        "--quick", LEARNING),
    "orders": Benchmark(
        "learning.orders",
        "what does an order of kernels bring that is searched for a low peak of memory?",
        "--only residual-step-clipped --rounds 1"),
    "matmuls": Benchmark(
        "kernels.matmuls", "how fast are f32 products with constant weights beside oneDNN's?",
        "--only 128x768x768 --rounds 1 --turn 1"),
    "short-layers": Benchmark(
        "kernels.short", "how fast are products and convolutions of bf16 beside oneDNN's?",
        "--only 7x7 --rounds 1 --turn 1", PEERS),
    "convolutions": Benchmark(
        "kernels.convolutions", "how fast is every convolution of eight CNNs beside oneDNN's?",
        "--only 64->64 --rounds 1 --turn 1"),
    "convolution-backward": Benchmark(
        "kernels.convolution_backward",
        "how fast are the gradients of convolutions, of their images and filters, beside "
        "PyTorch's?",
        "--only 960->960 --rounds 1 --turn 1", PEERS),
    "training": Benchmark(
        "training.bench",
        "is a step of training faster than that of XLA, TorchInductor and PyTorch, and does it "
        "need less memory?",
        "--only deepfm --engines heddle eager --rounds 1 --runs 1 --steps 2", PEERS),
    "torch": Benchmark(
        "torch.bench",
        "is torch.compile with Heddle faster than with TorchInductor, and than eager PyTorch: a "
        "forward pass, a step, a call, and the first one?",
        "--only mlp --of forward --engines eager --batches 1 --rounds 1 --turn 1", PEERS),
    "torch-agrees": Benchmark(
        "torch.agrees",
        "does torch.compile with Heddle give eager's results and gradients, in one graph, on "
        "models of torchvision and transformers?",
        "--only ghostnet", PEERS),
    "torch-ops": Benchmark(
        "torch.ops",
        "do the ops of torch's own list for tests give eager's results where torch.compile runs "
        "them with Heddle?",
        "--only add sort --samples 1", PEERS),
    "quadratic": Benchmark(
        "training.quadratic",
        "what do quadratic layers bring, which can be taken out, and what do they take beside "
        "PyTorch's?",
        "--seeds 1 --epochs 2", PEERS),
    "corpus": Benchmark(
        "learning.corpus",
        "measures candidates of many networks into one file, which models of costs learn from; "
        "goes on where it ended",
        "-o build/bench/quick/learning/measured.db --drawn 1 --published 0 --catalogue 0 --fuzz 0 "
        "--collect 2 --time 15"),
    "cost-models": Benchmark(
        "learning.evaluation",
        "how well do a roofline, boosted trees and a graph network order candidates of networks "
        "that they have not seen?",
        "--models analytic network --folds 2 --epochs 1 --most 40", LEARNING),
    "repeats": Benchmark(
        "learning.repeats",
        "how well could models order candidates at most, where timing is uncertain?",
        "--networks 1 --first 2 --collect 3 --passes 2 -o build/bench/quick/learning/repeats"),
    "tuning-with-model": Benchmark(
        "learning.tuning",
        "does a cost model save the tuner measurements, and what does that cost?",
        "--first 426 --networks 1 --catalogue --group-time 1 --candidates 1 --epochs 1 --most "
        "40 --turns 1"),
    "choosing": Benchmark(
        "learning.choosing",
        "is what a cost model chooses without measuring faster than what the rules choose?",
        "--networks 2 --catalogue 0 --turns 1 --epochs 1 --most 40"),
    "plans": Benchmark(
        "learning.plans",
        "do searches over whole plans find faster ones than the rules, and by which decisions?",
        "--drawn 1 --published 0 --catalogue 0 --time 4 --turns 3 --results "
        "build/bench/quick/learning/plans.jsonl"),
    "dynamic": Benchmark(
        "dynamic.bench",
        "is one artefact for all lengths, tuned for all at once, as fast as one for each?",
        "--only NT --lengths 5 24 --seconds 3 --rounds 1 --turn 1", PEERS),
    "attention": Benchmark(
        "kernels.attention", "how fast is attention beside ONNX Runtime's?",
        "--only 1x128xF --rounds 1 --turn 1"),
    "gpu": Benchmark(
        "gpu.bench",
        "on an NVIDIA GPU: are numbers right, and how fast are models and kernels beside PyTorch, "
        "TorchInductor, JAX, cuBLAS and SDPA?",
        "--emulated --tiny --rounds 1 --turn 1 --seconds 3000 --sections numbers models kernels "
        "sanitizer ragged training --artefacts build/bench/quick/gpu", PEERS),
    "ragged": Benchmark(
        "ragged.bench",
        "what does a batch of texts gain that is not padded, beside micro-batches, ONNX "
        "Runtime, OpenVINO and PyTorch with nested tensors? And its memory?",
        "--networks layer --sets CoLA --batch 4 --threads 1 --rounds 1 --turn 1", PEERS),
    "quantize": Benchmark(
        "quantize.bench",
        "are models that are quantised here nearer to f32 than those of ONNX Runtime, NNCF and "
        "Neural Compressor? `--finetune`: and what does fine-tuning gain?",
        "--models kws_fp32 --samples 5", PEERS),
    "precision": Benchmark(
        "precision.bench",
        "how fast and how far from f32 are models in bf16 and int8, beside OpenVINO as it comes "
        "and ONNX Runtime?",
        "--models kws_fp32 --threads 1 --seconds 0.1 --rounds 1", PEERS),
    "tolerance": Benchmark(
        "precision.tolerance",
        "does what --tolerance chooses hold its bound on unseen inputs, and what is it worth?",
        "--models kws_fp32 --unseen 2", PEERS),
    "weights": Benchmark(
        "quantize.weights",
        "how near to f32 are language models whose weights have 4 bits, by Heddle's methods and by "
        "others'?",
        "--steps 1 --samples 2 --only onnxruntime", PEERS),
    "peak": Benchmark(
        "models.peak",
        "which kernels of all models take the time, and how far are they from the machine's "
        "limits?",
        "--only silero_vad --rounds 1 --turn 1"),
    "c": Benchmark(
        "models.c", "how fast are models written as C files beside Heddle's own machine code?",
        "--only light_squeezenet --flags=-O0 --rounds 1 --turn 1"),
    "memory": Benchmark(
        "training.memory",
        "how long does a step of training take in less memory, where results are computed twice?",
        "--only deepfm --rounds 1 --shares 0.95", PEERS),
    "winograd": Benchmark(
        "kernels.winograd", "how fast are 3x3 convolutions in tiles, directly and by oneDNN?",
        "--only 512->512 --rounds 1 --turn 1"),
}


def find(name):
    """The benchmark; exits where there is none."""
    if name not in BENCHMARKS:
        raise SystemExit(f"no benchmark '{name}'; there are: {' '.join(sorted(BENCHMARKS))}")
    return BENCHMARKS[name]


def run(name, options):
    """Becomes the benchmark."""
    chosen = find(name)
    python = ROOT / "build" / chosen.needs[1] / "bin" / "python"
    if "--quick" in options:
        results = ROOT / "build" / "bench" / "quick"
        os.environ["HEDDLE_BENCH_RESULTS"] = str(results)
        shutil.rmtree(results / "learning", ignore_errors=True)  # it is not measured again if kept
        python, options = python if python.exists() else sys.executable, chosen.quick.split()
    os.execv(python, [str(python), "-m", f"bench.{chosen.module}", *options])


def main():
    words = sys.argv[1:]
    if words[:1] == ["--list"]:
        for name, each in BENCHMARKS.items():
            print(f"{name:22}{each.title}")
    elif words[:1] == ["--needs"]:
        print(*find(words[1]).needs)
    elif not words or words[0].startswith("-"):
        run("models", words)
    else:
        run(words[0], words[1:])


if __name__ == "__main__":
    main()
