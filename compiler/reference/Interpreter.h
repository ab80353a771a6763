// Interpreter: the meaning of the graph dialect, slow and obvious; the oracle of every other way to
// run a model.
#ifndef HEDDLE_REFERENCE_INTERPRETER_H
#define HEDDLE_REFERENCE_INTERPRETER_H

#include "compiler/reference/Environment.h"

namespace heddle::reference {

/// The results of one op without regions. Symbols that the op binds are bound in the environment,
/// and sizes of the results are held against their types.
llvm::Expected<Tensors> evaluate(mlir::Operation *op, llvm::ArrayRef<Tensor> operands,
                                 Environment &environment);

/// Evaluates an op on ragged tensors: row by row, each as a model of that row alone would have it.
/// A ragged tensor has the shape [elements], its rows one after the other.
llvm::Expected<Tensors> evaluateRows(mlir::Operation *op, llvm::StringRef of,
                                     llvm::ArrayRef<Tensor> operands, Environment &environment);

class Interpreter {
public:
  explicit Interpreter(mlir::ModuleOp module, Limits limits = {})
      : module(module), environment(limits) {
    environment.loadStrings(module);
  }

  /// Called after each op, also inside of regions; a group's ops come before the group.
  using Observer = llvm::function_ref<void(mlir::Operation *op, llvm::ArrayRef<Tensor> results)>;
  /// Runs @main on inputs that may be borrowed; sizes of inputs bind the symbols of their types.
  llvm::Expected<Tensors> run(llvm::ArrayRef<Tensor> inputs, Observer observer = nullptr);

  /// Memory of the lists and strings of inputs and results.
  Environment &memory() { return environment; }

private:
  llvm::Expected<Tensors> runBlock(mlir::Block &block, llvm::ArrayRef<Tensor> arguments);
  llvm::Expected<Tensors> runOp(mlir::Operation *op);
  llvm::Expected<Tensors> runIf(graph::IfOp op);
  llvm::Expected<Tensors> runLoop(graph::LoopOp op);
  llvm::Expected<Tensors> runScan(graph::ScanOp op);
  llvm::Expected<Tensor> stack(mlir::Operation *op, unsigned number, const Tensors &slices);
  /// The values of the block that no op after `op` uses.
  llvm::ArrayRef<mlir::Value> diesAfter(mlir::Operation *op);

  mlir::ModuleOp module;
  Environment environment;
  Observer observer;
  llvm::DenseMap<mlir::Value, Tensor> values;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> lastUses;
  llvm::DenseSet<mlir::Block *> analysed;
};

} // namespace heddle::reference

#endif // HEDDLE_REFERENCE_INTERPRETER_H
