// Dialect: registration of the ops and types.

#include "compiler/program/Dialect.h"

#include "compiler/program/Dialect.cpp.inc"
#include "compiler/program/Enums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/program/Types.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/program/Ops.cpp.inc"

namespace heddle::program {

int64_t threadsOf(mlir::func::FuncOp function) {
  auto threads = function->getAttrOfType<mlir::IntegerAttr>(kThreads);
  return threads ? threads.getInt() : 1;
}

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
