// Bindings: symbols that values bind while the program runs.
#ifndef HEDDLE_LOWER_HOST_BINDINGS_H
#define HEDDLE_LOWER_HOST_BINDINGS_H

#include "compiler/lower/host/Memory.h"

namespace heddle::lower {

class Bindings {
public:
  Bindings(Writer &host, Sizes &sizes, Memory &memory, const Storage &storage)
      : host(host), code(host.code), builder(host.builder), sizes(sizes), memory(memory),
        storage(storage) {}

  /// Ops that bind symbols stand alone in their group, so that what they read is in memory.
  void bindGroup(mlir::Operation *group);
  /// Binds sizes, unless heddle_program_bind has done it.
  void bind(graph::BindSizesOp op);
  void bind(graph::DynamicReshapeOp op);

private:
  void bind(graph::DynamicBroadcastOp op);
  void bind(graph::DynamicSliceOp op);
  void bind(graph::RangeOp op);

  Writer &host;
  Code &code;
  mlir::OpBuilder &builder;
  Sizes &sizes;
  Memory &memory;
  const Storage &storage;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_BINDINGS_H
