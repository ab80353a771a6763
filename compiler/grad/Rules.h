// Rules: the derivative of each op, one row an op, in the file of its family.
#ifndef HEDDLE_GRAD_RULES_H
#define HEDDLE_GRAD_RULES_H

#include "compiler/grad/Maker.h"

namespace heddle::grad {

/// An op on the way back: what is known of its results, and what its rule says of its operands.
class Flow : public Maker {
public:
  /// `used`: operands, then what regions use of the values around the op; `wanted` alike.
  /// `adjoints`: one a result, null if y does not follow from it.
  Flow(mlir::OpBuilder &builder, mlir::Location location, mlir::Operation *op, ArrayRef<Value> used,
       ArrayRef<Value> adjoints, ArrayRef<bool> wanted)
      : Maker(builder, location), op(op), used(used), given(used.size()), adjoints(adjoints),
        wanted(wanted) {}

  template <typename Op> Op as() const { return mlir::cast<Op>(op); }
  Value x(unsigned operand = 0) const { return op->getOperand(operand); }
  Value y() const { return op->getResult(0); }
  Value dy(unsigned result = 0) const { return adjoints[result]; }
  /// Whether an adjoint of used[i] is asked for.
  bool wants(unsigned i) const { return wanted[i]; }
  void give(unsigned i, Value adjoint) { given[i] = adjoint; }
  /// Adjoint of a function of one operand: dy * slope.
  void scale(Value slope) { give(0, mul(dy(), slope)); }
  void refuse(const llvm::Twine &why) { refusal = why.str(); }

  mlir::Operation *op;
  ArrayRef<Value> used;
  llvm::SmallVector<Value> given; // alike; null if nothing flows
  std::string refusal;            // why the op has no derivative; "" when it has one

private:
  ArrayRef<Value> adjoints;
  ArrayRef<bool> wanted;
};

/// Only called when an adjoint of a result is known, and one of something used is asked for.
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
Rows routineRules();
Rows productRules();
Rows windowRules();
Rows controlRules();

/// The row of an op, or null.
const Row *findRule(mlir::Operation *op);

} // namespace heddle::grad

#endif // HEDDLE_GRAD_RULES_H
