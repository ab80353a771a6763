// Values.td: arithmetic that arith and vector do not have: sizes that say whether they left int64,
// and what processors have instructions for.
#ifndef HEDDLE_PROGRAM_VALUES_TD
#define HEDDLE_PROGRAM_VALUES_TD

include "compiler/program/Program.td"

def Program_AddOp : Program_Op<"add", [Pure, Commutative]> {
  let summary = "the sum of two sizes, and whether it left int64";
  let arguments = (ins I64:$x, I64:$y);
  let results = (outs I64:$result, I1:$overflow);
  let assemblyFormat = "$x `,` $y attr-dict";
}

def Program_MulOp : Program_Op<"mul", [Pure, Commutative]> {
  let summary = "the product of two sizes, and whether it left int64";
  let arguments = (ins I64:$x, I64:$y);
  let results = (outs I64:$result, I1:$overflow);
  let assemblyFormat = "$x `,` $y attr-dict";
}

def Program_FreezeOp : Program_Op<"freeze", [Pure, SameOperandsAndResultType]> {
  let summary = "the value itself, computed once";
  let description = "An optimiser may neither look through it nor merge what computes it with its uses.";
  let constraints = ["F1: x is a number, a pointer, or a vector of numbers."];
  let arguments = (ins AnyType:$x);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Program_DotKind : I32EnumAttr<"DotKind", "what 32-bit lanes hold", [
    I32EnumAttrCase<"Pairs", 0, "i16_i16">, I32EnumAttrCase<"Bytes", 1, "i8_i8">,
    I32EnumAttrCase<"UnsignedBytes", 2, "u8_i8">, I32EnumAttrCase<"ShortFloats", 3, "bf16_bf16">,
    I32EnumAttrCase<"HalfBytes", 4, "u4_i8">]> {
  let cppNamespace = "::heddle::program";
}

class Program_LanesOfResult<string operand>
    : TypesMatchWith<operand # " has the lanes of the result as i32", "result", operand,
                     "::llvm::cast<::mlir::VectorType>($_self).clone(::mlir::IntegerType::get($_ctxt, 32))">;

def Program_DotOp : Program_Op<"dot", [Pure, AllTypesMatch<["sum", "result"]>, Program_LanesOfResult<"left">,
                                             Program_LanesOfResult<"right">]> {
  let summary = "sums of products of neighbouring small numbers";
  let description = [{
    Lane i of `left` and of `right` holds two i16 (`i16_i16`), four i8 (`i8_i8`), or four u8 on the left and four i8 on the
    right (`u8_i8`). `result[i] = sum[i] + left[i][0] * right[i][0] + left[i][1] * right[i][1] + ...` in i32; nothing
    saturates. With u8 below 16 (`u4_i8`) a lane of the sums is two i16, of the first two products and of the last two,
    which wrap. Of two bf16 (`bf16_bf16`), sums are f32; how each is rounded, and whether subnormal numbers count as 0, is
    the processor's matter.
  }];
  let constraints = ["D1: sums are f32 if the kind is bf16_bf16, else i32."];
  let arguments = (ins Program_DotKind:$kind, Program_Integers:$left, Program_Integers:$right, Program_Sums:$sum);
  let results = (outs Program_Sums:$result);
  let hasVerifier = 1;
  let assemblyFormat = "$kind $left `,` $right `,` $sum attr-dict `:` type($result)";
}

def Program_PermuteOp : Program_Op<"permute", [Pure, AllTypesMatch<["vector", "places", "result"]>]> {
  let summary = "lanes in another order";
  let description = "`result[i] = vector[places[i]]`, where places are between 0 and the number of lanes, a power of 2.";
  let constraints = ["P1: the number of lanes is a power of 2."];
  let arguments = (ins Program_Integers:$vector, Program_Integers:$places);
  let results = (outs Program_Integers:$result);
  let assemblyFormat = "$vector `,` $places attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Program_LookupOp : Program_Op<"lookup", [MemoryEffects<[MemRead]>, AllTypesMatch<["places", "result"]>]> {
  let summary = "bytes of a table of 256";
  let description = "`result[i] = table[places[i]]`, where places are unsigned; nobody writes to the table.";
  let arguments = (ins Program_Ptr:$table, VectorOfRankAndType<[1], [I8]>:$places);
  let results = (outs VectorOfRankAndType<[1], [I8]>:$result);
  let assemblyFormat = "$table `` custom<Space>(type($table)) `,` $places attr-dict `:` type($result)";
}

def Program_MultiplyMatricesOp : Program_Op<"multiply_matrices", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the product of two matrices, in pieces";
  let description = [{
    Words of 32 bits hold small numbers as lanes of `program.dot` do. Those of row r that a step multiplies are `words` neighbours
    from byte `piece * left_piece + step * left_step + r * left_row` of `left` on. `right` has [pieces][steps][words][columns] of
    them, and `result` gets [rows][columns] sums of 32 bits: of row r and column c that of `left[r][w] * right[w][c]` for all
    pieces, steps and words w, as `program.dot` adds them, from 0 on. Each step also fetches `fetched_lines` lines of 64 bytes,
    from `fetched` on. For processors with registers that hold matrices (AMX).
  }];
  let constraints = ["X1: `rows` and `columns` are 16 or 32 each, or 16 and 48 or 64, `words` are 1 to 16, and the kind is bf16_bf16, "
    "i8_i8 or u8_i8."];
  let arguments = (ins Program_DotKind:$kind, Program_Ptr:$result, Program_Ptr:$left, I64:$left_piece, I64:$left_row,
    I64Attr:$left_step, Program_Ptr:$right, I64:$pieces, I64:$steps, Program_Ptr:$fetched,
    I64Attr:$fetched_lines, I64Attr:$rows, I64Attr:$columns, DefaultValuedAttr<I64Attr, "16">:$words);
  let extraClassDeclaration = "static bool fits(int64_t rows, int64_t columns);";
  let hasVerifier = 1;
  let assemblyFormat = [{$kind $result `` custom<Space>(type($result)) `,` $left `` custom<Space>(type($left))
    `[` $left_piece `,` $left_step `,` $left_row `]` `,` $right `` custom<Space>(type($right)) `pieces` $pieces
    `steps` $steps `fetches` $fetched_lines `from` $fetched `` custom<Space>(type($fetched)) `rows` $rows
    `columns` $columns attr-dict}];
}

#endif // HEDDLE_PROGRAM_VALUES_TD
