// Forms: a table of ops by their use of two dimensions.

#include "compiler/ragged/Forms.h"

#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle::ragged {

DimVector rowDims(ArrayRef<Dim> dims, const Names &names) {
  Dim size = graph::rowSize(names.size, names.of);
  return llvm::map_to_vector<6>(dims, [&](const Dim &dim) {
    return dim.substitute(
        [&](StringRef name) { return name == names.size ? std::optional(size) : std::nullopt; });
  });
}

DimVector tokenDims(ArrayRef<Dim> dims, const Names &names) {
  Dim total = graph::overRows(graph::rowSize(names.size, names.of), names.of);
  return llvm::map_to_vector<6>(dims, [&](const Dim &dim) {
    return dim.substitute([&](StringRef name) -> std::optional<Dim> {
      if (name == names.size)
        return total;
      return name == names.of ? std::optional(Dim(1)) : std::nullopt;
    });
  });
}

std::optional<Tokens> tokensOf(ArrayRef<Dim> dims, const Names &names) {
  Tokens tokens{-1, -1};
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (names.isOf(dim)) {
      if (tokens.of >= 0)
        return std::nullopt;
      tokens.of = i;
    }
    if (names.isSize(dim)) {
      if (tokens.size >= 0)
        return std::nullopt;
      tokens.size = i;
    }
  }
  if (tokens.of < 0 || tokens.size < 0 || std::abs(tokens.of - tokens.size) > 1)
    return std::nullopt;
  int64_t first = std::min(tokens.of, tokens.size), last = std::max(tokens.of, tokens.size);
  if (!llvm::all_of(dims.take_front(first), [](const Dim &dim) { return dim.isConstant(1); }))
    return std::nullopt;
  Dim of = Dim::symbol(names.of), size = Dim::symbol(names.size);
  auto isMultiple = [](const Dim &dim, const Dim &unit) {
    auto factor = dim.floorDiv(unit).constant();
    return factor && dim == unit * Dim(*factor);
  };
  if (first == last)
    return isMultiple(dims[first], of * size) ? std::optional(tokens) : std::nullopt;
  Dim outer = tokens.isTimeMajor() ? size : of, inner = tokens.isTimeMajor() ? of : size;
  return dims[first] == outer && isMultiple(dims[last], inner) ? std::optional(tokens)
                                                               : std::nullopt;
}

namespace {
/// Use of one dimension of an op's operands: whether it is an index of the results too, each of
/// which needs elements of the same index alone.
class Along {
public:
  Along(Operation *op, llvm::function_ref<bool(int64_t)> isIt) : op(op), isIt(isIt) {}

  bool isFree() {
    if (graph::isElementwise(op))
      return true;
    return llvm::TypeSwitch<Operation *, bool>(op)
        .Case<graph::SliceOp, graph::PadOp, graph::ConcatOp, graph::CumsumOp, graph::TopkOp,
              graph::GatherElementsOp, graph::ArgMaxOp, graph::ArgMinOp>(
            [&](auto each) { return isUntouched(each); })
        .Case<graph::BroadcastOp, graph::MatmulOp>([](auto) { return true; })
        .Default([&](Operation *other) {
          return other->hasTrait<graph::Reduction>() &&
                 llvm::none_of(graph::reducedAxes(other), isIt);
        });
  }

private:
  bool isUntouched(graph::SliceOp slice) {
    DimVector starts = graph::dimsOf(slice.getStarts()), from = graph::dimsOf(slice.getX()),
              to = graph::dimsOf(slice.getResult());
    for (size_t i = 0; i < starts.size(); ++i)
      if (isIt(i) && !(starts[i].isConstant(0) && slice.getSteps()[i] == 1 && from[i] == to[i]))
        return false;
    return true;
  }
  bool isUntouched(graph::PadOp pad) {
    DimVector low = graph::dimsOf(pad.getLow()), high = graph::dimsOf(pad.getHigh());
    for (size_t i = 0; i < low.size(); ++i)
      if (isIt(i) && !(low[i].isConstant(0) && high[i].isConstant(0)))
        return false;
    return true;
  }
  template <typename Op> bool isUntouched(Op each) { return !isIt(each.getAxis()); }

  Operation *op;
  llvm::function_ref<bool(int64_t)> isIt;
};
} // namespace

static bool isPlain(Value value, const Names &names) {
  DimVector dims = graph::dimsOf(value);
  return !names.hasOf(dims) && !names.hasSize(dims);
}

bool isOfTokens(Operation *op, const Names &names) {
  std::optional<Tokens> tokens;
  auto note = [&](Value value) {
    auto found = tokensOf(graph::dimsOf(value), names);
    if (found)
      tokens = found;
    return found.has_value();
  };
  for (Value operand : op->getOperands())
    if (names.hasBoth(graph::dimsOf(operand)) && !note(operand))
      return false;
  if (!tokens)
    return false;
  Tokens ofOperands = *tokens;
  for (Value result : op->getResults())
    if (!note(result))
      return false;
  for (Value operand : op->getOperands())
    if (DimVector dims = graph::dimsOf(operand);
        !names.hasBoth(dims) && (names.hasOf(dims) || names.hasSize(dims)))
      return false;
  if (isa<graph::TransposeOp>(op))
    return true;
  if (isa<graph::ReshapeOp>(op)) // the caller holds their orders against each other
    return true;
  if (auto gather = dyn_cast<graph::GatherOp>(op)) {
    int64_t axis = gather.getAxis();
    if (isPlain(gather.getX(), names))
      return true;
    return isPlain(gather.getIndices(), names) && axis != ofOperands.of && axis != ofOperands.size;
  }
  if (auto matmul = dyn_cast<graph::MatmulOp>(op)) {
    int64_t last = graph::rankOf(matmul.getA()) - 1;
    return isPlain(matmul.getB(), names) && ofOperands.of != last && ofOperands.size != last;
  }
  if (auto broadcast = dyn_cast<graph::BroadcastOp>(op))
    return graph::rankOf(broadcast.getX()) == graph::rankOf(broadcast.getResult()) &&
           tokens->of == ofOperands.of && tokens->size == ofOperands.size;
  auto isIt = [&](int64_t axis) { return axis == ofOperands.of || axis == ofOperands.size; };
  return Along(op, isIt).isFree();
}

/// Whether rows of each of these tensors that has any lie one after the other.
static bool haveRows(ValueRange values, const Names &names) {
  return llvm::all_of(values, [&](Value value) {
    DimVector dims = graph::dimsOf(value);
    return !names.hasOf(dims) || graph::hasRows(dims, names.of);
  });
}

/// Whether each row of the results follows from the same row of the operands, all with dimension 0
/// as their rows.
static bool separatesRows(Operation *op, const Names &names) {
  if (!haveRows(op->getOperands(), names) || !haveRows(op->getResults(), names) ||
      !llvm::all_of(op->getResults(),
                    [&](Value result) { return names.hasOf(graph::dimsOf(result)); }))
    return false;
  auto hasOf = [&](Value value) { return names.hasOf(graph::dimsOf(value)); };
  if (auto transpose = dyn_cast<graph::TransposeOp>(op))
    return transpose.getPermutation()[0] == 0;
  if (auto gather = dyn_cast<graph::GatherOp>(op))
    return hasOf(gather.getX()) ? gather.getAxis() > 0 && isPlain(gather.getIndices(), names)
                                : isPlain(gather.getX(), names);
  if (auto gather = dyn_cast<graph::GatherNdOp>(op))
    return gather.getBatchDims() > 0 || isPlain(gather.getX(), names);
  if (auto broadcast = dyn_cast<graph::BroadcastOp>(op))
    return !hasOf(broadcast.getX()) ||
           graph::rankOf(broadcast.getX()) == graph::rankOf(broadcast.getResult());
  if (auto matmul = dyn_cast<graph::MatmulOp>(op))
    return graph::rankOf(matmul.getA()) > 2 || !hasOf(matmul.getB());
  if (auto conv = dyn_cast<graph::ConvOp>(op))
    return isPlain(conv.getW(), names);
  if (auto conv = dyn_cast<graph::ConvTransposeOp>(op))
    return isPlain(conv.getW(), names);
  if (isa<graph::ReshapeOp, graph::PoolOp>(op))
    return true;
  return Along(op, [](int64_t axis) { return axis == 0; }).isFree();
}

bool isOfRows(Operation *op, const Names &names) {
  return !op->hasTrait<graph::Hosted>() &&
         separatesRows(op, names); // a service takes whole tensors
}

bool keepsDimension(Operation *op, ArrayRef<Value> values, const Dim &size) {
  if (!llvm::all_of(values,
                    [&](Value value) { return llvm::count(graph::dimsOf(value), size) == 1; }))
    return false;
  auto placeIn = [&](Value value) { // elements that one index of what is before goes over
    DimVector dims = graph::dimsOf(value);
    return graph::elementCount(ArrayRef(dims.begin(), llvm::find(dims, size)));
  };
  auto isIt = [&](int64_t axis) { return graph::dimsOf(op->getResult(0))[axis] == size; };
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
    return placeIn(reshape.getX()) == placeIn(reshape.getResult());
  if (isa<graph::ConcatOp, graph::SliceOp>(op))
    return Along(op, isIt).isFree();
  return isa<graph::TransposeOp>(op) || graph::isElementwise(op);
}

bool keepsRowsApart(Operation *op, const Names &names) {
  auto hasOf = [&](Value value) { return names.hasOf(graph::dimsOf(value)); };
  SmallVector<Value> values(op->getResults());
  llvm::copy_if(op->getOperands(), std::back_inserter(values), hasOf);
  return llvm::none_of(op->getOperands(), hasOf) ||
         keepsDimension(op, values, Dim::symbol(names.of)) || separatesRows(op, names);
}

bool keepsPrefix(Operation *op, const Names &names) {
  auto isAlongSize = [&](int64_t axis) {
    return names.isSize(graph::dimsOf(op->getOperand(0))[axis]);
  };
  if (isa<graph::ConstantOp, graph::BroadcastOp>(op) || graph::isElementwise(op))
    return true;
  if (auto iota = dyn_cast<graph::IotaOp>(op))
    return !names.isOf(graph::dimsOf(iota.getResult())[iota.getAxis()]);
  if (auto sizes = dyn_cast<graph::SizesOp>(op)) {
    DimVector values = graph::dimsOf(sizes.getValues());
    return !names.hasOf(values) && !names.hasSize(values);
  }
  // Results without either size, of operands without, are the same for every length.
  if (llvm::all_of(op->getOperands(), [&](Value value) { return isPlain(value, names); }) &&
      llvm::all_of(op->getResults(), [&](Value value) { return isPlain(value, names); }))
    return op->getNumRegions() == 0;
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
    return reshape.keepsIndices();
  if (isa<graph::TransposeOp>(op))
    return true;
  if (auto slice = dyn_cast<graph::SliceOp>(op)) {
    DimVector starts = graph::dimsOf(slice.getStarts());
    for (auto [start, step] : llvm::zip(starts, slice.getSteps()))
      if (names.isSize(start) || names.isOf(start) || step < 0)
        return false;
    return true;
  }
  if (auto concat = dyn_cast<graph::ConcatOp>(op))
    return !isAlongSize(concat.getAxis());
  if (auto gather = dyn_cast<graph::GatherOp>(op))
    return !isAlongSize(gather.getAxis());
  if (auto gather = dyn_cast<graph::GatherElementsOp>(op))
    return !isAlongSize(gather.getAxis());
  if (auto sum = dyn_cast<graph::CumsumOp>(op))
    return !sum.getReverse() || !isAlongSize(sum.getAxis());
  if (op->hasTrait<graph::Reduction>())
    return llvm::none_of(graph::reducedAxes(op), isAlongSize);
  return false;
}

} // namespace heddle::ragged
