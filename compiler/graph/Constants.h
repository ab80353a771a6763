// Constants: numbers of constant tensors.
#ifndef HEDDLE_GRAPH_CONSTANTS_H
#define HEDDLE_GRAPH_CONSTANTS_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

/// Why constantBytes cannot read the value, as the end of a sentence; "" if it can.
std::string valueRefusal(mlir::ElementsAttr value);

/// Element `i` of bytes in the form of `constantBytes`, exactly; nullopt for a large integer.
std::optional<double> elementAt(llvm::ArrayRef<char> bytes, mlir::Type element, int64_t i);

/// The one number that every element equals, seen through ops that only move elements; nullopt
/// when there is none, or when it is an integer that a double does not hold.
std::optional<double> splatOf(mlir::Value value);

/// The numbers of a constant of f32.
std::vector<float> floatsOf(mlir::ElementsAttr value);

/// Bytes that a stored matrix is kept in: codes, those of 4 bits two a byte, scales and zeros.
int64_t storedSize(StoredAttr stored);
/// The f32 numbers that a stored matrix stands for.
std::vector<char> storedBytes(StoredAttr stored);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_CONSTANTS_H
