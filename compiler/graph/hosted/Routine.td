// Routine.td: ops whose control flow depends on their numbers: sorting, selecting, compacting, walks
// down trees, transforms of any length. Routines of the runtime compute them (runtime/routine), each
// in the time of the best algorithm, with the workers of the session.
//
// A routine reads its attributes in alphabetical order.
#ifndef HEDDLE_GRAPH_HOSTED_ROUTINE_TD
#define HEDDLE_GRAPH_HOSTED_ROUTINE_TD

include "compiler/graph/Graph.td"
include "compiler/graph/hosted/Hosted.td"

// Constraints of routines.
defvar Graph_RoutineTypes = "RT1: operands and results have the element types and ranks that are given.";
defvar Graph_RoutineSizes = "RT2: the sizes of results follow from those of operands as given.";
defvar Graph_Orderable = "RT3: elements of x can be ordered and added: truth values, or numbers of 8 bits and more.";

def Graph_Routine : Graph_Trait<"Routine">;
class Graph_RoutineOp<string mnemonic, list<Trait> traits = []>
    : Graph_TypedOp<mnemonic, !listconcat([Graph_Hosted, Graph_Routine], traits)>;
/// One whose results have sizes that it finds.
class Graph_FindingOp<string mnemonic>
    : Graph_BindingOp<mnemonic, [Graph_Hosted, Graph_Routine]>;

def Graph_CumsumOp : Graph_InferredOp<"cumsum", [Graph_Hosted, Graph_Routine, Graph_Reorderable]> {
  let summary = "running sum along `axis`";
  let constraints = [Graph_AxisOfX];
  let arguments = (ins Graph_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Graph_Tensor:$result);
}

def Graph_TopkOp : Graph_RoutineOp<"topk", [Graph_Reorderable]> {
  let summary = "the largest (smallest) elements along `axis`, sorted, with their i64 indices";
  let description = [{
    Their number is the size of the result along axis; the run refuses one above that of x. NaN counts as the largest. Equal elements:
    lower index first.
  }];
  let constraints = [Graph_AxisOfX, Graph_RoutineTypes, Graph_Orderable, "TK1: values and indices have one shape, of the rank of x.",
                     "TK2: their size along `axis` is at most that of x, the others are those of x."];
  let arguments = (ins Graph_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "true">:$largest);
  let results = (outs Graph_Tensor:$values, Graph_Tensor:$indices);
}

def Graph_NonzeroOp : Graph_FindingOp<"nonzero"> {
  let summary = "the places where x of i1 holds, in row-major order: i64 [rank of x, n]";
  let description = "How many there are, n, is a fresh symbol, which this op binds.";
  let constraints = [Graph_RoutineTypes, Graph_RoutineSizes];
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
}

def Graph_UniqueOp : Graph_FindingOp<"unique"> {
  let summary = "the different rows of a matrix";
  let description = [{
    first: the row where each of n different ones is first, i64 [n]; inverse: the number of each row among them, i64; counts: how
    often each is there, i64 [n]. `sorted`: in the order of their first difference, where NaN counts as the largest, else by
    `first`. A row with a NaN equals none. n is a fresh symbol, which this op binds.
  }];
  let constraints = [Graph_RoutineTypes, Graph_RoutineSizes, Graph_Orderable];
  let arguments = (ins Graph_Tensor:$x, DefaultValuedAttr<BoolAttr, "true">:$sorted);
  let results = (outs Graph_Tensor:$first, Graph_Tensor:$inverse, Graph_Tensor:$counts);
}

def Graph_SuppressOp : Graph_FindingOp<"suppress"> {
  let summary = "boxes that share little with a better one of their class: i64 [n, 3] of batch, class, box";
  let description = [{
    boxes: f32 [batch, boxes, 4], two opposite corners, or with `center` middle and extent; scores: f32 [batch, classes, boxes].
    Of each class boxes are taken by falling scores, of equal ones the first, NaN before all, until there are `most`, an i64; not those
    whose shared part of the union with one that was taken is above `overlap`, nor, with `bounded`, those whose score is not above `least`,
    both f32. n is a fresh symbol, which this op binds.
  }];
  let constraints = [Graph_RoutineTypes, Graph_RoutineSizes];
  let arguments = (ins Graph_Tensor:$boxes, Graph_Tensor:$scores, Graph_Tensor:$most, Graph_Tensor:$overlap,
                       Graph_Tensor:$least, DefaultValuedAttr<BoolAttr, "false">:$center,
                       DefaultValuedAttr<BoolAttr, "false">:$bounded);
  let results = (outs Graph_Tensor:$result);
}

def Graph_CustomOp : Graph_BindingOp<"custom", [Graph_Hosted]> {
  let summary = "an op of the user's own (include/heddle/custom_op.h)";
  let description = [{
    about: constant ui8 text of four parts that each end with 0: path of the library, "" for an op that the process has registered,
    domain, name and attributes. The sizes of the results are fresh symbols, which this op binds.
  }];
  let constraints = ["CU1: `about` is constant text of four parts.", "CU2: the sizes of results are symbols."];
  let arguments = (ins Graph_Tensor:$about, Variadic<Graph_Tensor>:$inputs);
  let results = (outs Variadic<Graph_Tensor>:$results);
}

def Graph_ForestOp : Graph_RoutineOp<"forest"> {
  let summary = "the weights of the leaves that rows reach in decision trees, put together";
  let description = [{
    x: f32 or f64 [rows, features]. nodes: constant i64 [n, 2] of a limit and of `feature + child * 2^32`. A row whose feature has a key of at
    most the limit goes to `child`, else to the node after it; a leaf has the largest limit and is its own child. The key is the
    number whose order as i64 is that of the floats of x's type: their bits, those below the sign turned where it is set, and 0 for -0.
    NaN has the largest key, with feature + features the smallest, which only `mirrored` forests ask for. roots:
    constant i64 [trees, 2] of a node, in rising order, and the height of its tree. weights: [n, targets] of x's type.
    `combine`: 0 the sum, 1 the smallest, 2 the largest over the trees.
  }];
  let constraints = [Graph_RoutineTypes, Graph_RoutineSizes,
                     "FO1: nodes and roots are constants whose children, features and roots exist; x has a constant number of features."];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$nodes, Graph_Tensor:$roots, Graph_Tensor:$weights,
                       DefaultValuedAttr<I64Attr, "0">:$combine, DefaultValuedAttr<BoolAttr, "false">:$mirrored);
  let results = (outs Graph_Tensor:$result);
}

def Graph_FourierOp : Graph_RoutineOp<"fourier"> {
  let summary = "discrete Fourier transform of `length` elements along `axis`";
  let description = [{
    x: f32 or f64 [..., 1 or 2], real or complex numbers. What x has beyond `length` is left out, what it lacks is 0. With `onesided` the result
    has the first length floordiv 2 + 1 frequencies of a real signal; with `inverse` too, it is the real signal [..., 1] of such
    frequencies. An inverse is divided by the length.
  }];
  let constraints = [Graph_AxisOfX, Graph_RoutineTypes, Graph_RoutineSizes, "FT1: x has at least two dimensions.",
                     "FT2: there is one length."];
  let arguments = (ins Graph_Tensor:$x, I64Attr:$axis, Graph_DimsAttr:$length, DefaultValuedAttr<BoolAttr, "false">:$inverse,
                       DefaultValuedAttr<BoolAttr, "false">:$onesided);
  let results = (outs Graph_Tensor:$result);
}

#endif // HEDDLE_GRAPH_HOSTED_ROUTINE_TD
