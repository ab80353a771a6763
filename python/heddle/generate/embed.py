"""embed: vectors of texts by BERT and its like, in folders as sentence-transformers has them.

The model gives a vector for each token, the folder says how one for the text comes of them.
SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
from pathlib import Path

import numpy as np

from .. import compiler, onnx_graph
from ..library import RefusedError, UsageError
from ..session import Session
from . import families, network, safetensors
from .model import Facts, bounded, compiled, read_json
from .text import Words

MASK, TYPES, HIDDEN = network.MASK, "token_type_ids", "last_hidden_state"
WHOLE = "sentence_embedding"  # output of models that pool themselves
TYPICAL = {network.BATCH: 8, network.SEQUENCE: 64}
ONLY = {"is_decoder": False, "position_embedding_type": "absolute"}
# Families: the name of the whole in tensors, and the first position, after those of padding.
FAMILIES = {"bert": ("bert", 0), "roberta": ("roberta", 2), "xlm-roberta": ("roberta", 2)}
POOLINGS = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens",
            "max": "pooling_mode_max_tokens"}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of an encoder, with the names that network.Writer reads."""

    root: str
    first: int
    layers: int
    width: int
    heads: int
    hidden: int
    words: int
    context: int
    epsilon: float
    activation: str

    @property
    def head_size(self):
        return self.width // self.heads

    @property
    def scale(self):
        return self.head_size**-0.5


def sizes(values, where):
    """The Sizes that a config.json, as a dictionary, tells."""
    config = families.Config(values, where)
    root, first = FAMILIES[config.text("model_type", FAMILIES)]
    families.check_fields(config, ONLY)
    width = config.number("hidden_size", most=families.MOST_WIDTH)
    heads = config.number("num_attention_heads", most=families.MOST_WIDTH)
    if width % heads:
        config.refuse("num_attention_heads", f"a number that divides 'hidden_size', {width}")
    return Sizes(root, first, config.number("num_hidden_layers", most=1000), width, heads,
                 config.number("intermediate_size", most=1 << 20), config.number("vocab_size"),
                 config.number("max_position_embeddings", 512, first + 1) - first,
                 config.number("rms_norm_eps", 1e-12, 0, 1, float),
                 families.ACTIVATIONS[config.text("hidden_act", families.ACTIVATIONS, "gelu")])


class Writer(network.Writer):
    """Adds the nodes of an encoder to a network."""

    def norm(self, x, source, name):
        scale, shift = (self.net.constant(self.weights.read(f"{source}.{each}"), f"{source}.{each}")
                        for each in ("weight", "bias"))
        return self.net.op("LayerNormalization", x, scale, shift, name=name, axis=-1,
                           epsilon=self.made.epsilon)

    def write(self):
        made, net = self.made, self.net
        net.input(network.INPUTS, [network.BATCH, network.SEQUENCE], onnx_graph.INT64)
        net.input(MASK, [network.BATCH, network.SEQUENCE], onnx_graph.INT64)
        top = f"{made.root}.embeddings"
        words = self.table(f"{top}.word_embeddings.weight", made.words)
        places = self.table(f"{top}.position_embeddings.weight", made.first + made.context)
        places = places[made.first:] + self.weights.read(f"{top}.token_type_embeddings.weight")[0]
        zero, one = net.constant(np.int64([0]), "zero"), net.constant(np.int64([1]), "one")
        count = net.op("Slice", net.op("Shape", network.INPUTS), one,
                       net.constant(np.int64([2]), "two"), name="count")
        x = net.op("Gather", net.constant(words, "words"), network.INPUTS, name="embed", axis=0)
        x = net.op("Add", x, net.op("Slice", net.constant(places, "places"), zero, count, zero),
                   name="placed")
        x = self.norm(x, f"{top}.LayerNorm", "norm")
        seen = net.op("Cast", MASK, to=onnx_graph.FLOAT)
        lacks = net.op("Sub", net.constant(np.float32(1)), seen)
        bias = net.op("Mul", net.op("Unsqueeze", lacks, net.constant(np.int64([1, 2]))),
                      net.constant(np.float32(network.NOTHING)), name="bias")
        for i in range(made.layers):
            x = self.layer(f"{made.root}.encoder.layer.{i}", f"layer.{i}", x, bias)
        net.nodes.append(onnx_graph.make_node("Identity", [x], [HIDDEN], HIDDEN))
        net.output(HIDDEN, [network.BATCH, network.SEQUENCE, made.width])
        return net.finish()

    def layer(self, source, name, x, bias):
        made, net = self.made, self.net
        heads = [self.split(self.linear(x, f"{source}.attention.self.{each}", f"{name}/{each}",
                                        made.width), f"{name}/{each}s")
                 for each in ("query", "key", "value")]
        y = self.linear(self.attend(*heads, bias, f"{name}/attention"),
                        f"{source}.attention.output.dense", f"{name}/o", made.width)
        x = self.norm(net.op("Add", x, y), f"{source}.attention.output.LayerNorm", f"{name}/norm")
        y = self.active(self.linear(x, f"{source}.intermediate.dense", f"{name}/up", made.hidden),
                        f"{name}/active")
        y = self.linear(y, f"{source}.output.dense", f"{name}/down", made.width)
        return self.norm(net.op("Add", x, y), f"{source}.output.LayerNorm", f"{name}/out")


def is_embedder(path):
    """True for the folder of a model that gives vectors."""
    path = Path(path)
    return (path / "modules.json").exists() or (
        path.is_dir() and read_json(path / "config.json").get("model_type") in FAMILIES)


@dataclasses.dataclass
class Recipe:
    """Steps from the vectors of tokens to that of a text, and from a text to its tokens."""

    pooling: str = "mean"
    normalises: bool = False
    longest: int | None = None
    lowers: bool = False
    prompts: dict = dataclasses.field(default_factory=dict)
    prompt: str | None = None  # the name of the one that is taken where none is named
    takes_prompts: bool = True  # among the tokens that are pooled


def _pooling(values, where):
    if isinstance(values.get("pooling_mode"), str):
        chosen = [values["pooling_mode"]]
    else:
        names = {field: name for name, field in POOLINGS.items()}
        chosen = [names.get(key, key) for key, value in values.items()
                  if key.startswith("pooling_mode_") and value]
    if len(chosen) != 1 or chosen[0] not in POOLINGS:
        raise RefusedError(f"{where}: the pooling is {', '.join(chosen) or 'none'}; supported: one "
                           f"of {', '.join(POOLINGS)}")
    return chosen[0]


def recipe(folder):
    """The Recipe of a folder; without a modules.json the mean of all tokens."""
    made, path = Recipe(), folder / "modules.json"
    for module in read_json(path, kind=list) if path.exists() else []:
        kind, place = (str(module.get(key, "")) if isinstance(module, dict) else ""
                       for key in ("type", "path"))
        kind = kind.rsplit(".", 1)[-1]
        if kind not in ("Transformer", "Pooling", "Normalize") or Path(place).name != place:
            raise RefusedError(f"'{path}': has a module '{kind}' in '{place}'; supported: "
                               "Transformer, Pooling and Normalize, in folders beside it")
        if kind == "Transformer" and place:
            raise RefusedError(f"'{path}': the model is in '{place}', but must be in the folder "
                               "itself")
        if kind == "Pooling":
            values = read_json(folder / place / "config.json", optional=False)
            made.pooling = _pooling(values, f"'{folder / place / 'config.json'}'")
            made.takes_prompts = values.get("include_prompt") is not False
        made.normalises |= kind == "Normalize"
    values = read_json(folder / "sentence_bert_config.json")
    longest = values.get("max_seq_length") or read_json(folder / "tokenizer_config.json").get(
        "model_max_length")  # which is huge where there is no limit
    made.longest = longest if isinstance(longest, int) and longest > 0 else None
    made.lowers = values.get("do_lower_case") is True
    path = folder / "config_sentence_transformers.json"
    values = read_json(path)
    made.prompts, made.prompt = values.get("prompts") or {}, values.get("default_prompt_name")
    if not isinstance(made.prompts, dict) or not all(
            isinstance(each, str) for each in made.prompts.values()) or not (
            made.prompt is None or isinstance(made.prompt, str) and made.prompt in made.prompts):
        raise RefusedError(f"'{path}': 'prompts' must be an object of texts, and "
                           "'default_prompt_name' a name among them")
    return made


class Embedder:
    """A model that gives a vector for a text.

    model       A folder of config.json, tokenizer.json and model.onnx or *.safetensors, with
                modules.json and what it names as sentence-transformers has them.
    max_length  Tokens of the longest text; default: what the folder says.
    options     Those of heddle.compile, such as `threads`.
    """

    def __init__(self, model, *, max_length=None, threads=None, **options):
        folder = Path(model)
        if not folder.is_dir():
            raise UsageError(f"'{folder}': there is no such folder")
        where, config = f"'{folder}'", read_json(folder / "config.json")
        self.recipe = recipe(folder)
        path = next((folder / name for name in ("model.onnx", "onnx/model.onnx")
                     if (folder / name).exists()), None)
        values = families.Config(config, f"'{folder / 'config.json'}'")
        words, context = values.number("vocab_size"), self.recipe.longest
        if path is None:
            made = sizes(config, values.where)
            context = min(made.context, context or made.context)
        elif "max_position_embeddings" in config:
            first = FAMILIES.get(config.get("model_type"), ("", 0))[1]
            most = values.number("max_position_embeddings", least=first + 1) - first
            context = min(most, context or most)
        self.facts = Facts(folder.resolve().name, where, words, bounded(context, max_length, where))
        if path is None:
            weights = safetensors.Safetensors(folder)
            if not weights.files:
                raise UsageError(f"{where}: has no model: neither model.onnx nor *.safetensors")
            module = compiled(
                lambda path: network.write(made, weights, path, made.context, Writer), "encoder",
                [folder / "config.json", *weights.files, __file__], made.context, threads,
                {"typical": TYPICAL, **options})
        else:
            module = compiler.compile(path, threads=threads, **options)
        self.session = Session(module, threads)
        self._inputs = [info.name for info in self.session.get_inputs()]
        self._output = self._chosen_output(path or folder)
        self.tokenizer = self._cutting = None
        if (path := folder / "tokenizer.json").exists():
            self.tokenizer = Words.read(path, words)
            self._cutting = Words.read(path, words, self.facts.context)

    def _chosen_output(self, path):
        """The output with vectors of texts, or of tokens."""
        known = {network.INPUTS, MASK, TYPES}
        if network.INPUTS not in self._inputs or set(self._inputs) - known:
            raise RefusedError(f"'{path}': is no encoder of texts: it takes "
                               f"{', '.join(self._inputs)}, but must take input_ids, and may take "
                               "attention_mask and token_type_ids")
        found = {info.name: info for info in self.session.get_outputs()
                 if len(info.shape) == (2 if info.name == WHOLE else 3)
                 and isinstance(info.shape[-1], int)}
        if not found:
            outputs = ", ".join(f"{info.name} {info.shape}" for info in self.session.get_outputs())
            raise RefusedError(f"'{path}': gives {outputs}, none of which is [batch, tokens, size] "
                               "with a number as its size")
        return found.get(WHOLE) or next(iter(found.values()))

    def tokens(self, text, prompt=None, truncate=False):
        """The tokens of a text, after a prompt that the folder names; or tokens, checked."""
        if isinstance(text, str):
            if self.tokenizer is None:
                raise UsageError(f"{self.facts.where}: has no tokenizer.json; give tokens instead "
                                 "of a text")
            text = self._prompted(text, prompt)
            words = self._cutting if truncate else self.tokenizer
            found = words.encode(text.lower() if self.recipe.lowers else text)
        else:
            try:
                found = [each.__index__() for each in text]
            except (TypeError, AttributeError):
                raise UsageError("a text must be a str, or a list of tokens, which are integers"
                                 ) from None
        wrong = next((each for each in found if not 0 <= each < self.facts.words), None)
        if wrong is not None:
            raise UsageError(f"token {wrong} is none of the model's: {self.facts.where} has tokens "
                             f"from 0 to {self.facts.words - 1}")
        if not found:
            raise UsageError("the text is empty: it has no tokens")
        if len(found) > self.facts.context:
            raise UsageError(f"the text has {len(found)} tokens, but {self.facts.where} takes "
                             f"{self.facts.context}; 'truncate' leaves out the rest of a text")
        return found

    def _prompted(self, text, prompt):
        known, name = self.recipe.prompts, self.recipe.prompt if prompt is None else prompt
        if name is not None and not (isinstance(name, str) and name in known):
            raise UsageError(f"there is no prompt {name!r}; {self.facts.where} has: "
                             f"{', '.join(known) or 'none'}")
        if name and known[name] and not self.recipe.takes_prompts:
            raise UsageError(f"{self.facts.where}: leaves prompts out of its pooling, which is not "
                             "supported")
        return known.get(name, "") + text

    def embed(self, texts, *, prompt=None, truncate=False, batch=32):
        """Vectors [texts, size] as f32, or that of one text [size]. A text may be a list of its
        tokens. `prompt` names one of config_sentence_transformers.json, which goes before each;
        texts that are too long are refused, or cut with `truncate`; so many of a `batch` are
        computed at once."""
        is_one = isinstance(texts, str)
        lists = [self.tokens(each, prompt, truncate) for each in ([texts] if is_one else texts)]
        if not hasattr(batch, "__index__") or batch < 1:
            raise UsageError(f"'batch' is {batch!r}, but must be a number from 1 on")
        vectors = [None] * len(lists)
        order = sorted(range(len(lists)), key=lambda i: len(lists[i]))  # little padding
        while order:
            rows = order[:batch]
            if MASK not in self._inputs:  # nothing would tell padding from tokens
                rows = [i for i in rows if len(lists[i]) == len(lists[rows[0]])]
            order = order[len(rows):]
            for row, vector in zip(rows, self._run([lists[i] for i in rows])):
                vectors[row] = vector
        made = np.stack(vectors) if vectors else np.zeros((0, self.size), np.float32)
        return made[0] if is_one else made

    @property
    def size(self):
        """Numbers of a vector."""
        return self._output.shape[-1]

    def _run(self, lists):
        mask = np.zeros((len(lists), max(map(len, lists))), np.int64)
        tokens = np.zeros_like(mask)
        for row, each in enumerate(lists):
            tokens[row, :len(each)], mask[row, :len(each)] = each, 1
        feeds = {network.INPUTS: tokens, MASK: mask, TYPES: np.zeros_like(mask)}
        made, = self.session.run([self._output.name], {name: feeds[name] for name in self._inputs})
        made = np.asarray(made, np.float32)
        if made.ndim == 3:
            seen = mask[..., None] > 0
            if self.recipe.pooling == "cls":
                made = made[:, 0]
            elif self.recipe.pooling == "max":
                made = np.where(seen, made, -np.inf).max(1)
            else:
                made = np.where(seen, made, 0).sum(1) / seen.sum(1)
        if self.recipe.normalises:
            made = made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
        return np.asarray(made, np.float32)
