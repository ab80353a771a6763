// MemoryLimit: what is alive between kernels is known before they are lowered, but not how well it
// can be packed; so what a plan takes is found by lowering it, and a plan that takes too much is
// made again for less.

#include "compiler/pipeline/MemoryLimit.h"

#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/graph/edit/Sharing.h"
#include "compiler/lower/program/Model.h"
#include "compiler/plan/Rematerialise.h"

using namespace mlir;

namespace heddle {

static constexpr int kMostAttempts = 8;
/// Memory that is saved without being asked for has to be so much less to be worth it.
static constexpr double kWorthSaving = 0.95;

MemoryNeed memoryOf(func::FuncOp main, const program::Program &program) {
  MemoryNeed need;
  auto bytesOf = [&](Value value) { return graph::typicalSize(main, estimate::bytesOf(value)); };
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
  std::map<std::string, int64_t> temporaries; // bytes by group
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
/// The plan without recomputation, and what is tried with it.
class Arrangement {
public:
  Arrangement(Compiled &compiled, Measured plain, std::vector<plan::Recomputation> &again,
              llvm::function_ref<llvm::Error()> choose)
      : compiled(compiled), planned(compiled.graph->clone()), plain(std::move(plain)), again(again),
        choose(choose), need(this->plain.need) {}

  /// Saves memory where that takes at most `share` of the time.
  llvm::Error spare(double share) {
    auto found = plan::rematerialiseWithin(planMain(), share, plain.temporaries, compiled.machine);
    if (found.all.empty())
      return llvm::Error::success();
    if (llvm::Error error = carryOut(std::move(found)))
      return error;
    bool isLittle = need.arena > kWorthSaving * (double)plain.need.arena;
    return isLittle ? carryOut({}) : llvm::Error::success();
  }

  llvm::Error fit(int64_t limit) {
    int64_t allowed = limit - (need.total() - need.arena), wanted = allowed;
    bool isLeast = false; // nothing else can be computed again
    for (int attempt = 0; attempt < kMostAttempts && wanted > 0 && !isLeast; ++attempt) {
      auto found = plan::rematerialise(planMain(), wanted, plain.temporaries, compiled.machine);
      isLeast = found.bytes > wanted;
      if (llvm::Error error = carryOut(std::move(found)))
        return error;
      if (need.total() <= limit)
        return llvm::Error::success();
      wanted -= std::max(need.arena - allowed, allowed / 50 + 1);
    }
    // Neither of the two that a refusal can name depends on the limit, so that the one it names is
    // found again when it is the limit.
    if (llvm::Error error =
            carryOut(plan::rematerialise(planMain(), 0, plain.temporaries, compiled.machine)))
      return error;
    if (need.total() <= limit)
      return llvm::Error::success();
    return refuse(compiled, limit, need.total() < plain.need.total() ? need : plain.need,
                  allowed <= 0 ? "; all but the last are there in any case: allow more, or make "
                                 "the batch smaller"
                               : " with results computed again; allow more, or make the batch "
                                 "smaller");
  }

  int64_t total() const { return need.total(); }

private:
  func::FuncOp planMain() { return planned->lookupSymbol<func::FuncOp>("main"); }

  llvm::Error carryOut(plan::Rematerialisation found) {
    compiled.graph = planned->clone();
    again = std::move(found.all);
    auto problem = plan::recompute(compiled.graph->lookupSymbol<func::FuncOp>("main"), again);
    if (problem)
      return makeError(ErrorCode::Internal,
                       "internal error: group '" + problem->first + "': " + problem->second);
    if (llvm::Error error = choose())
      return error;
    auto now = measure(compiled);
    if (!now)
      return now.takeError();
    need = now->need;
    return llvm::Error::success();
  }

  Compiled &compiled;
  OwningOpRef<ModuleOp> planned;
  Measured plain;
  std::vector<plan::Recomputation> &again;
  llvm::function_ref<llvm::Error()> choose;
  MemoryNeed need; // need of the groups in `compiled`
};
} // namespace

llvm::Error arrangeMemory(Compiled &compiled, MemoryGoal goal,
                          std::vector<plan::Recomputation> &again,
                          llvm::function_ref<llvm::Error()> choose) {
  auto measured = measure(compiled);
  if (!measured)
    return measured.takeError();
  int64_t limit = goal.limit ? goal.limit : INT64_MAX;
  if (!again.empty()) {
    if (measured->need.total() <= limit)
      return llvm::Error::success();
    return refuse(compiled, limit, measured->need,
                  " with what the plan computes again; make the plan anew, or allow more");
  }
  Arrangement arrangement(compiled, std::move(*measured), again, choose);
  if (goal.share > 0)
    if (llvm::Error error = arrangement.spare(goal.share))
      return error;
  return arrangement.total() <= limit ? llvm::Error::success() : arrangement.fit(limit);
}

} // namespace heddle
