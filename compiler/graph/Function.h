// Function: what the function of a model is held to beside its ops: its signature, and whether a
// run can know the sizes that its ops name, in their order. No op can say that of itself, so it is
// no verifier of one.
#ifndef HEDDLE_GRAPH_FUNCTION_H
#define HEDDLE_GRAPH_FUNCTION_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

/// FN1: Arguments and results are ranked tensors, each dynamic size of which has a name.
/// FN2: `graph.shares` of a result is the number of an argument.
/// FN3: The function has a body of one block, which returns.
/// SY1: An argument, or an op before, binds each symbol that an op names.
mlir::LogicalResult verifyFunction(mlir::func::FuncOp function);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_FUNCTION_H
