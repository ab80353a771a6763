// Results: those of the model, of its ragged values: padded with zeros, or packed.

#include "compiler/ragged/Converter.h"

using namespace mlir;

namespace heddle::ragged {

void Converter::checkPlainResult(Value value, Operation *reader) {
  bool isOfRows = llvm::all_of(dimsOf(value), [&](const Dim &dim) {
    return !names.isOf(dim) || graph::inRow(dim, names.of) * Dim::symbol(names.of) == dim;
  });
  if (isRagged(value) || !keepsPrefix(value) || !isOfRows)
    refuse(value.getDefiningOp() ? value.getDefiningOp() : reader,
           "a result of the model depends on the size of the padded batch");
}

void Converter::setResult(OpOperand &result) {
  Value value = result.get();
  if (!names.hasBoth(dimsOf(value)))
    return checkPlainResult(value, result.getOwner());
  if (Value made =
          lengths.getPacks() ? packed(value, result.getOwner()) : padded(value, result.getOwner()))
    result.set(made);
}

Value Converter::packed(Value value, Operation *reader) {
  auto place = tokensOf(dimsOf(value), names);
  if (!place || fusedTimeMajor.contains(value))
    return refused(value.getDefiningOp() ? value.getDefiningOp() : reader,
                   "a result of the model that has not one element, or one vector, of each '" +
                       names.size + "' cannot be packed");
  Value source = asTokens(value, reader);
  if (!source)
    return {};
  DimVector dims = dimsOf(source);
  if (!place->isFused())
    dims.erase(dims.begin() + (place->isTimeMajor() ? place->size : place->of));
  return Build(builder, value).reshape(source, dims);
}

void Converter::addOffsets(func::ReturnOp results) {
  auto main = results->getParentOfType<func::FuncOp>();
  StringAttr name = builder.getStringAttr("row_offsets");
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (main.getResultAttr(i, "graph.name") == name)
      return refuse(results, "the model has a result 'row_offsets', which packed results add");
  Build build(builder, lengths);
  Value from = build.pad(lengths.getLengths(), {Dim(1)}, {Dim(0)});
  Value offsets = build.typed<graph::CumsumOp>(dimsOf(from), graph::elementOf(from), from,
                                               /*axis=*/0, /*exclusive=*/false,
                                               /*reverse=*/false);
  auto named = builder.getDictionaryAttr(builder.getNamedAttr("graph.name", name));
  main.insertResult(main.getNumResults(), offsets.getType(), named);
  results->insertOperands(results->getNumOperands(), offsets);
  SmallVector<Type> types(results.getOperandTypes());
  main.setType(builder.getFunctionType(main.getArgumentTypes(), types));
}

Value Converter::padded(Value value, Operation *reader) {
  DimVector dims = dimsOf(value);
  auto place = tokensOf(dims, names);
  Build build(builder, value);
  if (place && place->isTimeMajor()) {
    Value source = asTokens(value, reader);
    if (!source)
      return {};
    Dim factor = graph::inRow(dims[place->of], names.of);
    DimVector rowsFirst = {Dim::symbol(names.of), Dim::symbol(names.size), factor};
    rowsFirst.append(dims.begin() + place->of + 1, dims.end());
    Value whole = padTo(build, build.reshape(source, rowDims(rowsFirst, names)), rowsFirst);
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rowsFirst.size()));
    std::swap(order[0], order[1]);
    return build.reshape(build.transpose(whole, order), dims);
  }
  if (place && place->isFused() && isRagged(value)) {
    Value source = asTokens(value, reader);
    Dim factor = dims[place->of].floorDiv(Dim::symbol(names.of) * Dim::symbol(names.size));
    DimVector apart = {Dim::symbol(names.of), Dim::symbol(names.size), factor};
    apart.append(dims.begin() + place->of + 1, dims.end());
    if (source && fusedTimeMajor.contains(value))
      return refused(reader, "a result of the model has time first");
    if (!source)
      return {};
    return build.reshape(padTo(build, build.reshape(source, rowDims(apart, names)), apart), dims);
  }
  Value source = asRows(value, reader);
  return source ? padTo(build, source, dims) : Value();
}

Value Converter::padTo(Build &build, Value x, ArrayRef<Dim> dims) {
  DimVector high;
  for (auto [size, from] : llvm::zip(dims, dimsOf(x)))
    high.push_back(size - from);
  return build.pad(x, DimVector(dims.size(), Dim(0)), high);
}

} // namespace heddle::ragged
