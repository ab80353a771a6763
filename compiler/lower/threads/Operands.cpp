// Operands: see Operands.h.

#include "compiler/lower/threads/Operands.h"

#include "compiler/graph/Constants.h"
#include "compiler/lower/contraction/Integers.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

/// Whether neighbours along the axis are such in memory, of what transposes in the group are made
/// from.
static bool isLastInMemory(Value tensor, int64_t axis) {
  int64_t last = graph::rankOf(tensor) - 1;
  auto transpose = tensor.getDefiningOp<graph::TransposeOp>();
  return (transpose ? transpose.getPermutation()[axis] : axis) == last;
}

ProductOperands::ProductOperands(KernelBuilder &kernel, const mechanism::Product &product)
    : columns(product.partColumns), kernel(kernel), root(product.root) {
  if (auto matmul = dyn_cast<graph::MatmulOp>(root))
    readMatmul(matmul);
  else
    readConv(cast<graph::ConvOp>(root));
  matrices = graph::elementCount(outer);
  rows = graph::elementCount(inner);
  taps = graph::elementCount(window);
}

void ProductOperands::readMatmul(graph::MatmulOp op) {
  DimVector b = graph::dimsOf(op.getB()), c = graph::dimsOf(op.getResult());
  int64_t rank = c.size();
  length = graph::dimsOf(op.getA()).back();
  // From the first dimension on that no later one of the right operand needs, rows are of one
  // matrix.
  int64_t shared = rank - 2;
  while (shared > 0 && b[shared - 1].isConstant(1))
    --shared;
  outer.assign(c.begin(), c.begin() + shared);
  inner.assign(c.begin() + shared, c.end() - 1);
  isLeftAlongDepth = isLastInMemory(op.getA(), rank - 1);
  isRightAlongDepth = isLastInMemory(op.getB(), rank - 2);
}

void ProductOperands::readConv(graph::ConvOp op) {
  DimVector w = graph::dimsOf(op.getW()), y = graph::dimsOf(op.getResult());
  length = w[1];
  window.assign(w.begin() + 2, w.end());
  outer.assign(1, Dim(op.getGroups()));
  inner.assign(y.begin(), y.end() - 1);
  isLeftAlongDepth = isRightAlongDepth = true;
}

Type ProductOperands::leftType() const { return graph::storageOf(root->getOperand(0)); }
Type ProductOperands::rightType() const { return graph::storageOf(root->getOperand(1)); }

Indices ProductOperands::rowOf(Elements &e, Value row) const { return indicesOf(e, inner, row); }

Indices ProductOperands::placeOf(Elements &e, Value matrix, ArrayRef<Index> row) const {
  Code &code = e.code();
  Indices place;
  if (isa<graph::MatmulOp>(root))
    place = indicesOf(e, outer, matrix);
  llvm::append_range(place, row);
  bool isGrouped = isa<graph::ConvOp>(root) && !matrices.isConstant(1);
  place.push_back(e.uniform(isGrouped ? code.mul(matrix, kernel.dim(columns)) : code.number(0)));
  return place;
}

Indices ProductOperands::tapOf(Elements &e, Value tap) const { return indicesOf(e, window, tap); }

/// Indices of a matmul's operand in the dimensions before its matrices.
static Indices batchOf(Elements &e, Value operand, Value result, ArrayRef<Index> place) {
  DimVector from = graph::dimsOf(operand), to = graph::dimsOf(result);
  Indices batch;
  for (size_t i = 0; i + 2 < from.size(); ++i)
    batch.push_back(broadcastIndex(e, place[i], from[i], to[i]));
  return batch;
}

/// The place of an element of the left operand. It may lie in an image's border: `isInside` says
/// whether it does not, or is null.
Indices ProductOperands::leftPlace(Elements &e, ArrayRef<Index> place, ArrayRef<Index> tap, Value k,
                                   Value &isInside) const {
  Code &code = e.code();
  Value tensor = root->getOperand(0);
  if (isa<graph::MatmulOp>(root)) {
    Indices at = batchOf(e, tensor, root->getResult(0), place);
    at.append({place[place.size() - 2], e.uniform(k)});
    return at;
  }
  auto conv = cast<graph::ConvOp>(root);
  Values sizes = e.sizesOf(tensor);
  Indices at{place.front()};
  for (auto [d, index] : llvm::enumerate(tap)) {
    Value reach = code.mul(index.base, code.number(conv.getDilations()[d]));
    Value source = code.add(code.mul(place[d + 1].base, code.number(conv.getStrides()[d])),
                            code.sub(reach, code.number(conv.getLow()[d])));
    if (conv.getLow()[d] || conv.getHigh()[d])
      isInside = code.both(isInside, inside(e, e.uniform(source), sizes[d + 1]));
    at.push_back(e.uniform(source));
  }
  Value group =
      matrices.isConstant(1) ? code.number(0) : code.div(place.back().base, kernel.dim(columns));
  at.push_back(e.uniform(code.add(code.mul(group, kernel.dim(length)), k)));
  return at;
}

Value ProductOperands::left(Elements &e, ArrayRef<Index> place, ArrayRef<Index> tap,
                            Value k) const {
  Value tensor = root->getOperand(0), isInside;
  Indices at = leftPlace(e, place, tap, k, isInside);
  if (!isInside)
    return e.at(tensor, at);
  Type element = graph::storageOf(tensor);
  return guarded(
      e, isInside, element, [&] { return e.at(tensor, at); },
      [&] { return e.code().constantOf(program::computeType(element), 0); });
}

Value ProductOperands::shortLeft(Block *group, int64_t together, Type element) const {
  Value tensor = mechanism::storedLeft(root->getOperand(0));
  Operation *made = tensor.getDefiningOp();
  bool isInMemory = !made || (made->getBlock() != group && !isa<graph::ConstantOp>(made));
  bool isWhole = isLeftAlongDepth && length.mod(Dim(together)).isConstant(0);
  return isInMemory && isWhole && graph::storageOf(tensor) == element ? tensor : Value();
}

std::pair<Value, Value> ProductOperands::shortLeftAt(Elements &e, Value tensor,
                                                     ArrayRef<Index> place, ArrayRef<Index> tap,
                                                     Value k) const {
  Code &code = e.code();
  Value isInside;
  Indices at = leftPlace(e, place, tap, k, isInside);
  Value index = e.linear(e.sizesOf(tensor), at).base;
  return {code.at(kernel.pointer(tensor), graph::storageOf(tensor), index), isInside};
}

bool ProductOperands::hasConstantRight(Type element) const {
  auto constant = root->getOperand(1).getDefiningOp<graph::ConstantOp>();
  DimVector b = graph::dimsOf(root->getOperand(1));
  bool isOfEachMatrix =
      isa<graph::ConvOp>(root) || graph::elementCount(ArrayRef(b).drop_back(2)) == matrices;
  bool isOfType =
      rightType() == element || (rightType().isF32() && element.getIntOrFloatBitWidth() == 16);
  return constant && isOfType && matrices.constant() && length.constant() && isOfEachMatrix;
}

/// Copies a number, or rounds one of f32 to `element`.
static void copyNumber(char *target, const char *from, Type element, int64_t fromSize) {
  int64_t size = graph::bytesOf(element);
  if (size == fromSize) {
    std::memcpy(target, from, size);
    return;
  }
  float number;
  std::memcpy(&number, from, sizeof number);
  auto half = static_cast<_Float16>(number);
  auto brief = static_cast<uint16_t>(shortBitsOf(number));
  std::memcpy(target, element.isF16() ? static_cast<void *>(&half) : &brief, size);
}

std::vector<char> ProductOperands::constantRight(ArrayRef<int64_t> columnOf, int64_t depth,
                                                 Type element) const {
  auto constant = root->getOperand(1).getDefiningOp<graph::ConstantOp>();
  std::vector<char> storage;
  ArrayRef<char> bytes = graph::constantBytes(constant.getValue(), storage);
  int64_t count = *matrices.constant(), steps = *length.constant(), positions = *taps.constant(),
          filled = llvm::alignTo(steps, depth);
  int64_t size = graph::bytesOf(element), fromSize = graph::bytesOf(rightType());
  DimVector w = graph::dimsOf(root->getOperand(1));
  bool isMatmul = isa<graph::MatmulOp>(root);
  int64_t all = *(isMatmul ? w.back() : columns).constant();
  std::vector<char> packed(count * columnOf.size() * positions * filled * size, 0);
  char *target = packed.data();
  for (int64_t matrix = 0; matrix < count; ++matrix)
    for (int64_t column : columnOf)
      for (int64_t tap = 0; tap < positions; ++tap, target += filled * size)
        for (int64_t k = 0; column >= 0 && k < steps; ++k) {
          int64_t at = isMatmul ? (matrix * steps + k) * all + column
                                : ((matrix * all + column) * steps + k) * positions + tap;
          copyNumber(target + k * size, bytes.data() + at * fromSize, element, fromSize);
        }
  return packed;
}

Value ProductOperands::right(Elements &e, ArrayRef<Index> place, ArrayRef<Index> tap, Value k,
                             Value column) const {
  Code &code = e.code();
  Value tensor = root->getOperand(1);
  Indices at;
  if (isa<graph::MatmulOp>(root)) {
    at = batchOf(e, tensor, root->getResult(0), place);
    at.append({e.uniform(k), e.uniform(column)});
  } else {
    at.append({e.uniform(code.add(place.back().base, column)), e.uniform(k)});
    llvm::append_range(at, tap);
  }
  return e.at(tensor, at);
}

} // namespace heddle::lower
