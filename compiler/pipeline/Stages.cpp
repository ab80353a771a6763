// Stages: see Stages.h.

#include "compiler/pipeline/Stages.h"

#include "compiler/pipeline/Verify.h"

#include <chrono>

using namespace mlir;

namespace heddle {

void Stages::enterVariant(size_t i, size_t count, StringRef name) {
  share = 1.0 / count;
  before = i * share;
  target = name.str();
}

llvm::Error Stages::carryOut(StringRef name, double fraction,
                             llvm::function_ref<llvm::Error()> stage) {
  if (options.progress)
    options.progress(name, before + fraction * share);
  auto start = std::chrono::steady_clock::now();
  if (llvm::Error error = stage())
    return error;
  std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  seconds[name.str()] = seconds.value(name.str(), 0.0) + passed.count();
  return llvm::Error::success();
}

void Stages::print(StringRef name, llvm::function_ref<std::string()> text) {
  if (options.print && options.printAfter.count(name.str()))
    options.print((target.empty() ? name : name + " for " + target).str(), text());
}

llvm::Error Stages::run(StringRef name, double fraction, llvm::function_ref<llvm::Error()> stage,
                        llvm::function_ref<ModuleOp()> made) {
  if (llvm::Error error = carryOut(name, fraction, stage))
    return error;
  print(name, [&] { return textOf(made()); });
  return options.verifiesStages ? requireValid(made(), ("after " + name).str())
                                : llvm::Error::success();
}

llvm::Error Stages::runToText(StringRef name, double fraction,
                              llvm::function_ref<llvm::Error()> stage,
                              llvm::function_ref<std::string()> text) {
  if (llvm::Error error = carryOut(name, fraction, stage))
    return error;
  print(name, text);
  return llvm::Error::success();
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(16).elideLargeResourceString(16);
  module.print(stream, flags);
  StringRef whole = stream.str();
  whole.consume_back("\n{-#\n\n#-}\n"); // resources, all elided
  return whole.str();
}

} // namespace heddle
