// Control: control flow of the model as that of the program. Results are pointers and sizes that
// the regions hand out.
#ifndef HEDDLE_LOWER_HOST_CONTROL_H
#define HEDDLE_LOWER_HOST_CONTROL_H

#include "compiler/lower/host/Memory.h"

#include <functional>

namespace heddle::lower {

/// Keeps what is in scope now, and restores it when the code of an inner block has been written.
class Scope {
public:
  Scope(Sizes &sizes, Memory &memory)
      : symbols(sizes.symbols), pointers(memory.pointers), sizes(sizes), memory(memory) {}
  ~Scope() {
    sizes.symbols = symbols;
    memory.pointers = pointers;
  }
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;

  const std::map<std::string, Value> symbols;

private:
  const llvm::DenseMap<Value, Value> pointers;
  Sizes &sizes;
  Memory &memory;
};

class Control {
public:
  /// `writeBlock` writes the ops of a block of a region.
  Control(Writer &host, Sizes &sizes, Memory &memory, std::function<void(mlir::Block &)> writeBlock)
      : host(host), code(host.code), builder(host.builder), sizes(sizes), memory(memory),
        writeBlock(std::move(writeBlock)) {}

  void write(graph::IfOp op);
  void write(graph::LoopOp op);
  void write(graph::ScanOp op);

private:
  void writeBody(mlir::Block &block, Value iteration);
  Values stackFirst(Value iteration, Value length, mlir::ValueRange carried, Value slice);

  Writer &host;
  Code &code;
  mlir::OpBuilder &builder;
  Sizes &sizes;
  Memory &memory;
  std::function<void(mlir::Block &)> writeBlock;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_CONTROL_H
