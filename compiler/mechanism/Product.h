// Product: a product or convolution of a group, and what lies between it and results that wait in
// registers.
#ifndef HEDDLE_MECHANISM_PRODUCT_H
#define HEDDLE_MECHANISM_PRODUCT_H

#include "compiler/graph/edit/Band.h"
#include "compiler/mechanism/Mechanism.h"

namespace heddle::mechanism {

/// A left operand that is 0 on one side of a diagonal, whatever `kept` has there.
struct Triangle {
  mlir::Value kept;
  graph::Band band; // elements that are not 0
};
/// The triangle of a product whose register tiles leave out zeros; nullopt for any other.
std::optional<Triangle> triangleOf(graph::MatmulOp product);

/// Sizes of each matrix of a batch, beyond which its elements count for nothing: `rows` and
/// `columns` of the result, `depth` of the sum. Integers in the shape of the batch and two
/// dimensions of 1; null: all count.
struct Limits {
  mlir::Value kept; // the left operand, whatever it is beyond
  mlir::Value rows, depth, columns;
};
/// Limits of a product whose operands are 0 beyond the depth, and whose result is read within rows
/// and columns alone; nullopt for any other.
std::optional<Limits> limitsOf(graph::MatmulOp product);

/// Whether it is one of these, whose operands are best made in its own kernel.
bool leavesOut(graph::MatmulOp product);

/// Whether register tiles can read what the transpose is of in place of the left operand: along the
/// reduction, or along the rows.
bool readsThrough(graph::MatmulOp product, graph::TransposeOp left);
/// Such a transpose that the left operand is; null for any other, and one that others read.
graph::TransposeOp transposedLeft(graph::MatmulOp product);

/// Tensor in memory that a left operand is: one of bf16 that is widened in a group whose products
/// round their factors, or the operand itself.
mlir::Value storedLeft(mlir::Value left);

struct Product {
  mlir::Operation *root = nullptr;
  /// Ops that the results follow from, the product included, without constants.
  llvm::SetVector<mlir::Operation *> members;
  /// Slices of the last dimension that are between the product and all results, which then have
  /// the shape of a part; else there is one part, the whole.
  llvm::SmallVector<graph::SliceOp> slices;
  int64_t parts = 1;
  graph::Dim partColumns;
  // Form of a left operand that is made in the group: one of these.
  std::optional<Triangle> triangle;
  std::optional<Limits> limits;
  graph::TransposeOp transposed;
  /// Whether each matrix of the right operand, known only at run time and in memory, meets a single
  /// row: it is read where it lies, and once.
  bool isOneRow = false;
};

/// Nullopt, with the reason, if register tiles do not serve the product that `results` follow from:
/// what lies between has to be computed element by element or read from memory.
std::optional<Product> readProduct(Ops ops, mlir::ValueRange results, std::string &why);

/// Why the factors of the products of these ops, which the mechanism carries out, cannot be rounded
/// to bf16; "" if they can.
std::string whyNotShort(const Mechanism &mechanism, Ops ops);

/// The type of 16 bits that threads of a device round the factors of a product to, as a group of
/// bf16 or the model has it; null if they are of others.
mlir::Type factorsInThreads(mlir::Operation *product, bool isShort);

/// Whether they have a product whose rows are rounded in blocks (graph.matmul's `block`).
bool roundsBlocks(Ops ops);

/// Whether they have a product that is read in several parts only, as gates are.
bool isReadInParts(Ops ops);

/// One product, with ops of its shape alone that follow it element by element, and before it at
/// most a transpose of its right operand. Partial without a product.
Fit checkPlainProduct(Ops ops, std::string &why);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_PRODUCT_H
