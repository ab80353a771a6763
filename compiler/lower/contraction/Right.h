// Right: the right operand of a product, as panels of its columns that register tiles read.
//
// Constants are packed at compile time, and those in fewer bits stay so (stored/Panels.h); others
// are packed in a phase of their own, or by the tasks that multiply by them where no two need the
// same; what memory has as one panel already is read there.
#ifndef HEDDLE_LOWER_CONTRACTION_RIGHT_H
#define HEDDLE_LOWER_CONTRACTION_RIGHT_H

#include "compiler/lower/contraction/Cut.h"
#include "compiler/lower/contraction/Microkernel.h"

namespace heddle::lower {

class RightOperand {
public:
  virtual ~RightOperand() = default;

  /// Constants of the kernel, or the phase before the products that packs.
  virtual void prepare() {}
  /// The panels that tiles read; null where they read others than panels of floats.
  virtual Value pointer() = 0;
  /// The panels where they are constants; null otherwise.
  virtual Value constant() { return {}; }
  /// Memory that a constant panel comes from, in any form, and its bytes there; null for others.
  virtual Value sourceOf(Value panel) { return {}; }
  virtual Dim sourceBytes() const { return Dim(0); }
  /// Initial accumulators of a tile at a panel; none: zeros.
  virtual llvm::SmallVector<Value> startOf(Value panel, int64_t rows) { return {}; }
  /// The vectors of the result's columns at a panel, row by row.
  virtual llvm::SmallVector<Value> sums(const RegisterTile &tile, const TileProduct &product,
                                        Value panel);

  /// Whether panels have to be in the worker's scratch before tiles read them: all, those that
  /// several tiles share, or none.
  enum class Scratch { None, Shared, All };
  virtual Scratch scratch() const { return Scratch::None; }
  /// Lets a tile have a part of the scratch that begins after so many bytes; where it ends.
  /// Panels that `fill` puts there follow.
  virtual Dim scratchOfTile(const Dim &bytes) { return bytes; }
  /// Puts panels [first, end) of a matrix there.
  virtual void fill(Value matrix, Value first, Value end) {}
  void release() { held = {}; }
  /// Number of a panel among those at pointer().
  Value placeOf(Value panel);

protected:
  explicit RightOperand(const ProductLayout &layout) : layout(layout), kernel(layout.kernel) {}

  const ProductLayout &layout;
  KernelBuilder &kernel;
  Value held; // the number of the first panel that is in the scratch, if any are
};

/// How the product's right operand is read; by tasks that pack it only if `mayPackInTasks`.
std::unique_ptr<RightOperand> rightOperandOf(const ProductLayout &layout, Band &band,
                                             bool mayPackInTasks);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_CONTRACTION_RIGHT_H
