"""Engines that generate: each computes one token after so many, or a prompt."""

import numpy as np

WORD = 7


class Heddle:
    """heddle.generate's cache, with keys and values in place."""

    def __init__(self, folder, threads, context, **options):
        from heddle.generate import model

        self.layout = model.open_model(folder / "model.onnx", context, threads, **options).layout

    def start(self, past):
        from heddle.generate.cache import Cache

        self._cache, self._past = Cache(self.layout), past
        random = np.random.default_rng(0)
        self._cache.fill(past, lambda shape: random.standard_normal(shape, np.float32))

    def token(self):
        self._cache.lengths[:] = self._past
        return self._cache.run([[WORD]])[0, -1]

    def prefill(self, length):
        self._cache.lengths[:] = 0
        return self._cache.run([np.full(length, WORD)])[0, -1]


class OnnxRuntime:
    """ONNX Runtime with past and present in one buffer, bound once."""

    def __init__(self, folder, threads, context):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(folder / "model.onnx", options,
                                                     providers=["CPUExecutionProvider"])
        self._context, self._binding = context, None
        self._pasts = [each for each in self._session.get_inputs()
                       if each.name.startswith("past_key_values")]

    def start(self, past):
        import onnxruntime

        self._past, self._values, random = past, {}, np.random.default_rng(0)
        for each in self._pasts:
            kept = np.zeros((1, each.shape[1], self._context, each.shape[3]), np.float32)
            kept[:, :, :past] = random.standard_normal(kept[:, :, :past].shape, np.float32)
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
        return self._run([WORD] * length, length)


class Genai:
    """onnxruntime-genai's Generator, greedy. Its tokens are further and further."""

    def __init__(self, folder, threads, context):
        import onnxruntime_genai

        from bench.llm.network import as_genai

        as_genai(folder, folder / "genai", threads, context)
        self._library, self._context = onnxruntime_genai, context
        self._model = onnxruntime_genai.Model(str(folder / "genai"))
        self._generator = None

    def _new(self, length):
        options = self._library.GeneratorParams(self._model)
        options.set_search_options(max_length=self._context, min_length=self._context)
        self._generator = None  # one cache at a time
        self._generator = self._library.Generator(self._model, options)
        self._generator.append_tokens(np.full(length, WORD, np.int32))

    def start(self, past):
        self._past = past
        self._new(past)
        self._generator.generate_next_token()

    def token(self):
        if self._generator.is_done() or len(self._generator.get_sequence(0)) > self._past + 200:
            self._generator.rewind_to(self._past)
            self._generator.append_tokens(np.full(1, WORD, np.int32))
        self._generator.generate_next_token()

    def prefill(self, length):
        self._new(length)


ENGINES = {"heddle": Heddle, "onnxruntime": OnnxRuntime, "genai": Genai}
