// Passes.td: the passes of the CPUs, in the order in which a program meets them. docs/spec/passes.md is
// made from this file.
#ifndef HEDDLE_TARGET_CPU_PASSES_TD
#define HEDDLE_TARGET_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

class Cpu_Pass<string name, string operation, list<string> dialects> : Pass<"heddle-cpu-" # name, operation> {
  let dependentDialects = dialects;
}

def LowerProgramPass : Pass<"heddle-lower-program"> {
  let summary = "lower the ops of the program dialect to those of LLVM";
  let description = [{
    Memory of a run, vectors and the target's own instructions become ops of LLVM, `vector` and `math`; other ops stay.
    Lowers a function, or all those of a module before one of them is verified: the type of a function is verified
    in each that launches it.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect",
                           "::mlir::LLVM::LLVMDialect"];
  let options = [Option<"target", "target", "std::string", "\"x86-64-v3\"",
                        "CPU, as of `heddle compile --target`">];
}

def ExpandArithmeticPass : Cpu_Pass<"arithmetic", "::mlir::func::FuncOp",
    ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
     "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect"]> {
  let summary = "write functions of floats as plain arithmetic";
  let description = [{
    Math on f32 becomes polynomials, narrow floats are computed in f32, divisions that round up or down become
    divisions and comparisons.
  }];
  let options = [Option<"f16c", "f16c", "bool", "false", "the CPU converts f16">,
                 Option<"avx512", "avx512", "bool", "false", "the CPU scales by powers of two">,
                 Option<"fma", "fma", "bool", "false", "the CPU multiplies and adds at once">,
                 Option<"keepsSubnormals", "subnormals", "bool", "false",
                        "results below the normal numbers are exact">,
                 Option<"roundsFactors", "bf16", "bool", "false",
                        "the CPU rounds factors of products to bf16">,
                 Option<"x86", "x86", "bool", "false", "the CPU has SSE2, at least">];
}

def CallLibmPass : Cpu_Pass<"libm", "::mlir::ModuleOp",
    ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
     "::mlir::vector::VectorDialect"]> {
  let summary = "call libm, lane by lane, if there is neither a polynomial nor an intrinsic of LLVM";
}

def LowerLoopsPass : Cpu_Pass<"loops", "::mlir::func::FuncOp",
    ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect"]> {
  let summary = "turn loops and branches into blocks, the last ones first";
  let description = [{
    Loops with a condition (`scf.while`) stay. A dialect conversion would note each op that splitting a block moves,
    which is quadratic in the length of the function that launches the kernels.
  }];
}

def ConvertSignaturesPass : Cpu_Pass<"signatures", "::mlir::ModuleOp", ["::mlir::LLVM::LLVMDialect"]> {
  let summary = "turn func.func into llvm.func; bodies keep their ops";
}

def FlattenVectorsPass : Cpu_Pass<"vectors", "::mlir::LLVM::LLVMFuncOp",
    ["::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect", "::mlir::memref::MemRefDialect"]> {
  let summary = "flatten the remaining vectors of several dimensions";
}

def ConvertBodiesPass : Cpu_Pass<"bodies", "::mlir::LLVM::LLVMFuncOp", ["::mlir::LLVM::LLVMDialect"]> {
  let summary = "lower the bodies of functions to LLVM, all dialects at once";
}

def MoveHalvesPass : Cpu_Pass<"halves", "::mlir::LLVM::LLVMFuncOp", []> {
  let summary = "move floats of 16 bits as integers";
  let description = [{
    Floats of 16 bits that the CPU has no instructions for are only moved from here on: LLVM 19 converts what it moves
    without instructions through calls that no library of ours has.
  }];
  let options = [Option<"movesF16", "f16", "bool", "true", "f16 is moved as i16">,
                 Option<"movesBF16", "bf16", "bool", "true", "bf16 is moved as i16">];
}

#endif // HEDDLE_TARGET_CPU_PASSES_TD
