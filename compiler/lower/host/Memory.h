// Memory: where tensors lie while the program runs, as pointers. Which of them share memory, and
// for how long, is in Storage.
#ifndef HEDDLE_LOWER_HOST_MEMORY_H
#define HEDDLE_LOWER_HOST_MEMORY_H

#include "compiler/lower/host/Sizes.h"

namespace heddle::lower {

/// The buffers of the arena in it.
struct Places {
  llvm::SmallVector<Value> offsets;
  Value total; // the size of the arena
};
/// `overflow` as that of SizeCode::of.
Places placeBuffers(Code &code, SizeCode &sizes, const Storage &storage, Value *overflow);

/// The sizes that a tensor of integers holds, if shapes tell.
std::optional<DimVector> sizesIn(Value tensor);

/// Memory of the run.
class Memory {
public:
  Memory(Writer &host, Sizes &sizes, const Storage &storage, Value arena, Places places)
      : host(host), sizes(sizes), storage(storage), arena(arena), places(std::move(places)) {}

  /// Binds inputs and outputs, as the caller has given them.
  void bindEntry();
  /// Memory of weights, of the arena, or as control flow bound it; made here if there is none yet.
  Value pointerOf(Value value);
  Value addressOf(Value tensor);
  /// A buffer of the arena.
  Value buffer(int64_t number);
  /// Memory of a tensor that nothing else makes: its buffer, or bytes of its own.
  Value makeRoom(Value tensor, const Dim &bytes);
  /// An element of a tensor that is there: 0 once the run has failed.
  Value readInteger(Value tensor, int64_t index);

  llvm::DenseMap<Value, Value> pointers; // in scope

private:
  Writer &host;
  Sizes &sizes;
  const Storage &storage;
  Value arena;
  Places places;
  llvm::DenseMap<mlir::Attribute, int64_t> weightOf;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_HOST_MEMORY_H
