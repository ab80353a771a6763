// Calls: which part of a group a function of an existing library computes.
//
// A card of kind `call` names a function, "onednn.matmul". What the function computes ends with one
// value of the group; ops behind it that it cannot take in are left to generated code.
#ifndef HEDDLE_LOOP_CALLS_H
#define HEDDLE_LOOP_CALLS_H

#include "compiler/graph/Graph.h"
#include "compiler/loop/Fit.h"

namespace heddle::loop {

struct LibraryCall {
  /// What happens to an element of the result next; operand is null for those that take none.
  struct Post {
    enum class Kind { Add, Sub, Mul, Div, Gelu } kind;
    mlir::Value operand; // what is repeated, before its broadcast
  };
  mlir::Operation *root = nullptr;      // matmul or conv; null for a normalisation
  llvm::SmallVector<mlir::Value> reads; // the function's own operands; null: a vector of 1 or 0
  mlir::Value result;                   // the last value that the function computes
  llvm::SmallVector<Post> posts;
  llvm::SmallVector<int64_t> order; // of the right operand's dims, when it is read transposed
  double epsilon = 0;
  int64_t axes = 0; // that a normalisation folds
};

/// "onednn.matmul" ...; what stands before the point is the library.
llvm::ArrayRef<llvm::StringLiteral> libraryFunctions();
bool isLibraryFunction(llvm::StringRef form);
/// "libdnnl.so.2"
llvm::StringRef libraryFile(llvm::StringRef form);
/// "" when this machine has the library, else why not. Asked once in a process.
std::string whyNoLibrary(llvm::StringRef form);

/// Nullopt, with a reason, where the function cannot compute the group. `fit` says whether more ops
/// may help.
std::optional<LibraryCall> readCall(llvm::StringRef form, llvm::ArrayRef<mlir::Operation *> ops,
                                    Fit &fit, std::string &why);

/// For each form the reader of its pattern.
bool readNormalization(llvm::ArrayRef<mlir::Operation *> ops, LibraryCall &call, std::string &why);

} // namespace heddle::loop

#endif // HEDDLE_LOOP_CALLS_H
