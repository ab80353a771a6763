"""settings: the options of quantisation, as keywords and as flags, from one table.

SPDX-License-Identifier: Apache-2.0
"""

import argparse
import dataclasses
import difflib
import reprlib

from ..library import UsageError

LAYERS = ("Conv", "ConvTranspose", "MatMul", "Gemm")
PRODUCTS = ("MatMul", "Gemm")  # whose weights are quantised alone
TABLES = ("Gather",)  # and by request
INTEGERS, WEIGHTS = "integers", "weights"


def option(default, what, kind=None, choices=None, least=None, most=None, name=None, of=None):
    """A field: its default, help, type of one value, what is allowed, and of which of the two
    kinds of models it is (None: of both)."""
    told = {"what": what, "kind": kind or type(default), "choices": choices, "least": least,
            "most": most, "name": name, "of": of}
    return dataclasses.field(default=default, metadata=told)


@dataclasses.dataclass
class Settings:
    """Options of `heddle.quantize` and `heddle quantize`."""

    calibration: str = option("mse", "how the range of a tensor is found: its least and greatest "
                              "value, all but a few values, least divergence of the distributions, "
                              "or least squared error",
                              choices=("minmax", "percentile", "entropy", "mse"), of=INTEGERS)
    percentile: float = option(99.99, "share of its values that the range of a tensor has, in "
                               "percent, with --calibration percentile", least=50, most=100,
                               name="P", of=INTEGERS)
    activations: str = option("u8", "type of activations: u8 with a zero point, or s8 around 0",
                              choices=("u8", "s8"), of=INTEGERS)
    weight_scale: str = option("minmax", "how scales of weights are found",
                               choices=("minmax", "mse"))
    per_channel: bool = option(True, "a scale for each output channel of a weight", of=INTEGERS)
    reduce_range: bool = option(False, "weights of 7 bits: on CPUs without VNNI, ONNX Runtime adds "
                                "pairs of products in 16 bits, which others may overflow",
                                of=INTEGERS)
    weights: str = option(None, "weights of products alone, of 4 or 8 bits; activations stay f32",
                          kind=str, choices=("int4", "int8"))
    method: str = option("rtn", "how weights are rounded: each to the nearest; or by the inputs "
                         "that samples make: gptq takes the error of a column out of later ones, "
                         "awq scales channels", choices=("rtn", "gptq", "awq"), of=WEIGHTS)
    block: int = option(32, "weights of a column that have a scale: a power of two from 16 to 256, "
                        "or 0 for all of them", least=0, most=256, name="N", of=WEIGHTS)
    symmetric: bool = option(True, "weights around 0, without zero points", of=WEIGHTS)
    form: str = option("matmulnbits", "nodes of the result: MatMulNBits of com.microsoft, or "
                       "DequantizeLinear before the product",
                       choices=("matmulnbits", "dequantize"), of=WEIGHTS)
    accuracy_level: int = option(0, "the attribute of MatMulNBits that lets ONNX Runtime compute "
                                 "with bf16 (3) or int8 (4); 0: f32", least=0, most=4, name="N",
                                 of=WEIGHTS)
    act_order: bool = option(False, "gptq takes the columns with the largest inputs first",
                             of=WEIGHTS)
    damping: float = option(0.01, "share of the mean square of inputs that gptq adds to each",
                            least=0, most=1, name="SHARE", of=WEIGHTS)
    ops: tuple = option((), "only ops of this type; may be given again (default: "
                        f"{', '.join(LAYERS)}, and what lies between them; of weights "
                        f"{', '.join(PRODUCTS)}, and {', '.join(TABLES)} by request)", kind=str,
                        name="OP")
    only: tuple = option((), "only layers of such a name: '/encoder/*'", kind=str, name="PATTERN")
    keep: tuple = option((), "leave layers of such a name in f32", kind=str, name="PATTERN")
    products: bool = option(False, "products of two activations, too, as in attention", of=INTEGERS)
    bias_correction: bool = option(True, "take the mean error of each channel out of its bias",
                                   of=INTEGERS)
    equalise: bool = option(False, "even out the channels of layers that follow each other",
                            of=INTEGERS)
    even_depthwise: bool = option(False, "give the channels that depthwise convolutions read one "
                                  "range, by factors that their weights take back", of=INTEGERS)
    smooth: float = option(0.0, "shift ranges from activations to weights after normalisations of "
                           "layers, by this exponent (SmoothQuant's alpha; 0: not at all)", least=0,
                           most=1, name="ALPHA", of=INTEGERS)
    sensitivity: bool = option(False, "measure the error of the outputs with each layer alone")
    mixed: bool = option(False, "leave the layers that hurt most in f32, as --tolerance and "
                         "--budget-bytes say")
    tolerance: float = option(None, "greatest error of an output, relative to its largest number",
                              kind=float, least=0, name="T")
    budget_bytes: int = option(None, "greatest size of the model", kind=int, least=1, name="BYTES")
    finetune: int = option(0, "times that the samples are gone through to train weights and biases "
                           "through their rounding; 0: not at all", least=0, name="EPOCHS",
                           of=INTEGERS)
    learning_rate: float = option(0.002, "of fine-tuning, in steps of a weight's integers", least=0,
                                  most=1000, name="RATE", of=INTEGERS)
    distance: str = option("mse", "what fine-tuning lessens: the squared error of the outputs, or "
                           "for logits the divergence of their classes", choices=("mse", "kl"),
                           of=INTEGERS)
    batch: int = option(1, "samples of a run, where the model leaves that open", least=1, name="N")
    samples: int = option(None, "use the first N samples at most", kind=int, least=1, name="N")
    dim: tuple = option((), "a size of random inputs that the model leaves open: height=224",
                        kind=str, name="NAME=N")
    threads: int = option(0, "threads of a run; 0: all there are", least=0, name="N")

    @classmethod
    def of(cls, options):
        """Settings of keywords, which are checked."""
        fields, checked = {field.name: field for field in dataclasses.fields(cls)}, {}
        for name, value in options.items():
            if name not in fields:
                near = difflib.get_close_matches(name, fields, 1)
                raise TypeError(f"there is no option '{name}'"
                                + (f"; did you mean '{near[0]}'?" if near else ""))
            checked[name] = _checked(fields[name], value)
        settings = cls(**checked)
        settings.check()
        return settings

    @property
    def kinds(self):
        """Types of the ops that are layers."""
        tables = tuple(kind for kind in TABLES if kind in self.ops)
        return LAYERS if self.weights is None else PRODUCTS + tables

    @property
    def bits(self):
        return 8 if self.weights is None else int(self.weights.removeprefix("int"))

    def check(self):
        """Refuses options that contradict each other."""
        self._check_kind()
        self._check_weights()
        limits = [f"{_flag(name)} {value}" for name, value in
                  (("tolerance", self.tolerance), ("budget_bytes", self.budget_bytes))
                  if value is not None]
        if self.mixed and not limits:
            raise UsageError("--mixed: there is no limit; --tolerance T or --budget-bytes BYTES "
                             "says one")
        if limits and not self.mixed:
            raise UsageError(f"{limits[0]}: is a limit of mixed precision; --mixed asks for it")
        for name in ("learning_rate", "distance"):
            if not self.finetune and getattr(self, name) != getattr(Settings, name):
                raise UsageError(f"{_flag(name)} {getattr(self, name)}: is an option of "
                                 "fine-tuning; --finetune EPOCHS asks for that")
        if self.even_depthwise and not self.per_channel:
            raise UsageError("--even-depthwise: the weights of each channel need a scale of their "
                             "own, but --no-per-channel leaves one")
        for size in self.dim:
            name, _, number = size.partition("=")
            if not name or not number.isdigit() or int(number) < 1:
                raise UsageError(f"--dim {size}: is not of the form height=224")

    def _check_kind(self):
        """Refuses options that are of the other kind of models."""
        for field in dataclasses.fields(self):
            value, kind = getattr(self, field.name), field.metadata["of"]
            if value == field.default or kind is None:
                continue
            what = _flag(field.name) if value is not False else "--no-" + _flag(field.name)[2:]
            if self.weights is None and kind == WEIGHTS:
                raise UsageError(f"{what}: is an option of weights alone; --weights int4 or int8 "
                                 "asks for that")
            if self.weights is not None and kind == INTEGERS:
                raise UsageError(f"{what}: is an option of products of integers, but --weights "
                                 f"{self.weights} leaves activations in f32")

    def _check_weights(self):
        """Refuses options of weights that contradict each other."""
        form, method, block = self.form, self.method, self.block
        if block and (block < 16 or block & (block - 1)):
            raise UsageError(f"--block {block}: must be 0, 16, 32, 64, 128 or 256")
        if self.weights and not block and form == "matmulnbits":
            raise UsageError("--block 0: MatMulNBits has blocks of 16 to 256 weights; --form "
                             "dequantize has scales of whole columns")
        if self.accuracy_level and form != "matmulnbits":
            raise UsageError(f"--accuracy-level {self.accuracy_level}: is an attribute of "
                             f"MatMulNBits, but --form {form} writes none")
        if method != "gptq" and (self.act_order or self.damping != 0.01):
            flag = "--act-order" if self.act_order else f"--damping {self.damping}"
            raise UsageError(f"{flag}: is an option of --method gptq, not of {method}")
        if method == "awq" and self.weight_scale != "minmax":
            raise UsageError(f"--weight-scale {self.weight_scale}: --method awq searches scales "
                             "by the error of outputs")


def _flag(name):
    return "--" + name.replace("_", "-")


def _checked(field, value):
    """The value of a keyword in the type of its field."""
    told, what = field.metadata, f"`{field.name}` is {reprlib.repr(value)}"
    if isinstance(field.default, tuple):
        values = (value,) if isinstance(value, str) else tuple(value)
        if not all(isinstance(each, str) for each in values):
            raise UsageError(f"{what}, but a list of texts is allowed")
        return values
    if value is None and field.default is None:
        return None
    kinds = {float: (int, float), int: int, bool: bool, str: str}[told["kind"]]
    if not isinstance(value, kinds) or (isinstance(value, bool) and told["kind"] is not bool):
        raise UsageError(f"{what}, but must be of type {told['kind'].__name__}")
    if told["choices"] and value not in told["choices"]:
        raise UsageError(f"{what}, but may be {', '.join(told['choices'])}")
    if ((told["least"] is not None and not value >= told["least"])
            or (told["most"] is not None and not value <= told["most"])):
        upper = "" if told["most"] is None else f" and at most {told['most']}"
        raise UsageError(f"{what}, but must be at least {told['least']}{upper}")
    return value


def add_flags(parser):
    """A flag for each field."""
    for field in dataclasses.fields(Settings):
        told, name = field.metadata, _flag(field.name)
        if isinstance(field.default, tuple):
            parser.add_argument(name, action="append", metavar=told["name"], help=told["what"])
        elif told["kind"] is bool:
            default = " (default)" if field.default else ""
            parser.add_argument(name, action=argparse.BooleanOptionalAction,
                                help=told["what"] + default)
        else:
            default = "" if field.default is None else f" (default: {field.default})"
            parser.add_argument(name, type=told["kind"], choices=told["choices"],
                                metavar=told["name"], help=told["what"] + default)


def given(options):
    """The keywords of flags that were given."""
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(Settings)}
    return {name: value for name, value in values.items() if value is not None}
