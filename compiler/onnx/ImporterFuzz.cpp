// ImporterFuzz: whatever the bytes of a model are, the importer makes a valid module or refuses.
//
// A finding is a crash, undefined behaviour, a hang, much memory, or an error that calls itself
// internal. `./dev fuzz-import` builds this, writes seeds and runs it.

#include "compiler/onnx/Importer.h"
#include "compiler/onnx/ModelMutator.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace heddle;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t limit);

static void importOne(MLIRContext &context, ArrayRef<char> bytes) {
  heddle::onnx::ImportOptions options;
  options.maxNodes = 500;
  options.maxDepth = 16;
  options.maxBytes = 1 << 20;
  auto module = heddle::onnx::importModelFromBytes(context, bytes, "fuzz.onnx", options);
  if (!module)
    return llvm::handleAllErrors(module.takeError(), [](const heddle::Error &error) {
      if (error.code != ErrorCode::Internal)
        return;
      llvm::errs() << error.message << "\n";
      abort();
    });
  if (failed(verify(**module)))
    abort();
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  google::protobuf::SetLogHandler(nullptr); // it reports what every damaged string is
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A context keeps every type and attribute that it ever made: a new one now and then.
  static std::unique_ptr<MLIRContext> context;
  static unsigned uses = 0;
  if (uses++ % 256 == 0) {
    context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
    heddle::onnx::loadDialects(*context);
  }
  ScopedDiagnosticHandler silent(context.get(), [](Diagnostic &) { return success(); });
  importOne(*context, ArrayRef(reinterpret_cast<const char *>(data), size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t limit, unsigned seed) {
  static std::string program = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
  static heddle::onnx::ModelMutator mutator(llvm::sys::path::parent_path(program).str() +
                                            "/generated/onnx.descriptor");
  std::string model;
  if (seed % 64 != 0)
    model = mutator.mutate(std::string(reinterpret_cast<const char *>(data), size), seed);
  if (model.empty() || model.size() > limit)
    return LLVMFuzzerMutate(data, size, limit);
  std::copy(model.begin(), model.end(), data);
  return model.size();
}
