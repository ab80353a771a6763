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

#endif // HEDDLE_PROGRAM_THREADS_TD
