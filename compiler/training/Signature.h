// Signature: the inputs and outputs of @main, by name, while a step adds to them.
#ifndef HEDDLE_TRAINING_SIGNATURE_H
#define HEDDLE_TRAINING_SIGNATURE_H

#include "compiler/graph/Graph.h"

namespace heddle::training {

class Signature {
public:
  explicit Signature(mlir::ModuleOp module)
      : main(module.lookupSymbol<mlir::func::FuncOp>("main")), builder(module.getContext()) {}

  mlir::Operation *terminator() { return main.getBody().front().getTerminator(); }

  mlir::Value input(llvm::StringRef name); // null: there is none
  /// Adds an input of this type, but a size that no other input has by this name gets one of its
  /// own.
  mlir::Value addInput(llvm::StringRef name, mlir::Type type);
  std::string inputNames(); // for messages
  void eraseUnusedInputs();

  unsigned outputs() { return main.getNumResults(); }
  mlir::Value output(unsigned i) { return terminator()->getOperand(i); }
  llvm::StringRef outputName(unsigned i);
  /// The weight that output i updates (kUpdates); "" for none.
  llvm::StringRef updated(unsigned i);
  /// Searches the outputs that update no weight.
  std::optional<unsigned> findOutput(llvm::StringRef name);
  void addOutput(llvm::StringRef name, mlir::Value value) { insertOutput(outputs(), name, value); }
  void insertOutput(unsigned place, llvm::StringRef name, mlir::Value value);
  /// An output that the run may write where the input of its name lies.
  void addNext(mlir::Value input, mlir::Value next);
  void eraseOutput(unsigned i);

  mlir::func::FuncOp main;

private:
  bool isInputSize(const graph::Dim &dim);

  mlir::Builder builder;
};

} // namespace heddle::training

#endif // HEDDLE_TRAINING_SIGNATURE_H
