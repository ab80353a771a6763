// Emit: the lowering pipeline and LLVM's code generator, functions split over threads.

#include "compiler/target/cpu/Emit.h"

#include "compiler/target/cpu/Math.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/SplitModule.h"

#include <thread>

using namespace mlir;

namespace heddle::cpu {

llvm::Error lowerToLLVM(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  manager.addPass(createCSEPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createMathPass());
  manager.addPass(arith::createArithExpandOpsPass());
  manager.addPass(createConvertSCFToCFPass());
  // Libm takes vectors apart, so it comes before vectors leave.
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createCSEPass());
  std::string problems;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    problems += diagnostic.str() + "\n";
    return success();
  });
  if (failed(manager.run(module)))
    return makeError(ErrorCode::Internal, "internal error: lowering to LLVM: " + problems);
  return llvm::Error::success();
}

static std::unique_ptr<llvm::TargetMachine> machineFor(const Target &target, int optLevel) {
  std::string triple = llvm::sys::getProcessTriple(), error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  auto level = optLevel >= 2 ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::Less;
  if (optLevel == 0)
    level = llvm::CodeGenOptLevel::None;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, target.cpu, target.features, options,
                                   llvm::Reloc::PIC_, std::nullopt, level));
}

/// Kernels arrive tiled, unrolled and in vectors: what is left is scalar clean-up.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine, int optLevel) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  auto level = optLevel == 0   ? llvm::OptimizationLevel::O0
               : optLevel == 1 ? llvm::OptimizationLevel::O1
                               : llvm::OptimizationLevel::O2;
  auto passes = optLevel == 0 ? builder.buildO0DefaultPipeline(level)
                              : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
}

static std::unique_ptr<llvm::MemoryBuffer> emitObject(llvm::Module &module, const Target &target,
                                                      int optLevel) {
  auto machine = machineFor(target, optLevel);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  for (llvm::Function &function : module)
    if (!function.isDeclaration()) {
      function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
      function.addFnAttr("target-cpu", target.cpu);
      function.addFnAttr("target-features", target.features);
    }
  optimize(module, *machine, optLevel);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
  passes.run(module);
  return llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(bytes.data(), bytes.size()));
}

llvm::Expected<Objects> emitObjects(target::Program &program, const Target &target, int optLevel,
                                    unsigned threads) {
  if (llvm::Error error = lowerToLLVM(*program.module))
    return std::move(error);
  registerBuiltinDialectTranslation(*program.module->getContext());
  registerLLVMDialectTranslation(*program.module->getContext());
  llvm::LLVMContext context;
  auto module = translateModuleToLLVMIR(*program.module, context, "heddle");
  if (!module)
    return makeError(ErrorCode::Internal, "internal error: translation to LLVM IR failed");
  // Each part is compiled in a context of its own.
  std::vector<std::string> parts;
  llvm::SplitModule(*module, std::max(1u, threads), [&](std::unique_ptr<llvm::Module> part) {
    std::string bitcode;
    llvm::raw_string_ostream stream(bitcode);
    llvm::WriteBitcodeToFile(*part, stream);
    parts.push_back(std::move(stream.str()));
  });
  Objects objects(parts.size());
  std::vector<std::thread> workers;
  for (size_t i = 0; i < parts.size(); ++i)
    workers.emplace_back([&, i] {
      llvm::LLVMContext own;
      auto part = llvm::parseBitcodeFile(llvm::MemoryBufferRef(parts[i], "part"), own);
      if (part)
        objects[i] = emitObject(**part, target, optLevel);
      else
        llvm::consumeError(part.takeError());
    });
  for (std::thread &worker : workers)
    worker.join();
  for (auto &object : objects)
    if (!object)
      return makeError(ErrorCode::Internal, "internal error: a part of the code was lost");
  return objects;
}

} // namespace heddle::cpu
