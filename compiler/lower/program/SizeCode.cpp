// SizeCode: sizes known only at run time, as code that computes them.

#include "compiler/lower/program/SizeCode.h"

using namespace mlir;

namespace heddle::lower {

Value SizeCode::symbolValue(StringRef name) {
  auto found = symbols.find(name.str());
  // A symbol that nothing binds can only be the size of a tensor that is never made.
  return found == symbols.end() ? code.number(0) : found->second;
}

/// Whether a value that was written before can be read at the place of writing now: it is in this
/// block, or in one around it.
static bool isVisible(Value value, OpBuilder &builder) {
  for (Block *block = builder.getInsertionBlock(); block;
       block = block->getParentOp() ? block->getParentOp()->getBlock() : nullptr)
    if (value.getParentBlock() == block)
      return true;
  return false;
}

SmallVector<Value> SizeCode::symbolsOf(const Dim &dim) {
  SmallVector<std::string> names;
  dim.collectSymbols(names);
  return SmallVector<Value>(
      llvm::map_range(names, [&](const std::string &name) { return symbolValue(name); }));
}

bool SizeCode::isReadable(const Written &known, ArrayRef<Value> symbols, bool isTested) {
  return known.value && ArrayRef<Value>(known.symbols) == symbols &&
         isVisible(known.value, code.b) && (!isTested || known.isTested);
}

/// A sum that is another one and at most half as many terms is written as that: the places of n
/// operands in a concat would else have n^2 / 2 terms.
Value SizeCode::write(const Dim &dim, Value *overflow) {
  SizeArithmetic arithmetic{code, overflow};
  constexpr size_t few = 2, kept = 4;
  bool isLong = dim.sum().size() > few;
  Value before, value;
  Dim rest;
  for (const Dim &sum : lastSums) {
    auto known = written.find(sum.str());
    rest = dim - sum;
    if (isLong && rest.sum().size() <= std::max(few, dim.sum().size() / 2) && !rest.isTooLarge() &&
        known != written.end() && isReadable(known->second, symbolsOf(sum), overflow != nullptr)) {
      before = of(sum, overflow);
      break;
    }
  }
  // After the loop: what is written for `rest` may be among the last sums itself.
  if (before)
    value = arithmetic.add(before, of(rest, overflow));
  if (!value) {
    auto part = [&](const Dim &operand) { return of(operand, overflow); };
    value = arithmetic.emit(dim, [&](StringRef name) { return symbolValue(name); }, part);
  }
  if (isLong) {
    lastSums.push_front(dim);
    lastSums.resize(std::min(lastSums.size(), kept));
  }
  return value;
}

/// A size is written once where all that follows can read it: sizes that are made of sizes would
/// else be written again at each use, and so would the tests of their overflow.
Value SizeCode::of(const Dim &dim, Value *overflow) {
  if (dim.constant() || dim.symbolName())
    return SizeArithmetic{code, overflow}.emit(dim,
                                               [&](StringRef name) { return symbolValue(name); });
  SmallVector<Value> values = symbolsOf(dim);
  Written &known = written[dim.str()];
  if (!isReadable(known, values, overflow != nullptr)) {
    Value found, value = write(dim, overflow ? &found : nullptr);
    known = {value, found, std::move(values), overflow != nullptr};
  }
  if (overflow && known.overflow)
    SizeArithmetic{code, overflow}.noteOverflow(known.overflow);
  return known.value;
}

} // namespace heddle::lower
