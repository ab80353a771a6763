// Branches: an if whose regions are filled before it exists, for only they tell its results' types.
#ifndef HEDDLE_ONNX_BRANCHES_H
#define HEDDLE_ONNX_BRANCHES_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// The number of fresh symbols; those made later are local to the ops imported then.
int64_t symbolCount(Emitter &e);
/// Whether a fresh symbol in `dim` was made after there were `before`.
bool isLocal(const Dim &dim, int64_t before);
/// dims, with a fresh symbol for each size that is local or differs from `other`.
DimVector outerDims(Emitter &e, llvm::ArrayRef<Dim> dims, llvm::ArrayRef<Dim> other, int64_t before,
                    llvm::StringRef stem);

/// The type of a list that is one of two; null if no list is both.
Type joinedList(Emitter &e, graph::ListType a, graph::ListType b);
/// A list as another type of list, a tensor as a list of it, and one element in another rank; what
/// is none of these stays.
Value asType(Emitter &e, Value value, Type type);

class Branches {
public:
  Branches(Emitter &emitter, Value condition);
  ~Branches();

  /// Fills region `number`, 0 if the condition holds, with the ops that `fill` builds and its
  /// values.
  void fill(int number, llvm::function_ref<llvm::SmallVector<Value>()> fill);
  /// Ends both regions with their values, each as `common` says: a type that both become, or null
  /// where they stay.
  void join(llvm::function_ref<Type(size_t number, Value yes, Value no)> common);
  /// Makes the op; `yielded` determines its results.
  mlir::Operation *make();

  llvm::SmallVector<Value> yielded[2];

private:
  Emitter &emitter;
  int64_t before;         // fresh symbols
  mlir::Operation *draft; // has the regions; null once there is the op
};

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_BRANCHES_H
