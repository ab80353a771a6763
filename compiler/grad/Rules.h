// Rules: the derivative of each op, one row an op, in the file of its family.
#ifndef HEDDLE_GRAD_RULES_H
#define HEDDLE_GRAD_RULES_H

#include "compiler/grad/Maker.h"

namespace heddle::grad {

/// An op on the way back: what is known of its results, and what its rule says of its operands.
class Flow : public Maker {
public:
  Flow(mlir::OpBuilder &builder, mlir::Location location, mlir::Operation *op, Value adjoint,
       ArrayRef<bool> wanted)
      : Maker(builder, location), op(op), given(op->getNumOperands()), adjoint(adjoint),
        wanted(wanted) {}

  template <typename Op> Op as() const { return mlir::cast<Op>(op); }
  Value x(unsigned operand = 0) const { return op->getOperand(operand); }
  Value y() const { return op->getResult(0); }
  /// The adjoint of the first result.
  Value dy() const { return adjoint; }
  /// Whether an adjoint of the operand is asked for.
  bool wants(unsigned operand) const { return wanted[operand]; }
  void give(unsigned operand, Value adjoint) { given[operand] = adjoint; }
  /// For functions of one operand: dy * slope.
  void scale(Value slope) { give(0, mul(dy(), slope)); }
  void refuse(const llvm::Twine &why) { refusal = why.str(); }

  mlir::Operation *op;
  llvm::SmallVector<Value> given; // by operand; null where nothing flows
  std::string refusal;            // why the op has no derivative; "" when it has one

private:
  Value adjoint;
  ArrayRef<bool> wanted;
};

/// Only called when the adjoint of the first result is known and an operand wants one.
using Rule = void (*)(Flow &);
struct Row {
  llvm::StringRef op;
  Rule rule; // null: flat between its steps
};
using Rows = ArrayRef<Row>;

Rows elementwiseRules();
Rows movementRules();
Rows indexRules();
Rows reductionRules();
Rows productRules();
Rows windowRules();

/// The row of an op, or null.
const Row *findRule(mlir::Operation *op);

} // namespace heddle::grad

#endif // HEDDLE_GRAD_RULES_H
