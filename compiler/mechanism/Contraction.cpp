// Contraction: a product in register tiles, with the elementwise ops after it.

#include "compiler/mechanism/Checks.h"
#include "compiler/mechanism/Product.h"

using namespace mlir;

namespace heddle::mechanism {

static Fit fitsContraction(const Mechanism &, Ops ops, std::string &why) {
  if (llvm::none_of(ops, graph::isContraction))
    return checkPlainProduct(ops, why);
  return readProduct(ops, resultsOf(ops), why) ? Fit::Full : Fit::No;
}

bool isReadInParts(Ops ops) {
  std::string why;
  if (llvm::none_of(ops, graph::isContraction))
    return false;
  auto product = readProduct(ops, resultsOf(ops), why);
  return product && product->parts > 1;
}

static constexpr StringLiteral kKnobs[] = {"m", "n", "panels", "tiles"},
                               kThreadKnobs[] = {"m", "n"};
const Mechanism kContraction = {.name = "contraction",
                                .check = fitsContraction,
                                .knobs = kKnobs,
                                .storesElements = true,
                                .takesShort = true,
                                .takesMatrices = true,
                                .takesBlocks = true,
                                .takesThreads = true,
                                .threadKnobs = kThreadKnobs,
                                .takesParts = true,
                                .isSplittable = false};

} // namespace heddle::mechanism
