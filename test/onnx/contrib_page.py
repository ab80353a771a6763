"""contrib_page: writes docs/generated/contrib-ops.md, ONNX Runtime's ops of com.microsoft with yes
or why not.

    python test/onnx/contrib_page.py
"""

import re
import subprocess
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "generated" / "contrib-ops.md"

HEAD = """# Ops of com.microsoft

Written by `test/onnx/contrib_page.py` from ONNX Runtime's schemas ({version}) and the importer's
table. {yes} of {all} are supported; a node of another one is refused with its name, and can be
given as a function ([ops of your own](../guide/custom-ops.md)).

| op | supported | remarks |
|---|---|---|
"""

WHY = {
    "a whole search with the model as its subgraph; loops of the caller do the same around a model":
        "BeamSearch GreedySearch Sampling WhisperBeamSearch",
    "holds a program of another compiler": "EPContext Snpe",
    "training only": "BitmaskDropout BitmaskBiasDropout",
    "takes a sparse tensor, which no input of a compiled model is": "SparseToDenseMatMul",
    "a layout or number format of one vendor's devices; the models run there only":
        "DequantizeBFP QuantizeBFP QuantizeWithOrder DequantizeWithOrder QOrderedAttention "
        "QOrderedGelu QOrderedLayerNormalization QOrderedLongformerAttention QOrderedMatMul "
        "GemmFloat8 MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight MatMulFpQ4 "
        "MatMulPacked NhwcConv",
    "written by ONNX Runtime's optimiser for CUDA only; run the model before that optimisation":
        "PackedAttention PackedMultiHeadAttention RemovePadding RestorePadding "
        "GatedRelativePositionBias RelativePositionBias DecoderAttention "
        "DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention LongformerAttention "
        "BiasSoftmax "
        "GatherPacked MatMulNBitsMlp MatMulNBitsQkv MatMulNBitsQLoRA RMSNormRotary "
        "FusedMatMulActivation",
    "of a serving engine: pages, packed batches or speculation are the engine's own state":
        "PagedAttention SparsePagedAttention PackedSparseAttentionIndexer MoEPacked "
        "PackedSparseAttentionIndexerMerge VarlenCausalConvWithState VarlenNGramHashMapping "
        "SpeculativePrefixCommit ConvStateReplay GatedDeltaNetStateReplay Mamba2Verify",
    "text before the model: tokenizers and hashes":
        "MurmurHash3 NGramHashMapping WordConvEmbedding",
    "of language models whose attention is linear or sparse; not yet":
        "MoEGroupRouter RouterGateUpProj SparseAttention SparseAttentionIndexer "
        "DynamicSparseAttention GatedDeltaNet "
        "EngramGate BranchwiseRMSNorm SwiGLU "
        "GemmaRotaryEmbedding HyperConnectionLowRankMix HyperConnectionPostMix "
        "HyperConnectionPreMix",
    "no exporter is known to write it; not yet":
        "AttnLSTM BifurcationDetector ConvTransposeWithDynamicPads "
        "DynamicTimeWarping "
        "MaxpoolWithMask",
    "float16 only in ONNX Runtime's own kernels; not yet": "NhwcFusedConv",
}
REASONS = {name: why for why, names in WHY.items() for name in names.split()}


def supported():
    """{op: remarks} of the importer's table."""
    table = subprocess.run(["heddle", "ops", "--markdown"], capture_output=True, text=True,
                           check=True).stdout
    return dict(re.findall(r"^\| (\w+) \| com\.microsoft \| [\d-]+ \| (.*?) ?\|$", table, re.M))


def known():
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    return sorted({schema.name for schema in get_all_operator_schema()
                   if schema.domain == "com.microsoft"})


def main():
    import onnxruntime

    yes, ops = supported(), known()
    rows = [f"| {name} | {'yes' if name in yes else 'no'} | {yes.get(name, REASONS.get(name))} |"
            for name in ops]
    head = HEAD.format(version=onnxruntime.__version__, yes=sum(name in yes for name in ops),
                       all=len(ops))
    PAGE.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
