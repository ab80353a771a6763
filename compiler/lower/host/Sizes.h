// Sizes: the sizes of tensors as code of the run. Symbols in scope have values; where values that
// the run finds name a size, it becomes theirs, or has to agree with what it is already.
#ifndef HEDDLE_LOWER_HOST_SIZES_H
#define HEDDLE_LOWER_HOST_SIZES_H

#include "compiler/lower/host/Writer.h"
#include "compiler/lower/program/SizeCode.h"
#include "compiler/lower/program/Storage.h"

namespace heddle::lower {

/// Sizes, by their text, that heddle_program_run computes unchecked from the symbols of inputs, and
/// the first node that wants each; heddle_program_sizes shows that none overflows.
using EntrySizes = std::map<std::string, std::pair<Dim, std::string>>;

class Sizes {
public:
  Sizes(Writer &host, SizeCode &written, const Storage &storage, EntrySizes &entrySizes)
      : symbols(written.symbols), host(host), written(written), storage(storage),
        entrySizes(entrySizes) {}

  Value dim(const Dim &dim);
  /// Bytes of what an op makes.
  Value checkedBytes(Value result);

  /// Gives unbound sizes of `result` these values; the others have to be these.
  void bindDims(Value result, llvm::ArrayRef<Value> sizes);
  /// Binds them to the values that the sizes of `source` have.
  void bindFrom(Value result, Value source);
  llvm::SmallVector<std::string> unboundSymbols(mlir::ValueRange values) const;
  /// Checks the size found at run time against that of the type, for which memory was made.
  void requireSize(Value found, const Dim &expected);
  void requireSize(Value found, Value wanted, llvm::StringRef name);
  void requireSizes(Value found, Value expected);

  std::map<std::string, Value> &symbols; // in scope

private:
  Writer &host;
  SizeCode &written;
  const Storage &storage;
  EntrySizes &entrySizes;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_SIZES_H
