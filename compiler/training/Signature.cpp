// Signature: names are attributes of @main's arguments and results.

#include "compiler/training/Signature.h"

#include "compiler/graph/edit/Sharing.h"
#include "compiler/graph/edit/Weights.h"

using namespace mlir;

namespace heddle::training {

static constexpr StringLiteral kName = "graph.name";

static StringRef nameIn(DictionaryAttr attributes) {
  auto name = attributes ? attributes.getAs<StringAttr>(kName) : StringAttr();
  return name ? name.getValue() : StringRef();
}

Value Signature::input(StringRef name) {
  for (BlockArgument argument : main.getArguments())
    if (nameIn(main.getArgAttrDict(argument.getArgNumber())) == name)
      return argument;
  return {};
}

bool Signature::isInputSize(const graph::Dim &dim) {
  return dim.symbolName() && llvm::any_of(main.getArgumentTypes(), [&](Type type) {
           return llvm::is_contained(graph::dimsOf(type), dim);
         });
}

Value Signature::addInput(StringRef name, Type type) {
  unsigned place = main.getNumArguments();
  graph::DimVector dims = graph::dimsOf(type);
  for (graph::Dim &dim : dims)
    if (!dim.constant() && !isInputSize(dim))
      dim = graph::freshSymbol(main, "size");
  type = graph::tensorOf(main.getContext(), dims, cast<RankedTensorType>(type).getElementType());
  StringAttr text = builder.getStringAttr(name);
  main.insertArgument(place, type, builder.getDictionaryAttr(builder.getNamedAttr(kName, text)),
                      NameLoc::get(text));
  return main.getArgument(place);
}

std::string Signature::inputNames() {
  return llvm::join(llvm::map_range(main.getArguments(),
                                    [&](BlockArgument argument) {
                                      return nameIn(main.getArgAttrDict(argument.getArgNumber()));
                                    }),
                    ", ");
}

void Signature::eraseUnusedInputs() {
  for (unsigned i = main.getNumArguments(); i-- > 0;)
    if (main.getArgument(i).use_empty())
      main.eraseArgument(i);
}

StringRef Signature::outputName(unsigned i) { return nameIn(main.getResultAttrDict(i)); }

StringRef Signature::updated(unsigned i) {
  auto name = main.getResultAttrOfType<StringAttr>(i, graph::kUpdates);
  return name ? name.getValue() : StringRef();
}

std::optional<unsigned> Signature::findOutput(StringRef name) {
  for (unsigned i = 0; i < outputs(); ++i)
    if (updated(i).empty() && outputName(i) == name)
      return i;
  return std::nullopt;
}

void Signature::insertOutput(unsigned place, StringRef name, Value value) {
  terminator()->insertOperands(place, value);
  main.insertResult(
      place, value.getType(),
      builder.getDictionaryAttr(builder.getNamedAttr(kName, builder.getStringAttr(name))));
}

void Signature::addNext(Value input, Value next) {
  unsigned place = cast<BlockArgument>(input).getArgNumber();
  addOutput(nameIn(main.getArgAttrDict(place)), next);
  main.setResultAttr(outputs() - 1, graph::kShares, builder.getI64IntegerAttr(place));
}

void Signature::eraseOutput(unsigned i) {
  terminator()->eraseOperand(i);
  main.eraseResult(i);
}

} // namespace heddle::training
