// Stored: the right side of a product as a constant in fewer bits.
#ifndef HEDDLE_SIMPLIFY_QUANTIZED_STORED_H
#define HEDDLE_SIMPLIFY_QUANTIZED_STORED_H

#include "compiler/graph/Graph.h"

namespace heddle::simplify {

/// The right side of the product in its stored form; null if it has none.
graph::StoredAttr storedForm(graph::MatmulOp op);
/// Makes it the right side, and erases what made the one before.
void setStored(graph::MatmulOp op, graph::StoredAttr stored);

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_QUANTIZED_STORED_H
