// Backend: see Backend.h.

#include "compiler/target/gpu/Backend.h"

#include "compiler/support/Files.h"
#include "compiler/target/cpu/Backend.h"
#include "compiler/target/gpu/Emit.h"
#include "compiler/target/gpu/Separate.h"

namespace heddle::gpu {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#define GEN_PASS_DEF_PRINTPTXPASS
#include "compiler/target/gpu/Passes.h.inc"

namespace {

struct PrintPtxPass : impl::PrintPtxPassBase<PrintPtxPass> {
  using PrintPtxPassBase::PrintPtxPassBase;
  void runOnOperation() override {
    if (llvm::Error error = print()) {
      getOperation().emitError() << llvm::toString(std::move(error));
      signalPassFailure();
    }
  }

private:
  llvm::Error print() {
    const Chip *known = chipOf(chip);
    if (!known)
      return llvm::createStringError("no GPU is known as '" + chip + "'");
    program::Program program;
    program.module = getOperation().clone();
    auto functions = separate(program);
    if (!functions)
      return functions.takeError();
    program::Device &device = program.devices.front();
    if (llvm::Error error = emitImages(**functions, known, /*optLevel=*/3, device))
      return error;
    llvm::outs() << device.images.front().bytes;
    getOperation().getBodyRegion().takeBody(program.module->getBodyRegion());
    return llvm::Error::success();
  }
};

constexpr llvm::StringLiteral kAny = "cuda";
constexpr llvm::StringLiteral kText = "ptx"; // a kind of file: code of the kernels for one chip

std::string joined(llvm::ArrayRef<const Chip *> chips) {
  return llvm::join(llvm::map_range(chips, [](const Chip *chip) { return chip->name; }), "+");
}

class Cuda final : public target::Target {
public:
  Cuda(std::shared_ptr<const target::Target> host, std::vector<const Chip *> chips)
      : Target(gpu::backend(), host->name + "+" + joined(chips),
               host->identity + "+" + joined(chips)),
        host(std::move(host)), chips(std::move(chips)) {}

  program::Machine machine(int64_t workers) const override {
    program::Machine machine = host->machine(workers);
    machine.others.push_back(machineOf(*chips.front()));
    return machine;
  }
  std::string fingerprint() const override { return host->fingerprint() + "+" + joined(chips); }
  std::vector<std::string> required() const override { return host->required(); }
  std::string whyNoLibrary(llvm::StringRef file) const override { return host->whyNoLibrary(file); }
  std::string whyNoSources() const override { return host->whyNoSources(); }
  llvm::StringRef subnormals() const override { return host->subnormals(); }
  std::string whyNotHere() const override { return host->whyNotHere(); }
  llvm::Expected<std::unique_ptr<target::Code>>
  emit(program::Program &program, const target::EmitOptions &options) const override {
    auto functions = separate(program);
    if (!functions)
      return functions.takeError();
    if (llvm::Error error =
            emitImages(**functions, chips, options.optLevel, program.devices.back()))
      return std::move(error);
    return host->emit(program, options);
  }

private:
  std::shared_ptr<const target::Target> host;
  std::vector<const Chip *> chips;
};

/// The parts of a list of targets.
struct Parts {
  std::vector<const Chip *> chips;
  std::string cpus; // "" if there is none
};

std::optional<Parts> partsOf(llvm::StringRef names) {
  Parts parts;
  llvm::SmallVector<llvm::StringRef> each;
  names.split(each, '+');
  bool isMeant = false;
  for (llvm::StringRef name : each) {
    bool isChip = name == kAny || name.starts_with("sm_");
    isMeant |= isChip;
    if (name == kAny)
      parts.chips.push_back(&chips().front());
    else if (isChip)
      parts.chips.push_back(chipOf(name)); // null if there is no such
    else
      parts.cpus += (parts.cpus.empty() ? "" : "+") + name.str();
  }
  return isMeant ? std::optional(parts) : std::nullopt;
}

class CudaBackend final : public target::Backend {
public:
  llvm::StringRef name() const override { return "gpu"; }
  llvm::ArrayRef<llvm::StringRef> cards() const override { return cpu::backend().cards(); }
  llvm::ArrayRef<llvm::StringRef> kinds() const override {
    static const llvm::StringRef kinds[] = {"so", "o", "h", "ll", "asm", kText};
    return kinds;
  }
  llvm::StringRef example() const override { return kAny; }
  std::vector<std::string> targetNames() const override {
    std::vector<std::string> names{kAny.str()};
    for (const Chip &chip : chips())
      names.push_back(chip.name.str());
    return names;
  }
  bool isMeant(llvm::StringRef names) const override { return partsOf(names).has_value(); }

  llvm::Expected<target::Targets> targetsFor(llvm::StringRef names,
                                             const target::Request &request) const override {
    Parts parts = *partsOf(names);
    if (llvm::is_contained(parts.chips, nullptr))
      return makeError(ErrorCode::Usage, "error: no GPU of target '" + names +
                                             "' is known by that name\nnote: known are " +
                                             llvm::join(targetNames(), ", "));
    if (request.isSanitized)
      return makeError(ErrorCode::Usage,
                       "error: target '" + names +
                           "' has a device, whose kernels AddressSanitizer does not reach\nnote: "
                           "sanitized code is for '" +
                           (parts.cpus.empty() ? "host" : parts.cpus) +
                           "'; compute-sanitizer looks at what a GPU's kernels access");
    auto hosts = cpu::backend().targetsFor(parts.cpus.empty() ? "host" : parts.cpus, request);
    if (!hosts)
      return hosts.takeError();
    target::Targets targets;
    for (const auto &host : *hosts) {
      if (!parts.cpus.empty())
        targets.push_back(host);
      targets.push_back(std::make_shared<Cuda>(host, parts.chips));
    }
    return targets;
  }

  llvm::Error write(const target::Form &form, llvm::ArrayRef<target::Form> variants,
                    const target::WriteOptions &options, llvm::StringRef path) const override {
    if (options.kind != kText)
      return cpu::backend().write(form, variants, options, path);
    const program::Device &device = form.program->devices.front();
    if (device.images.size() != 1)
      return makeError(ErrorCode::Usage, "error: 'ptx' is of one chip, but the model is compiled "
                                         "for " +
                                             llvm::Twine(device.images.size()) +
                                             "\nnote: name one of them with '--target', such as '" +
                                             device.images.front().chip + "'");
    return support::writeFile(path, device.images.front().bytes);
  }
  std::string header(const program::Program &program) const override {
    return cpu::backend().header(program);
  }
  void registerPasses() const override { registerGeneratedPasses(); }
};

} // namespace

const target::Backend &backend() {
  static const CudaBackend only;
  return only;
}

} // namespace heddle::gpu
