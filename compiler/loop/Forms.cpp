// Forms: what each mechanism wants of a group, as lower carries it out.

#include "compiler/loop/Forms.h"

#include "compiler/loop/Attention.h"
#include "compiler/loop/Calls.h"
#include "compiler/loop/Holes.h"
#include "compiler/loop/Placement.h"

using namespace mlir;

namespace heddle::loop {

using graph::Dim;
using graph::DimVector;
using Ops = ArrayRef<Operation *>;

ArrayRef<int64_t> foldedAxes(Operation *op) {
  return TypeSwitch<Operation *, ArrayRef<int64_t>>(op)
      .Case<graph::ReduceSumOp, graph::ReduceProdOp, graph::ReduceMaxOp, graph::ReduceMinOp>(
          [](auto op) { return op.getAxes(); })
      .Default([](Operation *) { return ArrayRef<int64_t>(); });
}

bool keepsIndices(graph::ReshapeOp op) {
  auto significant = [](Value value) {
    DimVector dims;
    for (const Dim &dim : graph::dimsOf(value))
      if (!dim.isConstant(1))
        dims.push_back(dim);
    return dims;
  };
  return significant(op.getX()) == significant(op.getResult());
}

bool isRowShape(ArrayRef<Dim> dims, ArrayRef<Dim> rows, size_t axes) {
  size_t kept = rows.size() - axes;
  if (dims.size() != rows.size() && dims.size() != kept)
    return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (i < kept ? dims[i] != rows[i] : !dims[i].isConstant(1))
      return false;
  return true;
}

bool staysInRow(Value value, ArrayRef<Dim> rows, size_t axes) {
  auto kept = rows.drop_back(axes);
  bool isOnlyRow = llvm::all_of(kept, [](const Dim &dim) { return dim.isConstant(1); });
  bool isWhole = graph::rankOf(value) == (int64_t)rows.size();
  return isRowShape(graph::dimsOf(value), rows, axes) &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           if (isa<graph::BroadcastOp>(user))
             return isOnlyRow || isWhole;
           bool passesOn = user->hasTrait<graph::Elementwise>() || isa<graph::ReshapeOp>(user);
           return !passesOn || staysInRow(user->getResult(0), rows, axes);
         });
}

int64_t partOf(graph::SliceOp slice) {
  int64_t columns = *graph::dimsOf(slice.getResult()).back().constant();
  return *graph::dimsOf(slice.getStarts()).back().constant() / columns;
}

std::optional<Parts> partsOf(ArrayRef<Operation *> slices, ArrayRef<Dim> dims) {
  std::optional<Parts> parts;
  auto whole = dims.empty() ? std::nullopt : dims.back().constant();
  for (Operation *op : slices) {
    auto slice = dyn_cast<graph::SliceOp>(op);
    if (!slice || ArrayRef<Dim>(graph::dimsOf(slice.getX())) != dims || !whole)
      return std::nullopt;
    DimVector begin = graph::dimsOf(slice.getStarts()), result = graph::dimsOf(slice.getResult());
    ArrayRef<Dim> starts = begin;
    auto start = starts.back().constant(), columns = result.back().constant();
    bool isWhole = ArrayRef<Dim>(result).drop_back() == ArrayRef<Dim>(dims).drop_back() &&
                   llvm::all_of(starts.drop_back(), [](const Dim &d) { return d.isConstant(0); }) &&
                   llvm::all_of(slice.getSteps(), [](int64_t step) { return step == 1; });
    if (!isWhole || !start || !columns || *columns < 1 || *start % *columns != 0 ||
        *whole % *columns != 0 || (parts && parts->columns != *columns))
      return std::nullopt;
    parts = {*whole / *columns, *columns};
  }
  return parts;
}

static bool isElementwise(Operation *op) { return op->hasTrait<graph::Elementwise>(); }

static bool isFree(Operation *op) {
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
    return keepsIndices(reshape);
  return isa<graph::BroadcastOp, graph::IotaOp, graph::SizesOp, graph::ConstantOp>(op);
}

static std::string named(Operation *op) {
  std::string source = graph::sourceName(op->getLoc());
  return (op->getName().stripDialect() + (source.empty() ? "" : " '" + source + "'")).str();
}

static Fit refuse(std::string &why, const Twine &text) {
  why = text.str();
  return Fit::No;
}

static Fit fitsPointwise(Ops ops, std::string &why) {
  for (Operation *op : ops)
    if (!isElementwise(op) && !isFree(op))
      return refuse(why, named(op) + " is not computed element by element");
  return Fit::Full;
}

/// Folds of the same trailing dimensions, with elementwise ops of the rows and of their values.
static Fit fitsRows(Ops ops, std::string &why) {
  DimVector rows;
  size_t axes = 0;
  for (Operation *op : ops) {
    ArrayRef<int64_t> folded = foldedAxes(op);
    if (folded.empty()) {
      if (!isElementwise(op) && !isFree(op))
        return refuse(why, named(op) + " is neither a fold nor computed element by element");
      continue;
    }
    DimVector dims = graph::dimsOf(op->getOperand(0));
    if (rows.empty()) {
      rows = dims;
      axes = folded.size();
    }
    for (size_t i = dims.size() - folded.size(); i < dims.size(); ++i)
      if (!llvm::is_contained(folded, (int64_t)i))
        return refuse(why, named(op) + " does not fold trailing dimensions");
    if (dims != rows || folded.size() != axes)
      return refuse(why, named(op) + " folds other dimensions than the folds before it");
    if (!staysInRow(op->getResult(0), rows, axes))
      return refuse(why, "the result of " + named(op) + " is read outside of its row");
  }
  if (rows.empty())
    return Fit::Partial;
  Value result = ops.back()->getResult(0);
  bool isComplete = graph::dimsOf(result) == rows || isRowShape(graph::dimsOf(result), rows, axes);
  return isComplete ? Fit::Full : Fit::Partial;
}

/// One product; behind it elementwise ops of its shape, before it a transpose of its right operand.
static Fit fitsContraction(Ops ops, std::string &why) {
  Operation *product = nullptr;
  for (Operation *op : ops)
    if (isa<graph::MatmulOp, graph::ConvOp>(op)) {
      if (product)
        return refuse(why, named(op) + " is a second product");
      product = op;
    }
  for (Operation *op : ops) {
    if (op == product || isa<graph::BroadcastOp, graph::ConstantOp>(op))
      continue;
    bool isTransposedRight = isa<graph::TransposeOp>(op) &&
                             isa_and_nonnull<graph::MatmulOp>(product) &&
                             llvm::all_of(op->getUses(), [&](OpOperand &use) {
                               return use.getOwner() == product && use.getOperandNumber() == 1;
                             });
    if (isTransposedRight)
      continue;
    if (!isElementwise(op))
      return refuse(why, named(op) + " is not computed element by element");
    if (product && graph::dimsOf(op->getResult(0)) != graph::dimsOf(product->getResult(0)))
      return refuse(why, named(op) + " has another shape than the product");
    if (product && llvm::is_contained(product->getOperands(), op->getResult(0)))
      return refuse(why, named(op) + " makes an operand of the product, which reads it often");
  }
  return product ? Fit::Full : Fit::Partial;
}

/// One channels-last convolution of 3x3, every pixel, whose transform keeps f32's accuracy.
static Fit fitsWinograd(Ops ops, std::string &why) {
  if (Fit fit = fitsContraction(ops, why); fit != Fit::Full)
    return fit;
  for (Operation *op : ops) {
    if (isa<graph::MatmulOp>(op))
      return refuse(why, named(op) + " has no window");
    auto conv = dyn_cast<graph::ConvOp>(op);
    if (!conv)
      continue;
    DimVector w = graph::dimsOf(conv.getW());
    auto isOne = [](int64_t number) { return number == 1; };
    if (w.size() != 4 || !w[2].isConstant(3) || !w[3].isConstant(3))
      return refuse(why, "the window of " + named(op) + " is not 3x3");
    if (!llvm::all_of(conv.getStrides(), isOne) || !llvm::all_of(conv.getDilations(), isOne))
      return refuse(why, named(op) + " has strides or dilations");
    if (conv.getGroups() != 1)
      return refuse(why, named(op) + " has groups");
    if (!conv.getChannelsLast() || !graph::elementOf(conv.getX()).isF32())
      return refuse(why, named(op) + " is not of f32 with its channels last");
    if (!w[0].constant() || !w[1].constant())
      return refuse(why, "only the run knows the filters of " + named(op));
  }
  return Fit::Full;
}

/// One channels-last convolution of f32 whose number of filters is known.
static Fit fitsFew(Ops ops, std::string &why) {
  if (Fit fit = fitsContraction(ops, why); fit != Fit::Full)
    return fit;
  for (Operation *op : ops) {
    if (isa<graph::MatmulOp>(op))
      return refuse(why, named(op) + " has no filters");
    auto conv = dyn_cast<graph::ConvOp>(op);
    if (!conv)
      continue;
    if (conv.getGroups() != 1)
      return refuse(why, named(op) + " has groups");
    if (!conv.getChannelsLast() || !graph::elementOf(conv.getX()).isF32())
      return refuse(why, named(op) + " is not of f32 with its channels last");
    if (!graph::dimsOf(conv.getW())[0].constant())
      return refuse(why, "only the run knows the filters of " + named(op));
  }
  return Fit::Full;
}

bool readsParameters(StringRef form) {
  return form == "few" || form == "winograd" || form == "place";
}

static Fit fitsWindow(Ops ops, std::string &why) {
  Operation *window = nullptr;
  for (Operation *op : ops) {
    if (isa<graph::PoolOp, graph::ConvOp>(op)) {
      if (window)
        return refuse(why, named(op) + " is a second window");
      window = op;
    } else if (!isElementwise(op) && !isa<graph::BroadcastOp, graph::ConstantOp>(op)) {
      return refuse(why, named(op) + " is not computed element by element");
    } else if (window && isElementwise(op) &&
               graph::dimsOf(op->getResult(0)) != graph::dimsOf(window->getResult(0))) {
      return refuse(why, named(op) + " has another shape than the window's result");
    } else if (!window && isElementwise(op)) {
      return refuse(why, named(op) + " makes an operand of the window, which reads it often");
    }
  }
  return window ? Fit::Full : Fit::Partial;
}

static Fit fitsSerial(Ops ops, std::string &why) {
  bool isOne = ops.size() == 1 && isa<graph::ScatterElementsOp, graph::ScatterNdOp>(ops.front());
  return isOne ? Fit::Full : refuse(why, "it is for one scatter alone");
}

/// A group that ends with a concat of which an operand or more can be placed.
static Fit fitsPlace(Ops ops, std::string &why) {
  auto group = dyn_cast<graph::GroupOp>(ops.back()->getParentOp());
  if (!group || !isa<graph::ConcatOp>(ops.back()))
    return refuse(why, named(ops.back()) + " ends it, not a concat");
  if (placementsOf(group).empty())
    return refuse(why, "none of its operands is the result of a kernel, stored element by element, "
                       "that only this concat reads");
  return Fit::Full;
}

/// A function of a library, and what it leaves behind its result.
static Fit fitsCall(StringRef form, Ops ops, std::string &why) {
  if (form != "onednn.layer_norm")
    if (Fit fit = fitsContraction(ops, why); fit != Fit::Full)
      return fit;
  Fit fit = Fit::No;
  readCall(form, ops, fit, why);
  return fit;
}

Fit fitsForm(StringRef form, Ops ops, std::string &why) {
  if (isLibraryFunction(form))
    return fitsCall(form, ops, why);
  if (isHandwritten(form))
    return fitsHandwritten(form, ops, why);
  using Check = Fit (*)(Ops, std::string &);
  Check check = llvm::StringSwitch<Check>(form)
                    .Case("rows", fitsRows)
                    .Case("contraction", fitsContraction)
                    .Case("few", fitsFew)
                    .Case("winograd", fitsWinograd)
                    .Case("window", fitsWindow)
                    .Case("serial", fitsSerial)
                    .Case("pointwise", fitsPointwise)
                    .Case("attention", fitsAttention)
                    .Case("place", fitsPlace)
                    .Default(nullptr);
  return check ? check(ops, why) : refuse(why, "there is no mechanism '" + form + "'");
}

} // namespace heddle::loop
