// Status: errors of the compiler as statuses of the C API.
#ifndef HEDDLE_API_STATUS_H
#define HEDDLE_API_STATUS_H

#include "compiler/support/Error.h"

#include "heddle/runtime.h"

struct heddle_compiled;

namespace heddle {

struct Compiled;

/// Runs `body`; what it returns or throws becomes a status, NULL for success.
heddle_status_t *guarded(llvm::function_ref<llvm::Error()> body);

/// Writes one form of a compiled model; see heddle_compiled_write.
llvm::Error writeKind(const Compiled &compiled, int threads, llvm::StringRef kind,
                      llvm::StringRef path);

} // namespace heddle

#endif // HEDDLE_API_STATUS_H
