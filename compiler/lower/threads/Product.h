// Product: products and convolutions by threads of a device, and what follows them.
#ifndef HEDDLE_LOWER_THREADS_PRODUCT_H
#define HEDDLE_LOWER_THREADS_PRODUCT_H

#include "compiler/lower/Schedule.h"
#include "compiler/lower/threads/Operands.h"

namespace heddle::lower {

class ThreadProduct {
public:
  /// The product that `results` follow from; refused and null where there is none, or no form for
  /// it. Writes no code.
  static std::unique_ptr<ThreadProduct> make(KernelBuilder &kernel, mlir::Block *group,
                                             const Schedule &schedule,
                                             llvm::ArrayRef<Value> results);
  virtual ~ThreadProduct() = default;

  /// The phase that computes the results, and stores them, or gives them to `store`.
  virtual void emit() = 0;
  std::function<void(Elements &, Value result, Value value, llvm::ArrayRef<Index> place)> store;

  /// The product and how it is to be carried out, for a form of it.
  struct Parts {
    KernelBuilder &kernel;
    mlir::Block *group;
    const Schedule &schedule;
    llvm::ArrayRef<Value> results;
    const mechanism::Product &product;
    Type factors;
  };

protected:
  explicit ThreadProduct(const Parts &parts);

  /// The value, or zero where there is none.
  Value guardedBy(Elements &e, Value isThere, llvm::function_ref<Value()> value);
  /// An operand's element as one of the sum.
  Value widened(Elements &e, Value x, unsigned operand);
  /// The results at a place in the product's first part. `sumOf` gives the sum of each part.
  void emitResults(Elements &e, llvm::ArrayRef<Index> place,
                   llvm::function_ref<Value(int64_t part)> sumOf);
  /// Multiplications of all parts.
  Dim work() const;

  KernelBuilder &kernel;
  mlir::Block *group;
  const llvm::SmallVector<Value> results;
  const mechanism::Product product;
  const ProductOperands operands;
  const Type sum;
  const Type factors; // that those of the product are rounded to; null: as they are
  const int64_t wishedRows, wishedColumns; // of a tile; 0: as the sizes ask for
};

/// Products of any size by blocks that have a tile each. Null where none has as many columns as the
/// product has parts, or the wished sizes.
std::unique_ptr<ThreadProduct> makeTiledProduct(const ThreadProduct::Parts &parts);
/// Products of few rows by teams that have a column each. Null where there are more, where the
/// steps of a column are no neighbours, or where a tile is wished for.
std::unique_ptr<ThreadProduct> makeColumnProduct(const ThreadProduct::Parts &parts);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_THREADS_PRODUCT_H
