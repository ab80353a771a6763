// Text: heddle_text_t, a text that a function made.
#ifndef HEDDLE_API_TEXT_H
#define HEDDLE_API_TEXT_H

#include "compiler/api/Status.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include "heddle/compiler.h"

namespace heddle {

/// Makes a handle of the text that `make` returns.
heddle_status_t *textOf(heddle_text_t **result,
                        llvm::function_ref<llvm::Expected<std::string>()> make);

} // namespace heddle

#endif // HEDDLE_API_TEXT_H
