// Threads.td: threads of a device that carry out a task together.
//
// The attribute `program.threads` of a kernel says how many there are: its team.
#ifndef HEDDLE_PROGRAM_THREADS_TD
#define HEDDLE_PROGRAM_THREADS_TD

include "compiler/program/Program.td"

def Program_RankOp : Program_Op<"rank", [Pure]> {
  let summary = "the number of this thread in its team";
  let arguments = (ins);
  let results = (outs I64:$result);
  let assemblyFormat = "attr-dict";
}

def Program_BarrierOp : Program_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for the team";
  let description = "All its threads come here, and each then sees what the others wrote before.";
  let assemblyFormat = "attr-dict";
}

def Program_ShuffleOp : Program_Op<"shuffle", [SameOperandsAndResultType, MemoryEffects<[MemRead]>]> {
  let summary = "the value that another thread has";
  let description = "That of the thread whose rank differs in the bits of `distance`; all threads of the team come here.";
  let constraints = ["TH1: x is an integer or a float of at most 64 bits, and `distance` is from 1 to 31."];
  let arguments = (ins AnyTypeOf<[AnySignlessInteger, AnyFloat]>:$x, I64Attr:$distance);
  let results = (outs AnyTypeOf<[AnySignlessInteger, AnyFloat]>:$result);
  let assemblyFormat = "$x `by` $distance attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Program_SharedOp : Program_Op<"shared", [MemoryEffects<[MemAlloc]>]> {
  let summary = "memory of the team";
  let description = "So many bytes that the threads of a team, a whole block, share; each op has its own, aligned to 16 bytes.";
  let constraints = ["TH2: `bytes` is positive."];
  let arguments = (ins I64Attr:$bytes);
  let results = (outs Program_Ptr:$result);
  let assemblyFormat = "$bytes `` custom<Space>(type($result)) attr-dict";
  let hasVerifier = 1;
}

def Program_FetchOp : Program_Op<"fetch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "copy 16 bytes to memory of the team, meanwhile";
  let description = [{
    Both addresses are aligned to 16 bytes. Bytes from `bytes` on, 0 to 16, become zeros, and are not read. What was fetched is there
    for this thread once `program.await` has returned, and for its team after a barrier then.
  }];
  let arguments = (ins Program_Ptr:$target, Program_Ptr:$source, I64:$bytes);
  let assemblyFormat = "$target `` custom<Space>(type($target)) `,` $source `` custom<Space>(type($source)) `,` $bytes attr-dict";
}

def Program_AwaitOp : Program_Op<"await", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for copies";
  let description = "What this thread has fetched before its last `rounds` calls of `program.round`.";
  let constraints = ["TH4: `rounds` is not negative."];
  let arguments = (ins I64Attr:$rounds);
  let assemblyFormat = "$rounds attr-dict";
  let hasVerifier = 1;
}

def Program_RoundOp : Program_Op<"round", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "end a round of copies";
  let arguments = (ins);
  let assemblyFormat = "attr-dict";
}

// Fragments: matrices of 16-bit floats of which each of 32 threads in step has some elements. Thread t has, of a matrix of 8
// rows and 8 columns, elements 2 (t % 4) and the next one of row t / 4, in a word of 32 bits.

def Program_LoadFragmentsOp : Program_Op<"load_fragments", [MemoryEffects<[MemRead]>]> {
  let summary = "four matrices of 8 x 8 numbers of 16 bits, from memory of the team";
  let description = [{
    Threads 8 i to 8 i + 7 have pointers to the rows of matrix i, 16 bytes each and aligned so; word i of each thread is its part
    of that matrix.
  }];
  let arguments = (ins Program_Ptr:$row);
  let results = (outs VectorOfLengthAndType<[4], [I32]>:$result);
  let assemblyFormat = "$row `` custom<Space>(type($row)) attr-dict `:` type($result)";
}

def Program_MultiplyFragmentsOp : Program_Op<"multiply_fragments", [Pure, AllTypesMatch<["sum", "result"]>]> {
  let summary = "the sums and the product of a matrix of 16 x 16 and one of 16 x 8";
  let description = [{
    `left` is of matrices of 8 x 8: rows 0 to 7 and 8 to 15 of columns 0 to 7, then of columns 8 to 15. `right` is of columns, as
    if they were rows: steps 0 to 7, and 8 to 15. `sum` has, of 8 columns, elements 2 (t % 4) and the next one of row t / 4, then of
    row t / 4 + 8. Products are exact, and sums f32.
  }];
  let constraints = ["TH3: `element` is f16 or bf16."];
  let arguments = (ins VectorOfLengthAndType<[4], [I32]>:$left, VectorOfLengthAndType<[2], [I32]>:$right,
    VectorOfLengthAndType<[4], [F32]>:$sum, TypeAttr:$element);
  let results = (outs VectorOfLengthAndType<[4], [F32]>:$result);
  let assemblyFormat = "$element $left `,` $right `,` $sum attr-dict `:` type($left) `,` type($right) `,` type($sum)";
  let hasVerifier = 1;
}

#endif // HEDDLE_PROGRAM_THREADS_TD
