// passes: the passes that only heddle-opt has, for tests and for looking at things; Passes.td
// describes each.
#ifndef HEDDLE_TOOLS_OPT_PASSES_H
#define HEDDLE_TOOLS_OPT_PASSES_H

#include "compiler/program/Dialect.h"
#include "compiler/reference/Environment.h"

namespace heddle::opt {

#define GEN_PASS_DECL
#include "tools/heddle-opt/Passes.h.inc"

} // namespace heddle::opt

#endif // HEDDLE_TOOLS_OPT_PASSES_H
