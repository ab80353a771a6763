// SizeCode: sizes known only at run time, as code that computes them.
#ifndef HEDDLE_LOWER_PROGRAM_SIZECODE_H
#define HEDDLE_LOWER_PROGRAM_SIZECODE_H

#include "compiler/lower/Kernel.h"

#include <deque>

namespace heddle::lower {

/// Writes the sizes of one function.
class SizeCode {
public:
  explicit SizeCode(Code &code) : code(code) {}

  /// The value of a size, where all symbols in scope have theirs; where `overflow` is not null, it
  /// says whether the arithmetic has left int64, or stays null if it cannot.
  Value of(const Dim &dim, Value *overflow);

  std::map<std::string, Value> symbols; // in scope

private:
  /// A size in the code: for which values of its symbols, and whether it has left int64.
  struct Written {
    Value value, overflow; // null: it cannot
    llvm::SmallVector<Value> symbols;
    bool isTested = false;
  };
  Value symbolValue(llvm::StringRef name);
  llvm::SmallVector<Value> symbolsOf(const Dim &dim);
  bool isReadable(const Written &known, llvm::ArrayRef<Value> symbols, bool isTested);
  Value write(const Dim &dim, Value *overflow);

  Code &code;
  std::map<std::string, Written> written; // by the text of the size
  /// Long sums that were written last: places in a concat are sums that grow by a term.
  std::deque<Dim> lastSums;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_PROGRAM_SIZECODE_H
