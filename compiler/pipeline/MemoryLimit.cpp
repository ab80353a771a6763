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

static llvm::Error refuse(const Compiled &compiled, int64_t limit, const MemoryNeed &least,
                          StringRef why) {
  return makeError(ErrorCode::Refused,
                   compiled.program.model + ": error: a run may take " + sizeText(limit) +
                       ", but the least that was found is " + sizeText(least.total()) +
                       ": inputs " + sizeText(least.inputs) + ", outputs " +
                       sizeText(least.outputs) + ", weights " + sizeText(least.weights) +
                       ", between kernels " + sizeText(least.arena) + why);
}

llvm::Error fitMemory(Compiled &compiled, int64_t limit, std::vector<graph::Recomputation> &again,
                      llvm::function_ref<llvm::Error()> choose) {
  auto measured = measure(compiled);
  if (!measured)
    return measured.takeError();
  MemoryNeed best = measured->need;
  if (best.total() <= limit)
    return llvm::Error::success();
  if (!again.empty())
    return refuse(compiled, limit, best,
                  " with what the plan computes again; make the plan anew, or allow more");
  int64_t allowed = limit - (best.total() - best.arena), wanted = allowed;
  if (allowed <= 0)
    return refuse(compiled, limit, best,
                  "; all but the last are there in any case: allow more, or make the batch "
                  "smaller");
  OwningOpRef<ModuleOp> planned = compiled.graph->clone();
  for (int attempt = 0; attempt < kMostAttempts && wanted > 0; ++attempt) {
    compiled.graph = planned->clone();
    auto main = compiled.graph->lookupSymbol<func::FuncOp>("main");
    auto found = plan::rematerialise(main, wanted, measured->temporaries);
    again = std::move(found.all);
    if (auto problem = graph::recompute(main, again))
      return makeError(ErrorCode::Internal,
                       "internal error: group '" + problem->first + "': " + problem->second);
    if (llvm::Error error = choose())
      return error;
    auto now = measure(compiled);
    if (!now)
      return now.takeError();
    if (now->need.total() <= limit)
      return llvm::Error::success();
    if (now->need.arena < best.arena)
      best = now->need;
    if (found.bytes > wanted)
      break; // nothing else can be computed again
    wanted -= std::max(now->need.arena - allowed, allowed / 50);
  }
  return refuse(compiled, limit, best,
                " with results computed again; allow more, or make the batch smaller");
}

} // namespace heddle
