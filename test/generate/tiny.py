"""Tiny random decoders as safetensors, and a tokenizer of bytes."""

import json

import numpy as np
from safetensors.numpy import save_file

WORDS = 300
COMMON = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": WORDS,
          "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
          "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
          "pad_token_id": 0}
FAMILIES = {
    "llama": {"rope_scaling": {
        "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}},
    "mistral": {"sliding_window": 5},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {"rope_scaling": {"rope_type": "yarn", "factor": 2.0,
                               "original_max_position_embeddings": 128}},
    "phi3": {"sliding_window": 9},
    "gemma": {"hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True},
    "gemma2": {"hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True,
               "sliding_window": 4, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 5.0,
               "final_logit_softcapping": 3.0,
               "layer_types": ["sliding_attention", "full_attention"]},
    "gemma3_text": {"hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True,
                    "sliding_window": 4, "query_pre_attn_scalar": 16,
                    "rope_local_base_freq": 100.0,
                    "layer_types": ["sliding_attention", "full_attention"]},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "vocab_size": WORDS,
             "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "bos_token_id": 1,
             "eos_token_id": 2, "tie_word_embeddings": True},
}


def config(name):
    """The config.json of a family, as a dictionary."""
    common = {} if name == "gpt2" else COMMON
    return {"model_type": name, **common, **FAMILIES[name]}


def shapes(name):
    """Shapes of a family's tensors."""
    if name == "gpt2":
        found = {"transformer.wte.weight": (WORDS, 32), "transformer.wpe.weight": (256, 32)}
        for i in range(2):
            block = f"transformer.h.{i}."
            for part, rows, columns in (("attn.c_attn", 32, 96), ("attn.c_proj", 32, 32),
                                        ("mlp.c_fc", 32, 128), ("mlp.c_proj", 128, 32)):
                found |= {f"{block}{part}.weight": (rows, columns),
                          f"{block}{part}.bias": (columns,)}
            found |= {f"{block}{part}.{kind}": (32,) for part in ("ln_1", "ln_2")
                      for kind in ("weight", "bias")}
        return found | {f"transformer.ln_f.{kind}": (32,) for kind in ("weight", "bias")}
    found = {"model.embed_tokens.weight": (WORDS, 32), "model.norm.weight": (32,)}
    if not config(name)["tie_word_embeddings"]:
        found["lm_head.weight"] = (WORDS, 32)
    for i in range(2):
        block = f"model.layers.{i}."
        products = {"self_attn.q_proj": (32, 32), "self_attn.k_proj": (16, 32),
                    "self_attn.v_proj": (16, 32), "mlp.gate_proj": (48, 32),
                    "mlp.up_proj": (48, 32)}
        if name == "phi3":
            products = {"self_attn.qkv_proj": (64, 32), "mlp.gate_up_proj": (96, 32)}
        products |= {"self_attn.o_proj": (32, 32), "mlp.down_proj": (32, 48)}
        found |= {f"{block}{part}.weight": shape for part, shape in products.items()}
        norms = ["input_layernorm", "post_attention_layernorm"]
        if name in ("gemma2", "gemma3_text"):
            norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
        found |= {f"{block}{norm}.weight": (32,) for norm in norms}
        if name in ("qwen3", "gemma3_text"):
            found |= {f"{block}self_attn.{part}_norm.weight": (8,) for part in "qk"}
        if name == "qwen2":
            found |= {f"{block}self_attn.{part}_proj.bias": products[f"self_attn.{part}_proj"][:1]
                      for part in "qkv"}
    return found


def weights(name, seed=0):
    random = np.random.default_rng(seed)
    made = {}
    for each, shape in shapes(name).items():
        words = 0.1 if name.startswith("gemma") else 1.0
        deviation = words if "embed" in each or "wte" in each else 0.35 if len(shape) == 2 else 0.1
        array = random.standard_normal(shape) * deviation
        is_norm = "norm" in each or ".ln_" in each
        if is_norm and each.endswith(".weight") and not name.startswith("gemma"):
            array += 1
        made[each] = array.astype(np.float32)
    return made


TEMPLATE = ("{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")


def tokenizer():
    """Bytes from 3 on, and some words of several bytes."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<s>", "</s>", *letters])}
    pairs = [(x, y) for x in "abcdefg" for y in "abcdef"][:WORDS - len(vocabulary)]
    vocabulary.update({x + y: len(vocabulary) + i for i, (x, y) in enumerate(pairs)})
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True) for token in ("<pad>", "<s>", "</s>")])
    return made


def write(folder, name, seed=0, settings=None):
    """A folder of the model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**config(name), **(settings or {})}))
    save_file(weights(name, seed), folder / "model.safetensors")
    tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"chat_template": TEMPLATE, "bos_token": "<s>", "eos_token": "</s>"}))
    return folder
