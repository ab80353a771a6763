// Tile: sums of products, of which each thread of a block has some.
#ifndef HEDDLE_LOWER_THREADS_TILE_H
#define HEDDLE_LOWER_THREADS_TILE_H

#include "compiler/lower/threads/Team.h"

namespace heddle::lower {

/// Neighbours that a thread reads at once.
inline constexpr int64_t kNeighbours = 4;

/// Rows and columns of a tile, and those of each of its parts.
struct TileSizes {
  int64_t rows, columns, ofRows, ofColumns;
  int64_t parts() const { return rows / ofRows * (columns / ofColumns); }
};

/// Elements from one line of shared memory to the next: more than it has, so that threads which
/// write to a line each do not meet in one bank.
inline int64_t paddedLine(int64_t elements) { return elements + kNeighbours; }

/// x * y + sum.
Value multiplyAdd(Code &code, Value x, Value y, Value sum);

/// An element of a piece of an operand that a thread copies: its row or column, and its step of the
/// reduction.
struct Slot {
  Value line, step;
};
/// Slots of this thread for a piece whose sizes are powers of 2, as the number of threads is;
/// neighbouring threads have neighbouring steps, or lines. Of a piece with fewer elements than
/// threads the first threads alone have slots.
llvm::SmallVector<Slot> slotsOf(Code &code, Team &team, int64_t lines, int64_t steps,
                                bool isAlongSteps);
/// The slot number `i` of these.
Slot slotAt(Code &code, Team &team, int64_t lines, int64_t steps, bool isAlongSteps, Value i);
/// The place of a slot in padded lines, one for each step.
Value placeOf(Code &code, const Slot &slot, int64_t lines);

/// Each thread has a part, whose sizes are multiples of kNeighbours. They are a grid whose
/// neighbours have neighbouring columns. A thread has chunks of rows and of columns, kNeighbours
/// each, apart by what the others have of a chunk.
class ThreadTile {
public:
  ThreadTile(KernelBuilder &kernel, Team &team, Type sum, const TileSizes &sizes)
      : sizes(sizes), kernel(kernel), team(team), sum(sum) {}

  /// The first row, or column, of a chunk.
  Value rowOf(int64_t chunk);
  Value columnOf(int64_t chunk);
  int64_t rowChunks() const { return sizes.ofRows / kNeighbours; }
  int64_t columnChunks() const { return sizes.ofColumns / kNeighbours; }

  Values zeros();
  /// The sums and the product of pieces in memory: the rows of each step side by side, and the
  /// columns of each step, in padded lines.
  Values multiply(Value left, Value right, int64_t depth, mlir::ValueRange sums);
  /// Writes a chunk of the rows to padded lines, its first one first.
  void put(Value memory, int64_t chunk, mlir::ValueRange sums);
  /// Runs `body` for each of the thread's sums, with its row and column.
  void forEach(mlir::ValueRange sums,
               llvm::function_ref<void(Value row, Value column, Value sum)> body);

  const TileSizes sizes;

private:
  KernelBuilder &kernel;
  Team &team;
  Type sum;
};

/// A tile of a product in parts of some rows and columns, of which each thread has one, or each 32
/// threads in step, with the share of the processors' speed that it reaches.
struct TileForm : TileSizes {
  int64_t depth; // of a piece
  double efficiency;
};

/// The sums of a tile of a product, and pieces of its operands in shared memory: so many steps of
/// the reduction at a time.
class ProductTile {
public:
  virtual ~ProductTile() = default;

  virtual Type element() const = 0;
  /// Elements of a piece of both operands, and where a slot of each lies there.
  virtual int64_t pieceSize() const = 0;
  virtual Value leftPlace(const Slot &slot) = 0;
  virtual Value rightPlace(const Slot &slot) = 0;
  virtual Values zeros() = 0;
  virtual Values multiply(Value piece, mlir::ValueRange sums) = 0;
  /// Some of the rows are written to memory at a time, in padded lines.
  virtual int64_t passes() const = 0;
  virtual void put(Value memory, int64_t pass, mlir::ValueRange sums) = 0;
  /// The row of the tile that comes `row`-th in a pass.
  virtual Value rowOf(int64_t pass, Value row) = 0;
};

/// Tiles by multiplications and additions of numbers of any type.
llvm::ArrayRef<TileForm> numberTiles();
std::unique_ptr<ProductTile> makeNumberTile(KernelBuilder &kernel, Team &team, Type sum,
                                            const TileForm &form);
/// Tiles by products of fragments, of f16 or bf16; their sums are f32. The largest is only for
/// pieces that no registers hold on their way.
llvm::ArrayRef<TileForm> fragmentTiles(bool areFetched);
std::unique_ptr<ProductTile> makeFragmentTile(KernelBuilder &kernel, Team &team, Type element,
                                              const TileForm &form);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_THREADS_TILE_H
