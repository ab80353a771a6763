// Emit: LLVM's NVPTX backend over the functions of a device, and the entries around them.

#include "compiler/target/gpu/Emit.h"

#include "compiler/target/cpu/FatalErrors.h"
#include "compiler/target/cpu/Lower.h"
#include "compiler/target/gpu/Threads.h"

#include "runtime/executable/abi.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm-c/Target.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace heddle::gpu {
namespace {

constexpr const char *kTriple = "nvptx64-nvidia-cuda";

std::unique_ptr<llvm::TargetMachine> machineFor(const Chip &chip) {
  static bool isKnown = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)isKnown;
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(kTriple, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard; // only what `contract` allows
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(kTriple, chip.name, chip.features, options, std::nullopt,
                                   std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Answers of a thread of a GPU to questions that lowering asks of a CPU.
cpu::Target threadTarget() {
  cpu::Target target;
  target.name = kSpace.str();
  target.triple = kTriple;
  target.vectorBits = 32;
  target.fma = target.f16c = true;
  target.keepsSubnormals = true;
  return target;
}

/// Writes the entry of a kernel: each team of threads carries out tasks of its own, those that are
/// as many apart as there are teams, but none once the run has failed.
class EntryWriter {
public:
  EntryWriter(llvm::Module &module, bool mayFail)
      : module(module), b(module.getContext()), mayFail(mayFail) {}

  void write(const program::DeviceKernel &kernel, llvm::Function &body) {
    llvm::Type *i64 = b.getInt64Ty();
    auto *words = llvm::ArrayType::get(i64, kernel.words);
    auto *type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i64, b.getPtrTy(), i64},
                                         /*isVarArg=*/false);
    auto *entry =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, kernel.name, module);
    entry->setCallingConv(llvm::CallingConv::PTX_Kernel);
    entry->addParamAttr(0, llvm::Attribute::getWithByValType(module.getContext(), words));
    entry->addParamAttr(0, llvm::Attribute::getWithAlignment(module.getContext(), llvm::Align(8)));
    auto *begin = block("begin", entry), *loop = block("loop", entry), *end = block("end", entry),
         *task = block("task", entry);
    llvm::Value *arguments = entry->getArg(0), *tasks = entry->getArg(1);
    b.SetInsertPoint(begin);
    llvm::Value *self = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x),
                *all = special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
    if (kernel.threads <= kWarp) { // a block has several teams
      int64_t threads = std::max<int64_t>(1, kernel.threads);
      llvm::Value *teams = b.CreateUDiv(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x),
                                        b.getInt64(threads)),
                  *team = b.CreateUDiv(special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x),
                                       b.getInt64(threads));
      self = b.CreateAdd(b.CreateMul(self, teams), team);
      all = b.CreateMul(all, teams);
    }
    llvm::Value *scratch =
        b.CreateGEP(b.getInt8Ty(), entry->getArg(2), b.CreateMul(self, entry->getArg(3)));
    llvm::Value *isFine = b.getTrue();
    if (mayFail) {
      llvm::Value *record = b.CreateIntToPtr(b.CreateLoad(i64, arguments), b.getPtrTy(1));
      llvm::Value *status =
          b.CreateConstGEP1_64(b.getInt8Ty(), record, offsetof(heddle_device_failure_t, status));
      isFine = b.CreateIsNull(b.CreateLoad(i64, status, /*isVolatile=*/true));
    }
    b.CreateCondBr(isFine, loop, end);
    b.SetInsertPoint(loop);
    llvm::PHINode *number = b.CreatePHI(i64, 2);
    number->addIncoming(self, begin);
    b.CreateCondBr(b.CreateICmpSLT(number, tasks), task, end);
    b.SetInsertPoint(task);
    b.CreateCall(&body, {arguments, number, b.CreateAdd(number, b.getInt64(1)), scratch});
    number->addIncoming(b.CreateAdd(number, all), task);
    b.CreateBr(loop);
    b.SetInsertPoint(end);
    b.CreateRetVoid();
    if (kernel.threads > kThreadsOfAnyRegisters)
      limitThreads(entry, kernel.threads);
  }

private:
  /// Threads of a block that may have as many registers each as there can be.
  static constexpr int64_t kThreadsOfAnyRegisters = 256;
  /// Says how many threads a block has, so that the assembler gives each no more registers than
  /// there are. Smaller blocks do without: it would spill some, so that more blocks fit.
  void limitThreads(llvm::Function *entry, int64_t threads) {
    llvm::LLVMContext &context = module.getContext();
    llvm::Metadata *parts[] = {llvm::ValueAsMetadata::get(entry),
                               llvm::MDString::get(context, "maxntidx"),
                               llvm::ConstantAsMetadata::get(b.getInt32(threads))};
    module.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(context, parts));
  }
  llvm::BasicBlock *block(const char *name, llvm::Function *function) {
    return llvm::BasicBlock::Create(module.getContext(), name, function);
  }
  llvm::Value *special(llvm::Intrinsic::ID which) {
    return b.CreateZExt(b.CreateIntrinsic(which, {}, {}), b.getInt64Ty());
  }

  llvm::Module &module;
  llvm::IRBuilder<> b;
  bool mayFail;
};

/// The name of PTX for a function of the program: "kernel0.1" is "kernel0_1".
std::string entryName(llvm::StringRef function) {
  std::string name = function.str();
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

/// A function that no device has: of libm, or an intrinsic for which NVPTX has no instructions; ""
/// if all are there.
std::string missingFunction(const llvm::Module &module) {
  using namespace llvm;
  static constexpr Intrinsic::ID none[] = {Intrinsic::sin,  Intrinsic::cos,   Intrinsic::exp,
                                           Intrinsic::exp2, Intrinsic::exp10, Intrinsic::log,
                                           Intrinsic::log2, Intrinsic::log10, Intrinsic::pow,
                                           Intrinsic::powi, Intrinsic::ldexp};
  for (const llvm::Function &function : module) {
    if (!function.isDeclaration() || function.use_empty())
      continue;
    if (!function.isIntrinsic() || llvm::is_contained(none, function.getIntrinsicID()))
      return function.getName().str();
  }
  return "";
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine, int optLevel) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = tuning.LoopVectorization = tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  using Level = llvm::OptimizationLevel;
  // Without any optimisation the functions would not be in line, which arguments by value need.
  Level level = optLevel <= 1 ? Level::O1 : optLevel == 2 ? Level::O2 : Level::O3;
  builder.buildPerModuleDefaultPipeline(level).run(module, modules);
}

/// The functions as a module of LLVM with an entry for each kernel.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp functions, llvm::LLVMContext &context, const program::Device &device) {
  mlir::registerBuiltinDialectTranslation(*functions.getContext());
  mlir::registerLLVMDialectTranslation(*functions.getContext());
  std::string problem;
  mlir::ScopedDiagnosticHandler handler(functions.getContext(), [&](mlir::Diagnostic &diagnostic) {
    problem += diagnostic.str() + "\n";
    return mlir::success();
  });
  auto module = mlir::translateModuleToLLVMIR(functions, context, "cuda");
  if (!module)
    return makeError(ErrorCode::Internal,
                     "internal error: kernels of device 'cuda' could not be translated to LLVM: " +
                         problem);
  module->setTargetTriple(kTriple);
  module->setDataLayout(machineFor(chips().front())->createDataLayout());
  for (llvm::Function &function : *module)
    if (!function.isDeclaration()) {
      function.setName("task." + function.getName());
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
      function.addFnAttr(llvm::Attribute::AlwaysInline);
      function.addFnAttr(llvm::Attribute::NoUnwind);
    }
  EntryWriter entries(*module, device.mayFail);
  for (const program::DeviceKernel &kernel : device.kernels) {
    program::DeviceKernel entry = kernel;
    llvm::Function *body = module->getFunction("task." + kernel.name);
    entry.name = entryName(kernel.name);
    entries.write(entry, *body);
  }
  return module;
}

llvm::Expected<std::string> textFor(const llvm::Module &source, const Chip &chip, int optLevel) {
  auto module = llvm::CloneModule(source);
  std::string text;
  llvm::Error failed = cpu::catchFatalErrors([&]() -> llvm::Error {
    auto machine = machineFor(chip);
    optimize(*module, *machine, optLevel);
    if (std::string missing = missingFunction(*module); !missing.empty())
      return makeError(ErrorCode::Refused, "error: device 'cuda' has no function '" + missing +
                                               "', which a kernel calls");
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    llvm::legacy::PassManager passes;
    machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
    passes.run(*module);
    text.assign(bytes.begin(), bytes.end());
    return llvm::Error::success();
  });
  if (failed)
    return std::move(failed);
  return text;
}

} // namespace

llvm::Error emitImages(mlir::ModuleOp functions, llvm::ArrayRef<const Chip *> chips, int optLevel,
                       program::Device &device) {
  if (llvm::Error error = cpu::lowerToLLVM(functions, threadTarget()))
    return error;
  llvm::LLVMContext context;
  auto module = translate(functions, context, device);
  if (!module)
    return module.takeError();
  for (const Chip *chip : chips) {
    auto text = textFor(**module, *chip, optLevel);
    if (!text)
      return text.takeError();
    device.images.push_back({chip->name.str(), std::move(*text), /*isText=*/true});
  }
  for (program::DeviceKernel &kernel : device.kernels)
    kernel.name = entryName(kernel.name);
  return llvm::Error::success();
}

} // namespace heddle::gpu
