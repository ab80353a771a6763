// Bands: a choice by one side of a diagonal gets a mask of its own, from row and column numbers, so
// that its kernel sees the diagonal and leaves out what is on the other side. The same mask is
// otherwise made once for all that read it, as that of a causal model is for all layers.
#ifndef HEDDLE_PARTITION_BANDS_H
#define HEDDLE_PARTITION_BANDS_H

#include "compiler/Prelude.h"

namespace heddle::partition {

void ownBands(mlir::func::FuncOp function);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_BANDS_H
