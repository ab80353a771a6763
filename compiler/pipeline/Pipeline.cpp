// Pipeline: ONNX -> graph -> groups -> kernels -> objects. Each Stages::run is one stage: import
// and simplify once, and partition, plan (planGroups), lower and emit for each target.

#include "compiler/pipeline/Pipeline.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Graph.h"
#include "compiler/graph/Typical.h"
#include "compiler/graph/edit/Sharing.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/ShortResults.h"
#include "compiler/lower/program/Model.h"
#include "compiler/onnx/Importer.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/pipeline/Report.h"
#include "compiler/pipeline/Stages.h"
#include "compiler/pipeline/Verify.h"
#include "compiler/plan/Plan.h"
#include "compiler/ragged/Ragged.h"
#include "compiler/simplify/Passes.h"
#include "compiler/training/Step.h"

#include "llvm/Support/Threading.h"

#include <thread>

using namespace mlir;

namespace heddle {

llvm::Error checkOptions(const CompileOptions &options) {
  auto targets = target::targetsFor(options.target, {options.threads, options.isProfiled});
  if (!targets)
    return targets.takeError();
  onnx::ImportOptions import;
  for (const std::string &shape : options.shapes)
    if (llvm::Error error = onnx::addShapeOption(import, shape))
      return error;
  if (options.training.empty())
    return llvm::Error::success();
  return training::readRecipe(options.training).takeError();
}

llvm::Expected<OwningOpRef<ModuleOp>> importGraph(MLIRContext &context, const ModelSource &source,
                                                  const CompileOptions &options) {
  onnx::loadDialects(context);
  onnx::ImportOptions import;
  import.functions = options.functions;
  import.kvCache = options.kvCache;
  import.kvCacheType = options.kvCacheType;
  std::optional<training::Recipe> recipe;
  if (!options.training.empty()) {
    if (options.kvCache)
      return makeError(ErrorCode::Usage, "error: '--kv-cache' is for generation, but '--training' "
                                         "compiles a step of training; leave one of them out");
    auto read = training::readRecipe(options.training);
    if (!read)
      return read.takeError();
    recipe = std::move(*read);
    import.marksWeights = true;
    import.usesBatchStatistics = recipe->trains() && recipe->usesBatchStatistics;
    import.keepsUnbiasedVariance = recipe->keepsUnbiased;
    import.drops = recipe->trains() && recipe->drops;
    if (!recipe->output.empty())
      import.alsoResults.push_back(recipe->output);
  }
  for (const std::string &shape : options.shapes)
    if (llvm::Error error = onnx::addShapeOption(import, shape))
      return std::move(error);
  auto graph = source.bytes
                   ? onnx::importModelFromBytes(context, *source.bytes, source.path, import)
                   : onnx::importModel(context, source.path, import);
  if (graph && recipe)
    if (llvm::Error error = training::makeStep(**graph, *recipe))
      return makeError(ErrorCode::Refused, source.path + ": " + llvm::toString(std::move(error)));
  return graph;
}

llvm::Expected<OwningOpRef<ModuleOp>> importGiven(MLIRContext &context, const ModelSource &source,
                                                  const CompileOptions &options) {
  auto graph = importGraph(context, source, options);
  if (!graph)
    return graph;
  std::string problem = graph::setTypicalSizes(**graph, options.typical);
  for (const std::string &text : options.ragged)
    if (llvm::Error error = ragged::declare(**graph, text, options.packsRows))
      return std::move(error);
  if (problem.empty())
    problem = graph::setShared(**graph, options.inPlace);
  if (!problem.empty())
    return makeError(ErrorCode::Usage, "error: " + problem);
  return graph;
}

static llvm::Error simplifyGraph(Compiled &compiled, const CompileOptions &options,
                                 const target::Targets &targets) {
  simplify::SimplifyOptions rules;
  rules.isStrict = options.isStrict;
  rules.foldLimitBytes = options.foldLimitBytes;
  rules.prefersUnsigned = llvm::none_of(targets, [](const auto &target) {
    return target->machine(1).dot == program::Dot::SignedBytes;
  });
  rules.hasCheapTables = targets.back()->machine(1).permutesBytes;
  rules.layouts = compiled.given->layouts;
  rules.integers.all = options.areIntegers && !compiled.given->integers;
  rules.integers.allowed = !options.isStrict && !compiled.given->integers;
  rules.integers.takesBlocks = llvm::all_of(targets, [](const auto &target) {
    const program::Machine machine = target->machine(1);
    return machine.form == program::Form::Lanes && machine.dot != program::Dot::None;
  });
  rules.integers.names = compiled.given->integers.value_or(std::set<std::string>());
  estimate::setThresholds(*compiled.graph, targets.back()->machine(1), compiled.given->thresholds);
  PassManager manager(compiled.context.get());
  simplify::addSimplifyPasses(manager, rules);
  std::string problems;
  ScopedDiagnosticHandler handler(compiled.context.get(), [&](Diagnostic &diagnostic) {
    problems += diagnostic.str() + "\n";
    return success();
  });
  if (failed(manager.run(*compiled.graph)))
    return makeError(ErrorCode::Internal, "internal error: simplify: " + problems);
  if (llvm::Error error = ragged::convert(*compiled.graph))
    return error;
  compiled.program.flops = estimate::productFlops(*compiled.graph);
  return checkNodes(compiled);
}

/// Verifies what it takes and what it makes: what is wrong before it would be wrong numbers after.
static llvm::Error lowerGroups(Compiled &compiled, const CompileOptions &options) {
  if (llvm::Error error = requireValid(*compiled.graph, "before lower"))
    return error;
  auto model = compiled.graph->lookupSymbol<func::FuncOp>("main");
  for (lower::Settled &each : lower::settle(model, compiled.machine)) // a graph that came planned
    compiled.simplified.push_back({each.group, each.mechanism});
  if (!options.without.count("short-results"))
    lower::storeShortResults(model, compiled.machine);
  if (llvm::Error error = lower::lowerModel(model, compiled.machine, compiled.program))
    return error;
  return requireValid(*compiled.program.module, "after lower");
}

static llvm::Error emitProgram(Compiled &compiled, const CompileOptions &options) {
  unsigned cores = llvm::hardware_concurrency().compute_thread_count(); // cores that it may run on
  unsigned jobs = options.jobs > 0 ? options.jobs : cores;
  auto code =
      compiled.target->emit(compiled.program, {options.optLevel, jobs, options.cache.get()});
  if (code)
    compiled.code = std::move(*code);
  return code.takeError();
}

static std::string codeOf(const Compiled &compiled) {
  auto text = compiled.code->text(compiled.program);
  return text ? *text : "error: " + llvm::toString(text.takeError());
}

/// Makes the machine multiply bf16 as the options want, if it can; all its devices can emulate it.
static llvm::Error setShortFloats(Compiled &compiled, program::ShortFloats wanted) {
  using program::ShortFloats;
  auto isNative = [](const program::Machine &machine) {
    return machine.shortFloats == ShortFloats::Native;
  };
  if (wanted == ShortFloats::None || isNative(compiled.machine) ||
      (wanted == ShortFloats::Native && llvm::any_of(compiled.machine.others, isNative)))
    return llvm::Error::success();
  if (wanted == ShortFloats::Emulated) {
    compiled.machine.shortFloats = wanted;
    for (program::Machine &device : compiled.machine.others)
      device.shortFloats = wanted;
    return llvm::Error::success();
  }
  return makeError(ErrorCode::Usage,
                   "error: --math bf16: target '" + compiled.target->name +
                       "' has no products of bf16, which are AVX512_BF16 of x86 and BF16 of "
                       "AArch64; leave it out, or take '--math bf16-emulated', which rounds alike "
                       "and is slower than f32");
}

/// Compiles the simplified graph, which `compiled` holds, to code for one target.
static llvm::Error compileFor(std::shared_ptr<const target::Target> target, Compiled &compiled,
                              const CompileOptions &options, Stages &stages) {
  unsigned workers = std::max(1u, std::thread::hardware_concurrency());
  compiled.target = std::move(target);
  compiled.isStrict = options.isStrict;
  compiled.shortFloats = options.shortFloats;
  compiled.plansOnly = options.plansOnly;
  compiled.scheduleFolders = options.scheduleFolders;
  compiled.program.isProfiled = options.isProfiled;
  compiled.program.isSanitized = options.isSanitized;
  compiled.machine =
      compiled.target->machine(options.threads > 0 ? options.threads : int64_t(workers));
  if (llvm::Error error = setShortFloats(compiled, options.shortFloats))
    return error;
  if (!options.isPlanned) {
    estimate::setThresholds(*compiled.graph, compiled.machine, compiled.given->thresholds);
    if (llvm::Error error = planGroups(options, compiled, stages))
      return error;
  }
  if (!options.plansOnly) {
    if (llvm::Error error = stages.run(
            "lower", 0.25, [&] { return lowerGroups(compiled, options); },
            [&] { return *compiled.program.module; }))
      return error;
    if (llvm::Error error = stages.runToText(
            "emit", 0.4, [&] { return emitProgram(compiled, options); },
            [&] { return codeOf(compiled); }))
      return error;
  }
  compiled.reportJson = reportOf(compiled, stages.seconds);
  return llvm::Error::success();
}

/// Compiles the imported graph, which `compiled` holds, to code for each target that was asked for.
/// The target that asks most of a machine comes last, so that its weights hold those of all.
static llvm::Error compileStages(Compiled &compiled, const CompileOptions &options,
                                 Stages &stages) {
  auto targets =
      target::targetsFor(options.target, {options.threads, options.isProfiled, options.isSanitized,
                                          options.keepsSubnormals, options.oneDnn});
  if (!targets)
    return targets.takeError();
  if (llvm::Error error = readGiven(compiled, options))
    return error;
  if (!options.isPlanned)
    if (llvm::Error error = stages.run(
            "simplify", 0.1, [&] { return simplifyGraph(compiled, options, *targets); },
            [&] { return *compiled.graph; }))
      return error;
  for (size_t i = 0; i + 1 < targets->size(); ++i) {
    stages.enterVariant(i, targets->size(), (*targets)[i]->name);
    auto variant = std::make_unique<Compiled>();
    variant->context = compiled.context;
    variant->graph = compiled.graph->clone();
    variant->program.model = compiled.program.model;
    variant->fingerprint = compiled.fingerprint;
    variant->given = compiled.given;
    variant->program.flops = compiled.program.flops;
    variant->program.weights = compiled.program.weights.shared();
    if (llvm::Error error = compileFor((*targets)[i], *variant, options, stages))
      return error;
    compiled.program.weights = variant->program.weights.shared();
    compiled.variants.insert(compiled.variants.begin(), std::move(variant));
  }
  stages.enterVariant(targets->size() - 1, targets->size(), targets->back()->name);
  return compileFor(targets->back(), compiled, options, stages);
}

std::string graphText(const Compiled &compiled) {
  ModuleOp module = *compiled.graph; // a handle: printing changes nothing
  return textOf(module);
}

llvm::Expected<std::string> loopsText(const Compiled &compiled) {
  ModuleOp module = *compiled.graph;
  program::Program program;
  auto model = module.lookupSymbol<func::FuncOp>("main");
  if (llvm::Error error = lower::lowerModel(model, compiled.machine, program))
    return std::move(error);
  return textOf(*program.module);
}

llvm::Expected<std::unique_ptr<Compiled>> compile(const ModelSource &source,
                                                  const CompileOptions &options) {
  auto result = std::make_unique<Compiled>();
  result->context = std::make_shared<MLIRContext>(
      options.jobs > 0 ? MLIRContext::Threading::DISABLED : MLIRContext::Threading::ENABLED);
  if (options.jobs > 1) {
    result->pool =
        std::make_unique<llvm::DefaultThreadPool>(llvm::hardware_concurrency(options.jobs));
    result->context->setThreadPool(*result->pool);
  }
  result->program.model = source.path;
  Stages stages(options);
  if (llvm::Error error = stages.run(
          "import", 0,
          [&] {
            auto graph = importGiven(*result->context, source, options);
            if (graph)
              result->graph = std::move(*graph);
            return graph.takeError();
          },
          [&] { return *result->graph; }))
    return std::move(error);
  if (llvm::Error error = compileStages(*result, options, stages))
    return std::move(error);
  return result;
}

llvm::Expected<std::unique_ptr<Compiled>> compileGraph(std::shared_ptr<MLIRContext> context,
                                                       OwningOpRef<ModuleOp> graph,
                                                       const CompileOptions &options) {
  auto result = std::make_unique<Compiled>();
  result->context = std::move(context);
  result->graph = std::move(graph);
  Stages stages(options);
  if (llvm::Error error = compileStages(*result, options, stages))
    return std::move(error);
  return result;
}

} // namespace heddle
