// Dialect: registration of the ops and types.

#include "compiler/program/Dialect.h"

#include "compiler/program/Dialect.cpp.inc"
#include "compiler/program/Enums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/program/Types.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/program/Ops.cpp.inc"

namespace heddle::program {

void ProgramDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/program/Types.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/program/Ops.cpp.inc"
      >();
}

} // namespace heddle::program
