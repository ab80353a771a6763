// Channelwise: depthwise convolutions and pools over channels-last images, with their elementwise
// epilogue.
//
// An image of one dimension is one row, in pieces. Channels are in lanes and the window's columns
// are unrolled over a tile of pixels, which share what they read (CODEGEN P3.4). Weights stay in
// registers along a row of pixels where the registers hold them. Integers of 8 bits are summed as
// floats, where all sums fit 24 bits and so are exact.
#ifndef HEDDLE_LOWER_WINDOW_CHANNELWISE_H
#define HEDDLE_LOWER_WINDOW_CHANNELWISE_H

#include "compiler/lower/Schedule.h"
#include "compiler/lower/elements/Definitions.h"

namespace heddle::lower {

class Channelwise {
public:
  Channelwise(KernelBuilder &kernel, mlir::Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule) {}

  mlir::LogicalResult prepare();
  void emit();

private:
  /// A vector of channels of a row of results.
  struct Row {
    Value image, row, channel;
  };
  /// `count` neighbours in a row of results. Where it is not inside, taps may lie outside of the
  /// image's row.
  struct Tile {
    Value column;
    int64_t count;
    bool isInside;
  };

  /// `channels` of at most `rows` of results, then the next channels of these rows.
  struct Order {
    int64_t channels, rows;
  };
  static constexpr int64_t kAllRows = int64_t(1) << 40; // and all channels of each
  /// Columns of a line that are a task (bench/notes/2026-11-22-other-networks.md).
  static constexpr int64_t kPiece = 64;

  void packWeights();
  void emitPacking();
  Order order() const;
  void emitRows(Elements &e, Value first, Value end, Value low, Value high);

  // Row.cpp
  int64_t taps() const { return window[0] * window[1]; }
  Dim pieces() const { return isLine ? y[2].ceilDiv(Dim(kPiece)) : Dim(1); } // of a row
  int64_t pixels();
  bool isUnrolled();
  Values keptWeights(Elements &e, Value channel);
  Value weight(Elements &e, Value channel, Value tap);
  void emitRow(Elements &e, const Row &row, Value begin, Value stop, llvm::ArrayRef<Value> weights);
  bool emitKnownRow(Elements &e, const Row &row, llvm::ArrayRef<Value> weights);
  void emitTile(Elements &e, const Row &row, const Tile &tile, llvm::ArrayRef<Value> weights);
  Values sumTile(Elements &e, const Row &row, const Tile &tile, llvm::ArrayRef<Value> weights);
  Values sumRow(Elements &e, const Row &source, const Tile &tile, llvm::ArrayRef<Value> weights,
                mlir::ValueRange sums);
  Values sumTap(Elements &e, Value pixel, Value weight, mlir::ValueRange sums);
  void store(Elements &e, const Row &row, const Tile &tile, mlir::ValueRange sums);
  Value asFloats(Elements &e, Value lanes);
  bool isMean() { return pool && pool.getKind() != "max"; }
  /// Whether means are of different numbers of elements.
  bool areCounted() {
    auto isZero = [](int64_t border) { return border == 0; };
    bool hasBorder = !llvm::all_of(low, isZero) || !llvm::all_of(high, isZero);
    return isMean() && hasBorder && !pool.getCountPadding();
  }
  Dim firstInside() const;
  Dim endInside() const;

  KernelBuilder &kernel;
  mlir::Block *group;
  const Schedule &schedule;
  mlir::Operation *root = nullptr;
  graph::ConvOp conv;
  graph::PoolOp pool;
  bool isLine = false; // of one spatial dimension; the other one of what follows is 1 then
  DimVector x, y;
  llvm::SmallVector<int64_t> window, strides, dilations, low, high;
  int64_t weightData = -1, weightTemporary = -1;
  Type element, sumType;             // of the image; of what is summed
  std::vector<float> integerWeights; // of integers
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_WINDOW_CHANNELWISE_H
