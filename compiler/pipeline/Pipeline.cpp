// Pipeline: ONNX -> graph -> groups -> kernels -> objects. Each line of `compile` is one stage.

#include "compiler/pipeline/Pipeline.h"

#include "compiler/lower/Schedule.h"
#include "compiler/lower/program/Host.h"
#include "compiler/onnx/Importer.h"
#include "compiler/partition/Partition.h"
#include "compiler/plan/Chooser.h"
#include "compiler/records/RecordedChooser.h"
#include "compiler/simplify/Passes.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/xxhash.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

using namespace mlir;

namespace heddle {

namespace {

/// Seconds of each stage, and who is told.
class Stages {
public:
  explicit Stages(const CompileOptions &options) : options(options) {}
  void begin(StringRef name, double fraction) {
    end();
    current = name.str();
    start = std::chrono::steady_clock::now();
    if (options.progress)
      options.progress(name, before + fraction * share);
  }
  /// What begins from now on is variant number `i` of `count`.
  void enterVariant(size_t i, size_t count) {
    share = 1.0 / count;
    before = i * share;
  }
  void end() {
    if (current.empty())
      return;
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    double earlier = seconds.contains(current) ? seconds[current].get<double>() : 0;
    seconds[current] = earlier + passed.count();
    current.clear();
  }
  nlohmann::ordered_json seconds;

private:
  const CompileOptions &options;
  std::string current;
  double before = 0, share = 1; // of the whole, for who is told
  std::chrono::steady_clock::time_point start;
};

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> importGraph(MLIRContext &context, const ModelSource &source,
                                                  const CompileOptions &options) {
  onnx::loadDialects(context);
  onnx::ImportOptions import;
  import.functions = options.functions;
  for (const std::string &shape : options.shapes)
    if (llvm::Error error = onnx::addShapeOption(import, shape))
      return std::move(error);
  return source.bytes ? onnx::importModelFromBytes(context, *source.bytes, source.path, import)
                      : onnx::importModel(context, source.path, import);
}

static llvm::Error simplifyGraph(ModuleOp module, const simplify::SimplifyOptions &options) {
  PassManager manager(module.getContext());
  simplify::addSimplifyPasses(manager, options);
  std::string problems;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    problems += diagnostic.str() + "\n";
    return success();
  });
  if (failed(manager.run(module)))
    return makeError(ErrorCode::Internal, "internal error: simplify: " + problems);
  return llvm::Error::success();
}

static lower::Schedule scheduleOf(graph::GroupOp group) {
  lower::Schedule schedule;
  schedule.group = group.getName().str();
  if (auto card = group->getAttrOfType<StringAttr>("card"))
    schedule.card = card.str();
  if (auto kind = group->getAttrOfType<StringAttr>("kind"))
    schedule.form = kind.str();
  if (auto chosen = group->getAttrOfType<DictionaryAttr>("loop.schedule")) {
    for (NamedAttribute knob : chosen)
      if (auto number = dyn_cast<IntegerAttr>(knob.getValue()))
        schedule.knobs[knob.getName().str()] = number.getInt();
      else if (auto text = dyn_cast<StringAttr>(knob.getValue()))
        (knob.getName() == "source" ? schedule.source
         : knob.getName() == "code" ? schedule.code
                                    : schedule.form) = text.str();
  }
  return schedule;
}

/// What a plan says of groups, for the partitioner.
static partition::Options groupsOf(const plan::Plan &given, const CompileOptions &options) {
  partition::Options groups;
  groups.fuses = !options.without.count("fusion");
  groups.stitches = !options.without.count("stitch");
  groups.packs = !options.without.count("regions");
  if (!options.planText.empty())
    groups.regions.emplace();
  for (const plan::GroupPlan &group : given.groups) {
    if (group.region >= 0)
      (*groups.regions)[group.name] = group.region;
    groups.wanted[partition::baseName(group.name)].insert(group.ops.begin(), group.ops.end());
  }
  std::erase_if(groups.wanted, [](auto &group) { return group.second.empty(); });
  return groups;
}

/// Adds the groups that no mechanism can carry out as the partitioner made them, or that it should
/// not have made, to those that it shall not make again. A plan's own groups stay as they are where
/// that is possible at all, however slow.
static bool findRefused(Compiled &compiled, const plan::Plan &given, bool isAdvised,
                        partition::Options &groups) {
  bool isNew = false;
  compiled.graph->walk([&](graph::GroupOp group) {
    auto ops = group.getBody().front().without_terminator();
    if (llvm::count_if(ops, [](Operation &op) { return !isa<graph::ConstantOp>(op); }) < 2)
      return; // there is nothing to split
    auto [why, isAdvice] =
        lower::refusal(&group.getBody().front(), scheduleOf(group), compiled.machine);
    auto kind = group->getAttrOfType<StringAttr>("kind");
    if (why.empty() || !kind || (isAdvice && (!isAdvised || given.find(group.getName()))) ||
        !groups.refused.insert({partition::baseName(group.getName()), kind.str()}).second)
      return;
    isNew = true;
    compiled.feedback.push_back({group.getName().str(), kind.str(), why});
  });
  return isNew;
}

/// Groups, then cards and knobs of all groups: what the given plan says, else what tuning has
/// found, else what the cards and the default chooser find best. Where that makes groups that
/// cannot be carried out, or that cost more than their parts, the graph is split again without them
/// (Apollo's feedback).
static llvm::Error choosePlan(const CompileOptions &options, Compiled &compiled, Stages &stages) {
  stages.begin("partition", 0.2);
  DialectRegistry registry;
  warehouse::registerDialects(registry);
  compiled.context->appendDialectRegistry(registry);
  auto cards = warehouse::Warehouse::load(*compiled.context, options.scheduleFolders);
  if (!cards)
    return cards.takeError();
  if (options.isStrict)
    cards->requireStrict();
  plan::Plan given;
  if (!options.planText.empty()) {
    auto parsed = plan::parsePlan(options.planText, options.planPath);
    if (!parsed)
      return parsed.takeError();
    given = std::move(*parsed);
  }
  partition::Options groups = groupsOf(given, options);
  groups.cards = options.without.count("cards") ? nullptr : &*cards;
  OwningOpRef<ModuleOp> whole = compiled.graph->clone();
  std::string fingerprint = plan::fingerprint(whole->lookupSymbol<func::FuncOp>("main"));
  plan::DefaultChooser byRule;
  std::unique_ptr<records::Records> records;
  std::optional<records::RecordedChooser> byRecords;
  if (!options.recordsPath.empty()) {
    auto opened = records::Records::open(options.recordsPath, records::Records::Access::Read);
    if (!opened)
      return opened.takeError();
    records = std::move(*opened);
    byRecords.emplace(*records, compiled.target.identity(), records::threadsOf(options.threads),
                      byRule);
  }
  plan::PlanChooser chooser(given, byRecords ? static_cast<plan::Chooser &>(*byRecords) : byRule);
  for (bool isSettled = false; !isSettled;) {
    auto model = compiled.graph->lookupSymbol<func::FuncOp>("main");
    stages.begin("partition", 0.2);
    partition::partition(model, groups);
    stages.begin("plan", 0.22);
    if (llvm::Error error = chooser.check(model, fingerprint))
      return error;
    plan::Plan made;
    made.model = fingerprint;
    made.target = groups.target;
    if (llvm::Error error = plan::choose(model, *cards, chooser, compiled.machine, made))
      return error;
    compiled.planJson = made.str();
    isSettled = !findRefused(compiled, given, !options.without.count("feedback"), groups);
    if (!isSettled)
      compiled.graph = whole->clone();
  }
  return llvm::Error::success();
}

struct SharedFunctions {
  llvm::StringMap<std::string> nameOf; // by their text
  llvm::StringMap<char> names;
};

/// Groups of one form become functions of one text, however their tensors and weights differ: one
/// of them is enough. Its name is its text's, so that other models have the same function, too.
static void shareFunctions(ModuleOp module, lower::Kernel &kernel, SharedFunctions &functions) {
  for (lower::Phase &phase : kernel.phases) {
    // It is among the last that were made; a search from the front would look at all others.
    auto made = llvm::find_if(llvm::reverse(*module.getBody()), [&](Operation &op) {
      auto function = dyn_cast<func::FuncOp>(op);
      return function && function.getSymName() == phase.function;
    });
    auto function = cast<func::FuncOp>(*made);
    std::string text;
    llvm::raw_string_ostream stream(text);
    function.setSymName("phase");
    function.print(stream, OpPrintingFlags().useLocalScope());
    function.setSymName(phase.function);
    auto [known, isNew] = functions.nameOf.try_emplace(stream.str());
    if (isNew) {
      std::string name =
          "kernel_" + llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, 16);
      while (!functions.names.try_emplace(name).second) // of another text
        name += "x";
      function.setSymName(name);
      known->second = name;
    } else {
      function.erase();
    }
    phase.function = known->second;
  }
}

/// Kernels of all groups, then the program around them. Groups whose schedule could not be carried
/// out are noted in `simpler`: their names, and the form that the plan asked for.
static llvm::Error lowerGroups(func::FuncOp model, const loop::Machine &machine,
                               target::Program &program,
                               std::vector<std::pair<std::string, std::string>> &simpler) {
  MLIRContext *context = model.getContext();
  context->loadDialect<arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                       vector::VectorDialect, LLVM::LLVMDialect, cf::ControlFlowDialect>();
  program.module = ModuleOp::create(model.getLoc());
  std::map<Operation *, std::shared_ptr<lower::Kernel>> kernels;
  SharedFunctions functions;
  loop::Placements placements = loop::placementsOf(model);
  int64_t number = 0;
  model.walk([&](graph::GroupOp group) {
    std::string name = "kernel" + std::to_string(number++);
    lower::KernelBuilder builder(*program.module, name, group.getLoc(), machine);
    builder.placements = &placements;
    for (auto [inside, outside] :
         llvm::zip(lower::outputsOf(&group.getBody().front()), group.getResults()))
      if (auto placed = placements.find(outside); placed != placements.end())
        builder.ownPlacements.insert({inside, placed->second});
    lower::Schedule schedule = scheduleOf(group);
    if (lower::emitGroup(builder, &group.getBody().front(), schedule) != schedule.form)
      simpler.emplace_back(group.getName().str(), schedule.form);
    program.kernels.push_back(group.getName().str());
    shareFunctions(*program.module, builder.kernel, functions);
    std::vector<std::string> &phases = program.functions.emplace_back();
    for (const lower::Phase &phase : builder.kernel.phases)
      phases.push_back(phase.function);
    llvm::move(builder.kernel.sources, std::back_inserter(program.sources));
    kernels[group] = std::make_shared<lower::Kernel>(std::move(builder.kernel));
  });
  return lower::Host(model, kernels, placements, program).write();
}

static double countFlops(ModuleOp module) {
  double flops = 0;
  module.walk([&](Operation *op) {
    if (!isa<graph::ConvOp, graph::MatmulOp, graph::ConvTransposeOp>(op))
      return;
    auto result = graph::elementCount(graph::dimsOf(op->getResult(0))).constant();
    graph::DimVector filter = graph::dimsOf(op->getOperand(1));
    graph::Dim depth = isa<graph::MatmulOp>(op)
                           ? filter[filter.size() - 2]
                           : graph::elementCount(ArrayRef<graph::Dim>(filter).drop_front());
    if (result && depth.constant())
      flops += 2.0 * *result * *depth.constant();
  });
  return flops;
}

nlohmann::ordered_json feedbackJson(const Compiled &compiled) {
  auto feedback = nlohmann::ordered_json::array();
  for (const Feedback &each : compiled.feedback)
    feedback.push_back({{"group", each.group}, {"kind", each.kind}, {"why", each.why}});
  return feedback;
}

nlohmann::ordered_json unfoldedJson(const Compiled &compiled) {
  auto unfolded = nlohmann::ordered_json::array();
  ModuleOp module = *compiled.graph; // a handle: reading changes nothing
  auto list = module->getAttrOfType<ArrayAttr>(simplify::kUnfolded);
  for (Attribute entry : list ? list.getValue() : ArrayRef<Attribute>()) {
    auto each = cast<DictionaryAttr>(entry);
    auto text = [&](StringRef name) { return each.getAs<StringAttr>(name).str(); };
    unfolded.push_back({{"node", text("node")}, {"op", text("op")}, {"why", text("why")}});
  }
  return unfolded;
}

static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(16).elideLargeResourceString(16);
  module.print(stream, flags);
  return stream.str();
}

static loop::Machine machineOf(const cpu::Target &target, int64_t workers) {
  loop::Machine machine{target.vectorBits / 32, target.registers, target.l1Bytes, target.l2Bytes,
                        workers};
  if (target.isArm()) {
    machine.isa = loop::Isa::Arm;
    machine.dot = target.i8mm      ? loop::Dot::Bytes
                  : target.dotprod ? loop::Dot::SignedBytes
                                   : loop::Dot::Words;
  } else {
    machine.dot = target.vnni ? loop::Dot::Bytes : loop::Dot::Words;
    machine.permutesBytes = target.vbmi;
  }
  return machine;
}

/// What was made and how long it took; `simpler` as lowerGroups has it.
static void writeReport(Compiled &compiled, Stages &stages,
                        ArrayRef<std::pair<std::string, std::string>> simpler, int64_t found) {
  stages.end();
  const target::Program &program = compiled.program;
  nlohmann::ordered_json report;
  report["model"] = program.model;
  report["target"] = compiled.target.name;
  report["seconds"] = stages.seconds;
  report["feedback"] = feedbackJson(compiled);
  report["unfolded"] = unfoldedJson(compiled);
  if (!compiled.plansOnly) {
    report["groups"] = program.kernels.size();
    report["launches"] = program.launches;
    auto pointwise = nlohmann::ordered_json::array();
    for (auto &[group, form] : simpler)
      pointwise.push_back({{"group", group}, {"planned", form}});
    report["pointwise_instead"] = pointwise;
    report["weights_bytes"] = program.weights.size;
    report["objects"] = {{"count", compiled.objects.size()}, {"from_cache", found}};
  }
  auto variants = nlohmann::ordered_json::array();
  auto add = [&](const Compiled &variant) {
    int64_t code = 0;
    for (const auto &object : variant.objects)
      code += object->getBufferSize();
    variants.push_back({{"target", variant.target.name},
                        {"groups", variant.program.kernels.size()},
                        {"code_bytes", code},
                        {"weights_bytes", variant.program.weights.usedBytes}});
  };
  if (!compiled.variants.empty())
    add(compiled);
  for (const std::unique_ptr<Compiled> &variant : compiled.variants)
    add(*variant);
  if (!variants.empty())
    report["variants"] = variants;
  compiled.reportJson = report.dump(2);
}

/// From the simplified graph, which `result` holds, to objects for one CPU.
static llvm::Error compileFor(const cpu::Target &target, Compiled &compiled,
                              const CompileOptions &options, Stages &stages) {
  unsigned workers = std::max(1u, std::thread::hardware_concurrency());
  compiled.target = target;
  compiled.optLevel = options.optLevel;
  compiled.isStrict = options.isStrict;
  compiled.scheduleFolders = options.scheduleFolders;
  compiled.program.isProfiled = options.isProfiled;
  compiled.program.isSanitized = options.isSanitized;
  compiled.machine = machineOf(target, options.threads > 0 ? options.threads : int64_t(workers));
  if (!options.isPlanned)
    if (llvm::Error error = choosePlan(options, compiled, stages))
      return error;
  if (options.plansOnly) {
    compiled.plansOnly = true;
    writeReport(compiled, stages, {}, 0);
    return llvm::Error::success();
  }

  stages.begin("lower", 0.25);
  auto model = compiled.graph->lookupSymbol<func::FuncOp>("main");
  std::vector<std::pair<std::string, std::string>> simpler;
  if (llvm::Error error = lowerGroups(model, compiled.machine, compiled.program, simpler))
    return error;
  if (failed(verify(*compiled.program.module)))
    return makeError(ErrorCode::Internal, "internal error: a kernel is not valid");

  stages.begin("emit", 0.4);
  cpu::CodeCache code;
  code.objects = options.cache.get();
  unsigned cores = llvm::hardware_concurrency().compute_thread_count(); // that it may run on
  unsigned jobs = options.jobs > 0 ? options.jobs : cores;
  auto objects = cpu::emitObjects(compiled.program, target, options.optLevel, jobs, code);
  if (!objects)
    return objects.takeError();
  compiled.objects = std::move(*objects);
  writeReport(compiled, stages, simpler, code.found);
  return llvm::Error::success();
}

/// From the imported graph, which `compiled` holds, to objects for each CPU that was asked for.
/// What asks most of a CPU comes last, so that its weights hold those of all.
static llvm::Error compileStages(Compiled &compiled, const CompileOptions &options,
                                 Stages &stages) {
  auto targets = cpu::targetsFor(options.target);
  if (!targets)
    return targets.takeError();
  if (!options.isPlanned) {
    stages.begin("simplify", 0.1);
    simplify::SimplifyOptions rules;
    rules.widensHalves = !options.isStrict;
    rules.foldLimitBytes = options.foldLimitBytes;
    rules.prefersUnsigned = llvm::none_of(*targets, [](const cpu::Target &target) {
      return machineOf(target, 1).dot == loop::Dot::SignedBytes;
    });
    rules.hasCheapTables = machineOf(targets->back(), 1).permutesBytes;
    if (llvm::Error error = simplifyGraph(*compiled.graph, rules))
      return error;
    compiled.program.flops = countFlops(*compiled.graph);
  }
  for (size_t i = 0; i + 1 < targets->size(); ++i) {
    stages.enterVariant(i, targets->size());
    auto variant = std::make_unique<Compiled>();
    variant->context = compiled.context;
    variant->graph = compiled.graph->clone();
    variant->program.model = compiled.program.model;
    variant->program.flops = compiled.program.flops;
    variant->program.weights = compiled.program.weights.shared();
    if (llvm::Error error = compileFor((*targets)[i], *variant, options, stages))
      return error;
    compiled.program.weights = variant->program.weights.shared();
    compiled.variants.insert(compiled.variants.begin(), std::move(variant));
  }
  stages.enterVariant(targets->size() - 1, targets->size());
  return compileFor(targets->back(), compiled, options, stages);
}

std::string graphText(const Compiled &compiled) {
  ModuleOp module = *compiled.graph; // a handle: printing changes nothing
  return textOf(module);
}

llvm::Expected<std::string> loopsText(const Compiled &compiled) {
  ModuleOp module = *compiled.graph;
  target::Program program;
  std::vector<std::pair<std::string, std::string>> simpler;
  if (llvm::Error error = lowerGroups(module.lookupSymbol<func::FuncOp>("main"), compiled.machine,
                                      program, simpler))
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
  stages.begin("import", 0);
  auto graph = importGraph(*result->context, source, options);
  if (!graph)
    return graph.takeError();
  result->graph = std::move(*graph);
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
