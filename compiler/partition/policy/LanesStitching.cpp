// LanesStitching: when a product and the reductions over its rows are better two kernels.

#include "compiler/partition/policy/Lanes.h"

#include <llvm/Support/MathExtras.h>

namespace heddle::partition {

using llvm::Twine;

std::string whyApartOnLanes(const estimate::Stitching &kernel, const program::Machine &machine) {
  if (kernel.tileRows > kernel.rowsInL2)
    return ("a tile of its rows takes " + Twine(kernel.tileRows * kernel.rowBytes) +
            " bytes, and " + Twine(kernel.rowsInL2 * kernel.rowBytes) + " stay in the L2")
        .str();
  if (machine.workers > 1 && kernel.tiles < 2 * machine.workers)
    return ("it has " + Twine(kernel.tiles) + " tiles of rows for " + Twine(machine.workers) +
            " workers; apart, they share the columns of the product")
        .str();
  // Apart, the right operand is read once and the result is read back. In one, each worker walks
  // the whole operand, and once more for all rows that fit if the operand does not stay in the L2.
  int64_t walks = machine.workers;
  if (kernel.operandBytes > machine.l2Bytes && kernel.rows > kernel.rowsInL2)
    walks = std::max<int64_t>(
        walks, llvm::divideCeil(kernel.rows, llvm::alignDown(kernel.rowsInL2, kernel.tileRows)));
  int64_t more = (walks - 1) * kernel.operandBytes, less = 2 * kernel.rows * kernel.rowBytes;
  if (more <= less)
    return "";
  return ("its right operand would be read " + Twine(walks) + " times, " + Twine(more) +
          " bytes more, to move " + Twine(less) + " bytes less between the two")
      .str();
}

} // namespace heddle::partition
