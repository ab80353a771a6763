// Backends: the table of all backends, and how one is found by its name.

#include "compiler/target/Backend.h"

#include "compiler/target/Register.h"
#include "compiler/target/c/Backend.h"
#include "compiler/target/cpu/Backend.h"
#include "compiler/target/gpu/Backend.h"

namespace heddle::target {

static std::vector<const Backend *> &table() {
  static std::vector<const Backend *> all = {&c::backend(), &gpu::backend(), &cpu::backend()};
  return all;
}

llvm::ArrayRef<const Backend *> backends() { return table(); }

void addBackend(const Backend &backend) { table().insert(table().begin(), &backend); }

llvm::Expected<Targets> targetsFor(llvm::StringRef names, const Request &request) {
  if (names == "help") {
    std::vector<std::string> all;
    for (const Backend *each : llvm::reverse(backends()))
      llvm::append_range(all, each->targetNames());
    return makeError(ErrorCode::Usage, "known targets: " + llvm::join(all, ", "));
  }
  for (const Backend *each : backends().drop_back())
    if (each->isMeant(names))
      return each->targetsFor(names, request);
  return backends().back()->targetsFor(names, request);
}

llvm::Expected<std::shared_ptr<const Target>> targetFor(llvm::StringRef name) {
  auto targets = targetsFor(name, {});
  if (!targets)
    return targets.takeError();
  if (targets->size() != 1)
    return makeError(ErrorCode::Usage, "error: target '" + name + "' must be a single one here");
  return targets->front();
}

llvm::Error checkRunsHere(const Target &target, llvm::StringRef model) {
  std::string why = target.whyNotHere();
  if (why.empty())
    return llvm::Error::success();
  return makeError(ErrorCode::Refused, "error: '" + model +
                                           "' cannot be run here: it is compiled "
                                           "for '" +
                                           target.name + "', " + why);
}

} // namespace heddle::target
