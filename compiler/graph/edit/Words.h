// Words: what messages say of an op: its node in the model, and its verifier's complaint.
#ifndef HEDDLE_GRAPH_EDIT_WORDS_H
#define HEDDLE_GRAPH_EDIT_WORDS_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

/// "node 'fc1' (Gemm)", or "node 'fc1'" where the location does not tell the operator.
std::string nodeText(mlir::Location location);

/// A verifier's message without the name of the op and the label of the constraint, which are ours:
/// "'graph.matmul' op M3: a row of a ..." as "a row of a ...".
std::string plainly(llvm::StringRef message);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_WORDS_H
