// Memory: where tensors lie while the program runs, as pointers. Which of them share memory, and
// for how long, is in Storage.
#ifndef HEDDLE_LOWER_HOST_MEMORY_H
#define HEDDLE_LOWER_HOST_MEMORY_H

#include "compiler/lower/host/Sizes.h"

namespace heddle::lower {

/// The buffers of the arenas in them.
struct Places {
  llvm::SmallVector<Value> offsets;
  llvm::SmallVector<Value> totals; // the size of each space's arena
};
/// `overflow` as that of SizeCode::of.
Places placeBuffers(Code &code, SizeCode &sizes, const Storage &storage, Value *overflow);

/// The sizes that a tensor of integers holds, if shapes tell.
std::optional<DimVector> sizesIn(Value tensor);

/// Memory of the run.
class Memory {
public:
  /// `arenas`: of each space.
  Memory(Writer &host, Sizes &sizes, const Storage &storage, Values arenas, Places places)
      : host(host), sizes(sizes), storage(storage), arenas(std::move(arenas)),
        places(std::move(places)) {}

  /// Binds inputs and outputs, as the caller has given them.
  void bindEntry();
  /// Memory of weights, of the arena, or as control flow bound it; made here if there is none yet.
  /// A tensor that lies in another space is copied into this one.
  Value pointerOf(Value value, int64_t space = 0);
  Value addressOf(Value tensor);
  /// A buffer of an arena.
  Value buffer(int64_t number);
  /// Memory of a tensor that nothing else makes: its buffer, or bytes of its own.
  Value makeRoom(Value tensor, const Dim &bytes);
  /// An element of a tensor that is there: 0 once the run has failed.
  Value readInteger(Value tensor, int64_t index);

  llvm::DenseMap<Value, Value> pointers; // in scope

private:
  /// A copy of a tensor, and the block from whose code on it is there.
  struct Copy {
    Value memory;
    mlir::Block *block = nullptr;
  };
  int64_t placeOf(graph::ConstantOp constant);
  Value copyOf(Value root, int64_t space);

  Writer &host;
  Sizes &sizes;
  const Storage &storage;
  Values arenas;
  Places places;
  llvm::DenseMap<mlir::Attribute, int64_t> weightOf;
  llvm::DenseMap<std::pair<Value, int64_t>, Copy> copies; // by the tensor and the space
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_MEMORY_H
