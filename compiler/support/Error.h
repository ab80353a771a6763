// Error: how a stage refuses. The codes are the exit codes of the command line.
#ifndef HEDDLE_SUPPORT_ERROR_H
#define HEDDLE_SUPPORT_ERROR_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>

namespace heddle {

enum class ErrorCode { NumbersDiffer = 1, Usage = 2, Refused = 3, Limit = 4, Internal = 5 };

/// An error whose message is whole: one line a problem, "file: node 'n' (Op): error: ..." each.
class Error : public llvm::ErrorInfo<Error> {
public:
  static char ID;
  Error(ErrorCode code, std::string message) : code(code), message(std::move(message)) {}
  void log(llvm::raw_ostream &stream) const override { stream << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  ErrorCode code;
  std::string message;
};

llvm::Error makeError(ErrorCode code, const llvm::Twine &message);

} // namespace heddle

#endif // HEDDLE_SUPPORT_ERROR_H
