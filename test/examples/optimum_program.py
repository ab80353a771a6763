"""A program for optimum and sentence-transformers, which knows nothing of Heddle: generation and
embeddings by models with random weights, exported into FOLDER. Prints what it computes as JSON.

    optimum_program.py FOLDER [heddle]
"""

import json
import pathlib
import sys

if "heddle" in sys.argv[2:]:
    import heddle.onnxruntime

    heddle.onnxruntime.install()

import torch
import transformers
from optimum.onnxruntime import ORTModelForCausalLM, ORTModelForFeatureExtraction
from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertTokenizerFast, GPT2Config, LlamaConfig

FOLDER = pathlib.Path(sys.argv[1])
SIZES = {"vocab_size": 200, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
# Weights so large that the tokens differ from step to step.
DECODERS = {
    "gpt2": (transformers.GPT2LMHeadModel,
             GPT2Config(n_embd=64, n_layer=2, n_head=4, n_positions=128, initializer_range=0.4,
                        **SIZES)),
    "llama": (transformers.LlamaForCausalLM,
              LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                          num_attention_heads=4, num_key_value_heads=2, initializer_range=0.3,
                          **SIZES)),
}


def exported(name, make, kind):
    """The folder of the exported model."""
    folder = FOLDER / name
    if not folder.exists():
        torch.manual_seed(0)
        plain = FOLDER / f"{name}-torch"
        make().save_pretrained(plain)
        kind.from_pretrained(plain, export=True).save_pretrained(folder)
    return folder


def generate(name, binding):
    """Greedy and beam search."""
    kind, config = DECODERS[name]
    folder = exported(name, lambda: kind(config), ORTModelForCausalLM)
    model = ORTModelForCausalLM.from_pretrained(folder, use_io_binding=binding)
    prompt = torch.tensor([[5, 9, 17, 33, 4], [1, 1, 8, 90, 150]])
    for options in ({"do_sample": False}, {"do_sample": False, "num_beams": 3}):
        yield model.generate(input_ids=prompt, attention_mask=(prompt != 1).long(),
                             max_new_tokens=20, **options).tolist()


def embed():
    """Sentences by sentence-transformers' ONNX backend."""
    folder = FOLDER / "bert"
    config = BertConfig(vocab_size=30, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=64)
    exported("bert", lambda: transformers.BertModel(config), ORTModelForFeatureExtraction)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"the cat sat on a mat".split()]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    model = SentenceTransformer(str(folder), backend="onnx", device="cpu",
                                model_kwargs={"provider": "CPUExecutionProvider"})
    return model.encode(["the cat sat", "a mat", "on the mat sat the cat"]).tolist()


print(json.dumps({
    "tokens": {f"{name} {binding}": list(generate(name, binding))
               for name in DECODERS for binding in (False, True)},
    "embeddings": embed()}))
