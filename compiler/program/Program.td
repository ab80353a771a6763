// Program.td: the program dialect, its types, and the bases of its ops.
//
// Kernels and the program around them are written in these ops beside those of func, arith, scf,
// vector and math. Each is one statement or one call of C; what a target makes of it (instructions,
// offsets in the structures that it shares with the runtime) is known to that target alone.
#ifndef HEDDLE_PROGRAM_TD
#define HEDDLE_PROGRAM_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Program_Dialect : Dialect {
  let name = "program";
  let cppNamespace = "::heddle::program";
  let summary = "memory, sizes, and what the program around the kernels asks of the runtime";
  let description = [{
    A kernel is a function `(!program.ptr, i64, i64, !program.ptr)`: its arguments, an array of 8-byte words of which word 0
    is the run; the first task and the end of its tasks; memory of its worker. Elements of i1 and of fewer than 8 bits are in
    memory as i8. A function with the unit attribute `program.inline` is copied to where it is called; kernels
    are private functions, those of the program around them public ones. An `arith.truncf` with the
    unit attribute `program.factor` makes a factor of a product, as which subnormal numbers may count as 0, and an `arith.divf`
    with `program.steps` makes a quotient that is NaN or below 2^16 in size and only matters rounded to a whole number. A function with the attribute `program.instruction`
    is an instruction of a target: its body is what it means, and the attribute its text. `program.words` says how many words of
    arguments a function of a device reads, and `program.threads` how many of its threads carry out a task together.

    Memory is in spaces. A pointer without one is to the host's memory, or on a device to the stack: a kernel's arguments, its
    arrays and the run. `!program.ptr<"npu">` is to memory of that name, which the code of a device alone can read and write.
    The space of a kernel's last argument, memory of its worker, is that of the device that it is for.
  }];
  let hasOperationAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
}

def Program_PtrType : TypeDef<Program_Dialect, "Ptr"> {
  let mnemonic = "ptr";
  let summary = "address of a byte in memory";
  let description = [{
    It has no element type: ops on memory say what they read and write. The run is one, too. `space` names the memory; ops
    say it after the pointer, `in "npu"`, where it is not the host's.
  }];
  let parameters = (ins StringRefParameter<"the memory; empty: the host's", [{""}]>:$space);
  let assemblyFormat = "(`<` $space^ `>`)?";
  let builders = [TypeBuilder<(ins CArg<"::llvm::StringRef", "\"\"">:$space), "return $_get($_ctxt, space);">];
  let skipDefaultBuilders = 1;
}

def Program_Ptr : DialectType<Program_Dialect, CPred<"::llvm::isa<::heddle::program::PtrType>($_self)">, "pointer">;

/// To the host's memory, or to a kernel's stack.
def Program_HostPtr : DialectType<Program_Dialect,
    CPred<"::llvm::isa<::heddle::program::PtrType>($_self) && "
          "::llvm::cast<::heddle::program::PtrType>($_self).getSpace().empty()">, "pointer of no space">,
    BuildableType<"$_builder.getType<::heddle::program::PtrType>()">;

/// A builder of an op whose result is a pointer, to the host's memory unless it is said.
class Program_PtrBuilder<dag operands, string arguments> : OpBuilder<
    !con(operands, (ins CArg<"::llvm::StringRef", "\"\"">:$space)),
    "build($_builder, $_state, PtrType::get($_builder.getContext(), space)" # arguments # ");">;

def Program_Vector : VectorOfRank<[1]>;
def Program_Mask : VectorOfRankAndType<[1], [I1]>;
def Program_Integers : VectorOfRankAndType<[1], [I32]>;
def Program_Sums : VectorOfRankAndType<[1], [I32, F32]>;

/// `constraints`: what the verifier holds an op to beside the types of its operands, each with the
/// label that its messages begin with. docs/spec/program.md lists them.
class Program_Op<string mnemonic, list<Trait> traits = []> : Op<Program_Dialect, mnemonic, traits> {
  list<string> constraints = [];
}

// Constraints that several ops have.
defvar Program_InMemory =
  "M1: the value is an integer of 8, 16, 32 or 64 bits, f16, bf16, f32, f64, a pointer, or a vector of such numbers of one dimension.";
defvar Program_Aligned = "A1: `alignment` is a power of two, at most the bytes of the value.";
defvar Program_AlignedLanes = "A2: `alignment` is a power of two, at most the bytes of a lane.";

#endif // HEDDLE_PROGRAM_TD
