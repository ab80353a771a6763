// Options: heddle_compile_options_t as the pipeline takes them.
#ifndef HEDDLE_API_OPTIONS_H
#define HEDDLE_API_OPTIONS_H

#include "compiler/pipeline/Pipeline.h"

#include "heddle/compiler.h"

namespace heddle {

/// Defaults for NULL.
llvm::Expected<CompileOptions> optionsOf(const heddle_compile_options_t *given);

/// The folders that HEDDLE_SCHEDULES names, then this one if it is not NULL.
std::vector<std::string> foldersOf(const char *schedules);

/// The file of oneDNN's library that HEDDLE_ONEDNN names, "" for none.
std::string oneDnnFile();

/// The cache of HEDDLE_CACHE or the default folder for NULL, none for "".
std::shared_ptr<cache::Cache> cacheOf(const char *folder, int64_t limitBytes);

} // namespace heddle

#endif // HEDDLE_API_OPTIONS_H
