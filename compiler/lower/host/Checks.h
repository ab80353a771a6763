// Checks: what shapes promise but can be checked only at run time: sizes are not negative, a
// reshape keeps its elements, what is multiplied or joined agrees. Checked in heddle_program_sizes,
// before anything runs, where the inputs decide; beside the op where something computed decides.
#ifndef HEDDLE_LOWER_HOST_CHECKS_H
#define HEDDLE_LOWER_HOST_CHECKS_H

#include "compiler/lower/host/Sizes.h"

#include "llvm/ADT/StringSet.h"

namespace heddle::lower {

struct Check {
  Dim a, b;
  enum Kind { NotNegative, Equal, EqualOrOne, AtMost, Memory } kind;
  std::string message;  // with %lld for a and b, or for what is told
  DimVector shape = {}; // Memory: of a tensor whose elements have `elementBytes`
  int64_t elementBytes = 0;
  DimVector told = {}; // two sizes, if not a and b
};
/// Visits what the op's operands and results promise.
void forEachCheck(mlir::Operation *op, llvm::function_ref<void(const Check &)> visit);

/// Checks in the function that is being written.
class Checks {
public:
  Checks(Writer &host, SizeCode &sizes, const Storage &storage)
      : host(host), code(host.code), builder(host.builder), sizes(sizes), storage(storage) {}

  /// The number of the first message whose check fails, 0 if all hold, in heddle_program_sizes. The
  /// message's numbers are stored at `values`.
  Value writeEntry(const EntrySizes &entrySizes, Value values);
  /// Assumes in heddle_program_run that what those have shown holds from here on.
  void assumeEntry();

  /// Begins a block, until `endBlock`: what is checked in it holds as long.
  void beginBlock() { checked.emplace_back(); }
  void endBlock() { checked.pop_back(); }
  /// Checks beside an op what neither the entry nor an op before it, here or around, has.
  void write(mlir::Operation *op);
  void failUnless(const Check &check);

private:
  void forEachOfEntry(llvm::function_ref<void(const Check &)> visit);
  bool isEntryKnown(const Check &check) const;
  Value violation(const Check &check);
  Value isBeyondMemory(const Check &check, Value *overflow);
  Values toldBy(const Check &check);
  std::string messageOf(const Check &check) const;

  Writer &host;
  Code &code;
  mlir::OpBuilder &builder;
  SizeCode &sizes;
  const Storage &storage;
  /// Keys of the checks that hold where code is being written: those of the entry, then of each
  /// block around it.
  llvm::SmallVector<llvm::StringSet<>> checked;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_CHECKS_H
