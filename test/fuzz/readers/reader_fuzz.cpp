// reader_fuzz: whatever is in a file that Heddle reads, its reader takes it or says what is wrong.
//
// A finding is a crash, undefined behaviour, a hang, much memory, or an error that calls itself
// internal. The first byte of an input says which reader; the second what .npy files are read as.
// `./dev fuzz-readers` builds this, makes seeds of valid files and runs it.

#include "compiler/plan/Plan.h"
#include "compiler/records/Records.h"
#include "compiler/support/Error.h"
#include "compiler/warehouse/Warehouse.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/tensor/npy.h"
#include "tools/heddle/tensor/tensor_proto.h"

#include "mlir/Dialect/Transform/IR/TransformDialect.h"

#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

using namespace heddle;

#ifndef NDEBUG // LLVM's packages, which have no assertions, lack what headers with them ask for
void mlir::transform::detail::checkImplementsTransformOpInterface(llvm::StringRef, MLIRContext *) {}
#endif

/// Writes these bytes to the one file of this process, in memory: a file system on a disk would
/// write each of them out when the next one cuts the file short.
static const std::string &fileOf(llvm::StringRef bytes) {
  static std::string path = "/dev/shm/heddle-reader-fuzz-XXXXXX";
  static int file = [] {
    int made = mkstemp(path.data());
    std::atexit([] { unlink(path.c_str()); });
    return made;
  }();
  if (ftruncate(file, 0) || pwrite(file, bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()))
    abort();
  return path;
}

static void judge(llvm::Error error) {
  llvm::handleAllErrors(std::move(error), [](const heddle::Error &error) {
    if (error.code == ErrorCode::Internal || error.message.empty()) {
      llvm::errs() << error.message << "\n";
      abort();
    }
  });
}

template <typename T> static bool isRead(llvm::Expected<T> found) {
  if (!found)
    judge(found.takeError());
  return bool(found);
}

static void readTensor(llvm::function_ref<cli::Tensor()> read) {
  try {
    cli::Tensor tensor = read();
    bool isText = tensor.dtype == HEDDLE_STRING;
    size_t bits = (isText ? 0 : heddle_dtype_bits(tensor.dtype)) * size_t(tensor.count());
    if (tensor.bytes.size() != (bits + 7) / 8 ||
        (isText && tensor.strings.size() != size_t(tensor.count())))
      abort();
    cli::formatFirst(tensor, 9);
    tensor.view();
  } catch (const cli::Failure &failure) {
    if (failure.code == HEDDLE_INTERNAL)
      abort();
  }
}

static void readCard(const std::string &text) { // MLIR reads it up to its end, a 0
  // A context keeps every type and attribute that it ever made: a new one now and then.
  static std::unique_ptr<mlir::MLIRContext> context;
  static unsigned uses = 0;
  if (uses++ % 256 == 0)
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  mlir::ScopedDiagnosticHandler silent(context.get(), [](auto &) { return mlir::success(); });
  isRead(warehouse::parseCard(*context, text, "schedules/fuzz.mlir"));
}

static void readRecords(const std::string &path) {
  auto records = records::Records::open(path, records::Records::Access::Read);
  if (!records)
    return judge(records.takeError());
  if (auto all = (*records)->all()) {
    for (const records::Record &record : *all) {
      isRead((*records)->find(record.situation));
      isRead((*records)->description(record.situation.key));
      isRead(
          (*records)->machine(record.situation.target, record.situation.threads, record.machine));
      records::textOf(record);
    }
  } else {
    judge(all.takeError());
  }
  isRead((*records)->plansLike({}));
  isRead((*records)->origins());
  isRead((*records)->mechanisms());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return -1;
  llvm::StringRef bytes(reinterpret_cast<const char *>(data) + 2, size - 2);
  switch (data[0]) {
  case 'n':
    readTensor([&] { return cli::readNpy(fileOf(bytes), data[1] % (HEDDLE_INT2 + 1)); });
    return 0;
  case 't':
    readTensor([&] { return cli::readTensorProto(fileOf(bytes)); });
    return 0;
  case 'p':
    isRead(plan::parsePlan(bytes, "fuzz.plan"));
    return 0;
  case 'c':
    readCard(bytes.str());
    return 0;
  case 'r':
    readRecords(fileOf(bytes));
    return 0;
  default:
    return -1; // not for the corpus
  }
}
