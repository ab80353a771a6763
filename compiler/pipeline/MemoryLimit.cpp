// MemoryLimit: what is alive between kernels is known before they are lowered, but not how well it
// can be packed; so what a plan takes is found by lowering it, and a plan that takes too much is
// made again for less.

#include "compiler/pipeline/MemoryLimit.h"

#include "compiler/graph/Typical.h"
#include "compiler/graph/cost/Traffic.h"
#include "compiler/graph/edit/Sharing.h"
#include "compiler/lower/program/Model.h"
#include "compiler/plan/Rematerialise.h"

using namespace mlir;

namespace heddle {

static constexpr int kMostAttempts = 8;

MemoryNeed memoryOf(func::FuncOp main, const program::Program &program) {
  MemoryNeed need;
  auto bytesOf = [&](Value value) { return graph::typicalSize(main, cost::bytesOf(value)); };
  for (BlockArgument input : main.getArguments())
    need.inputs += bytesOf(input);
  auto results = cast<func::ReturnOp>(main.getBody().front().getTerminator());
  for (auto [i, output] : llvm::enumerate(results.getOperands()))
    if (!main.getResultAttrOfType<IntegerAttr>(i, graph::kShares))
      need.outputs += bytesOf(output);
  need.weights = program.weights.size;
  need.arena = program.arenaBytes;
  return need;
}

static std::string sizeText(int64_t bytes) {
  return bytes < 10 << 20 ? llvm::formatv("{0:F1} KiB", (double)bytes / (1 << 10)).str()
                          : llvm::formatv("{0:F1} MiB", (double)bytes / (1 << 20)).str();
}

namespace {
struct Measured {
  MemoryNeed need;
  std::map<std::string, int64_t> temporaries; // of groups by their names
};
} // namespace

static llvm::Expected<Measured> measure(const Compiled &compiled) {
  ModuleOp module = *compiled.graph; // a handle: reading changes nothing
  auto main = module.lookupSymbol<func::FuncOp>("main");
  program::Program program;
  if (llvm::Error error = lower::lowerModel(main, compiled.machine, program))
    return std::move(error);
  Measured measured{memoryOf(main, program), {}};
  for (const program::ArenaBuffer &buffer : program.buffers)
    if (buffer.isTemporary)
      measured.temporaries[program.kernels[buffer.kernel]] += buffer.typicalBytes;
  return measured;
}

// The total also as a number, which `--memory` takes.
static llvm::Error refuse(const Compiled &compiled, int64_t limit, const MemoryNeed &least,
                          StringRef why) {
  return makeError(ErrorCode::Refused,
                   compiled.program.model + ": error: a run may take " + sizeText(limit) +
                       ", but the least that was found is " + sizeText(least.total()) + " (" +
                       std::to_string(least.total()) + " bytes): inputs " + sizeText(least.inputs) +
                       ", outputs " + sizeText(least.outputs) + ", weights " +
                       sizeText(least.weights) + ", between kernels " + sizeText(least.arena) +
                       why);
}

namespace {
/// Plans of one graph that compute results again.
class Attempts {
public:
  Attempts(Compiled &compiled, std::vector<graph::Recomputation> &again,
           llvm::function_ref<llvm::Error()> choose, std::map<std::string, int64_t> temporaries)
      : compiled(compiled), again(again), choose(choose), planned(compiled.graph->clone()),
        temporaries(std::move(temporaries)) {}

  /// What a run takes with at most `wanted` bytes alive, or with as few as can be, which sets
  /// `isLeast`.
  llvm::Expected<MemoryNeed> make(int64_t wanted) {
    compiled.graph = planned->clone();
    auto main = compiled.graph->lookupSymbol<func::FuncOp>("main");
    auto found = plan::rematerialise(main, wanted, temporaries);
    again = std::move(found.all);
    isLeast = found.bytes > wanted;
    if (auto problem = graph::recompute(main, again))
      return makeError(ErrorCode::Internal,
                       "internal error: group '" + problem->first + "': " + problem->second);
    if (llvm::Error error = choose())
      return std::move(error);
    auto now = measure(compiled);
    if (!now)
      return now.takeError();
    return now->need;
  }

  bool isLeast = false;

private:
  Compiled &compiled;
  std::vector<graph::Recomputation> &again;
  llvm::function_ref<llvm::Error()> choose;
  OwningOpRef<ModuleOp> planned;
  std::map<std::string, int64_t> temporaries;
};
} // namespace

llvm::Error fitMemory(Compiled &compiled, int64_t limit, std::vector<graph::Recomputation> &again,
                      llvm::function_ref<llvm::Error()> choose) {
  auto measured = measure(compiled);
  if (!measured)
    return measured.takeError();
  const MemoryNeed &plain = measured->need;
  if (plain.total() <= limit)
    return llvm::Error::success();
  if (!again.empty())
    return refuse(compiled, limit, plain,
                  " with what the plan computes again; make the plan anew, or allow more");
  int64_t allowed = limit - (plain.total() - plain.arena), wanted = allowed;
  Attempts attempts(compiled, again, choose, std::move(measured->temporaries));
  for (int attempt = 0; attempt < kMostAttempts && wanted > 0 && !attempts.isLeast; ++attempt) {
    auto now = attempts.make(wanted);
    if (!now)
      return now.takeError();
    if (now->total() <= limit)
      return llvm::Error::success();
    wanted -= std::max(now->arena - allowed, allowed / 50 + 1);
  }
  // Neither of the two that a refusal can name depends on the limit, so that the one it names is
  // found again when it is the limit.
  auto least = attempts.make(0);
  if (!least)
    return least.takeError();
  if (least->total() <= limit)
    return llvm::Error::success();
  return refuse(compiled, limit, least->total() < plain.total() ? *least : plain,
                allowed <= 0 ? "; all but the last are there in any case: allow more, or make the "
                               "batch smaller"
                             : " with results computed again; allow more, or make the batch "
                               "smaller");
}

} // namespace heddle
