// Scan: recurrences along ragged rows. Each step is one of all rows, as batched products want it;
// the states of a row that is over, or that has not begun where time runs backwards, stay as they
// are. So final states are those at each row's own end. The result is padded, right up to the end
// of each row, and is cut where it is read.

#include "compiler/ragged/Converter.h"

using namespace mlir;

namespace heddle::ragged {

Value Converter::wholeOf(Value value) {
  Value whole = wholes.lookup(value);
  return whole ? whole : value;
}

Value Converter::asWhole(Value value, Operation *reader) {
  if (!isRagged(value))
    return plain(value, reader);
  if (wholes.count(value) || isa<BlockArgument>(value))
    return wholeOf(value);
  return padded(value, reader);
}

void Converter::noteWhole(Value padded, Value made) {
  ragged.insert(padded);
  wholes[padded] = made;
  replaced.insert(made);
}

bool Converter::movesWhole(Operation *op) {
  if (llvm::none_of(op->getOperands(), [&](Value x) { return wholes.count(x); }))
    return false;
  SmallVector<Value> values(op->getResults());
  llvm::copy_if(op->getOperands(), std::back_inserter(values),
                [&](Value x) { return isRagged(x); });
  return keepsDimension(op, values, Dim::symbol(names.of)) &&
         keepsDimension(op, values, Dim::symbol(names.size));
}

void Converter::cloneWhole(Operation *op) {
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value whole = asWhole(operand, op);
    if (!whole)
      return;
    mapping.map(operand, whole);
  }
  Operation *copy = builder.clone(*op, mapping);
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
    noteWhole(from, to);
  superseded.insert(op);
}

/// Whether the tensors with these numbers are all, or none, of so many.
static std::optional<bool> areAll(ArrayRef<int64_t> numbers, size_t count) {
  if (numbers.empty())
    return false;
  return numbers.size() == count ? std::optional(true) : std::nullopt;
}

std::string Converter::whyNoScan(graph::ScanOp op) {
  int64_t states = op.getStateCount();
  Dim of = Dim::symbol(names.of), size = Dim::symbol(names.size);
  Block &body = op.getBody().front();
  for (auto [i, value] : llvm::enumerate(op.getInputs())) {
    DimVector dims = dimsOf(value);
    bool isState = static_cast<int64_t>(i) < states;
    if (isState && (names.hasSize(dims) || llvm::count(dims, of) != 1))
      return "of a state that is not one of each row";
    if (!isState && (dims[0] != size || llvm::count(dims, of) != 1))
      return "along another size than that of the rows";
  }
  auto reversed = areAll(op.getReverseInputs(), op.getInputs().size() - states);
  if (!reversed || reversed != areAll(op.getReverseOutputs(), op.getResults().size() - states))
    return "in both directions at once";
  for (Operation &each : body) {
    bool isOfBatch = isa<graph::IotaOp, graph::SizesOp>(each) && !ragged::keepsPrefix(&each, names);
    for (Value operand : each.getOperands())
      if (names.hasSize(dimsOf(operand)) ||
          (operand.getParentBlock() != &body && !keepsPrefix(operand)))
        return "whose steps depend on the size of the padded batch";
    bool isApart = each.hasTrait<OpTrait::IsTerminator>() || keepsRowsApart(&each, names);
    if (each.getNumRegions() > 0 || isOfBatch || !isApart)
      return "whose steps mix rows";
  }
  return "";
}

void Converter::convertScan(graph::ScanOp op) {
  if (std::string why = whyNoScan(op); !why.empty())
    return refuse(op, "a recurrence " + why);
  Build build(builder, op);
  const auto states = static_cast<int64_t>(op.getStateCount());
  SmallVector<Value> inputs;
  for (Value input : op.getInputs()) {
    inputs.push_back(asWhole(input, op));
    if (!inputs.back())
      return;
  }
  DimVector steps = {Dim::symbol(names.size), Dim::symbol(names.of)};
  Value lengthsOfAll = build.broadcast(lengths.getLengths(), steps);
  inputs.push_back(build.compare<graph::LessOp>(build.iota(steps, 0), lengthsOfAll));
  SmallVector<int64_t> reversed(op.getReverseInputs());
  if (!reversed.empty())
    reversed.push_back(reversed.size());
  auto scan = builder.create<graph::ScanOp>(op.getLoc(), op.getResultTypes(), inputs,
                                            op.getStateCount(), reversed, op.getReverseOutputs());
  IRMapping mapping;
  op.getBody().cloneInto(&scan.getBody(), mapping);
  Block &body = scan.getBody().front();
  Type flag = builder.getI1Type();
  Value isInRow = body.addArgument(graph::tensorOf(op.getContext(), {Dim::symbol(names.of)}, flag),
                                   op.getLoc());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(body.getTerminator());
  for (int64_t i = 0; i < states; ++i) {
    OpOperand &next = body.getTerminator()->getOpOperand(i);
    DimVector dims = dimsOf(next.get()), flags(dims.size(), Dim(1));
    flags[llvm::find(dims, Dim::symbol(names.of)) - dims.begin()] = Dim::symbol(names.of);
    Value keeps = build.broadcast(build.reshape(isInRow, flags), dims);
    next.set(build.select(keeps, next.get(), body.getArgument(i)));
  }
  superseded.insert(op);
  for (auto [i, from, to] : llvm::enumerate(op.getResults(), scan.getResults())) {
    if (static_cast<int64_t>(i) >= states) {
      noteWhole(from, to);
      continue;
    }
    from.replaceAllUsesWith(to);
    replaced.insert(to);
  }
}

} // namespace heddle::ragged
