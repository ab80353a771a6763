// Error: the identity of the class and its constructor function.

#include "compiler/support/Error.h"

namespace heddle {

char Error::ID = 0;

llvm::Error makeError(ErrorCode code, const llvm::Twine &message) {
  return llvm::make_error<Error>(code, message.str());
}

} // namespace heddle
