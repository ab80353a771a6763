// Function: see Function.h. What a region of an `if`, a loop or a scan binds is known in that
// region alone; what is bound in a group, also after it.

#include "compiler/graph/Function.h"

#include "compiler/graph/edit/Sharing.h"
#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle::graph {
namespace {

DimsAttr namesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<DimsAttr>(tensor.getEncoding()) : DimsAttr();
}

class Checker {
public:
  LogicalResult check(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments())
      bindSizes(argument.getType());
    return checkBlocks(function.getBody());
  }

private:
  LogicalResult checkBlocks(Region &region) {
    for (Block &block : region)
      for (Operation &op : block)
        if (failed(checkOp(&op)))
          return failure();
    return success();
  }

  LogicalResult checkOp(Operation *op) {
    auto binds = dyn_cast<BindSizesOp>(op);
    for (NamedAttribute attribute : op->getAttrs())
      if (auto dims = dyn_cast<DimsAttr>(attribute.getValue()); dims && !binds)
        if (failed(checkDims(op, dims)))
          return failure();
    for (Region &region : op->getRegions())
      if (failed(checkRegion(op, region)))
        return failure();
    if (binds)
      bindAll(binds.getSymbols());
    if (auto lengths = dyn_cast<RowLengthsOp>(op))
      bind(*rowSize(lengths.getSize(), lengths.getOf()).symbolName());
    if (bindsSizes(op))
      for (Type type : op->getResultTypes())
        bindSizes(type);
    for (Type type : op->getResultTypes())
      if (DimsAttr dims = namesOf(type); dims && failed(checkDims(op, dims)))
        return failure();
    return success();
  }

  LogicalResult checkRegion(Operation *op, Region &region) {
    size_t before = inOrder.size();
    for (BlockArgument argument : region.getArguments())
      bindSizes(argument.getType());
    if (failed(checkBlocks(region)))
      return failure();
    if (isa<GroupOp>(op))
      return success();
    if (inOrder.size() > before)
      checked.clear();
    while (inOrder.size() > before)
      bound.erase(inOrder.pop_back_val());
    return success();
  }

  LogicalResult checkDims(Operation *op, DimsAttr dims) {
    if (!checked.insert(dims).second)
      return success();
    for (const Dim &dim : dimsOf(dims))
      for (const std::string &symbol : dim.symbolNames())
        if (!isBound(symbol))
          return op->emitOpError("SY1: no argument of the function and no op before this one binds "
                                 "the size '")
                 << symbol << "', which " << dims
                 << " names; give an argument this size, or bind it with graph.bind_sizes before";
    return success();
  }

  bool isBound(StringRef symbol) const {
    if (bound.contains(symbol) || symbol == *Dim::tooLarge().symbolName())
      return true; // what is too large has no value, and a run that meets it fails
    std::optional<Dim> ofRow = summedBy(symbol);
    return ofRow && llvm::all_of(ofRow->symbolNames(),
                                 [&](const std::string &name) { return isBound(name); });
  }

  void bindSizes(Type type) {
    if (DimsAttr dims = namesOf(type))
      bindAll(dims);
  }

  /// Sizes that are a symbol alone; expressions of symbols are held against these.
  void bindAll(DimsAttr dims) {
    for (const Dim &dim : dimsOf(dims))
      if (auto symbol = dim.symbolName())
        bind(*symbol);
  }

  void bind(const std::string &symbol) {
    if (bound.insert(symbol).second)
      inOrder.push_back(symbol);
  }

  llvm::StringSet<> bound;
  SmallVector<std::string> inOrder; // of binding, for regions that end
  DenseSet<Attribute> checked;      // whose symbols are all bound
};
} // namespace

static LogicalResult verifySignature(func::FuncOp function) {
  FunctionType type = function.getFunctionType();
  for (Type each : llvm::concat<const Type>(type.getInputs(), type.getResults()))
    if (!isa<RankedTensorType>(each) || !hasNamedSizes(each))
      return function.emitOpError("FN1: ")
             << each << " is no ranked tensor whose sizes have names, such as tensor<?x3xf32, "
             << "#graph.dims<\"batch\", 3>>";
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    Attribute shares = function.getResultAttr(i, kShares);
    auto number = dyn_cast_or_null<IntegerAttr>(shares);
    if (shares && (!number || !number.getType().isSignlessInteger(64) || number.getInt() < 0 ||
                   number.getInt() >= function.getNumArguments()))
      return function.emitOpError("FN2: ")
             << kShares << " of result " << i << " must be the number of an argument, of which "
             << "there are " << function.getNumArguments() << ", but is " << shares;
  }
  if (!function.getBody().hasOneBlock() || !isa<func::ReturnOp>(function.getBody().front().back()))
    return function.emitOpError("FN3: the function must have a body of one block that ends with "
                                "func.return; control flow is graph.if, graph.loop and graph.scan");
  return success();
}

LogicalResult verifyFunction(func::FuncOp function) {
  return failed(verifySignature(function)) ? failure() : Checker().check(function);
}

} // namespace heddle::graph
