// FatalErrors: one handler for the process, which jumps out of LLVM where a thread asked for it.
// LLVM is compiled without exceptions, so a jump is the only way.

#include "compiler/target/cpu/FatalErrors.h"

#include "llvm/Support/ErrorHandling.h"

#include <csetjmp>
#include <mutex>

namespace heddle::cpu {
namespace {

struct Scope {
  std::jmp_buf exit;
  std::string reason;
};
thread_local Scope *current = nullptr;

/// Returning lets LLVM end the process, as without a handler.
void leave(void *, const char *reason, bool) {
  if (!current)
    return;
  current->reason = reason;
  std::longjmp(current->exit, 1);
}

} // namespace

llvm::Error catchFatalErrors(llvm::function_ref<llvm::Error()> body) {
  static std::once_flag once;
  std::call_once(once, [] { llvm::install_fatal_error_handler(leave); });
  Scope scope;
  Scope *const outer = current;
  current = &scope;
  if (setjmp(scope.exit)) {
    current = outer;
    return makeError(ErrorCode::Internal, "internal error: LLVM's code generator: " + scope.reason);
  }
  llvm::Error error = body();
  current = outer;
  return error;
}

} // namespace heddle::cpu
