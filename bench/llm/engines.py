"""Engines that generate: each computes one token after so many, or a prompt.

`prepare` writes what an engine reads beside the model, in a process before the one that is
measured. `compares` are those whose past is the same random numbers: their tokens' logits are.
"""

from pathlib import Path

import numpy as np

from bench.llm import network

WORD = 7


def prompt(length, words):
    return np.random.default_rng(length).integers(3, words, length)


def passed(shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


class Engine:
    """Common parts: `folder` holds the model, `kind` is that of its weights."""

    kinds = tuple(network.BITS)
    compares = False

    def __init__(self, job):
        self.folder, self.threads = Path(job.model).parent, job.threads
        self.kind, self.context = job.options["kind"], job.options["context"]
        self.kv_cache_type = job.options["kv_cache_type"]
        self.words = network.decoder(self.folder).words

    def prepare(self):
        pass

    def fresh(self):
        """Called before a token: an engine whose tokens go further and further returns."""


class Heddle(Engine):
    """heddle.generate's cache, with keys and values in place. Where weights are smaller than f32,
    other factors are of bf16, as OpenVINO has them."""

    compares = True

    def _open(self):
        from heddle.generate import model

        options = {} if self.kind == "f32" else {"math": "bf16"}
        options["kv_cache_type"] = self.kv_cache_type
        return model.open_model(self.folder / "model.onnx", self.context, self.threads,
                                cache=self.folder / "heddle", **options).layout

    def prepare(self):
        self._open()

    def load(self):
        self._layout = self._open()

    def start(self, past):
        from heddle.generate.cache import Cache

        self._cache, self._past = None, past
        self._cache = Cache(self._layout)
        self._cache.fill(past, passed)

    def token(self):
        self._cache.lengths[:] = self._past
        return self._cache.run([[WORD]])[0, -1]

    def prefill(self, length):
        self._cache.lengths[:] = 0
        return self._cache.run([prompt(length, self.words)])[0, -1]


class OnnxRuntime(Engine):
    """ONNX Runtime with past and present in one buffer, bound once. It has no products of bf16."""

    kinds = ("f32", "int8", "int4")
    compares = True

    def load(self):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        self._session = onnxruntime.InferenceSession(self.folder / "model.onnx", options,
                                                     providers=["CPUExecutionProvider"])
        self._pasts = [each for each in self._session.get_inputs()
                       if each.name.startswith("past_key_values")]

    def start(self, past):
        import onnxruntime

        self._past, self._values = past, {}
        for each in self._pasts:
            kept = np.zeros((1, each.shape[1], self.context, each.shape[3]), np.float32)
            kept[:, :, :past] = passed(kept[:, :, :past].shape)
            self._values[each.name] = onnxruntime.OrtValue.ortvalue_from_numpy(kept)

    def _run(self, tokens, total):
        binding = self._session.io_binding()
        binding.bind_cpu_input("input_ids", np.int64([tokens]))
        binding.bind_cpu_input("attention_mask", np.ones((1, total), np.int64))
        binding.bind_cpu_input("logits_at", np.int64([len(tokens) - 1]))
        binding.bind_output("logits")
        for name, value in self._values.items():
            binding.bind_ortvalue_input(name, value)
            binding.bind_ortvalue_output(name.replace("past_key_values", "present"), value)
        self._session.run_with_iobinding(binding)
        return binding.get_outputs()[0].numpy()[0, -1]

    def token(self):
        return self._run([WORD], self._past + 1)

    def prefill(self, length):
        return self._run(prompt(length, self.words), length)


class Onward(Engine):
    """One whose tokens are further and further; it begins anew where they are too far."""

    def start(self, past):
        self._past = past
        self.prefill(past)

    def fresh(self):
        if self.length() > self._past + 64 + self._past // 16:
            self.start(self._past)


class Genai(Onward):
    """onnxruntime-genai's Generator, greedy."""

    kinds = ("f32", "int8", "int4")

    def prepare(self):
        network.as_genai(self.folder, self.folder / "genai", self.threads, self.context)

    def load(self):
        import onnxruntime_genai

        self._library = onnxruntime_genai
        self._model = onnxruntime_genai.Model(str(self.folder / "genai"))
        self._generator = None

    def length(self):
        return len(self._generator.get_sequence(0))

    def prefill(self, length):
        options = self._library.GeneratorParams(self._model)
        options.set_search_options(max_length=self.context, min_length=self.context)
        self._generator = None  # one cache at a time
        self._generator = self._library.Generator(self._model, options)
        self._generator.append_tokens(prompt(length, self.words).astype(np.int32))
        return self._generator.get_logits()[0, -1]

    def token(self):
        self._generator.generate_next_token()


class OpenVino(Onward):
    """OpenVINO's runtime as it comes, of which weights of f32 alone are told how to compute: keys
    and values then have 8 bits, and where the CPU multiplies bf16 other weights do so, too."""

    def prepare(self):
        from bench.llm import openvino_model

        made = network.decoder(self.folder)
        openvino_model.Writer(made, network.Random(made, self.kind)).write(
            self.folder / "openvino.xml")

    def load(self):
        import openvino

        options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": self.threads}
        if self.kind in ("f32", "bf16"):
            options["INFERENCE_PRECISION_HINT"] = self.kind
        self._request = openvino.Core().compile_model(
            self.folder / "openvino.xml", "CPU", options).create_infer_request()

    def length(self):
        return self._length

    def _run(self, tokens):
        count = len(tokens)
        self._length += count
        self._request.infer({
            "input_ids": np.int64([tokens]), "attention_mask": np.ones((1, self._length), np.int64),
            "position_ids": np.arange(self._length - count, self._length)[None],
            "beam_idx": np.zeros(1, np.int32)})
        return self._request.get_tensor("logits").data[0, -1]

    def prefill(self, length):
        self._length = 0
        self._request.reset_state()
        return self._run(prompt(length, self.words))

    def token(self):
        return self._run([WORD])


class LlamaCpp(Engine):
    """llama.cpp with its defaults: keys and values of f16."""

    def prepare(self):
        from bench.llm import gguf_model

        made = network.decoder(self.folder)
        gguf_model.write(made, network.Random(made, self.kind), self.kind,
                         self.folder / "model.gguf", self.context)

    def load(self):
        import llama_cpp

        self._library = llama_cpp
        llama_cpp.llama_backend_init()
        self._model = llama_cpp.llama_model_load_from_file(
            str(self.folder / "model.gguf").encode(), llama_cpp.llama_model_default_params())
        if not self._model:
            raise RuntimeError("llama.cpp cannot load the model: its log says why")
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = self.context
        options.n_threads = options.n_threads_batch = self.threads
        self._held = llama_cpp.llama_init_from_model(self._model, options)
        self._most = llama_cpp.llama_n_batch(self._held)
        self._batch = llama_cpp.llama_batch_init(self._most, 0, 1)

    def _run(self, tokens, past):
        memory = self._library.llama_get_memory(self._held)
        self._library.llama_memory_seq_rm(memory, 0, past, -1)
        for begin in range(0, len(tokens), self._most):
            part, batch = tokens[begin:begin + self._most], self._batch
            batch.n_tokens = len(part)
            for i, token in enumerate(part):
                batch.token[i], batch.pos[i] = token, past + begin + i
                batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
                batch.logits[i] = begin + i == len(tokens) - 1
            status = self._library.llama_decode(self._held, batch)
            if status:
                raise RuntimeError(f"llama_decode gives {status}")
        logits = self._library.llama_get_logits_ith(self._held, len(part) - 1)
        return np.ctypeslib.as_array(logits, (self.words,)).copy()

    def start(self, past):
        self._past = past
        self.prefill(past)

    def token(self):
        return self._run([WORD], self._past)

    def prefill(self, length):
        return self._run(prompt(length, self.words).tolist(), 0)


ENGINES = {"heddle": Heddle, "onnxruntime": OnnxRuntime, "genai": Genai, "openvino": OpenVino,
           "llamacpp": LlamaCpp}
