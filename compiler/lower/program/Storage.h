// Storage: where each tensor of a program lies, and for how long. It writes no code.
#ifndef HEDDLE_LOWER_PROGRAM_STORAGE_H
#define HEDDLE_LOWER_PROGRAM_STORAGE_H

#include "compiler/lower/Kernel.h"
#include "compiler/lower/program/MemoryPlan.h"
#include "compiler/lower/program/RowTables.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace heddle::lower {

class Storage {
public:
  /// Describes inputs, outputs, symbols and the arena in `program` as well.
  Storage(mlir::func::FuncOp model,
          const std::map<mlir::Operation *, std::shared_ptr<Kernel>> &kernels,
          const mechanism::Placements &placements, RowTables &tables, program::Program &program);

  /// The value whose memory this one is.
  Value rootOf(Value value) const;
  /// The space, as Kernel::space, of a value that is its own root: that of the group which makes
  /// it, the host's of all else.
  int64_t spaceOf(Value root) const;
  /// Whether inputs decide a size, by their shapes or by values that are bound before the run.
  bool isEntryKnown(const Dim &dim) const;
  bool isEntryKnown(Value value) const;
  /// Whether shapes of inputs alone decide the size.
  bool isOfShapes(const Dim &dim) const;
  /// The input whose memory an output takes.
  std::optional<unsigned> sharedInput(int64_t output) const;
  static Dim bytesOf(Value value);
  /// Whether only the first iteration of the loop around the group launches what is invariant in
  /// it: the temporaries then live as long as the loop.
  bool launchesOnce(graph::GroupOp group) const;
  /// Whether a routine finds the sizes of a result, and makes its memory.
  static bool isFound(Value result);

  struct InputElement {
    mlir::BlockArgument input;
    int64_t index;
  };
  using InputElements = llvm::SmallVector<InputElement>;
  std::map<std::string, int64_t> inputSymbols;
  llvm::MapVector<mlir::Operation *, InputElements> boundByValues;
  std::vector<std::string> symbolsOfValues; // those of heddle_program_bind
  llvm::DenseMap<Value, int64_t> bufferOf;
  llvm::MapVector<Value, int64_t> outputOf;    // in a fixed order, for equal bytes
  llvm::DenseMap<Value, int64_t> lateOutputOf; // those that are made when their sizes are known
  std::map<std::pair<mlir::Operation *, int64_t>, int64_t> temporaryOf;
  llvm::MapVector<std::pair<Value, int64_t>, int64_t> copyOf; // of a root, in another space
  int64_t spaces = 1;                                         // of memory, numbered from 0
  std::vector<Buffer> buffers;                                // of the arenas
  MemoryPlan plan;

private:
  void describe();
  void findBoundByValues();
  void addSymbolOfValues(const Dim &symbol);
  std::optional<InputElements> inputElementsOf(Value value) const;
  void number();
  void place();
  void collectBuffers();
  void collectCopies();
  void describeArena();
  int64_t lastUse(Value value, int depth = 0) const;
  int64_t firstWrite(graph::GroupOp group) const;
  bool isReadBefore(Value value, graph::GroupOp group) const;
  bool mayOverwrite(mlir::BlockArgument input, Value root) const;

  mlir::func::FuncOp model;
  const std::map<mlir::Operation *, std::shared_ptr<Kernel>> &kernels;
  const mechanism::Placements &placements;
  RowTables &tables;
  program::Program &program;
  llvm::DenseMap<mlir::Operation *, std::pair<int64_t, int64_t>> steps; // first and last
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_PROGRAM_STORAGE_H
