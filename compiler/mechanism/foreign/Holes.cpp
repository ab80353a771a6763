// Holes: their names and types, and the groups that have them.

#include "compiler/mechanism/foreign/Holes.h"

#include "compiler/graph/LoopNest.h"
#include "compiler/mechanism/Checks.h"
#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::DimVector;

bool Hole::has(Form form) const {
  return form == Form::Element || (form == Form::Fetch ? hasFetch : hasLanes);
}

std::string Hole::nameOf(Form form) const {
  if (form == Form::Fetch)
    return "fetch" + name.substr(StringRef("read").size());
  return name + (form == Form::Lanes ? "_lanes" : form == Form::Part ? "_part" : "");
}

FunctionType Hole::typeOf(MLIRContext *context, Form form, int64_t lanes) const {
  bool hasVectors = form == Form::Lanes || form == Form::Part;
  auto shaped = [&](Type type, bool isVector) {
    return hasVectors && isVector ? Type(VectorType::get({lanes}, type)) : type;
  };
  SmallVector<Type> inputs(indices + (form == Form::Part), IntegerType::get(context, 64)), results;
  if (form != Form::Fetch) {
    for (const Taken &each : taken)
      inputs.push_back(shaped(each.type, each.isVector));
    if (result)
      results.push_back(shaped(result, true));
  }
  return FunctionType::get(context, inputs, results);
}

/// A value of another type than the kernel's has no vectors.
static std::vector<Hole> holesOf(const Nest &nest, Type element) {
  std::vector<Hole> holes;
  for (const NestHole &hole : nest.holes) {
    Type type = graph::elementOf(hole.value);
    Hole made{hole.name, (int64_t)hole.loops.size(), {}, {}, !hole.loops.empty()};
    made.hasFetch = hole.kind == NestHole::Kind::Read;
    for (int64_t value : hole.taken)
      made.taken.push_back({graph::elementOf(nest.values[value]), nest.variesInLanes(hole, value)});
    if (hole.kind == NestHole::Kind::Store)
      made.taken.push_back({type, true});
    else
      made.result = type;
    made.hasLanes &= type == element && llvm::all_of(made.taken, [&](const Hole::Taken &taken) {
                       return !taken.isVector || taken.type == element;
                     });
    holes.push_back(std::move(made));
  }
  return holes;
}

std::vector<Hole> holesOf(const Mechanism &mechanism, Type element, int64_t reductions,
                          const Nest *nest) {
  if (nest)
    return holesOf(*nest, element);
  if (&mechanism == &kKernelProduct)
    return {{"read_a", 3, {}, element},
            {"read_b", 3, {}, element},
            {"write", 3, {{element, true}}, {}}};
  std::vector<Hole> holes;
  for (int64_t i = 0; i <= reductions; ++i) {
    bool isWrite = i == reductions;
    Hole hole{isWrite ? "write" : "read_" + std::to_string(i), 2, {}, isWrite ? Type() : element};
    hole.taken.assign(i, {element, false});
    holes.push_back(std::move(hole));
  }
  return holes;
}

SmallVector<std::string> extentsOf(const Mechanism &mechanism, const Nest *nest) {
  if (&mechanism == &kKernelProduct)
    return {"batches", "rows", "columns", "depth"};
  if (!nest)
    return {"rows", "columns"};
  SmallVector<std::string> names;
  for (size_t i = 0; i < nest->loops.size(); ++i)
    names.push_back("extent_" + std::to_string(i));
  return names;
}

int64_t reductionsNamedIn(StringRef text) {
  int64_t reductions = 0;
  for (size_t at = text.find("read_"); at != StringRef::npos; at = text.find("read_", at + 1)) {
    int64_t number;
    if (!text.drop_front(at + 5).consumeInteger(10, number) && number < 16)
      reductions = std::max(reductions, number + 1);
  }
  return reductions;
}

SmallVector<Operation *> decidersOf(const Mechanism &mechanism, Ops ops) {
  SmallVector<Operation *> deciders;
  for (Operation *op : ops)
    if (&mechanism == &kKernelProduct ? isa<graph::MatmulOp>(op) : !graph::reducedAxes(op).empty())
      deciders.push_back(op);
  return deciders;
}

/// One product, elementwise ops and views before it, elementwise ops of its shape after it.
static Fit fitsProduct(const Mechanism &mechanism, Ops ops, std::string &why) {
  auto refuse = [&](Operation *op, const Twine &text) {
    why = (op->getName().stripDialect() + text).str();
    return Fit::No;
  };
  SmallVector<Operation *> products = decidersOf(mechanism, ops);
  if (products.size() > 1)
    return refuse(products[1], " is a second product");
  for (Operation *op : ops) {
    bool isBehind = products.empty() || products[0]->isBeforeInBlock(op);
    bool isElement = graph::isElementwise(op);
    if (llvm::is_contained(products, op) || isa<graph::ConstantOp, graph::BroadcastOp>(op))
      continue;
    if (!isElement && !graph::isMovement(op))
      return refuse(op, " is not computed element by element");
    bool readsProduct = !products.empty() && isBehind && isElement;
    if (readsProduct && graph::dimsOf(op->getResult(0)) != graph::dimsOf(products[0]->getResult(0)))
      return refuse(op, " has another shape than the product");
    if (isBehind && !products.empty() && !isElement)
      return refuse(op, " moves elements after the product");
  }
  if (products.empty())
    return Fit::Partial;
  Value result = ops.back()->getResult(0);
  bool isComplete = graph::dimsOf(result) == graph::dimsOf(products[0]->getResult(0));
  return isComplete ? Fit::Full : Fit::Partial;
}

/// Rows of one dimension each, with a result of their shape.
static Fit fitsRows(const Mechanism &mechanism, Ops ops, std::string &why) {
  Fit fit = kRows.check(kRows, ops, why);
  SmallVector<Operation *> reductions = decidersOf(mechanism, ops);
  if (fit == Fit::No || reductions.empty())
    return fit;
  if (graph::reducedAxes(reductions.front()).size() != 1) {
    why = "its rows have more than one dimension";
    return Fit::No;
  }
  if (graph::dimsOf(ops.back()->getResult(0)) == graph::dimsOf(reductions.front()->getOperand(0)))
    return fit;
  why = "its result has not the shape of the rows";
  return Fit::Partial;
}

/// The frame's own rules; and one result, and elements of one type.
static Fit fitsHandwritten(const Mechanism &mechanism, Ops ops, std::string &why) {
  bool isProduct = &mechanism == &kKernelProduct;
  Fit fit = isProduct ? fitsProduct(mechanism, ops, why) : fitsRows(mechanism, ops, why);
  if (fit != Fit::Full)
    return fit;
  if (resultsOf(ops).size() != 1)
    return refuse(why, "the group has several results");
  SmallVector<Operation *> deciders = decidersOf(mechanism, ops);
  Type element = graph::elementOf(deciders.front()->getOperand(0));
  for (Operation *op : deciders)
    for (Value value :
         llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults())))
      if (graph::elementOf(value) != element)
        return refuse(why, named(op) + " mixes element types");
  return fit;
}

const Mechanism kKernelProduct = {
    .name = "kernel.product", .check = fitsHandwritten, .type = CardType::Kernel};
const Mechanism kKernelRows = {
    .name = "kernel.rows", .check = fitsHandwritten, .type = CardType::Kernel};

} // namespace heddle::mechanism
