// Status: the one place where errors and exceptions end.

#include "compiler/api/Status.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include "runtime/base/status.h"

#include <new>

namespace heddle {

static heddle_status_t *statusOf(llvm::Error error) {
  ErrorCode code = ErrorCode::Internal;
  std::string text;
  llvm::handleAllErrors(
      std::move(error),
      [&](const Error &own) {
        code = own.code;
        text += own.message;
      },
      [&](const llvm::ErrorInfoBase &other) { text += "internal error: " + other.message(); });
  return heddle_status_make(static_cast<heddle_code_t>(code), "%s", text.c_str());
}

heddle_status_t *guarded(llvm::function_ref<llvm::Error()> body) {
  try {
    if (llvm::Error error = body())
      return statusOf(std::move(error));
    return nullptr;
  } catch (const std::bad_alloc &) {
    return heddle_status_make(static_cast<heddle_code_t>(ErrorCode::Limit), "%s",
                              "error: out of memory");
  } catch (const std::exception &exception) {
    return heddle_status_make(static_cast<heddle_code_t>(ErrorCode::Internal), "internal error: %s",
                              exception.what());
  }
}

} // namespace heddle
