// Product: a product or convolution of a group, and what lies between it and results that wait in
// registers.
#ifndef HEDDLE_MECHANISM_PRODUCT_H
#define HEDDLE_MECHANISM_PRODUCT_H

#include "compiler/mechanism/Mechanism.h"

namespace heddle::mechanism {

struct Product {
  mlir::Operation *root = nullptr;
  /// What the results follow from, the product included, without constants.
  llvm::SetVector<mlir::Operation *> members;
  /// Slices of the last dimension that are between the product and all results, which then have
  /// the shape of a part; else there is one part, the whole.
  llvm::SmallVector<graph::SliceOp> slices;
  int64_t parts = 1;
  graph::Dim partColumns;
};

/// Nullopt, with the reason, if register tiles do not serve the product that `results` follow from:
/// what lies between has to be computed element by element or read from memory.
std::optional<Product> readProduct(Ops ops, mlir::ValueRange results, std::string &why);

/// One product, with ops of its shape alone that follow it element by element, and before it at
/// most a transpose of its right operand. Partial without a product.
Fit checkPlainProduct(Ops ops, std::string &why);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_PRODUCT_H
