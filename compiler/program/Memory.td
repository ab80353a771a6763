// Memory.td: addresses, loads and stores, copies, arrays on the stack.
//
// `alignment` is in bytes.
#ifndef HEDDLE_PROGRAM_MEMORY_TD
#define HEDDLE_PROGRAM_MEMORY_TD

include "compiler/program/Program.td"

class Program_LanesOf<string of, string what, string element> : TypesMatchWith<what # " has a lane for each of " # of, of, what,
    "::mlir::VectorType::get(::llvm::cast<::mlir::VectorType>($_self).getShape(), "
    "::mlir::IntegerType::get($_self.getContext(), " # element # "))">;

def Program_AtOp : Program_Op<"at", [Pure, AllTypesMatch<["pointer", "result"]>]> {
  let summary = "address of an element";
  let description = [{
    `(element *)pointer + index`. The index counts elements and may be negative; where the element is `!program.ptr`, pointers.
    `at p[0]` is p.
  }];
  let constraints = ["M2: `element` is an integer of 8, 16, 32 or 64 bits, f16, bf16, f32, f64 or a pointer."];
  let arguments = (ins Program_Ptr:$pointer, I64:$index, TypeAttr:$element);
  let results = (outs Program_Ptr:$result);
  let assemblyFormat = "$pointer `` custom<Space>(type($pointer)) `[` $index `]` attr-dict `:` $element";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Program_LoadOp : Program_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "read a scalar, a vector or a pointer";
  let description = "`invariant`: nothing writes to it while the function runs.";
  let constraints = [Program_InMemory, Program_Aligned];
  let arguments = (ins Program_Ptr:$pointer, I64Attr:$alignment, UnitAttr:$invariant);
  let results = (outs AnyType:$result);
  let assemblyFormat = "(`invariant` $invariant^)? $pointer `` custom<Space>(type($pointer)) `align` $alignment attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Program_StoreOp : Program_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "write a scalar, a vector or a pointer";
  let constraints = [Program_InMemory, Program_Aligned];
  let arguments = (ins AnyType:$value, Program_Ptr:$pointer, I64Attr:$alignment);
  let assemblyFormat = "$value `,` $pointer `` custom<Space>(type($pointer)) `align` $alignment attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Program_MaskedLoadOp : Program_Op<"masked_load",
    [MemoryEffects<[MemRead]>, AllTypesMatch<["otherwise", "result"]>,
     Program_LanesOf<"result", "mask", "1">]> {
  let summary = "read the lanes whose mask is true";
  let description = "Memory of the other lanes is not touched; they have the values of `otherwise`.";
  let constraints = [Program_InMemory, Program_Aligned];
  let arguments = (ins Program_Ptr:$pointer, Program_Mask:$mask, Program_Vector:$otherwise, I64Attr:$alignment);
  let results = (outs Program_Vector:$result);
  let assemblyFormat = "$pointer `` custom<Space>(type($pointer)) `,` $mask `,` $otherwise `align` $alignment attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Program_MaskedStoreOp : Program_Op<"masked_store",
    [MemoryEffects<[MemWrite]>, Program_LanesOf<"value", "mask", "1">]> {
  let summary = "write the lanes whose mask is true";
  let description = "Memory of the other lanes is not touched.";
  let constraints = [Program_InMemory, Program_Aligned];
  let arguments = (ins Program_Vector:$value, Program_Ptr:$pointer, Program_Mask:$mask, I64Attr:$alignment);
  let assemblyFormat = "$value `,` $pointer `` custom<Space>(type($pointer)) `,` $mask `align` $alignment attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Program_GatherOp : Program_Op<"gather",
    [MemoryEffects<[MemRead]>, AllTypesMatch<["otherwise", "result"]>,
     Program_LanesOf<"result", "mask", "1">, Program_LanesOf<"result", "indices", "64">]> {
  let summary = "read lane i from element indices[i] where mask[i] is true";
  let description = "Memory of the other lanes is not touched; they have the values of `otherwise`.";
  let constraints = [Program_InMemory, Program_AlignedLanes];
  let arguments = (ins Program_Ptr:$pointer, VectorOfRankAndType<[1], [I64]>:$indices, Program_Mask:$mask,
    Program_Vector:$otherwise, I64Attr:$alignment);
  let results = (outs Program_Vector:$result);
  let assemblyFormat = "$pointer `` custom<Space>(type($pointer)) `[` $indices `]` `,` $mask `,` $otherwise `align` $alignment attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Program_ScatterOp : Program_Op<"scatter",
    [MemoryEffects<[MemWrite]>, Program_LanesOf<"value", "mask", "1">, Program_LanesOf<"value", "indices", "64">]> {
  let summary = "write lane i to element indices[i] where mask[i] is true";
  let description = "Of lanes with equal indices the last one stays.";
  let constraints = [Program_InMemory, Program_AlignedLanes];
  let arguments = (ins Program_Vector:$value, Program_Ptr:$pointer, VectorOfRankAndType<[1], [I64]>:$indices,
    Program_Mask:$mask, I64Attr:$alignment);
  let assemblyFormat = "$value `,` $pointer `` custom<Space>(type($pointer)) `[` $indices `]` `,` $mask `align` $alignment attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Program_CopyOp : Program_Op<"copy", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "copy bytes";
  let description = "Like memcpy; with `overlapping`, like memmove.";
  let constraints = ["M3: `target` and `source` are in one space."];
  let arguments = (ins Program_Ptr:$target, Program_Ptr:$source, I64:$bytes, UnitAttr:$overlapping);
  let assemblyFormat = "(`overlapping` $overlapping^)? $target `` custom<Space>(type($target)) `,` $source `` custom<Space>(type($source)) `,` $bytes attr-dict";
  let hasVerifier = 1;
}

def Program_TransferOp : Program_Op<"transfer", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "copy bytes from one space to another, and wait";
  let description = "The program around the kernels does it, before the launches that read `target`.";
  let constraints = ["M4: `target` and `source` are in two spaces."];
  let arguments = (ins Program_Ptr:$target, Program_Ptr:$source, I64:$bytes);
  let assemblyFormat = "$target `` custom<Space>(type($target)) `,` $source `` custom<Space>(type($source)) `,` $bytes attr-dict";
  let hasVerifier = 1;
}

def Program_PrefetchOp : Program_Op<"prefetch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "say that the line of memory will be read soon";
  let description = "The address need not be one of a tensor. Does nothing where there is no such instruction.";
  let arguments = (ins Program_Ptr:$pointer);
  let assemblyFormat = "$pointer `` custom<Space>(type($pointer)) attr-dict";
}

def Program_ArrayOp : Program_Op<"array", [MemoryEffects<[MemAlloc]>]> {
  let summary = "64-bit words on the stack";
  let description = "`int64_t result[words];`, until the function returns.";
  let constraints = ["W1: `words` is at least 1, and the array has at most 2^20 of them: 8 MiB."];
  let arguments = (ins I64Attr:$words);
  let results = (outs Program_HostPtr:$result);
  let assemblyFormat = "$words attr-dict";
  let hasVerifier = 1;
}

def Program_NullOp : Program_Op<"null", [Pure]> {
  let summary = "the pointer to nothing";
  let results = (outs Program_Ptr:$result);
  let builders = [Program_PtrBuilder<(ins), "">];
  let assemblyFormat = "`` custom<Space>(type($result)) attr-dict";
}

def Program_WordOp : Program_Op<"word", [Pure]> {
  let summary = "a pointer as a 64-bit word of arguments or of a service's frame";
  let description = "`word(pointer w)` is w.";
  let arguments = (ins Program_Ptr:$pointer);
  let results = (outs I64:$result);
  let assemblyFormat = "$pointer `` custom<Space>(type($pointer)) attr-dict";
  let hasFolder = 1;
}

def Program_PointerOp : Program_Op<"pointer", [Pure]> {
  let summary = "the pointer that a 64-bit word is";
  let description = "`pointer(word p)` is p, in its space.";
  let arguments = (ins I64:$word);
  let results = (outs Program_Ptr:$result);
  let builders = [Program_PtrBuilder<(ins "::mlir::Value":$word), ", word">];
  let assemblyFormat = "$word `` custom<Space>(type($result)) attr-dict";
  let hasFolder = 1;
}

#endif // HEDDLE_PROGRAM_MEMORY_TD
