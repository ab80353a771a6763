// Movement.td: ops that make tensors or move elements without computing on them.
#ifndef HEDDLE_GRAPH_MOVEMENT_TD
#define HEDDLE_GRAPH_MOVEMENT_TD

include "compiler/graph/Graph.td"

def Graph_Movement : Graph_Trait<"Movement">;
def Graph_Rearrangement : Graph_Trait<"Rearrangement">;
def Graph_Leaf : Graph_Trait<"Leaf">;
def Graph_Gathers : Graph_Trait<"Gathers">;
def Graph_Scatters : Graph_Trait<"Scatters">;

def Graph_ConstantOp : Graph_Op<"constant", [Pure, ConstantLike, Graph_Leaf,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "a tensor known at compile time";
  let description = "Large values are dense resources, mapped from the model's file and never printed.";
  let constraints = ["CO1: `value` is dense, a resource of as many bytes as its type takes, `#graph.stored`, or `#graph.bits`.",
    "CO2: codes of `#graph.bits` have its shape, and the integer type that its elements are kept as."];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Graph_IotaOp : Graph_TypedOp<"iota", [Graph_Leaf]> {
  let summary = "result[..., i, ...] = i along `axis`";
  let constraints = [Graph_AxisOfResult];
  let arguments = (ins I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
}

def Graph_SizesOp : Graph_TypedOp<"sizes", [Graph_Leaf]> {
  let summary = "the 1-D or 0-D integer tensor whose elements are the given size expressions";
  let description = [{
    What `Shape` and arithmetic on it fold to: `graph.sizes {values = #graph.dims<"batch", -1, "2*h">}
    : () -> tensor<3xi64>`.
  }];
  let constraints = ["SZ1: the result is a scalar or a vector with one element per value."];
  let arguments = (ins Graph_DimsAttr:$values);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ReshapeOp : Graph_TypedOp<"reshape", [Graph_Movement, Graph_Rearrangement]> {
  let summary = "the same elements, in row-major order, in the shape of the result type";
  let constraints = ["R1: x and the result have equally many elements, if both numbers are constant."];
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let extraClassDeclaration = [{
    /// Whether the sizes that are not 1 stay, so that it adds and removes sizes of 1 only.
    bool keepsIndices();
  }];
}

def Graph_DynamicReshapeOp : Graph_BindingOp<"dynamic_reshape", [Graph_OutsideKernels]> {
  let summary = "reshape to sizes known only at run time";
  let description = [{
    `shape` is 1-D i64. -1 stands for what is left; 0 copies the size of x unless `allow_zero`. The dynamic
    sizes of the result are fresh symbols, which this op binds.
  }];
  let constraints = ["DR1: `shape` is a vector of one integer per dimension of the result."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$shape,
                       DefaultValuedAttr<BoolAttr, "false">:$allow_zero);
  let results = (outs Graph_Tensor:$result);
}

def Graph_BroadcastOp : Graph_TypedOp<"broadcast", [Graph_Movement, Graph_Rearrangement]> {
  let summary = "repeat along sizes of 1, aligned at the last dimension as NumPy does";
  let description = "Where symbols decide whether B2 holds, it is checked at run time.";
  let constraints = ["B1: the rank of x is at most that of the result.",
                     "B2: each size of x is 1 or that of the result."];
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
}

def Graph_DynamicBroadcastOp : Graph_BindingOp<"dynamic_broadcast", [Graph_Standalone]> {
  let summary = "broadcast x against sizes known only at run time (ONNX Expand)";
  let description = "The dynamic sizes of the result are fresh symbols, which this op binds.";
  let constraints = ["DB1: `shape` is a vector of integers; neither x nor `shape` has more dimensions than the result."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$shape);
  let results = (outs Graph_Tensor:$result);
}

def Graph_TransposeOp : Graph_InferredOp<"transpose", [Graph_Movement, Graph_Rearrangement]> {
  let summary = "result dimension i is dimension permutation[i] of x";
  let constraints = ["T1: `permutation` holds each dimension of x once."];
  let arguments = (ins Graph_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Graph_Tensor:$result);
}

def Graph_SliceOp : Graph_TypedOp<"slice", [Graph_Movement, Graph_Rearrangement, Graph_Reorderable]> {
  let summary = "result[i] = x[starts + i * steps], sizes as in the result type";
  let description = "Steps may be negative. Where symbols decide whether S3 holds, it is checked at run time.";
  let constraints = ["S1: there are one start, one step and one size per dimension.", "S2: no step is 0.",
                     "S3: what is taken lies in x."];
  let arguments = (ins Graph_Tensor:$x, Graph_DimsAttr:$starts, DenseI64ArrayAttr:$steps);
  let results = (outs Graph_Tensor:$result);
}

def Graph_DynamicSliceOp : Graph_BindingOp<"dynamic_slice", [Graph_Standalone]> {
  let summary = "slice with bounds known only at run time, with ONNX's clamping";
  let description = [{
    `starts`, `ends`, `steps` are 1-D i64, one entry an entry of `axes`. The sizes of the result along
    `axes` are fresh symbols, which this op binds.
  }];
  let constraints = [Graph_AxesOfX, "DS1: the result has the rank of x.",
                     "DS2: `starts`, `ends` and `steps` are vectors of one integer per axis."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$starts, Graph_Tensor:$ends,
                       Graph_Tensor:$steps, DenseI64ArrayAttr:$axes);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ConcatOp : Graph_InferredOp<"concat", [Graph_Movement, Graph_Reorderable]> {
  let summary = "the operands one after the other along `axis`";
  let constraints = ["CC1: there is an operand.", "AX1: `axis` is a dimension of the operands.",
                     "CC2: the operands have one rank.", "CC3: their sizes agree but along `axis`."];
  let arguments = (ins Variadic<Graph_Tensor>:$xs, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
}

def Graph_PadOp : Graph_InferredOp<"pad", [Graph_Movement, Graph_Reorderable]> {
  let summary = "x with `low` elements before and `high` after each dimension";
  let description = [{
    `mode`: "constant" (the scalar `value`), "edge", "reflect", "wrap". Negative amounts crop.
  }];
  let constraints = ["P1: `low` and `high` have one entry per dimension."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$value, Graph_DimsAttr:$low,
                       Graph_DimsAttr:$high, DefaultValuedStrAttr<StrAttr, "constant">:$mode);
  let results = (outs Graph_Tensor:$result);
}

def Graph_GatherOp : Graph_InferredOp<"gather", [Graph_Gathers]> {
  let summary = "slices of x along `axis` at the places that `indices` names";
  let description = "Negative indices count from the end. The result has x's sizes with axis replaced by indices' sizes.";
  let constraints = [Graph_AxisOfX];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$indices, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
}

defvar Graph_ElementIndices = [Graph_AxisOfX, "GE1: x and indices have one rank.",
                               "GE2: but along `axis`, no size of indices is beyond that of x."];
def Graph_GatherElementsOp : Graph_InferredOp<"gather_elements", [Graph_Gathers]> {
  let summary = "result[i, j] = x[indices[i, j], j] for axis 0, likewise for others";
  let constraints = Graph_ElementIndices;
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$indices, I64Attr:$axis);
  let results = (outs Graph_Tensor:$result);
}

def Graph_GatherNdOp : Graph_InferredOp<"gather_nd", [Graph_Gathers]> {
  let summary = "elements or slices of x at the index tuples along the last dimension of indices";
  let constraints = ["G1: the last size of indices is constant and at most the rank of x less `batch_dims`.",
                     "G2: indices have more dimensions than `batch_dims`.",
                     "G3: the batches of x and indices are equal."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$indices, I64Attr:$batch_dims);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ScatterElementsOp : Graph_InferredOp<"scatter_elements", [Graph_Scatters, Graph_Standalone]> {
  let summary = "x with x[indices[i, j], j] = updates[i, j] for axis 0, likewise for others";
  let description = [{
    `reduction`: none, add, mul, max, min. In row-major order of updates.
  }];
  let constraints = !listconcat(Graph_ElementIndices, ["SE1: updates have the shape of indices."]);
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$indices, Graph_Tensor:$updates, I64Attr:$axis,
                       DefaultValuedStrAttr<StrAttr, "none">:$reduction);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ScatterNdOp : Graph_InferredOp<"scatter_nd", [Graph_Scatters, Graph_Standalone]> {
  let summary = "x with the slices at the index tuples replaced by (or reduced with) updates";
  let constraints = ["SN1: the last size of indices, d, is constant and at most the rank of x.",
                     "SN2: updates have the sizes of indices but the last, then those of x from d on."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$indices, Graph_Tensor:$updates,
                       DefaultValuedStrAttr<StrAttr, "none">:$reduction);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ResizeOp : Graph_TypedOp<"resize", [Graph_Reorderable]> {
  let summary = "sample x on another grid (ONNX Resize), sizes as in the result type";
  let description = [{
    `scales`: one an axis, result size / x size unless the model gave it. `mode`: nearest, linear, cubic.
    `coordinates`, `nearest`, `cubic_coefficient`, `exclude_outside`, `extrapolation` are ONNX's attributes. `scales` holds 0.0 where the scale is
    the ratio of the sizes.
  }];
  let constraints = ["RZ1: there is one scale per dimension of x and of the result."];
  let arguments = (ins Graph_Tensor:$x, DenseF64ArrayAttr:$scales, StrAttr:$mode, StrAttr:$coordinates,
                       DefaultValuedStrAttr<StrAttr, "round_prefer_floor">:$nearest,
                       DefaultValuedAttr<F64Attr, "-0.75">:$cubic_coefficient,
                       DefaultValuedAttr<BoolAttr, "false">:$exclude_outside,
                       DefaultValuedAttr<F64Attr, "0.0">:$extrapolation);
  let results = (outs Graph_Tensor:$result);
}

def Graph_ReverseSequenceOp : Graph_InferredOp<"reverse_sequence"> {
  let summary = "reverse the first lengths[b] elements along time_axis of each batch entry b";
  let constraints = ["RS1: `time_axis` and `batch_axis` are two dimensions of x.",
                     "RS2: lengths is a vector of one length per batch entry."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$lengths, I64Attr:$time_axis, I64Attr:$batch_axis);
  let results = (outs Graph_Tensor:$result);
}

def Graph_RangeOp : Graph_BindingOp<"range", [Graph_Standalone]> {
  let summary = "start, start + delta, ... below (above) limit; scalars known only at run time";
  let description = "The size of the result is a fresh symbol, which this op binds.";
  let constraints = ["RG1: start, limit and delta are scalars of the element type of the result, a vector."];
  let arguments = (ins Graph_Tensor:$start, Graph_Tensor:$limit, Graph_Tensor:$delta);
  let results = (outs Graph_Tensor:$result);
}

def Graph_BindSizesOp : Graph_Op<"bind_sizes", [Graph_BindsSizes, Graph_OutsideKernels]> {
  let summary = "gives the elements of a small integer tensor names, for sizes and offsets to use";
  let description = [{
    What is known only at run time becomes a size: `graph.bind_sizes %k {symbols = #graph.dims<"$k.0">} : tensor<i64>`.
    `symbols` are fresh, one per element. The run refuses a negative element with `message`, in which %lld is the
    element, or of which the first two are those of `told`. It has an effect, so it stays where it is.
  }];
  let constraints = ["BS1: x is a static tensor of integers with one element per symbol.",
                     "BS2: `told` is two integers."];
  let arguments = (ins Graph_Tensor:$x, Optional<Graph_Tensor>:$told, Graph_DimsAttr:$symbols, StrAttr:$message);
  let assemblyFormat = "$x (`told` $told^ `:` type($told))? attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Graph_RowLengthsOp : Graph_Op<"row_lengths", [Graph_BindsSizes, Graph_OutsideKernels]> {
  let summary = "the sizes of rows: binds `size(of)`";
  let description = [{
    x is a vector of `of` integers, the lengths of the rows; or a mask `[of, size]`, whose length is the number
    of elements that are not 0: these must come first. The run refuses lengths below 0 and above `size`. The result has them as i64.
    `graph.row_lengths %mask {of = "batch", size = "seq"} : (tensor<?x?xi64, #graph.dims<"batch", "seq">>) -> tensor<?xi64, #graph.dims<"batch">>`.
    It has an effect, so it stays where it is. With `packs`, results of the model will be those of all rows one after the other.
  }];
  let constraints = ["RL1: x is [of] of integers or [of, size] of integers, floats or i1; the result is i64 [of].",
                     "RL2: x is an argument of the function around it.",
                     "RL3: ops that name `size(of)` come after it.",
                     "RL4: their results have no size that the run finds later: it names no symbols but those of arguments.",
                     "RL5: `size` is a size of an argument."];
  let arguments = (ins Graph_Tensor:$x, StrAttr:$size, StrAttr:$of,
                       DefaultValuedAttr<BoolAttr, "false">:$packs);
  let results = (outs Graph_Tensor:$lengths);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // HEDDLE_GRAPH_MOVEMENT_TD
