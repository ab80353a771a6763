// RowBlocks: rules on the whole model.

#include "compiler/lower/program/RowBlocks.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// The sizes that a block of rows changes.
class BatchSizes {
public:
  explicit BatchSizes(StringRef of) : of(of) {}

  bool names(const Dim &dim) const {
    return llvm::any_of(dim.symbolNames(), [&](const std::string &name) {
      return name == of || graph::summedBy(name).has_value();
    });
  }
  /// Whether a tensor of a block is that much smaller: sizes are multiples of the rows, or sums.
  bool areOfRows(ArrayRef<Dim> dims) const {
    return llvm::all_of(dims, [&](const Dim &dim) {
      return !llvm::is_contained(dim.symbolNames(), of) ||
             graph::inRow(dim, of) * Dim::symbol(of) == dim;
    });
  }
  /// Whether an input or output has rows, each of whole bytes, or nothing of the batch at all.
  bool isApart(Value value, bool mustHaveRows) const {
    Type element = graph::storageOf(value);
    DimVector dims = graph::dimsOf(value);
    bool isPlain = !graph::listOf(value) && !graph::isBits(graph::elementOf(value)) &&
                   (element.isSignlessInteger(1) || element.getIntOrFloatBitWidth() % 8 == 0);
    bool hasRows = !dims.empty() && dims[0] == Dim::symbol(of);
    ArrayRef<Dim> others = ArrayRef<Dim>(dims).drop_front(hasRows);
    return isPlain && (hasRows || !mustHaveRows) &&
           llvm::none_of(others, [&](const Dim &dim) { return names(dim); });
  }
  /// Whether the op makes the same of a row in a block as in the batch: it does not use the size of
  /// the batch, or the index of a row, as a number.
  bool isApart(Operation *op) const {
    if (isa<graph::RunSeedOp>(op))
      return false;
    if (auto iota = dyn_cast<graph::IotaOp>(op))
      if (names(graph::dimsOf(iota.getResult())[iota.getAxis()]))
        return false;
    bool isNamed = false;
    op->getAttrDictionary().walk([&](graph::DimsAttr dims) {
      isNamed |= llvm::any_of(graph::dimsOf(dims), [&](const Dim &dim) { return names(dim); });
    });
    return !isNamed && llvm::all_of(op->getResults(), [&](Value result) {
      return !isa<RankedTensorType>(result.getType()) || areOfRows(graph::dimsOf(result));
    });
  }

private:
  std::string of;
};
} // namespace

program::RowBlocks rowBlocksOf(func::FuncOp model, RowTables &tables, const Storage &storage) {
  program::RowBlocks none = {0, 0, 0};
  int64_t kilobytes = estimate::thresholdAt(model, estimate::kRowBlock);
  if (!model->hasAttr(graph::kRowsApart) || !tables.lengths || tables.totals.empty() || !kilobytes)
    return none;
  std::string of = tables.of();
  BatchSizes sizes(of);
  auto results = cast<func::ReturnOp>(model.getBody().front().getTerminator());
  auto areApart = [&](ValueRange values, bool mustHaveRows) {
    return llvm::all_of(values, [&](Value each) { return sizes.isApart(each, mustHaveRows); });
  };
  if (tables.lengths.getPacks() || !areApart(model.getArguments(), false) ||
      !areApart(results.getOperands(), true) || results.getNumOperands() == 0)
    return none;
  bool isEachApart = true;
  model.walk([&](Operation *op) {
    isEachApart &=
        op == model || (sizes.isApart(op) && llvm::all_of(op->getResults(), [&](Value x) {
                          return !isa<RankedTensorType>(x.getType()) ||
                                 !graph::rowsOf(x.getType()).empty() || storage.isEntryKnown(x);
                        }));
  });
  if (!isEachApart)
    return none;
  // Work that is linear in the lengths, if there is such a sum.
  Dim length = graph::rowSize(tables.lengths.getSize(), of);
  Dim work = llvm::is_contained(tables.totals, length) ? length : tables.totals.front();
  auto numberOf = [&](StringRef symbol) {
    return static_cast<int32_t>(storage.inputSymbols.at(symbol.str()));
  };
  return {numberOf(of), numberOf(*graph::overRows(work, of).symbolName()), kilobytes << 10};
}

} // namespace heddle::lower
