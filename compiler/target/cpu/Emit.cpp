// Emit: LLVM's optimiser and code generator over the functions of a program, split in parts that
// threads compile in contexts of their own.

#include "compiler/target/cpu/Emit.h"

#include "compiler/cache/Cache.h"
#include "compiler/target/cpu/Clang.h"
#include "compiler/target/cpu/FatalErrors.h"
#include "compiler/target/cpu/Lower.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/StripDeadPrototypes.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"

#include <atomic>

using namespace mlir;

namespace heddle::cpu {
namespace {

std::unique_ptr<llvm::TargetMachine> machineFor(const Target &target, int optLevel) {
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(target.triple, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard; // only what `contract` allows
  options.FunctionSections = true;
  options.DataSections = true;
  auto level = optLevel == 0   ? llvm::CodeGenOptLevel::None
               : optLevel == 1 ? llvm::CodeGenOptLevel::Less
               : optLevel == 2 ? llvm::CodeGenOptLevel::Default
                               : llvm::CodeGenOptLevel::Aggressive;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_, std::nullopt, level));
}

/// Kernels arrive tiled, unrolled and in vectors: the vectorizers and the unroller would take two
/// thirds of the time and undo register tiling. Kernels written by hand are in parts of their own.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, int optLevel) {
  bool isByHand = llvm::any_of(module, [](const llvm::Function &function) {
    return isHandwritten(function) && !function.isDeclaration();
  });
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = isByHand;
  tuning.SLPVectorization = isByHand;
  tuning.LoopInterleaving = isByHand;
  tuning.LoopUnrolling = isByHand;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation optNone(/*DebugLogging=*/false); // or passes ignore the attribute
  optNone.registerCallbacks(callbacks);
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  auto isSanitized = [](const llvm::Function &function) {
    return function.hasFnAttribute(llvm::Attribute::SanitizeAddress);
  };
  if (llvm::any_of(module, isSanitized))
    builder.registerOptimizerLastEPCallback([](llvm::ModulePassManager &passes, auto) {
      // Each access is a call: checks in line make several times the code, which takes longer to
      // compile than it runs. No constructor: whoever loads the code has the sanitizer's runtime.
      llvm::AddressSanitizerOptions options;
      options.InstrumentationWithCallsThreshold = 0;
      passes.addPass(llvm::AddressSanitizerPass(options, /*UseGlobalGC=*/true,
                                                /*UseOdrIndicator=*/true, llvm::AsanDtorKind::None,
                                                llvm::AsanCtorKind::None));
    });
  using Level = llvm::OptimizationLevel;
  if (optLevel == 0) {
    builder.buildO0DefaultPipeline(Level::O0).run(module, modules);
    return;
  }
  Level level = optLevel == 1 ? Level::O1 : optLevel == 2 ? Level::O2 : Level::O3;
  builder.buildPerModuleDefaultPipeline(level).run(module, modules);
}

/// Without this an error of the code generator would end the process.
void collectErrors(llvm::LLVMContext &context, std::string &errors) {
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo *info, void *data) {
        if (info->getSeverity() != llvm::DS_Error)
          return;
        llvm::raw_string_ostream stream(*static_cast<std::string *>(data));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
      },
      &errors);
}

void setTarget(llvm::Module &module, llvm::TargetMachine &machine, const Target &target) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(target.triple);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

llvm::SmallVector<char, 0> generate(llvm::Module &module, llvm::TargetMachine &machine,
                                    llvm::CodeGenFileType kind) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  machine.addPassesToEmitFile(passes, stream, nullptr, kind, /*DisableVerify=*/true);
  passes.run(module);
  return bytes;
}

bool isShared(const llvm::Function &function) { return function.hasLinkOnceLinkage(); }

/// The program as one LLVM module. Functions see each other across parts, and nobody else does.
llvm::Expected<std::unique_ptr<llvm::Module>> translate(const program::Program &program,
                                                        llvm::LLVMContext &context) {
  ModuleOp source = program.module.get(); // a handle: reading changes nothing
  registerBuiltinDialectTranslation(*source.getContext());
  registerLLVMDialectTranslation(*source.getContext());
  std::string problem;
  ScopedDiagnosticHandler handler(source.getContext(), [&](Diagnostic &diagnostic) {
    problem += diagnostic.str() + "\n";
    return success();
  });
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(source, context, "heddle");
  if (!module)
    return makeError(ErrorCode::Internal,
                     "internal error: kernels could not be translated to LLVM: " + problem);
  if (llvm::Error error = linkSources(*module, program.sources))
    return std::move(error);
  for (llvm::Function &function : *module) {
    if (function.isDeclaration())
      continue;
    // Helpers that several functions call go into each part.
    function.setLinkage(isShared(function) ? llvm::GlobalValue::LinkOnceODRLinkage
                                           : llvm::GlobalValue::ExternalLinkage);
    if (program.isSanitized)
      function.addFnAttr(llvm::Attribute::SanitizeAddress);
    function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    function.setDSOLocal(true);
  }
  for (llvm::GlobalVariable &global : module->globals())
    if (global.hasInitializer() && !global.isConstant()) {
      global.setLinkage(llvm::GlobalValue::ExternalLinkage);
      global.setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
  return module;
}

struct Part {
  llvm::StringMap<char> names;
  std::string first;
  size_t size = 0; // instructions
  void add(const llvm::Function &function) {
    if (names.empty())
      first = function.getName();
    names[function.getName()] = 0;
    size += function.getInstructionCount() + 1;
  }
};

/// The functions of each part. Those of some size are parts of their own, so that a cache has them
/// for other models and plans, too; the parts of all others are about as large as each other. The
/// largest come first, as threads take them. Parts are the program's own, however many threads
/// there are, so that bytes are reproducible.
std::vector<Part> partition(const llvm::Module &module) {
  // A part reads the names of all functions, so that those of fewer than 1000 instructions are
  // alone in programs of usual size only.
  constexpr size_t instructionsAlone = 100, largeAlone = 1000, maxAlone = 256;
  constexpr size_t instructionsPerPart = 4000, maxParts = 64;
  std::vector<Part> parts;
  Part handwritten;
  std::vector<const llvm::Function *> functions;
  size_t total = 0;
  for (const llvm::Function &function : module) {
    if (function.isDeclaration() || isShared(function))
      continue;
    size_t size = function.getInstructionCount() + 1;
    if (isHandwritten(function)) {
      handwritten.add(function);
    } else {
      functions.push_back(&function);
      total += size;
    }
  }
  llvm::sort(functions, [](const llvm::Function *a, const llvm::Function *b) {
    size_t sizes[] = {a->getInstructionCount(), b->getInstructionCount()};
    return sizes[0] != sizes[1] ? sizes[0] > sizes[1] : a->getName() < b->getName();
  });
  auto isAlone = [&](const llvm::Function *function) {
    size_t size = function->getInstructionCount() + 1;
    return size >= (parts.size() < maxAlone ? instructionsAlone : largeAlone);
  };
  auto rest = functions.begin();
  for (; rest != functions.end() && isAlone(*rest); ++rest) {
    parts.emplace_back().add(**rest);
    total -= parts.back().size;
  }
  std::vector<Part> shared(std::clamp<size_t>(total / instructionsPerPart, 1, maxParts));
  auto isSmaller = [](const Part &a, const Part &b) { return a.size < b.size; };
  for (const llvm::Function *function : llvm::make_range(rest, functions.end()))
    std::min_element(shared.begin(), shared.end(), isSmaller)->add(*function);
  llvm::move(shared, std::back_inserter(parts));
  if (handwritten.size)
    parts.push_back(std::move(handwritten));
  llvm::sort(parts, [](const Part &a, const Part &b) {
    return a.size != b.size ? a.size > b.size : a.first < b.first;
  });
  return parts;
}

/// Leaves out what the part does not use, so that equal parts of different programs are one text.
void prune(llvm::Module &module) {
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder().registerModuleAnalyses(modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::StripDeadPrototypesPass());
  passes.run(module, modules);
}

/// All that the code of a part depends on: its text names the CPU and its features, too.
cache::Digest keyOf(const llvm::Module &module, int optLevel) {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::WriteBitcodeToFile(module, stream);
  return cache::Key("object").add({text.data(), text.size()}).add(optLevel).digest();
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> compilePart(llvm::MemoryBufferRef bitcode,
                                                                const llvm::StringMap<char> &names,
                                                                bool isFirst, const Target &target,
                                                                int optLevel, CodeCache &cache) {
  llvm::LLVMContext context;
  std::string errors;
  collectErrors(context, errors);
  auto module = llvm::getLazyBitcodeModule(bitcode, context);
  if (!module)
    return module.takeError();
  for (llvm::Function &function : **module) {
    if (names.contains(function.getName()) || isShared(function)) {
      if (llvm::Error error = function.materialize())
        return std::move(error);
    } else if (!function.isDeclaration()) {
      function.setLinkage(llvm::GlobalValue::ExternalLinkage);
      function.setIsMaterializable(false);
      function.deleteBody();
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
  }
  if (!isFirst)
    for (llvm::GlobalVariable &global : (*module)->globals())
      if (!global.isConstant())
        global.setInitializer(nullptr);
  if (llvm::Error error = (*module)->materializeAll())
    return std::move(error);
  auto machine = machineFor(target, optLevel);
  setTarget(**module, *machine, target);
  prune(**module);
  cache::Digest key;
  if (cache.objects) {
    key = keyOf(**module, optLevel);
    if (auto known = cache.objects->find(key)) {
      ++cache.found;
      return known;
    }
  }
  optimize(**module, *machine, optLevel);
  auto bytes = generate(**module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!errors.empty())
    return makeError(ErrorCode::Internal, "internal error: LLVM's code generator: " + errors);
  llvm::StringRef object(bytes.data(), bytes.size());
  if (cache.objects)
    cache.objects->store(key, object);
  return llvm::MemoryBuffer::getMemBufferCopy(object);
}

} // namespace

llvm::Expected<Objects> emitObjects(program::Program &program, const Target &target, int optLevel,
                                    unsigned threads, CodeCache &cache) {
  if (llvm::Error error = lowerToLLVM(*program.module, target))
    return std::move(error);
  if (llvm::Error error = compileSources(program.sources, target))
    return std::move(error);
  std::string bitcode;
  std::vector<Part> parts;
  {
    llvm::LLVMContext context;
    auto module = translate(program, context);
    if (!module)
      return module.takeError();
    parts = partition(**module);
    llvm::raw_string_ostream stream(bitcode);
    llvm::WriteBitcodeToFile(**module, stream);
  }
  Objects objects(parts.size());
  std::vector<std::string> errors(parts.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < parts.size();) {
      llvm::Error error = catchFatalErrors([&]() -> llvm::Error {
        auto object =
            compilePart({bitcode, "heddle"}, parts[i].names, i == 0, target, optLevel, cache);
        if (!object)
          return object.takeError();
        objects[i] = std::move(*object);
        return llvm::Error::success();
      });
      if (error)
        errors[i] = llvm::toString(std::move(error));
    }
  };
  std::vector<std::thread> workers;
  for (size_t i = 1; i < std::min<size_t>(threads, parts.size()); ++i)
    workers.emplace_back(work);
  work();
  for (std::thread &worker : workers)
    worker.join();
  for (const std::string &error : errors)
    if (!error.empty())
      return makeError(ErrorCode::Internal, error);
  return objects;
}

llvm::Expected<Objects> emitObjects(program::Program &program, const Target &target, int optLevel,
                                    unsigned threads) {
  CodeCache none;
  return emitObjects(program, target, optLevel, threads, none);
}

llvm::Expected<std::string> emitText(const program::Program &program, const Target &target,
                                     int optLevel, TextKind kind) {
  llvm::LLVMContext context;
  std::string errors, text;
  collectErrors(context, errors);
  auto module = translate(program, context);
  if (!module)
    return module.takeError();
  auto machine = machineFor(target, optLevel);
  setTarget(**module, *machine, target);
  optimize(**module, *machine, optLevel);
  if (kind == TextKind::Assembly) {
    auto bytes = generate(**module, *machine, llvm::CodeGenFileType::AssemblyFile);
    text.assign(bytes.begin(), bytes.end());
  } else {
    llvm::raw_string_ostream stream(text);
    (*module)->print(stream, nullptr);
  }
  if (!errors.empty())
    return makeError(ErrorCode::Internal, "internal error: LLVM's code generator: " + errors);
  return text;
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> emitData(llvm::Module &module,
                                                             const Target &target) {
  std::string errors;
  collectErrors(module.getContext(), errors);
  auto machine = machineFor(target, /*optLevel=*/0);
  setTarget(module, *machine, target);
  auto bytes = generate(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!errors.empty())
    return makeError(ErrorCode::Internal, "internal error: LLVM's code generator: " + errors);
  return llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(bytes.data(), bytes.size()));
}

} // namespace heddle::cpu
