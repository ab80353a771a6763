"""settings: the options of quantisation, as keywords and as flags, from one table.

SPDX-License-Identifier: Apache-2.0
"""

import argparse
import dataclasses
import difflib
import reprlib

from ..library import UsageError

LAYERS = ("Conv", "ConvTranspose", "MatMul", "Gemm")


def option(default, what, kind=None, choices=None, least=None, most=None, name=None):
    """A field: its default, help, type of one value, and what is allowed."""
    told = {"what": what, "kind": kind or type(default), "choices": choices, "least": least,
            "most": most, "name": name}
    return dataclasses.field(default=default, metadata=told)


@dataclasses.dataclass
class Settings:
    """Options of `heddle.quantize` and `heddle quantize`."""

    calibration: str = option("mse", "how the range of a tensor is found: its least and greatest "
                              "value, all but a few values, least divergence of the distributions, "
                              "or least squared error",
                              choices=("minmax", "percentile", "entropy", "mse"))
    percentile: float = option(99.99, "share of its values that the range of a tensor has, in "
                               "percent, with --calibration percentile", least=50, most=100,
                               name="P")
    activations: str = option("u8", "type of activations: u8 with a zero point, or s8 around 0",
                              choices=("u8", "s8"))
    weight_scale: str = option("minmax", "how scales of weights are found",
                               choices=("minmax", "mse"))
    per_channel: bool = option(True, "a scale for each output channel of a weight")
    reduce_range: bool = option(False, "weights of 7 bits: on CPUs without VNNI, ONNX Runtime adds "
                                "pairs of products in 16 bits, which others may overflow")
    ops: tuple = option((), "only ops of this type; may be given again (default: "
                        f"{', '.join(LAYERS)}, and what lies between them)", kind=str, name="OP")
    only: tuple = option((), "only layers of such a name: '/encoder/*'", kind=str, name="PATTERN")
    keep: tuple = option((), "leave layers of such a name in f32", kind=str, name="PATTERN")
    products: bool = option(False, "products of two activations, too, as in attention")
    bias_correction: bool = option(True, "take the mean error of each channel out of its bias")
    equalise: bool = option(False, "even out the channels of layers that follow each other")
    smooth: float = option(0.0, "shift ranges from activations to weights after normalisations of "
                           "layers, by this exponent (SmoothQuant's alpha; 0: not at all)", least=0,
                           most=1, name="ALPHA")
    sensitivity: bool = option(False, "measure the error of the outputs with each layer alone")
    mixed: bool = option(False, "leave the layers that hurt most in f32, as --tolerance and "
                         "--budget-bytes say")
    tolerance: float = option(None, "greatest error of an output, relative to its largest number",
                              kind=float, least=0, name="T")
    budget_bytes: int = option(None, "greatest size of the model", kind=int, least=1, name="BYTES")
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

    def check(self):
        """Refuses options that contradict each other."""
        limits = [f"{_flag(name)} {value}" for name, value in
                  (("tolerance", self.tolerance), ("budget_bytes", self.budget_bytes))
                  if value is not None]
        if self.mixed and not limits:
            raise UsageError("--mixed: there is no limit; --tolerance T or --budget-bytes BYTES "
                             "says one")
        if limits and not self.mixed:
            raise UsageError(f"{limits[0]}: is a limit of mixed precision; --mixed asks for it")
        for size in self.dim:
            name, _, number = size.partition("=")
            if not name or not number.isdigit() or int(number) < 1:
                raise UsageError(f"--dim {size}: is not of the form height=224")


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
