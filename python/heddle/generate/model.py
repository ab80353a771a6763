"""model: the decoder of a folder or a file, compiled, with what is known about it.

A folder with a model.onnx is taken as it is; one of config.json and safetensors, or a GGUF file,
becomes an ONNX graph first (network.py), which the cache of compiled models then stands for.
SPDX-License-Identifier: Apache-2.0
"""

import functools
import inspect
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from .. import compiler, starts, workplace
from ..library import RefusedError, UsageError
from ..onnx_graph import nodes_of
from ..packages import need
from ..session import Session
from . import audio, cache, families, gguf, network, pairs, safetensors, text
from .encoder import Encoder

LONGEST = 4096  # tokens, where nobody asks for more: tables of rotations are as long
SETTLED = 10  # seconds, after which the cache of compiled models trusts a file of weights
OTHER_ATTENTION = {"Attention", "MultiHeadAttention"}
TYPICAL = {network.BATCH: 1, network.SEQUENCE: 1, network.TOTAL: 513}
TYPICAL_SOURCE = 128
WRITERS = sorted(Path(__file__).parent.glob("*.py"))  # another version makes other models


@dataclass
class Facts:
    """Statements of a model's files about it."""

    name: str
    where: str
    words: int
    context: int | None  # tokens that it can see at once
    eos: tuple = ()
    bos: int | None = None
    template: str | None = None
    tokens: dict = field(default_factory=dict)  # texts that templates name, as bos_token
    adds_bos: bool = False  # which the tokenizer leaves to its caller
    never: tuple = ()  # tokens that are not chosen
    never_first: tuple = ()


def read_json(path, optional=True, kind=dict):
    """The dictionary, or the list, of a JSON file; an empty one if there is none."""
    if optional and not path.exists():
        return kind()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"'{path}': cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"'{path}': is no JSON: {error}") from error
    if not isinstance(found, kind):
        raise RefusedError(f"'{path}': is a {type(found).__name__}, but must be "
                           f"{'an object' if kind is dict else 'a list'}")
    return found


def _ids(value, where):
    """Numbers of tokens, of one or of a list."""
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(each, int) and each >= 0 for each in values):
        raise RefusedError(f"{where}: tokens are {value!r}, but must be numbers from 0 on")
    return tuple(values)


def _template(folder, settings):
    """The text of a folder's chat template, or None."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return path.read_text(encoding="utf-8")
    given = settings.get("chat_template")
    if isinstance(given, list):  # several, by name
        named = {each.get("name"): each.get("template") for each in given if isinstance(each, dict)}
        given = named.get("default")
    return given if isinstance(given, str) else None


def _names(settings):
    """Texts of special tokens, by the names that templates have for them."""
    found = {}
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = settings.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            found[name] = value
    return found


def _facts_of_folder(folder, config, words, context):
    settings = read_json(folder / "tokenizer_config.json")
    where = f"'{folder}'"
    chosen = read_json(folder / "generation_config.json")
    eos = chosen.get("eos_token_id", config.get("eos_token_id"))
    bos = _ids(config.get("bos_token_id"), where)
    return Facts(folder.resolve().name, where, words, context, _ids(eos, where),
                 bos[0] if bos else None, _template(folder, settings), _names(settings))


class Model:
    """A compiled decoder. `layout` is how its cache enters a run; with `batches` rows of a batch
    may have lengths of their own: all attention goes by GroupQueryAttention. The `encoder`
    (encoder.py) reads the source of a text, where the model has one."""

    def __init__(self, module, facts, threads, words_of=None, batches=True, encoder=None):
        self.facts, self.batches, self.encoder = facts, batches, encoder
        self.session = Session(module, threads)
        self.layout = cache.Layout(self.session, facts.where, encoder is not None)
        self._words_of = words_of

    @property
    def has_words(self):
        return self._words_of is not None

    @functools.cached_property
    def words(self):
        """The tokenizer."""
        if self._words_of is None:
            raise UsageError(f"{self.facts.where}: has no tokenizer.json; give tokens instead of "
                             "a text")
        return self._words_of()


def add_options(parser, number=int):
    """Adds the flags of whoever opens a model."""
    parser.add_argument("--max-length", type=number, metavar="N",
                        help="tokens of prompt and answer together (default: what the model sees, "
                        "at most 4096)")
    parser.add_argument("--kv-cache-type", choices=("f32", "bf16", "f16", "int8"),
                        help="numbers of keys and values (default: those of the model)")
    parser.add_argument("--threads", type=number, metavar="N", help="default: as many as the "
                        "machine has")


def open_model(path, max_length=None, threads=None, **options):
    """The Model of a folder, of a .onnx or of a .gguf file."""
    path = Path(path)
    if not path.exists():
        raise UsageError(f"'{path}': there is no such file or folder")
    if "kv_cache" in options:
        raise UsageError("'kv_cache' is no option of a generator, whose keys and values have room "
                         "for as many tokens as 'max_length' says; give that one")
    if path.suffix == ".onnx":
        return _open_onnx(path, max_length, threads, options)
    if path.suffix == ".gguf":
        return _open_gguf(path, max_length, threads, options)
    if not path.is_dir():
        raise UsageError(f"'{path}': is neither a folder nor a .onnx or .gguf file")
    named = read_json(path / "genai_config.json").get("model", {})
    file = named.get("decoder", {}).get("filename", "model.onnx")
    if (path / file).exists():
        return _open_onnx(path / file, max_length, threads, options)
    if (path / "config.json").exists() and any(path.glob("*.safetensors")):
        return _open_safetensors(path, max_length, threads, options)
    files = sorted(path.glob("*.gguf"))
    if len(files) == 1:
        return _open_gguf(files[0], max_length, threads, options)
    raise UsageError(f"'{path}': has no model: neither model.onnx, nor config.json and "
                     "*.safetensors, nor one *.gguf"
                     + (f"; it has {len(files)} of these: name one" if files else ""))


def bounded(context, max_length, where):
    """Tokens that a text may have."""
    if max_length is not None and not (hasattr(max_length, "__index__")
                                       and 1 <= max_length <= 1 << 24):
        raise UsageError(f"'max_length' is {max_length!r}, but must be a number of tokens from 1 "
                         f"to {1 << 24}")
    if max_length is not None and context is not None and max_length > context:
        raise UsageError(f"'max_length' is {max_length}, but {where} sees {context} tokens")
    return max_length or min(context or LONGEST, LONGEST)


def _read_graph(path):
    """The graph of an ONNX model without its weights."""
    onnx = need("onnx", "a model.onnx", "generate")
    try:
        return onnx.load(path, load_external_data=False).graph
    except Exception as error:  # of protobuf, without a common class
        raise RefusedError(f"'{path}': is no ONNX model: {error}") from error


def _fixed(graph, config):
    """Sizes of keys and values that a graph leaves open, as config.json or genai_config.json has
    them."""
    decoder = {**config, **config.get("decoder", {})}
    heads = decoder.get("num_attention_heads")
    size = decoder.get("head_size") or decoder.get("head_dim")
    if size is None and heads and isinstance(decoder.get("hidden_size"), int):
        size = decoder["hidden_size"] // heads
    known = {1: decoder.get("num_key_value_heads") or heads, 3: size}
    return {dims[i].dim_param: known[i] for value in graph.input if cache.PAST.fullmatch(value.name)
            for dims in [value.type.tensor_type.shape.dim] for i in known
            if len(dims) == 4 and dims[i].dim_param and isinstance(known[i], int)}


def _open_onnx(path, max_length, threads, given):
    folder = path.parent
    config = read_json(folder / "genai_config.json").get("model") or read_json(
        folder / "config.json")
    graph = _read_graph(path)
    names = [value.name for value in graph.input]
    cache.check_names(names, [value.name for value in graph.output],
                      [name for name in names if cache.PAST.fullmatch(name)], f"'{path}'")
    sizes = {dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim}
    context = config.get("context_length") or config.get("max_position_embeddings") or config.get(
        "n_positions")
    context = bounded(context, max_length, f"'{path}'")
    options = {"typical": {name: size for name, size in TYPICAL.items() if name in sizes},
               "shapes": _fixed(graph, config), **given, "kv_cache": context}
    module = compiler.compile(path, threads=threads, **options)
    kinds = {node.op_type for node in nodes_of(graph)}
    logits = next((info for info in module.outputs if info.name == network.LOGITS), None)
    words = logits.shape[-1] if logits is not None and logits.shape else None
    words = words if isinstance(words, int) else config.get("vocab_size")
    if not isinstance(words, int):
        raise RefusedError(f"'{path}': neither 'logits' nor 'vocab_size' of config.json says how "
                           "many tokens there are")
    facts = _facts_of_folder(folder, config, words, context)
    return Model(module, facts, threads, _reader(folder / "tokenizer.json", words),
                 "GroupQueryAttention" in kinds and not kinds & OTHER_ATTENTION)


def _reader(path, words):
    return functools.partial(text.Words.read, path, words) if path.exists() else None


def compiled(write, kind, files, context, threads, options):
    """The module of a graph that `write(path)` makes of files, or the one of an earlier time."""
    bound = inspect.signature(compiler.compile).bind(None, threads=threads, **options)
    bound.apply_defaults()
    start = starts.Start(files[0], {**bound.arguments, "context": context, "kind": kind},
                         [*files[1:], *WRITERS])
    module = start.find()
    if module is not None:
        module.threads = threads
        return module
    with workplace.folder() as place:
        path = Path(place) / "model.onnx"
        write(path)
        past = time.time() - SETTLED
        for each in (path, f"{path}.data"):  # which nobody writes to again
            os.utime(each, (past, past))
        module = compiler.compile(path, threads=threads, **options)
    start.keep(module.compiled)
    return module


def _decoder(made, weights, files, context, threads, options):
    return compiled(lambda path: network.write(made, weights, path, context), "decoder", files,
                    context, threads, {"typical": TYPICAL, **options, "kv_cache": context})


def _open_safetensors(folder, max_length, threads, options):
    config = read_json(folder / "config.json")
    is_pair = config.get("model_type") in families.PAIRS
    made = (pairs.pair if is_pair else families.architecture)(
        config, f"'{folder / 'config.json'}'")
    context = bounded(made.context, max_length, f"'{folder}'")
    weights = safetensors.Safetensors(folder)
    files = [folder / "config.json", *weights.files]
    facts = _facts_of_folder(folder, config, made.words, context)
    words_of = _reader(folder / "tokenizer.json", made.words)
    if is_pair:
        return _open_pair(made, weights, files, facts, threads, options, words_of)
    module = _decoder(made, weights, files, context, threads, options)
    return Model(module, facts, threads, words_of)


def _open_pair(made, weights, files, facts, threads, options, words_of):
    """The Model of an encoder-decoder."""
    folder, context = files[0].parent, facts.context
    given = {**read_json(files[0]), **read_json(folder / "generation_config.json")}
    start = _ids(given.get("decoder_start_token_id"), facts.where)
    if len(start) != 1 or start[0] >= made.words:
        raise RefusedError(f"{facts.where}: 'decoder_start_token_id' is "
                           f"{given.get('decoder_start_token_id')!r}, but must be a token, from "
                           "which the decoder goes on")
    for name, key in (("never", "suppress_tokens"), ("never_first", "begin_suppress_tokens")):
        setattr(facts, name, tuple(each for each in _ids(given.get(key), facts.where)
                                   if each < made.words))
    ear = None
    if made.hears:
        path = folder / "preprocessor_config.json"
        ear = audio.ear_of(read_json(path), made.mels, made.frames, f"'{path}'")
    modules = []
    for kind, part, more in (("decoder", "write", {"kv_cache": context}),
                             ("encoder", "encoder", {"kv_cache_type": None})):
        typical = {network.BATCH: 1, pairs.SOURCE: made.frames // 2 or TYPICAL_SOURCE}
        if kind == "decoder":
            typical |= TYPICAL
        elif made.hears:
            del typical[pairs.SOURCE]
        modules.append(compiled(
            lambda path, part=part: network.write(made, weights, path, context, pairs.Writer, part),
            kind, files, context, threads, {"typical": typical, **options, **more}))
    encoder = Encoder(modules[1], facts, threads, start[0], ear, given)
    return Model(modules[0], facts, threads, words_of, encoder=encoder)


def _open_gguf(path, max_length, threads, options):
    file = gguf.File(path)
    made = file.architecture()
    context = bounded(made.context, max_length, f"'{path}'")
    module = _decoder(made, file, [path], context, threads, options)
    facts = Facts(path.stem, f"'{path}'", made.words, context, file.eos, file.bos, file.template,
                  file.token_names, file.adds_bos)
    beside = path.parent / "tokenizer.json"
    words_of = _reader(beside, made.words)
    if words_of is None:
        words_of = file.tokenizer
    else:
        facts.adds_bos = False
    return Model(module, facts, threads, words_of)
