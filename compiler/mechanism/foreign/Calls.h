// Calls: the part of a group that a function of an existing library computes.
//
// A card of kind `call` names a function, "onednn.matmul". The function's part ends with one value
// of the group; ops after it that it cannot take in are left to generated code.
#ifndef HEDDLE_MECHANISM_FOREIGN_CALLS_H
#define HEDDLE_MECHANISM_FOREIGN_CALLS_H

#include "compiler/mechanism/Mechanism.h"

namespace heddle::mechanism {

struct LibraryCall {
  /// The next op on an element of the result; operand is null for ops without one.
  struct Post {
    enum class Kind { Add, Sub, Mul, Div, Gelu } kind;
    mlir::Value operand; // its value before its broadcast
  };
  mlir::Operation *root = nullptr;      // matmul or conv; null for a normalisation
  llvm::SmallVector<mlir::Value> reads; // the function's own operands; null: a vector of 1 or 0
  mlir::Value result;                   // the last value that the function computes
  llvm::SmallVector<Post> posts;
  llvm::SmallVector<int64_t> order; // the right operand's dims, if it is read transposed
  double epsilon = 0;
  int64_t axes = 0; // axes that a normalisation reduces
};

/// Nullopt, with a reason, where the function cannot compute the group. `fit` says whether more ops
/// may help.
std::optional<LibraryCall> readCall(const Mechanism &mechanism, Ops ops, Fit &fit,
                                    std::string &why);

bool readNormalization(Ops ops, LibraryCall &call, std::string &why);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_FOREIGN_CALLS_H
