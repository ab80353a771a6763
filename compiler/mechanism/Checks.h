// Checks: what the checks of mechanisms share.
#ifndef HEDDLE_MECHANISM_CHECKS_H
#define HEDDLE_MECHANISM_CHECKS_H

#include "compiler/mechanism/Mechanism.h"

namespace heddle::mechanism {

/// Sets the reason; No.
Fit refuse(std::string &why, const llvm::Twine &text);
/// "matmul 'name of the node'"
std::string named(mlir::Operation *op);

/// The values that ops outside of these read; of the last op where nobody reads any.
llvm::SmallVector<mlir::Value> resultsOf(Ops ops);

/// A constant, or an argument that stands for one where a card is tried.
bool isWeight(mlir::Value value);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_CHECKS_H
