// Elementwise.td: ops that compute each element of the result from the elements at the same place.
//
// E1: all operands and the result have one shape. NaN and infinities follow IEEE 754.
#ifndef HEDDLE_GRAPH_ELEMENTWISE_TD
#define HEDDLE_GRAPH_ELEMENTWISE_TD

include "compiler/graph/Graph.td"

def Graph_Elementwise : Graph_Trait<"Elementwise">;
def Graph_TruthValued : Graph_Trait<"TruthValued">;
def Graph_Comparison : Graph_Trait<"Comparison">;
def Graph_Costly : Graph_Trait<"Costly">;
def Graph_NeverNegative : Graph_Trait<"NeverNegative">;

class Graph_Unary<string mnemonic, string formula, list<Trait> traits = []>
    : Graph_Op<mnemonic,
               !listconcat([Pure, Graph_Elementwise, SameOperandsAndResultType], traits)> {
  let summary = formula;
  let constraints = [Graph_OneShape];
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

class Graph_Binary<string mnemonic, string formula, list<Trait> traits = []>
    : Graph_Op<mnemonic,
               !listconcat([Pure, Graph_Elementwise, SameOperandsAndResultType], traits)> {
  let summary = formula;
  let constraints = [Graph_OneShape];
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$y);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
}

class Graph_Predicate<string mnemonic, string formula, dag args, list<Trait> traits = []>
    : Graph_InferredOp<mnemonic, !listconcat([Graph_Elementwise, Graph_TruthValued, SameTypeOperands],
                                             traits)> {
  let summary = formula;
  let constraints = [Graph_OneShape];
  let arguments = args;
  let results = (outs Graph_Tensor:$result);
}
class Graph_Compare<string mnemonic, string formula>
    : Graph_Predicate<mnemonic, formula, (ins Graph_Tensor:$x, Graph_Tensor:$y),
                      [Graph_Comparison]>;

def Graph_AbsOp : Graph_Unary<"abs", "|x|", [Graph_NeverNegative]>;
def Graph_NegOp : Graph_Unary<"neg", "-x">;
def Graph_SignOp : Graph_Unary<"sign", "-1, 0 or 1">;
def Graph_ExpOp : Graph_Unary<"exp", "e^x", [Graph_Costly, Graph_NeverNegative]>;
def Graph_LogOp : Graph_Unary<"log", "ln x", [Graph_Costly]>;
def Graph_Log1pOp : Graph_Unary<"log1p", "ln(1 + x)">;
def Graph_Expm1Op : Graph_Unary<"expm1", "e^x - 1">;
def Graph_SqrtOp : Graph_Unary<"sqrt", "square root", [Graph_NeverNegative]>;
def Graph_FloorOp : Graph_Unary<"floor", "largest integer <= x">;
def Graph_CeilOp : Graph_Unary<"ceil", "smallest integer >= x">;
def Graph_RoundOp : Graph_Unary<"round", "nearest integer, ties to even">;
def Graph_TruncOp : Graph_Unary<"trunc", "x without its fraction">;
def Graph_ErfOp : Graph_Unary<"erf", "error function", [Graph_Costly]>;
def Graph_SinOp : Graph_Unary<"sin", "sine", [Graph_Costly]>;
def Graph_CosOp : Graph_Unary<"cos", "cosine", [Graph_Costly]>;
def Graph_TanOp : Graph_Unary<"tan", "tangent">;
def Graph_AsinOp : Graph_Unary<"asin", "inverse sine">;
def Graph_AcosOp : Graph_Unary<"acos", "inverse cosine">;
def Graph_AtanOp : Graph_Unary<"atan", "inverse tangent">;
def Graph_SinhOp : Graph_Unary<"sinh", "hyperbolic sine">;
def Graph_CoshOp : Graph_Unary<"cosh", "hyperbolic cosine">;
def Graph_TanhOp : Graph_Unary<"tanh", "hyperbolic tangent", [Graph_Costly]>;
def Graph_AsinhOp : Graph_Unary<"asinh", "inverse hyperbolic sine">;
def Graph_AcoshOp : Graph_Unary<"acosh", "inverse hyperbolic cosine">;
def Graph_AtanhOp : Graph_Unary<"atanh", "inverse hyperbolic tangent">;
def Graph_SigmoidOp : Graph_Unary<"sigmoid", "1 / (1 + e^-x)", [Graph_Costly, Graph_NeverNegative]>;
def Graph_NotOp : Graph_Unary<"not", "logical negation of i1">;
def Graph_BitNotOp : Graph_Unary<"bit_not", "bitwise complement">;

def Graph_AddOp : Graph_Binary<"add", "x + y; integers wrap", [Graph_KeepsNonNegative]>;
def Graph_SubOp : Graph_Binary<"sub", "x - y; integers wrap">;
def Graph_MulOp : Graph_Binary<"mul", "x * y; integers wrap", [Graph_KeepsNonNegative]>;
def Graph_DivOp : Graph_Binary<"div", "x / y; integers truncate toward zero", [Graph_KeepsNonNegative]>;
def Graph_PowOp : Graph_Binary<"pow", "x^y", [Graph_Costly]>;
def Graph_MaxOp : Graph_Binary<"max", "larger of x and y; NaN if either is">;
def Graph_MinOp : Graph_Binary<"min", "smaller of x and y; NaN if either is", [Graph_KeepsNonNegative]>;
def Graph_AndOp : Graph_Binary<"and", "logical and of i1">;
def Graph_OrOp : Graph_Binary<"or", "logical or of i1">;
def Graph_XorOp : Graph_Binary<"xor", "logical exclusive or of i1">;
def Graph_BitAndOp : Graph_Binary<"bit_and", "bitwise and">;
def Graph_BitOrOp : Graph_Binary<"bit_or", "bitwise or">;
def Graph_BitXorOp : Graph_Binary<"bit_xor", "bitwise exclusive or">;
def Graph_ShiftLeftOp : Graph_Binary<"shift_left", "x * 2^y; 0 when y is the width or more">;
def Graph_ShiftRightOp : Graph_Binary<"shift_right", "logical shift right of x by y; 0 when y is the width or more">;

def Graph_EqualOp : Graph_Compare<"equal", "x == y">;
def Graph_NotEqualOp : Graph_Compare<"not_equal", "x != y">;
def Graph_LessOp : Graph_Compare<"less", "x < y">;
def Graph_LessEqualOp : Graph_Compare<"less_equal", "x <= y">;
def Graph_GreaterOp : Graph_Compare<"greater", "x > y">;
def Graph_GreaterEqualOp : Graph_Compare<"greater_equal", "x >= y">;
def Graph_IsNanOp : Graph_Predicate<"is_nan", "whether x is not a number", (ins Graph_Tensor:$x)>;
def Graph_IsInfOp : Graph_Predicate<"is_inf", "whether x is an infinity of an asked sign",
    (ins Graph_Tensor:$x, DefaultValuedAttr<BoolAttr, "true">:$negative,
         DefaultValuedAttr<BoolAttr, "true">:$positive)>;

def Graph_ModOp : Graph_Op<"mod", [Pure, Graph_Elementwise, SameOperandsAndResultType]> {
  let summary = "remainder of x / y";
  let constraints = [Graph_OneShape];
  let description = "With `fmod` the sign is that of x (C's fmod and %), else that of y (Python's %).";
  let arguments = (ins Graph_Tensor:$x, Graph_Tensor:$y, DefaultValuedAttr<BoolAttr, "false">:$fmod);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
}

def Graph_SelectOp : Graph_InferredOp<"select", [Graph_Elementwise]> {
  let summary = "x where the condition holds, else y";
  let constraints = [Graph_OneShape];
  let arguments = (ins Graph_Tensor:$condition, Graph_Tensor:$x, Graph_Tensor:$y);
  let results = (outs Graph_Tensor:$result);
}

def Graph_CastOp : Graph_TypedOp<"cast", [Graph_Elementwise]> {
  let summary = "convert the element type";
  let constraints = [Graph_OneShape, "CA1: `factor` is of f32 that become bf16."];
  let description = [{
    Float to integer truncates; to a narrower float rounds to nearest even; to i1 is x != 0. Floats
    become i32 and i64 as x86 does it: NaN, and what the type cannot hold, gives its lowest number.
    Integers of 8 and 16 bits are the low bits of that i32, and u32 those of the i64; u64 is the i64
    below 2^63, and above it 2^63 and the i64 of the distance. To an fp8 kind it saturates when
    `saturate`, else gives infinity or NaN. As a `factor`, which only products of bf16 read, subnormal
    numbers may become 0, as they count there.
  }];
  let arguments = (ins Graph_Tensor:$x, DefaultValuedAttr<BoolAttr, "true">:$saturate, UnitAttr:$factor);
  let results = (outs Graph_Tensor:$result);
}

def Graph_BitcastOp : Graph_TypedOp<"bitcast", [Graph_Elementwise]> {
  let summary = "the same bits as another element type of the same width";
  let constraints = [Graph_OneShape, "BC1: the element types have one width."];
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
}

def Graph_LookupOp : Graph_TypedOp<"lookup", [Graph_Elementwise]> {
  let summary = "the element of `table` that the bits of x number";
  let description = "The elements of negative x are the last of the table.";
  let constraints = [Graph_OneShape, "LU1: x and the result are integers of 8 bits.",
                     "LU2: the table has 256 elements of the result's type."];
  let arguments = (ins Graph_Tensor:$x, ElementsAttr:$table);
  let results = (outs Graph_Tensor:$result);
}

#endif // HEDDLE_GRAPH_ELEMENTWISE_TD
