// Branches: regions of an if, and how their results become one type.

#include "compiler/onnx/ranks/Branches.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

int64_t symbolCount(Emitter &e) {
  Operation *top = e.builder.getInsertionBlock()->getParentOp();
  while (top->getParentOp())
    top = top->getParentOp();
  auto counter = top->getAttrOfType<IntegerAttr>(GraphDialect::kSymbolCounter);
  return counter ? counter.getInt() : 0;
}

bool isLocal(const Dim &dim, int64_t before) {
  return llvm::any_of(dim.symbolNames(), [&](StringRef name) {
    int64_t number;
    return name.starts_with("$") && !name.rsplit('.').second.getAsInteger(10, number) &&
           number >= before;
  });
}

DimVector outerDims(Emitter &e, ArrayRef<Dim> dims, ArrayRef<Dim> other, int64_t before,
                    StringRef stem) {
  DimVector result;
  for (auto [size, same] : llvm::zip(dims, other))
    result.push_back(isLocal(size, before) || size != same ? e.freshSymbol(stem) : size);
  return result;
}

Type joinedList(Emitter &e, ListType a, ListType b) {
  if (a.getElement() != b.getElement())
    return {};
  // -1: there is no tensor yet; -2: their ranks differ.
  int64_t rank = a.getRank() == b.getRank() || b.getRank() == -1 ? a.getRank()
                 : a.getRank() == -1                             ? b.getRank()
                                                                 : -2;
  StringRef kind = a.getKind();
  if (kind != b.getKind()) {
    if (kind == "optional" || b.getKind() == "optional")
      return {};
    kind = "optional_sequence";
  }
  return listTensor(e.context(), kind, a.getElement(), rank);
}

Value asType(Emitter &e, Value value, Type type) {
  if (auto list = dyn_cast<ListType>(getElementTypeOrSelf(type))) {
    if (list.getKind() == kAnyRank && !listOf(value))
      return e.typed<ListMakeOp>(type, value);
    return listOf(value) ? e.asList(value, list.getKind(), list.getRank()) : value;
  }
  bool isOne =
      elementCount(dimsOf(value)).isConstant(1) && elementCount(dimsOf(type)).isConstant(1);
  return isOne ? e.reshape(value, dimsOf(type)) : value;
}

Branches::Branches(Emitter &emitter, Value condition)
    : emitter(emitter), before(symbolCount(emitter)) {
  OperationState state(emitter.location, IfOp::getOperationName(), condition, {});
  state.addRegion();
  state.addRegion();
  draft = emitter.builder.create(state);
}

Branches::~Branches() {
  if (draft)
    draft->erase();
}

void Branches::fill(int number, llvm::function_ref<SmallVector<Value>()> fill) {
  OpBuilder::InsertionGuard guard(emitter.builder);
  emitter.beginRegion(draft, number, {});
  yielded[number] = fill();
}

void Branches::join(llvm::function_ref<Type(size_t, Value, Value)> common) {
  OpBuilder::InsertionGuard guard(emitter.builder);
  SmallVector<Type> types;
  for (size_t i = 0; i < std::min(yielded[0].size(), yielded[1].size()); ++i)
    types.push_back(common(i, yielded[0][i], yielded[1][i]));
  for (int number : {0, 1}) {
    emitter.builder.setInsertionPointToEnd(&draft->getRegion(number).front());
    for (auto [value, type] : llvm::zip(yielded[number], types))
      if (type)
        value = asType(emitter, value, type);
    emitter.yield(yielded[number]);
  }
}

Operation *Branches::make() {
  SmallVector<Type> types;
  for (auto [x, y] : llvm::zip(yielded[0], yielded[1])) {
    if (elementOf(x) != elementOf(y) || rankOf(x) != rankOf(y))
      refuse("the branches yield " + nameOf(elementOf(x)) + textOf(dimsOf(x)) + " and " +
                 nameOf(elementOf(y)) + textOf(dimsOf(y)) + " for one result",
             "branches of different ranks are supported only outside of other branches and loops");
    types.push_back(
        emitter.tensor(outerDims(emitter, dimsOf(x), dimsOf(y), before, "if"), elementOf(x)));
  }
  OperationState state(emitter.location, IfOp::getOperationName(), draft->getOperands(), types);
  for (Region &region : draft->getRegions())
    state.addRegion()->takeBody(region);
  std::exchange(draft, nullptr)->erase();
  return emitter.emit(state);
}

} // namespace heddle::onnx
