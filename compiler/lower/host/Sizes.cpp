// Sizes: sizes as code of the run, and what values bind.

#include "compiler/lower/host/Sizes.h"

using namespace mlir;

namespace heddle::lower {

Value Sizes::dim(const Dim &dim) {
  if (dim.constant() || dim.symbolName())
    return written.of(dim, nullptr);
  if (storage.isEntryKnown(dim)) {
    entrySizes.try_emplace(dim.str(), dim, host.node);
    return written.of(dim, nullptr);
  }
  Value overflow, value = written.of(dim, &overflow);
  host.failIf(overflow, "size '" + dim.str() + "' is larger than any memory");
  return value;
}

/// Sizes of a result are tested one after the other where they are bound; so what their product is
/// in int64, it is also where products of its terms have left int64 on the way.
Value Sizes::checkedBytes(Value result) {
  Dim bytes = Storage::bytesOf(result);
  return storage.isEntryKnown(bytes) ? dim(bytes) : written.of(bytes, nullptr);
}

void Sizes::bindDims(Value result, ArrayRef<Value> sizes) {
  for (auto [dim, size] : llvm::zip(graph::dimsOf(result), sizes))
    if (auto name = dim.symbolName(); name && !symbols.count(*name))
      symbols[*name] = size;
  for (auto [dim, size] : llvm::zip(graph::dimsOf(result), sizes))
    requireSize(size, dim);
}

void Sizes::bindFrom(Value result, Value source) {
  SmallVector<Value> sizes;
  for (const Dim &size : graph::dimsOf(source))
    sizes.push_back(dim(size));
  bindDims(result, sizes);
}

SmallVector<std::string> Sizes::unboundSymbols(ValueRange values) const {
  SmallVector<std::string> names;
  for (Value value : values)
    for (const Dim &dim : graph::dimsOf(value))
      if (auto name = dim.symbolName();
          name && !symbols.count(*name) && !llvm::is_contained(names, *name))
        names.push_back(*name);
  return names;
}

void Sizes::requireSize(Value found, const Dim &expected) {
  requireSize(found, dim(expected), expected.str());
}

void Sizes::requireSize(Value found, Value wanted, StringRef name) {
  Code &code = host.code;
  OpBuilder &builder = host.builder;
  Value differs =
      found == wanted
          ? code.integerOf(builder.getI1Type(), 0)
          : builder.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, found, wanted);
  code.when(differs, [&] {
    host.fail(host.node + "a size is %lld where the model says %lld ('" + name.str() + "')", found,
              wanted);
  });
}

void Sizes::requireSizes(Value found, Value expected) {
  for (auto [size, wanted] : llvm::zip(graph::dimsOf(found), graph::dimsOf(expected)))
    if (size != wanted)
      requireSize(dim(size), wanted);
}

} // namespace heddle::lower
