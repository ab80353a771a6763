"""The models that torch.compile is tried with: those of torchvision and transformers, each family
once or twice and small, and plain ones as timm has them. Weights are random."""

from dataclasses import dataclass, field
from typing import Any, Callable

import torch
from torch import nn

from bench.networks import published
from bench.torch import plain

WORDS, LENGTH = 1000, 64
SMALL = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 512, "vocab_size": WORDS}
SHARED = {**SMALL, "num_key_value_heads": 2}
SIDE = {"image_size": 96}


@dataclass(frozen=True)
class Model:
    """How a model is made, and its arguments, by the batch: a tuple or a dict."""

    make: Callable[[], nn.Module]
    given: Callable[[int], Any] = field(repr=False)


def images(side=96, *more):
    return lambda batch: (torch.randn(batch, 3, *more, side, side),)


def tokens(batch):
    return {"input_ids": torch.randint(3, WORDS, (batch, LENGTH))}


def padded(batch):
    """Tokens of which those at the end of a text are not seen."""
    mask = (torch.arange(LENGTH) < LENGTH - 5 * torch.arange(batch)[:, None] % 32).long()
    return {**tokens(batch), "attention_mask": mask}


def pairs(batch):
    """Tokens of an encoder and of a decoder."""
    return {**padded(batch), "decoder_input_ids": torch.randint(3, WORDS, (batch, 16))}


def pixels(side=96, *before):
    return lambda batch: {"pixel_values": torch.randn(batch, *before, 3, side, side)}


def speech(batch):
    return {"input_values": torch.randn(batch, 8000)}


def short(batch):
    return {"input_ids": torch.randint(3, WORDS, (batch, 40))}


def numbers(name, *shape):
    return lambda batch: {name: torch.randn(batch, *shape)}


def several(*makers):
    """Arguments of several kinds together."""
    return lambda batch: {key: value for make in makers for key, value in make(batch).items()}


def spectrum(batch):
    return {"input_features": torch.randn(batch, 80, 100),
            "decoder_input_ids": torch.randint(3, WORDS, (batch, 16))}


def torchvision(family, name, **options):
    def make():
        from torchvision import models

        return getattr(getattr(models, family) if family else models, name)(weights=None, **options)
    return make


def classifier(name, side=96, **options):
    return Model(torchvision("", name, **options), images(side))


def transformer(name, given=tokens, sizes=SMALL, parts=(), **more):
    """A class of transformers, whose configuration has these sizes; `parts` names configurations
    within it, which have the sizes too."""
    def make():
        import transformers

        kind = getattr(transformers, name)
        every = {**sizes, **more}
        inner = {part: {**every, **extra} for part, extra in dict(parts).items()}
        return kind(kind.config_class(**(inner or every)))
    return Model(make, given)


VISION = {
    **{name: classifier(name) for name in (
        "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s",
        "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf",
        "regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x1_0",
        "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11", "vgg11_bn", "wide_resnet50_2")},
    "googlenet": classifier("googlenet", init_weights=False, aux_logits=False),
    "inception_v3": classifier("inception_v3", 128, init_weights=False),
    "vit_b_16": classifier("vit_b_16", image_size=96),
    "maxvit_t": Model(lambda: plain.maxvit(112), images(112)),
    **{name: Model(torchvision("segmentation", name, weights_backbone=None), images(64))
       for name in ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large")},
    **{name: Model(torchvision("video", name), images(48, 8)) for name in (
        "mc3_18", "r2plus1d_18", "r3d_18", "swin3d_t")},
    "s3d": Model(torchvision("video", "s3d"), images(224, 16)),
    "mvit_v2_s": Model(lambda: plain.mvit(64, 8), images(64, 8)),
    "raft_small": Model(torchvision("optical_flow", "raft_small"),
                        lambda batch: (*images(128)(batch), *images(128)(batch))),
}
PLAIN = {
    "mixer": Model(plain.Mixer, images()),
    "gmlp": Model(plain.GatedMixer, images()),
    "convmixer": Model(plain.convmixer, images()),
    "nfnet": Model(plain.NormalizerFree, images()),
    "ghostnet": Model(plain.ghostnet, images()),
    "xcit": Model(plain.Covariances, images()),
    "unet": Model(plain.UNet, images(64)),
    "split_attention": Model(plain.split_attention, images()),
    "repvgg": Model(plain.repvgg, images()),
    "lstm": Model(plain.Tagger, lambda batch: (torch.randint(0, 99, (batch, 12)),)),
}
ENCODERS = {
    "bert": transformer("BertForSequenceClassification", padded),
    "roberta": transformer("RobertaModel"),
    "xlm_roberta": transformer("XLMRobertaForTokenClassification", padded),
    "distilbert": transformer("DistilBertModel", padded, dim=256, n_layers=2, n_heads=4,
                              hidden_dim=512),
    "electra": transformer("ElectraModel", embedding_size=128),
    "albert": transformer("AlbertModel", embedding_size=64),
    "deberta": transformer("DebertaModel", padded, pos_att_type=["c2p", "p2c"],
                           relative_attention=True),
    "deberta_v2": transformer("DebertaV2Model", padded, pos_att_type=["c2p", "p2c"],
                              relative_attention=True, position_buckets=32),
    "mpnet": transformer("MPNetModel", padded),
    "mobilebert": transformer("MobileBertModel"),
    "squeezebert": transformer("SqueezeBertModel", embedding_size=256),
    "convbert": transformer("ConvBertModel", embedding_size=128),
    "roformer": transformer("RoFormerModel", padded),
    "fnet": transformer("FNetModel"),
    "nystromformer": transformer("NystromformerModel", segment_means_seq_len=64, num_landmarks=8),
    "big_bird": transformer("BigBirdModel", attention_type="original_full"),
    "ernie": transformer("ErnieModel"),
    "layoutlm": transformer("LayoutLMModel"),
    "megatron_bert": transformer("MegatronBertModel"),
    "rembert": transformer("RemBertModel", input_embedding_size=64),
    "xlnet": transformer("XLNetModel", d_model=256, n_layer=2, n_head=4, d_inner=512),
    "modernbert": transformer("ModernBertModel", padded, pad_token_id=0, bos_token_id=1,
                              eos_token_id=2, cls_token_id=1, sep_token_id=2),
    "esm": transformer("EsmModel", padded, pad_token_id=0, mask_token_id=2),
    "splinter": transformer("SplinterModel"),
    "funnel": transformer("FunnelBaseModel", sizes={"vocab_size": WORDS}, block_sizes=[1, 1],
                          d_model=256, n_head=4, d_head=64, d_inner=512),
    "longformer": transformer("LongformerModel", padded, attention_window=16,
                              max_position_embeddings=128),
    "ibert": transformer("IBertModel"),
}
DECODERS = {
    "gpt2": transformer("GPT2LMHeadModel"),
    "gpt_neo": transformer("GPTNeoForCausalLM", num_layers=2, num_heads=4,
                           attention_types=[[["global", "local"], 1]], window_size=16),
    "gptj": transformer("GPTJForCausalLM", rotary_dim=16),
    "gpt_neox": transformer("GPTNeoXForCausalLM"),
    "gpt_bigcode": transformer("GPTBigCodeForCausalLM"),
    "openai": transformer("OpenAIGPTLMHeadModel"),
    "ctrl": transformer("CTRLLMHeadModel", dff=512),
    "opt": transformer("OPTForCausalLM", padded, ffn_dim=512, word_embed_proj_dim=256),
    "bloom": transformer("BloomForCausalLM", padded),
    "mpt": transformer("MptForCausalLM"),
    "codegen": transformer("CodeGenForCausalLM", rotary_dim=16),
    "biogpt": transformer("BioGptForCausalLM"),
    "xglm": transformer("XGLMForCausalLM", ffn_dim=512),
    "falcon": transformer("FalconForCausalLM"),
    "phi": transformer("PhiForCausalLM"),
    "phi3": transformer("Phi3ForCausalLM", sizes=SHARED, pad_token_id=0),
    **{name: transformer(kind + "ForCausalLM", sizes=SHARED) for name, kind in {
        "llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "stablelm": "StableLm",
        "starcoder2": "Starcoder2", "olmo": "Olmo", "olmo2": "Olmo2", "cohere": "Cohere",
        "granite": "Granite", "nemotron": "Nemotron"}.items()},
    "smollm3": transformer("SmolLM3ForCausalLM", sizes=SHARED, pad_token_id=0),
    **{name: transformer(kind + "ForCausalLM", sizes=SHARED, head_dim=64) for name, kind in {
        "qwen3": "Qwen3", "gemma": "Gemma", "gemma2": "Gemma2", "gemma3": "Gemma3",
        "helium": "Helium"}.items()},
    "glm": transformer("GlmForCausalLM", sizes=SHARED, head_dim=64, pad_token_id=0),
    "mixtral": transformer("MixtralForCausalLM", sizes=SHARED, num_local_experts=4),
    "qwen2_moe": transformer("Qwen2MoeForCausalLM", sizes=SHARED, num_experts=4,
                             moe_intermediate_size=128, shared_expert_intermediate_size=128),
    "mamba": transformer("MambaForCausalLM", state_size=8),
    "rwkv": transformer("RwkvForCausalLM", use_cache=False, attention_hidden_size=256,
                        context_length=64),
}
PAIRS = {
    "t5": transformer("T5ForConditionalGeneration", pairs, d_model=256, d_kv=64, d_ff=512,
                      num_layers=2, num_heads=4),
    "mt5": transformer("MT5ForConditionalGeneration", pairs, d_model=256, d_kv=64, d_ff=512,
                       num_layers=2, num_heads=4),
    "switch": transformer("SwitchTransformersForConditionalGeneration", pairs, d_model=256, d_kv=64,
                          d_ff=512, num_layers=2, num_heads=4, num_experts=4),
    **{name: transformer(kind, pairs, d_model=256, encoder_layers=2, decoder_layers=2,
                         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=512,
                         decoder_ffn_dim=512, pad_token_id=0, sizes={"vocab_size": WORDS}, **more)
       for name, kind, more in (
           ("bart", "BartForConditionalGeneration", {}),
           ("pegasus", "PegasusForConditionalGeneration", {}),
           ("marian", "MarianMTModel", {"decoder_start_token_id": 0}),
           ("mbart", "MBartForConditionalGeneration", {}),
           ("m2m_100", "M2M100ForConditionalGeneration", {}),
           ("blenderbot", "BlenderbotForConditionalGeneration", {}))},
    "whisper": transformer("WhisperForConditionalGeneration", spectrum, d_model=256,
                           encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                           decoder_attention_heads=4, encoder_ffn_dim=512, decoder_ffn_dim=512,
                           max_source_positions=50, sizes={"vocab_size": WORDS}, pad_token_id=0,
                           bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
}
SOUND = {
    **{name: transformer(kind, speech, conv_dim=[64] * 7, num_conv_pos_embeddings=16,
                         num_conv_pos_embedding_groups=4, apply_spec_augment=False)
       for name, kind in (("wav2vec2", "Wav2Vec2Model"), ("hubert", "HubertModel"),
                          ("wavlm", "WavLMModel"), ("unispeech", "UniSpeechModel"))},
    "spectrogram": transformer("ASTModel", numbers("input_values", 64, 64), max_length=64,
                               num_mel_bins=64),
    "encodec": transformer("EncodecModel", numbers("input_values", 1, 2400), sizes={},
                           num_filters=8, num_residual_layers=1, hidden_size=32,
                           codebook_size=64, codebook_dim=32),
}
PICTURES = {
    **{name: transformer(kind, pixels(), **SIDE) for name, kind in (
        ("vit", "ViTForImageClassification"), ("deit", "DeiTForImageClassification"),
        ("beit", "BeitForImageClassification"), ("dinov2", "Dinov2ForImageClassification"),
        ("siglip", "SiglipVisionModel"), ("clip_vision", "CLIPVisionModel"))},
    "yolos": transformer("YolosForObjectDetection", pixels(), image_size=[96, 96]),
    "swin": transformer("SwinForImageClassification", pixels(64), {}, image_size=64, embed_dim=48,
                        depths=[2, 2], num_heads=[2, 4], window_size=4),
    "swinv2": transformer("Swinv2ForImageClassification", pixels(64), {}, image_size=64,
                          embed_dim=48, depths=[2, 2], num_heads=[2, 4], window_size=4),
    "convnext": transformer("ConvNextForImageClassification", pixels(), {}, depths=[1, 1, 2, 1]),
    "convnextv2": transformer("ConvNextV2ForImageClassification", pixels(), {},
                              depths=[1, 1, 2, 1]),
    "segformer": transformer("SegformerForSemanticSegmentation", pixels(), {}),
    "mobilevit": transformer("MobileViTForImageClassification", pixels(), {}, **SIDE),
    "mobilevitv2": transformer("MobileViTV2ForImageClassification", pixels(), {}, **SIDE),
    "poolformer": transformer("PoolFormerForImageClassification", pixels(), {},
                              depths=[1, 1, 2, 1]),
    "levit": transformer("LevitForImageClassification", pixels(), {}, **SIDE, depths=[2, 2, 2]),
    "pvt_v2": transformer("PvtV2ForImageClassification", pixels(), {}, **SIDE),
    "bit": transformer("BitForImageClassification", pixels(), {}, depths=[1, 1, 1, 1]),
    "cvt": transformer("CvtForImageClassification", pixels(), {}),
    "focalnet": transformer("FocalNetForImageClassification", pixels(), {}, **SIDE, embed_dim=48,
                            depths=[1, 1, 2, 1]),
    "resnet_of_transformers": transformer("ResNetForImageClassification", pixels(), {},
                                          depths=[1, 1, 1, 1]),
    "regnet_of_transformers": transformer("RegNetForImageClassification", pixels(), {},
                                          depths=[1, 1, 2, 1], hidden_sizes=[32, 64, 96, 128],
                                          embedding_size=32, groups_width=16),
    "dpt": transformer("DPTForDepthEstimation", pixels(), **SIDE, num_hidden_layers=4,
                       backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[32, 64, 96, 96],
                       fusion_hidden_size=64),
    "glpn": transformer("GLPNForDepthEstimation", pixels(64), {}),
    "hiera": transformer("HieraForImageClassification", pixels(64), {}, image_size=[64, 64],
                         embed_dim=32, depths=[1, 1, 1, 1], num_heads=[1, 2, 4, 8]),
    "videomae": transformer("VideoMAEModel", pixels(32, 4), image_size=32, num_frames=4),
    "timesformer": transformer("TimesformerModel", pixels(32, 4), image_size=32, num_frames=4),
    "imagegpt": transformer("ImageGPTModel", tokens, n_embd=256, n_layer=2, n_head=4),
    "swin2sr": transformer("Swin2SRForImageSuperResolution", pixels(16), {}, image_size=16,
                           embed_dim=48, depths=[2, 2], num_heads=[2, 2]),
    "clip": transformer("CLIPModel", several(pixels(), short), sizes=SMALL,
                        parts={"text_config": {}, "vision_config": SIDE}),
    "patchtst": transformer("PatchTSTForPrediction", numbers("past_values", 64, 3), {},
                            num_input_channels=3, context_length=64, patch_length=8, patch_stride=8,
                            prediction_length=16, d_model=64, use_cls_token=False),
    "patchtsmixer": transformer("PatchTSMixerForPrediction", numbers("past_values", 64, 3), {},
                                num_input_channels=3, context_length=64, patch_length=8,
                                patch_stride=8, prediction_length=16, d_model=32),
}
MODELS = {**VISION, **PLAIN, **ENCODERS, **DECODERS, **PAIRS, **SOUND, **PICTURES}


def chosen(names):
    """The names; exits where one is none."""
    if unknown := [name for name in names if name not in MODELS]:
        raise SystemExit(f"no model '{unknown[0]}'; there are: {', '.join(MODELS)}")
    return names


def made(name):
    """The model in evaluation mode. Batch norms have the statistics of a batch, without which the
    signal ends in deep networks."""
    torch.manual_seed(published.SEED)
    model = MODELS[name].make()
    norms = [module for module in model.modules()
             if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    model.eval()
    for norm in norms:
        norm.momentum = None
        norm.train()
    if norms:
        with torch.no_grad():
            call(model, MODELS[name].given(4))
            for norm in norms:  # what hardly differs among pictures is no signal to be raised
                if isinstance(norm, nn.BatchNorm1d):
                    norm.running_var.clamp_(min=0.01)
    return model.eval()


def call(run, given):
    return run(**given) if isinstance(given, dict) else run(*given)
