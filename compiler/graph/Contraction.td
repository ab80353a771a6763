// Contraction.td: ops that reduce over dimensions or windows: products, convolutions, pools, reductions.
#ifndef HEDDLE_GRAPH_CONTRACTION_TD
#define HEDDLE_GRAPH_CONTRACTION_TD

include "compiler/graph/Graph.td"

def Graph_SumsProducts : Graph_Trait<"SumsProducts">;
def Graph_Contraction : Graph_Trait<"Contraction">;
def Graph_Reduction : Graph_Trait<"Reduction">;
def Graph_ArgReduction : Graph_Trait<"ArgReduction">;
def Graph_OnImages : Graph_Trait<"OnImages">;

def Graph_MatmulOp : Graph_TypedOp<"matmul", [Graph_SumsProducts, Graph_Contraction]> {
  let summary = "result[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]";
  let description = [{
    The element type of the result is that of the sum: i32 for 8-bit integers, else that of a.

    With a `block`, the rows of a are rounded to 8 bits first: each block of so many x to `round(x * s) / s`, where
    `s = min(127 / max |x|, 2^126)`, in f32, and to NaN if an x is NaN or infinite.
  }];
  let constraints = ["M1: operands and result have one rank, at least 2.", "M2: batch sizes are equal or 1.",
                     "M3: the rows of a have the length of the columns of b.", "M4: the result is [..., m, n].",
                     "M5: `block` is 0, or operands are f32 and the rows of a are of blocks that are whole."];
  let arguments = (ins Graph_Tensor:$a, Graph_Tensor:$b, DefaultValuedAttr<I64Attr, "0">:$block);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ConvOp : Graph_TypedOp<"conv", [Graph_SumsProducts, Graph_Contraction, Graph_OnImages]> {
  let summary = "cross-correlation of x with the filters w over 1 to 3 spatial dimensions";
  let description = [{
    x is [n, c, spatial...], or [n, spatial..., c] with `channels_last`; the result alike. w is always
    [out, c / groups, window...]. The result's spatial size is
    (size + low + high - dilation * (window - 1) - 1) floordiv stride + 1.
  }];
  let constraints = ["C1: x, w and the result have one rank, at least 3.",
                     "C2: `groups` is at least 1, c = groups * w[1], out is a multiple of groups.",
                     "C3: there are one stride and dilation of at least 1 and two paddings per spatial dimension."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$w, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<BoolAttr, "false">:$channels_last);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ConvTransposeOp : Graph_TypedOp<"conv_transpose", [Graph_SumsProducts, Graph_OnImages, Graph_Standalone]> {
  let summary = "transpose (gradient with respect to x) of conv";
  let description = [{
    x is [n, c, spatial...], or channels last; w is [c, out / groups, window...]. `low`, `high` crop the full result;
    `output_padding` extends it at the end. Size: (size - 1) * stride + dilation * (window - 1) + 1 + output_padding - low - high.
  }];
  let constraints = ["C1: x, w and the result have one rank, at least 3.",
                     "C2: `groups` is at least 1, w[0] is c, a multiple of groups.",
                     "C3: there are one stride and dilation of at least 1 and three paddings per spatial dimension."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$w, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$output_padding,
                       DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<BoolAttr, "false">:$channels_last);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ConvFilterGradientOp
    : Graph_TypedOp<"conv_filter_gradient", [Graph_SumsProducts, Graph_OnImages, Graph_Standalone]> {
  let summary = "gradient of conv with respect to its filters";
  let description = [{
    result[o, c, k] = sum over n and p of dy[n, o, p] * x[n, c, p * stride - low + k * dilation], c counted within the
    group of o. x and dy are the image and the gradient of the result of a conv with these attributes; the result has the
    shape of its filters. Places outside of x count for nothing.
  }];
  let constraints = ["C1: x, dy and the result have one rank, at least 3.",
                     "C2: `groups` is at least 1, x has groups * result[1] channels, dy has result[0], a multiple of groups.",
                     "C3: there are one stride and dilation of at least 1 and two paddings per spatial dimension."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$dy, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<BoolAttr, "false">:$channels_last);
  let results = (outs Graph_Tensor:$result);
}

def Graph_PoolOp : Graph_TypedOp<"pool", [Graph_OnImages]> {
  let summary = "max or average over sliding windows";
  let description = [{
    x is [n, c, spatial...], or channels last. `kind`: max (padding counts as the lowest value), average
    (padding counts as 0 elements in the divisor unless `count_padding`). With `ceil_mode` the last window may begin inside and end outside;
    what lies outside of x and of the padding never counts.
  }];
  let constraints = ["C1: x and the result have one rank, at least 3.",
                     "C3: there are one window, stride and dilation of at least 1 and two paddings per spatial dimension.",
                     "PO1: `kind` is max or average."];
  let arguments = (ins Graph_Tensor:$x, StrAttr:$kind, DenseI64ArrayAttr:$window,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DefaultValuedAttr<BoolAttr, "false">:$count_padding,
                       DefaultValuedAttr<BoolAttr, "false">:$ceil_mode,
                       DefaultValuedAttr<BoolAttr, "false">:$channels_last);
  let results = (outs Graph_Tensor:$result);
}

def Graph_UnpoolOp : Graph_TypedOp<"unpool", [Graph_OnImages, Graph_Standalone]> {
  let summary = "each element of an image is the sum of what the windows that hold it give";
  let description = [{
    result[n, c, i] = sum over p and k with p * stride - low + k * dilation = i of share[n, c, p]. With `images`, which
    are none or two, x of the result's shape and y of the shape of share, only windows whose y equals x[n, c, i] give.
    The gradient of pool, once each window has its share for one element.
  }];
  let constraints = ["C1: share and the result have one rank, at least 3.",
                     "C3: there are one window, stride and dilation of at least 1 and one padding per spatial dimension.",
                     "U1: `images` are none, or one of the result's shape and one of the shape of share."];
  let arguments = (ins Graph_Tensor:$share, Variadic<Graph_Tensor>:$images, DenseI64ArrayAttr:$window,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low,
                       DefaultValuedAttr<BoolAttr, "false">:$channels_last);
  let results = (outs Graph_Tensor:$result);
}

class Graph_Reduce<string mnemonic, string formula, list<Trait> traits = []>
    : Graph_InferredOp<mnemonic, !listconcat([Graph_Reduction], traits)> {
  let summary = formula;
  let constraints = [Graph_AxesOfX];
  let arguments = (ins Graph_Tensor:$x, DenseI64ArrayAttr:$axes,
                       DefaultValuedAttr<BoolAttr, "false">:$keep_dims);
  let results = (outs Graph_Tensor:$result);
}
def Graph_ReduceSumOp : Graph_Reduce<"reduce_sum", "sum over `axes`; 0 for none", [Graph_KeepsNonNegative]>;
def Graph_ReduceProdOp : Graph_Reduce<"reduce_prod", "product over `axes`; 1 for none", [Graph_KeepsNonNegative]>;
def Graph_ReduceMaxOp : Graph_Reduce<"reduce_max", "largest over `axes`; the lowest value for none">;
def Graph_ReduceMinOp : Graph_Reduce<"reduce_min", "smallest over `axes`; the highest value for none",
                                      [Graph_KeepsNonNegative]>;

class Graph_ArgReduce<string mnemonic, string formula>
    : Graph_InferredOp<mnemonic, [Graph_ArgReduction, Graph_Standalone]> {
  let summary = formula;
  let constraints = [Graph_AxisOfX];
  let arguments = (ins Graph_Tensor:$x, I64Attr:$axis,
                       DefaultValuedAttr<BoolAttr, "false">:$keep_dims,
                       DefaultValuedAttr<BoolAttr, "false">:$last);
  let results = (outs Graph_Tensor:$result);
}
def Graph_ArgMaxOp : Graph_ArgReduce<"argmax", "i64 index of the first (or `last`) largest along axis">;
def Graph_ArgMinOp : Graph_ArgReduce<"argmin", "i64 index of the first (or `last`) smallest along axis">;

#endif // HEDDLE_GRAPH_CONTRACTION_TD
