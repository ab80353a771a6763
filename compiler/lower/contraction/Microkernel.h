// Microkernel: a register tile of a product, rows of A as broadcast scalars times packed vectors of
// B.
//
// The same tile serves matmul and convolution: a convolution is a product whose rows of A are
// pieces of the image, one piece per row of the window, so there is no im2col
// (bench/notes/2026-11-21-register-tiles.md). Integers of 8 bits go through instructions that take
// `depth` neighbouring elements of the reduction at once (bench/notes/2026-11-21-int8.md).
#ifndef HEDDLE_LOWER_CONTRACTION_MICROKERNEL_H
#define HEDDLE_LOWER_CONTRACTION_MICROKERNEL_H

#include "compiler/program/Machine.h"
#include "compiler/program/build/Code.h"

namespace heddle::lower {

using mlir::Value;
using program::Code;
using program::Values;

struct RegisterTile {
  int64_t rows;    // of A and of the result
  int64_t vectors; // of B and of the result; each of Code::lanes
};

/// An outer loop over pieces of the reduction: `count` pieces, `aStep` elements of A apart. All but
/// [first, end) may be left out, where these are given.
struct ReductionPiece {
  Value count, aStep, first = {}, end = {};
};

struct TileProduct {
  mlir::Type element, accumulator;
  Value a;                     // pointer
  llvm::ArrayRef<Value> aRows; // element offset of each row of the tile, at the first piece
  Value b;       // pointer to the packed panel: [reduction / depth][vectors * lanes][depth]
  Value bOffset; // in elements
  llvm::SmallVector<ReductionPiece, 2> pieces;
  Value length;                        // of the innermost, contiguous run
  int64_t prefetch = 0;                // steps of the innermost run ahead, 0 for none
  Value fetched = {};                  // elements that are needed next: a step fetches
  Value fetchedStep = {};              // so many of them
  llvm::SmallVector<Value> start = {}; // accumulators to begin with, zeros when empty
  /// Whether an element of a row of A counts, at a place of the innermost run; null: all do. Others
  /// are 0.
  std::function<Value(int64_t row, Value k)> counts = nullptr;
  /// 1, or: 2 elements are i16, or bf16 if the accumulators are floats; 4 are bytes of A as `dot`
  /// says, and i8 of B. Each piece of B is filled up with zeros to a multiple of it.
  int64_t depth = 1;
  program::Dot dot = program::Dot::None;
  int64_t panelVectors = 0; // of which the tile takes the first; 0: it takes all
  bool isPadded = false;    // up to depth - 1 elements after a piece of A can be read
  bool endsInside = false;  // the panel has more rows than count, which may be any numbers
  int64_t aStep = 1;        // elements of A from one step of the innermost run to the next
};

/// The bits of floats rounded to bf16, as i16, or as i32 of which they are the low ones.
Value shortBits(Code &code, Value floats);
Value shortWords(Code &code, Value floats);
/// Lanes of i32 that hold a number of each.
Value shortPairs(Code &code, Value even, Value odd);

/// The accumulators, row by row.
llvm::SmallVector<Value> emitProduct(Code &code, const RegisterTile &tile,
                                     const TileProduct &product);

/// Elements of a matrix as packed panels [panels][rows][width] at `target`, which is zero. The one
/// of a row and a place among the panels' columns is number rows[row] + columns[place] of `bytes`;
/// none where columns[place] is negative.
struct PanelSource {
  llvm::ArrayRef<char> bytes;
  int64_t elementBytes;
  llvm::SmallVector<int64_t> rows, columns;
};
void packConstantPanels(mlir::MLIRContext *context, const PanelSource &source, int64_t width,
                        char *target);

/// Integers, or the bits of bf16, as panels of which `depth` rows, a divisor of `rows`, fill 32
/// bits: [panels][rows / depth][width][depth]. `number(row, place)` gives the integer.
std::vector<char> packConstantDots(mlir::MLIRContext *context, int64_t depth, int64_t rows,
                                   int64_t panels, int64_t width,
                                   llvm::function_ref<int64_t(int64_t, int64_t)> number);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_MICROKERNEL_H
