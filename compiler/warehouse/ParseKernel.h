// ParseKernel: the part of a card that is a kernel written by hand: its source, and its holes.
#ifndef HEDDLE_WAREHOUSE_PARSEKERNEL_H
#define HEDDLE_WAREHOUSE_PARSEKERNEL_H

#include "compiler/warehouse/Card.h"

namespace heddle::warehouse {

using Problems = std::vector<std::pair<mlir::Location, std::string>>;

/// Whether the card asks for a kernel whose source is the card itself.
bool hasOwnKernel(mlir::ModuleOp module);

/// Fills in `source`, `code`, `reductions` and the hash of a card whose @schedule has been read.
Problems readKernel(Card &card);

} // namespace heddle::warehouse

#endif // HEDDLE_WAREHOUSE_PARSEKERNEL_H
