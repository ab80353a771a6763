// Stitching: the numbers of a product and the reductions over its rows in one kernel, by which a
// policy weighs that kernel against two.
#ifndef HEDDLE_ESTIMATE_STITCHING_H
#define HEDDLE_ESTIMATE_STITCHING_H

#include <cstdint>

namespace heddle::estimate {

/// Typical sizes stand in for those known only at run time.
struct Stitching {
  int64_t tileRows;     // rows of a register tile
  int64_t tiles;        // tiles of rows, each of which one worker computes
  int64_t rows;         // rows of the product's result
  int64_t rowBytes;     // bytes of a row of it
  int64_t rowsInL2;     // rows that stay in the L2 between the product and the reductions
  int64_t operandBytes; // bytes of the right operand
};

} // namespace heddle::estimate

#endif // HEDDLE_ESTIMATE_STITCHING_H
