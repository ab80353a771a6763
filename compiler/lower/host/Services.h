// Services: ops that have no kernel become calls of the runtime's services, each with a frame of
// 64-bit words on the stack (enum heddle_service of abi.h): lists, strings, images, and algorithms
// of runtime/routine.
#ifndef HEDDLE_LOWER_HOST_SERVICES_H
#define HEDDLE_LOWER_HOST_SERVICES_H

#include "compiler/lower/host/Memory.h"

namespace heddle::lower {

/// Ops on lists, strings and images.
class Services {
public:
  Services(Writer &host, Sizes &sizes, Memory &memory)
      : host(host), code(host.code), builder(host.builder), sizes(sizes), memory(memory) {}

  void write(mlir::Operation *op);

private:
  void writeListOp(mlir::Operation *op);
  void writeStringOp(mlir::Operation *op);
  void writeImageDecode(graph::ImageDecodeOp op);
  Value handleOf(Value list);
  void addTensor(llvm::SmallVectorImpl<Value> &frame, Value tensor);
  Value positionOf(Value position, int64_t otherwise);
  void bindMade(Value result, Value frame, int64_t sizes, llvm::ArrayRef<Value> known = {});

  Writer &host;
  Code &code;
  mlir::OpBuilder &builder;
  Sizes &sizes;
  Memory &memory;
};

/// Sorting, selecting, compacting, trees, transforms; functions of the user's own.
class Routines {
public:
  Routines(Writer &host, Sizes &sizes, Memory &memory) : host(host), sizes(sizes), memory(memory) {}

  void write(mlir::Operation *op);

private:
  void addTensor(llvm::SmallVectorImpl<Value> &frame, Value tensor, Value address);
  Value scansOf(graph::ForestOp op);

  Writer &host;
  Sizes &sizes;
  Memory &memory;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_SERVICES_H
