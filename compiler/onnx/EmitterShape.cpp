// EmitterShape: broadcasting, movement, and products of unequal ranks.

#include "compiler/onnx/Agreement.h"

using namespace mlir;

namespace heddle::onnx {

/// Whether x is min(c, y) with a constant c above 1: the two go together only where they are equal.
static bool isCut(const Dim &x, const Dim &y) {
  if (x.sum().size() != 1)
    return false;
  const auto &[product, coefficient] = *x.sum().begin();
  if (coefficient != 1 || product.size() != 1 || product[0].kind != Dim::Kind::Min)
    return false;
  const Dim &left = *product[0].lhs, &right = *product[0].rhs;
  auto bound = (left == y ? right : left).constant();
  return (left == y || right == y) && bound && *bound > 1;
}

using Sizes = std::map<std::string, Dim>; // keyed by their texts

/// Adds all sizes whose minimum is `size`.
static void collectLeast(const Dim &size, Sizes &found) {
  const auto &terms = size.sum();
  if (terms.size() == 1 && terms.begin()->second == 1 && terms.begin()->first.size() == 1)
    if (const Dim::Atom &atom = terms.begin()->first[0]; atom.kind == Dim::Kind::Min) {
      collectLeast(*atom.lhs, found);
      return collectLeast(*atom.rhs, found);
    }
  found.emplace(size.str(), size);
}

static Dim largestOf(const Sizes &sizes) {
  Dim largest(0);
  for (const auto &[text, size] : sizes)
    largest = Dim::max(largest, size);
  return largest;
}

/// The sizes that `together` has made one, or this one alone.
static Sizes partsOf(const Dim &size) {
  Sizes parts;
  if (size.sum().size() == 1 && size.sum().begin()->second == 1)
    for (const Dim::Atom &atom : size.sum().begin()->first)
      if (atom.kind == Dim::Kind::Min)
        collectLeast(Dim::min(*atom.lhs, *atom.rhs), parts);
  Dim least(1);
  for (const auto &[text, part] : parts)
    least = Dim::min(least, part);
  if (parts.erase("1") && largestOf(parts) * least == size)
    return parts;
  return {{size.str(), size}};
}

/// The broadcast size: the largest, or 0 if one is 0. If its text would fill a line, just the
/// largest, and a 0 beside it is refused at run time.
static Dim together(const Dim &x, const Dim &y) {
  Sizes parts = partsOf(x);
  parts.merge(partsOf(y));
  Dim factor(1);
  for (const auto &[text, size] : parts)
    if (!(size - Dim(1)).isNeverNegative())
      factor = Dim::min(factor, size);
  if (parts.size() == 1)
    return x;
  Dim joined = largestOf(parts) * factor;
  return joined.str().size() <= 100 ? joined : Dim::max(x, y);
}

/// The broadcast sizes: either of two known only at run time may be 1, so the larger one.
DimVector TensorEmitter::broadcastDims(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  size_t rank = std::max(a.size(), b.size());
  DimVector result;
  for (size_t i = 0; i < rank; ++i) {
    Dim x = i + a.size() >= rank ? a[i + a.size() - rank] : Dim(1);
    Dim y = i + b.size() >= rank ? b[i + b.size() - rank] : Dim(1);
    if (x.constant() && y.constant() && x != y && !x.isConstant(1) && !y.isConstant(1))
      refuse("shapes " + textOf(a) + " and " + textOf(b) + " cannot be broadcast together");
    if (x.isConstant(1) || y.isConstant(1))
      result.push_back(x.isConstant(1) ? y : x);
    else if (x.constant() || y.constant())
      result.push_back(x.constant() ? x : y);
    else if (isCut(x, y) || isCut(y, x))
      result.push_back(isCut(x, y) ? y : x);
    else
      result.push_back(together(x, y));
  }
  return result;
}

void TensorEmitter::broadcastTogether(ArrayRef<Value *> values) {
  DimVector dims;
  for (Value *value : values)
    dims = broadcastDims(dims, dimsOf(*value));
  for (Value *value : values)
    *value = broadcast(*value, dims);
}

Value TensorEmitter::broadcast(Value x, ArrayRef<Dim> dims) {
  Type type = tensor(dims, elementOf(x));
  return x.getType() == type ? x : typed<graph::BroadcastOp>(type, x);
}

Value TensorEmitter::reshape(Value x, ArrayRef<Dim> dims) {
  Type type = tensor(dims, elementOf(x));
  return x.getType() == type ? x : typed<graph::ReshapeOp>(type, x);
}

Value TensorEmitter::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, rankOf(x))))
    return x;
  return infer<graph::TransposeOp>(x, {list("permutation", permutation)});
}

Value TensorEmitter::unsqueeze(Value x, ArrayRef<int64_t> axes) {
  DimVector from = dimsOf(x), to;
  size_t next = 0;
  for (size_t i = 0; i < from.size() + axes.size(); ++i) {
    bool isNew = llvm::is_contained(axes, (int64_t)i);
    if (!isNew && next == from.size())
      refuse("an axis is given twice");
    to.push_back(isNew ? Dim(1) : from[next++]);
  }
  return reshape(x, to);
}

Value TensorEmitter::squeeze(Value x, ArrayRef<int64_t> axes) {
  DimVector from = dimsOf(x), to;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!llvm::is_contained(axes, (int64_t)i))
      to.push_back(from[i]);
    else if (from[i].constant() && !from[i].isConstant(1))
      refuse("dimension " + Twine(i) + " of " + textOf(from) + " is not 1 and cannot be squeezed");
  }
  return reshape(x, to);
}

Value TensorEmitter::concat(ValueRange xs, int64_t axis) {
  return xs.size() == 1 ? xs.front() : infer<graph::ConcatOp>(xs, {integer("axis", axis)});
}

Value TensorEmitter::slice(Value x, ArrayRef<Dim> starts, ArrayRef<Dim> sizes,
                           ArrayRef<int64_t> steps) {
  bool isWhole = llvm::all_of(starts, [](const Dim &dim) { return dim.isConstant(0); }) &&
                 llvm::all_of(steps, [](int64_t step) { return step == 1; }) &&
                 DimVector(sizes) == dimsOf(x);
  if (isWhole)
    return x;
  return typed<graph::SliceOp>(tensor(sizes, elementOf(x)), x,
                               {dims("starts", starts), list("steps", steps)});
}

Value TensorEmitter::sliceAlong(Value x, int64_t axis, const Dim &start, const Dim &size) {
  DimVector starts(rankOf(x), Dim(0)), sizes = dimsOf(x);
  starts[axis] = start;
  sizes[axis] = size;
  return slice(x, starts, sizes, Ints(rankOf(x), 1));
}

Value TensorEmitter::gather(Value x, Value indices, int64_t axis) {
  return infer<graph::GatherOp>({x, indices}, {integer("axis", axis)});
}

Value TensorEmitter::pad(Value x, Value value, ArrayRef<Dim> low, ArrayRef<Dim> high,
                         StringRef mode) {
  auto isZero = [](const Dim &dim) { return dim.isConstant(0); };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return x;
  return infer<graph::PadOp>({x, value},
                             {dims("low", low), dims("high", high), text("mode", mode)});
}

Value TensorEmitter::alongAxis(Value vector, int64_t axis, int64_t rank) {
  if (rankOf(vector) == 0)
    return vector;
  Dim count = graph::elementCount(dimsOf(vector));
  if (axis < 0 || axis >= rank) {
    if (count.constant().value_or(1) != 1)
      refuse("a vector of " + count.str() + " elements lies along axis " + Twine(axis) +
             ", but the rank is " + Twine(rank));
    return reshape(vector, {}); // a dynamic size is checked to be 1 at run time
  }
  DimVector dims(rank - axis, Dim(1));
  dims[0] = count;
  return reshape(vector, dims);
}

Dim agreed(Emitter &e, const Dim &x, const Dim &y, StringRef message) {
  auto first = x.constant(), second = y.constant();
  if (x == y)
    return x;
  if (first && second) {
    std::string text = message.str();
    for (int64_t number : {*first, *second})
      if (size_t place = text.find("%lld"); place != std::string::npos)
        text.replace(place, 4, std::to_string(number));
    refuse(text);
  }
  e.requireNotNegative(e.sizes({x - y, y - x}), message, e.sizes({x, y}));
  return first ? x : y;
}

void requireAtMost(Emitter &e, const Dim &x, const Dim &y, StringRef message) {
  e.requireNotNegative(e.sizes(y - x), message, e.sizes({x, y}));
}

Value Emitter::matmul(Value a, Value b, Type result) {
  if (rankOf(a) == 0 || rankOf(b) == 0)
    refuse("an operand of a matrix product is a scalar");
  requireOneElement(a, b);
  bool isRow = rankOf(a) == 1, isColumn = rankOf(b) == 1;
  if (isRow)
    a = unsqueeze(a, {0});
  if (isColumn)
    b = unsqueeze(b, {1});
  int64_t rank = std::max(rankOf(a), rankOf(b));
  auto raise = [&](Value x) {
    return unsqueeze(x, llvm::to_vector(llvm::seq<int64_t>(0, rank - rankOf(x))));
  };
  a = raise(a);
  b = raise(b);
  DimVector left = dimsOf(a), right = dimsOf(b);
  // A size that one side leaves dynamic is taken from the other.
  Dim &depth = left[rank - 1], &other = right[rank - 2];
  if (depth.constant() || other.constant()) {
    depth = other = agreed(*this, depth, other,
                           "the left operand has %lld columns, but the right one has %lld rows");
    a = reshape(a, left);
    b = reshape(b, right);
  }
  DimVector dims =
      broadcastDims(ArrayRef<Dim>(left).drop_back(2), ArrayRef<Dim>(right).drop_back(2));
  dims.push_back(left[rank - 2]);
  dims.push_back(right[rank - 1]);
  Value product = typed<graph::MatmulOp>(tensor(dims, result ? result : elementOf(a)), {a, b});
  Ints dropped;
  if (isRow)
    dropped.push_back(rank - 2);
  if (isColumn)
    dropped.push_back(rank - 1);
  return squeeze(product, dropped);
}

} // namespace heddle::onnx
