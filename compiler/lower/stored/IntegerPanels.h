// IntegerPanels: products of rows that are rounded to 8 bits in blocks (graph.matmul's `block`)
// with a constant that is kept as integers in these blocks (graph::StoredAttr).
//
// Sums of a block are of integers, exact, and scaled once: c, z and t are codes, zero and scale of
// the constant, q and s codes and scale of the row.
//
//   sum over k of a[k] * b[k] = sum over blocks of (sum of c * q - z * sum of q) * t * s
#ifndef HEDDLE_LOWER_STORED_INTEGERPANELS_H
#define HEDDLE_LOWER_STORED_INTEGERPANELS_H

#include "compiler/lower/Kernel.h"
#include "compiler/lower/contraction/Microkernel.h"

namespace heddle::lower {

class IntegerPanels {
public:
  /// As StoredPanels.
  IntegerPanels(KernelBuilder &kernel, graph::StoredAttr stored, llvm::ArrayRef<int64_t> columns,
                int64_t vectors, int64_t ahead);

  /// The phase that rounds the rows of `a`, a tensor in memory.
  void roundRows(Value a, mlir::Block *group);
  /// The accumulators of a tile at a panel, row by row. Of the product, only the rows are read.
  llvm::SmallVector<Value> sums(const RegisterTile &tile, const TileProduct &product, Value panel);

  // Products in registers that hold matrices, by panels that are unpacked (IntegerMatrices.cpp).

  /// Whether they can be multiplied there.
  bool fitsMatrices() const;
  /// Bytes of the worker's scratch from `scratchBegin` on: first the sums of a tile, then unpacked
  /// panels, of each.
  int64_t sumBytes() const;
  int64_t unpackedBytes() const;
  Dim scratchBegin = Dim(0);
  /// Unpacks a panel into a place of the scratch.
  void unpack(Value panel, Value place);
  /// As `sums`, of at most 16 rows, by a panel that is unpacked there. They may read as many rows
  /// after the first one.
  llvm::SmallVector<Value> matrixSums(const RegisterTile &tile, const TileProduct &product,
                                      Value panel, Value place);

  // Panels of bf16 for any product (IntegerDecoding.cpp).

  /// Writes the codes of a panel as pairs of bf16 to vector `vector` of each row of `target`, a
  /// panel of `width` columns, whose rows are pairs of rows of the weights.
  void decode(Value panel, Value target, int64_t vector, int64_t width);

  /// Codes, scales and zeros of a panel.
  Value codesOf(Value panel);
  int64_t bytesOfPanel() const { return length / block * blockBytes(); }

private:
  Value codeOf(Value words, int64_t inStep);
  Value pairsOf(Value even, Value odd);
  struct Rows;
  void pack(graph::StoredAttr stored, llvm::ArrayRef<int64_t> columns);
  void roundBlock(Value a, Value number);
  Values sumsOfBlock(const RegisterTile &tile, const Rows &rows, Value bytes, Value number);
  void addStep(const RegisterTile &tile, const Rows &rows, Value bytes, Value k, Values &sums);
  Value dot(Value codes, Value word, Value sum);
  Value addScaled(Value block, Value scale, Value steps, Value number, Value sum);
  int64_t wordsOfStep() const;
  Value scratch();
  Value sumsAt(Value number);
  Value unpackedAt(Value place);
  Value signedCodes(Value codes);
  int64_t lanes() const { return kernel.machine.lanes; }
  int64_t width() const { return vectors * lanes(); }
  /// Elements of the reduction whose codes are in one vector of words.
  int64_t step() const { return 32 / bits; }
  int64_t codeBytes() const { return block * width() * bits / 8; }
  /// Codes, scales and zeros of a block of a panel are one after the other.
  int64_t blockBytes() const { return codeBytes() + (areZerosOwn ? 2 : 1) * width() * 4; }

  KernelBuilder &kernel;
  int64_t vectors, ahead, length = 0, block = 0;
  int64_t bits = 8;         // of a packed code: 4 or 8
  bool isSigned = false;    // codes of 8 bits are
  bool isWide = false;      // rows are i16, multiplied by pairs
  bool isHalved = false;    // sums are of 16 bits at first
  bool areZerosOwn = false; // each block of a column has its zero
  int64_t zero = 0;         // else that of all
  bool isZeroExact = false; // times each scale
  bool areFinite = false;   // scales and zeros
  int64_t data = -1;
  /// Temporaries: q, s, and what sums begin with, or with own zeros what q sum up to below 0.
  int64_t rows = -1, steps = -1, totals = -1;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_STORED_INTEGERPANELS_H
