// Options: heddle_compile_options_t as the pipeline takes them.
#ifndef HEDDLE_API_OPTIONS_H
#define HEDDLE_API_OPTIONS_H

#include "compiler/pipeline/Pipeline.h"

#include "heddle/compiler.h"

namespace heddle {

/// Defaults for NULL.
llvm::Expected<CompileOptions> optionsOf(const heddle_compile_options_t *given);

} // namespace heddle

#endif // HEDDLE_API_OPTIONS_H
