// Run.td: what kernels and the program around them ask of a run and of the runtime.
//
// `run` is the run's handle: the argument of the program, and word 0 of a kernel's arguments.
#ifndef HEDDLE_PROGRAM_RUN_TD
#define HEDDLE_PROGRAM_RUN_TD

include "compiler/program/Program.td"

def Program_ArgumentOp : Program_Op<"argument", [MemoryEffects<[MemRead]>]> {
  let summary = "a word of a kernel's arguments";
  let description = "A size (i64) or a pointer. `invariant`: nothing writes to it while the function runs.";
  let constraints = ["S1: `slot` is not negative."];
  let arguments = (ins Program_HostPtr:$arguments, I64Attr:$slot, UnitAttr:$invariant);
  let results = (outs AnyTypeOf<[I64, Program_Ptr]>:$result);
  let assemblyFormat = "(`invariant` $invariant^)? $arguments `[` $slot `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Program_Area : I32EnumAttr<"Area", "memory that a run has", [
    I32EnumAttrCase<"Arena", 0, "arena">,            // bytes, as many as the function of sizes said
    I32EnumAttrCase<"Inputs", 1, "inputs">,          // a pointer for each input
    I32EnumAttrCase<"Outputs", 2, "outputs">,        // a pointer for each output
    I32EnumAttrCase<"Symbols", 3, "symbols">,        // an i64 for each symbol
    I32EnumAttrCase<"OutputDims", 4, "output_dims">, // an i64 for each dimension of each output
    I32EnumAttrCase<"Weights", 5, "weights">,        // bytes of the constants
    I32EnumAttrCase<"Services", 6, "services">,      // what program.service calls
    I32EnumAttrCase<"Seed", 7, "seed">]> {           // a ui64: of the run's random numbers
  let cppNamespace = "::heddle::program";
}

def Program_AreaOp : Program_Op<"area", [MemoryEffects<[MemRead]>]> {
  let summary = "where memory of the run begins";
  let description = [{
    `arena`: bytes, as many as heddle_program_sizes asked for. `inputs` and `outputs`: a pointer for each; that of an output is
    null where its size is not known before the run. `symbols`: an i64 for each. `output_dims`: an i64 for each dimension of
    all outputs, which the program writes where they are not known before the run. `weights`: bytes of the constants.
    `services`: what program.service calls. `seed`: a ui64 for the run's random numbers.
    Each space has an arena, and the bytes of the constants; all else is the host's.
  }];
  let constraints = ["S2: `arena` and `weights` alone are in a space that is not the host's."];
  let arguments = (ins Program_HostPtr:$run, Program_Area:$area);
  let results = (outs Program_Ptr:$result);
  let builders = [Program_PtrBuilder<(ins "::mlir::Value":$run, "Area":$area), ", run, area">];
  let assemblyFormat = "$run $area `` custom<Space>(type($result)) attr-dict";
  let hasVerifier = 1;
}

def Program_StatusOp : Program_Op<"status", [MemoryEffects<[MemRead]>]> {
  let summary = "0, or the first failure of the run";
  let arguments = (ins Program_HostPtr:$run);
  let results = (outs I32:$result);
  let assemblyFormat = "$run attr-dict";
}

def Program_AllocOp : Program_Op<"alloc", [MemoryEffects<[MemAlloc, MemRead, MemWrite]>]> {
  let summary = "memory until the end of the run";
  let description = "Null, after the run has failed, if there is none.";
  let arguments = (ins Program_HostPtr:$run, I64:$bytes);
  let results = (outs Program_Ptr:$result);
  let builders = [Program_PtrBuilder<(ins "::mlir::Value":$run, "::mlir::Value":$bytes), ", run, bytes">];
  let assemblyFormat = "$run `,` $bytes `` custom<Space>(type($result)) attr-dict";
}

def Program_AllocOutputOp : Program_Op<"alloc_output", [MemoryEffects<[MemAlloc, MemRead, MemWrite]>]> {
  let summary = "memory for an output whose size is known only at run time";
  let description = "Null, after the run has failed, if there is none.";
  let constraints = ["O1: `output` is not negative."];
  let arguments = (ins Program_HostPtr:$run, I64Attr:$output, I64:$bytes);
  let results = (outs Program_HostPtr:$result);
  let assemblyFormat = "$run `,` $output `,` $bytes attr-dict";
  let hasVerifier = 1;
}

def Program_FailOp : Program_Op<"fail", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "end the run with a message";
  let description = [{
    `message` is the number of one of the program's messages, in which `value` and `limit` stand for %lld. The first failure
    of a run counts. Control goes on: what follows asks program.status.
  }];
  let arguments = (ins Program_HostPtr:$run, I64:$message, I64:$value, I64:$limit);
  let assemblyFormat = "$run `,` $message `,` $value `,` $limit attr-dict";
}

def Program_LaunchOp : Program_Op<"launch",
    [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a kernel's tasks on all workers, and wait";
  let description = "Each worker calls `kernel` with `arguments`, some of the tasks, and memory of `scratch` bytes.";
  let constraints = ["K1: `kernel` names a function of the module.",
                     "K2: it has the type of a kernel, (!program.ptr, i64, i64, !program.ptr) -> (), of any space in its last argument.",
                     "K3: it reads and writes memory of that space and its stack alone."];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Program_HostPtr:$run, Program_HostPtr:$arguments, I64:$tasks, I64:$scratch);
  let assemblyFormat = "$kernel `(` $run `,` $arguments `,` $tasks `,` $scratch `)` attr-dict";
}

def Program_Service : I32EnumAttr<"Service", "what the runtime does for a program", [
    I32EnumAttrCase<"ListMake", 0, "list_make">, I32EnumAttrCase<"ListInsert", 1, "list_insert">,
    I32EnumAttrCase<"ListErase", 2, "list_erase">, I32EnumAttrCase<"ListAt", 3, "list_at">,
    I32EnumAttrCase<"ListLength", 4, "list_length">, I32EnumAttrCase<"ListConcat", 5, "list_concat">,
    I32EnumAttrCase<"ListSplit", 6, "list_split">, I32EnumAttrCase<"ListCast", 7, "list_cast">,
    I32EnumAttrCase<"StringConcat", 8, "string_concat">, I32EnumAttrCase<"StringSplit", 9, "string_split">,
    I32EnumAttrCase<"StringNormalize", 10, "string_normalize">, I32EnumAttrCase<"StringMatch", 11, "string_match">,
    I32EnumAttrCase<"StringCast", 12, "string_cast">, I32EnumAttrCase<"Profile", 13, "profile">,
    I32EnumAttrCase<"Library", 14, "library">, I32EnumAttrCase<"ImageDecode", 15, "image_decode">,
    I32EnumAttrCase<"Custom", 16, "custom">, I32EnumAttrCase<"Topk", 17, "topk">,
    I32EnumAttrCase<"Cumsum", 18, "cumsum">, I32EnumAttrCase<"Nonzero", 19, "nonzero">,
    I32EnumAttrCase<"Unique", 20, "unique">, I32EnumAttrCase<"Suppress", 21, "suppress">,
    I32EnumAttrCase<"Forest", 22, "forest">, I32EnumAttrCase<"Fourier", 23, "fourier">,
    I32EnumAttrCase<"ListRank", 24, "list_rank">, I32EnumAttrCase<"DeviceArea", 25, "device_area">,
    I32EnumAttrCase<"DeviceAlloc", 26, "device_alloc">, I32EnumAttrCase<"DeviceCopy", 27, "device_copy">,
    I32EnumAttrCase<"DeviceLaunch", 28, "device_launch">]> {
  let cppNamespace = "::heddle::program";
}

def Program_ServiceOp : Program_Op<"service", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "call a service of the runtime";
  let description = [{
    `services` is that area of the run. `frame` is an array of 64-bit words, operands and then results; its layout is told
    with each service in runtime/executable/abi.h and runtime/routine/routine.h.
  }];
  let arguments = (ins Program_Service:$service, Program_HostPtr:$services, Program_HostPtr:$run, Program_HostPtr:$frame);
  let assemblyFormat = "$service $services `(` $run `,` $frame `)` attr-dict";
}

#endif // HEDDLE_PROGRAM_RUN_TD
