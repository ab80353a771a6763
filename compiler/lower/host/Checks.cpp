// Checks: what is asked of which op, and the code that asks it.

#include "compiler/lower/host/Checks.h"

#include "compiler/graph/edit/Words.h"
#include "compiler/graph/ragged/Ragged.h"
#include "compiler/lower/host/Memory.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// Two sizes that must be equal, or of which the first may also be 1, or less.
enum class Fit { Equal, OrOne, OrLess };
struct Agreement {
  Dim a, b;
  Fit fit;
  std::string what;
  DimVector told = {};
};
} // namespace

/// Bytes of a tensor that no address space of today holds. Sums and products of the sizes of such
/// tensors, which kernels compute without checks, stay far below 2^63.
static constexpr int64_t kMostBytes = int64_t(1) << 47;
/// The product of the other sizes of a tensor that has a size of 0: loops may run over these.
static constexpr int64_t kMostOfEmpty = int64_t(1) << 31;

static constexpr StringRef kOutside =
    "a slice would end at %lld of a dimension that ends at %lld: the inputs are too small for it";

namespace {
/// Sizes that an op's operands and result have to agree in, beyond what their types say.
class Agreements {
public:
  static std::vector<Agreement> of(Operation *op) {
    Agreements made;
    TypeSwitch<Operation *>(op)
        .Case<graph::ReshapeOp, graph::BroadcastOp, graph::MatmulOp, graph::ConvOp,
              graph::GatherElementsOp, graph::ScatterElementsOp, graph::GatherNdOp,
              graph::ScatterNdOp, graph::PadOp, graph::ResizeOp, graph::SliceOp, graph::TopkOp,
              graph::ReverseSequenceOp, graph::ConcatOp>([&](auto each) { made.add(each); });
    return std::move(made.result);
  }

private:
  void requireFit(const Dim &a, const Dim &b, Fit fit, const Twine &what) {
    bool holds = a == b || (fit == Fit::OrOne && a.isConstant(1)) ||
                 (fit == Fit::OrLess && (b - a).isNeverNegative());
    if (!holds)
      result.push_back({a, b, fit, what.str()});
  }
  void require(const Dim &a, const Dim &b, bool orOne, const Twine &what) {
    requireFit(a, b, orOne ? Fit::OrOne : Fit::Equal, what);
  }
  void requireInside(Value indices, Value x, int64_t axis) {
    DimVector from = graph::dimsOf(indices), to = graph::dimsOf(x);
    for (size_t i = 0; i < from.size(); ++i)
      if ((int64_t)i != axis)
        requireFit(from[i], to[i], Fit::OrLess,
                   "indices of size %lld are beyond a dimension of %lld");
  }
  void requireSame(ArrayRef<Dim> a, ArrayRef<Dim> b, const Twine &what) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      require(a[i], b[i], false, what);
  }

  /// Tells which dimension differs, if a single one does.
  void add(graph::ReshapeOp op) {
    DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
    Dim count = graph::elementCount(from), wanted = graph::elementCount(to);
    auto isOne = [](const Dim &dim) { return dim.isConstant(1); };
    llvm::erase_if(from, isOne);
    llvm::erase_if(to, isOne);
    while (!from.empty() && !to.empty() && from.back() == to.back()) {
      from.pop_back();
      to.pop_back();
    }
    size_t same = 0;
    while (same < std::min(from.size(), to.size()) && from[same] == to[same])
      ++same;
    if (count == wanted)
      return;
    if (from.size() > same + 1 || to.size() > same + 1)
      return require(count, wanted, false, "cannot reshape %lld elements to a shape of %lld");
    require(count, wanted, false, "a dimension of %lld cannot become one of %lld");
    auto differing = [&](const DimVector &dims) {
      return same < dims.size() ? dims[same] : Dim(1);
    };
    result.back().told = {differing(from), differing(to)};
  }
  void add(graph::BroadcastOp op) {
    DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
    for (size_t i = 0; i < from.size(); ++i)
      require(from[i], to[to.size() - from.size() + i], true,
              "a size of %lld cannot be broadcast to %lld");
  }
  void add(graph::MatmulOp op) {
    DimVector a = graph::dimsOf(op.getA()), b = graph::dimsOf(op.getB()),
              c = graph::dimsOf(op.getResult());
    size_t rank = a.size();
    require(a[rank - 1], b[rank - 2], false,
            "the left operand has %lld columns, but the right one has %lld rows");
    for (size_t i = 0; i + 2 < rank; ++i) {
      require(a[i], c[i], true, "a batch of %lld cannot be broadcast to %lld");
      require(b[i], c[i], true, "a batch of %lld cannot be broadcast to %lld");
    }
  }
  void add(graph::ConvOp op) {
    DimVector x = graph::dimsOf(op.getX());
    require(op.getChannelsLast() ? x.back() : x[1],
            graph::dimsOf(op.getW())[1] * Dim(op.getGroups()), false,
            "the image has %lld channels, but the filters take %lld");
  }
  void add(graph::GatherElementsOp op) { requireInside(op.getIndices(), op.getX(), op.getAxis()); }
  void add(graph::ScatterElementsOp op) {
    requireInside(op.getIndices(), op.getX(), op.getAxis());
    requireSame(graph::dimsOf(op.getUpdates()), graph::dimsOf(op.getIndices()),
                "%lld updates do not fit %lld indices");
  }
  void add(graph::GatherNdOp op) {
    DimVector x = graph::dimsOf(op.getX()), indices = graph::dimsOf(op.getIndices());
    requireSame(ArrayRef<Dim>(x).take_front(op.getBatchDims()), indices,
                "a batch of %lld does not fit %lld indices");
  }
  void add(graph::ScatterNdOp op) {
    DimVector x = graph::dimsOf(op.getX()), updates = graph::dimsOf(op.getUpdates()),
              wanted = graph::dimsOf(op.getIndices());
    int64_t depth = wanted.pop_back_val().constant().value_or(0);
    wanted.append(x.begin() + depth, x.end());
    requireSame(updates, wanted, "updates of size %lld do not fit a size of %lld");
  }
  /// A dimension that is padded with its own elements must have some.
  void add(graph::PadOp op) {
    DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
    for (size_t i = 0; i < from.size() && op.getMode() != "constant"; ++i)
      if (!from[i].constant().value_or(0))
        requireFit(Dim::min(to[i], Dim(1)), from[i], Fit::OrLess,
                   "a dimension that is empty cannot be padded with its own elements");
  }
  void add(graph::ResizeOp op) {
    DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
    for (size_t i = 0; i < from.size(); ++i)
      if (!from[i].constant().value_or(0))
        requireFit(Dim::min(to[i], Dim(1)), from[i], Fit::OrLess,
                   "a dimension that is empty cannot be resized");
  }
  /// The first and the last element that it takes.
  void add(graph::SliceOp op) {
    DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
    DimVector starts = graph::dimsOf(op.getStarts());
    for (auto [i, step] : llvm::enumerate(op.getSteps())) {
      if (to[i].isConstant(0) || (starts[i].isConstant(0) && to[i] == from[i] && step == 1))
        continue;
      Dim first = starts[i], last = first + (to[i] - Dim(1)) * Dim(step);
      if (step < 0)
        std::swap(first, last);
      auto isSafe = [](const Dim &dim) { return dim.isNeverNegative(); };
      if (isSafe(first) && isSafe(from[i] - last - Dim(1)))
        continue;
      Dim some = to[i].constant() ? Dim(1) : Dim::min(to[i], Dim(1)); // 0 if it takes none
      requireFit(Dim(0), some * first, Fit::OrLess, kOutside);
      requireFit(some * (last + Dim(1)), from[i] * some, Fit::OrLess, kOutside);
    }
  }
  void add(graph::TopkOp op) {
    int64_t axis = op.getAxis();
    requireFit(graph::dimsOf(op.getValues())[axis], graph::dimsOf(op.getX())[axis], Fit::OrLess,
               "%lld elements are asked for along a dimension that has %lld");
  }
  void add(graph::ReverseSequenceOp op) {
    require(graph::dimsOf(op.getLengths())[0], graph::dimsOf(op.getX())[op.getBatchAxis()], false,
            "%lld lengths do not fit a batch of %lld");
  }
  void add(graph::ConcatOp op) {
    DimVector result = graph::dimsOf(op.getResult());
    for (Value x : op.getXs())
      for (auto [i, size] : llvm::enumerate(graph::dimsOf(x)))
        if ((int64_t)i != (int64_t)op.getAxis())
          require(size, result[i], false, "sizes %lld and %lld to be joined differ");
  }

  std::vector<Agreement> result;
};
} // namespace

/// Checks that sizes are not negative, and that a tensor fits in memory.
static void checkTensor(Value tensor, const std::string &node,
                        llvm::function_ref<void(const Check &)> visit) {
  if (!isa<RankedTensorType>(tensor.getType()) || graph::listOf(tensor))
    return;
  DimVector shape = graph::dimsOf(tensor);
  for (const Dim &size : shape)
    if (!size.isNeverNegative())
      visit({size, Dim(0), Check::NotNegative,
             node + "size '" + size.str() +
                 "' would be %lld: the inputs are too small for this model"});
  Dim bytes = Storage::bytesOf(tensor);
  bool isSmall = bytes.constant() && !bytes.isConstant(0) && *bytes.constant() <= kMostBytes;
  if (!isSmall && !shape.empty())
    visit({bytes, Dim(0), Check::Memory,
           node + "a tensor of size '" + bytes.str() + "' in bytes is larger than any memory",
           shape, graph::bytesOf(graph::storageOf(tensor))});
}

void forEachCheck(Operation *op, llvm::function_ref<void(const Check &)> visit) {
  std::string node = graph::nodeText(op->getLoc()) + ": ";
  for (Value result : op->getResults())
    checkTensor(result, node, visit);
  // Checks of sizes alone come before all that follows from them.
  if (auto bind = dyn_cast<graph::BindSizesOp>(op)) {
    auto sizes = sizesIn(bind.getX()),
         told = bind.getTold() ? sizesIn(bind.getTold()) : DimVector();
    if (sizes && told)
      for (const Dim &size : *sizes)
        visit({size, Dim(0), Check::NotNegative, node + bind.getMessage().str(), {}, 0, *told});
  }
  for (const Agreement &agreement : Agreements::of(op)) {
    Check::Kind kind = agreement.fit == Fit::Equal   ? Check::Equal
                       : agreement.fit == Fit::OrOne ? Check::EqualOrOne
                                                     : Check::AtMost;
    visit({agreement.a, agreement.b, kind, node + agreement.what, {}, 0, agreement.told});
  }
}

/// A key of what is asked of which sizes: checks of one key hold together.
static std::string keyOf(const Check &check) {
  std::string key = std::to_string(check.kind) + "|" + check.a.str() + "|" + check.b.str();
  for (const Dim &size : check.shape)
    key += "|" + size.str();
  return key;
}

/// i1: the check does not hold, or no int64 can tell.
Value Checks::violation(const Check &check) {
  Value overflow, isWrong;
  if (check.kind == Check::Memory) {
    isWrong = isBeyondMemory(check, &overflow);
  } else {
    Value a = sizes.of(check.a, &overflow), b = sizes.of(check.b, &overflow);
    auto differs = [&](Value x, Value y) -> Value {
      return builder.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, x, y);
    };
    if (check.kind == Check::AtMost)
      isWrong = code.less(b, a);
    else if (check.kind == Check::NotNegative)
      isWrong = code.less(a, b);
    else
      isWrong = differs(a, b);
    if (check.kind == Check::EqualOrOne)
      isWrong = code.both(isWrong, differs(a, code.number(1)));
  }
  return overflow ? builder.createOrFold<arith::OrIOp>(code.loc, isWrong, overflow) : isWrong;
}

/// Sizes are multiplied one by one, those that are 0 as 1, so that what a Dim has cancelled out is
/// tested too, and strides and loops of an empty tensor are bounded.
Value Checks::isBeyondMemory(const Check &check, Value *overflow) {
  SizeArithmetic arithmetic{code, overflow};
  Value product = code.number(1), none = code.integerOf(builder.getI1Type(), 0);
  Value isEmpty = none, one = code.number(1);
  for (const Dim &size : check.shape) {
    Value value = sizes.of(size, overflow);
    isEmpty = builder.createOrFold<arith::OrIOp>(code.loc, isEmpty, code.less(value, one));
    product = arithmetic.mul(product, code.max(value, one));
  }
  Value most = builder.createOrFold<arith::SelectOp>(code.loc, isEmpty, code.number(kMostOfEmpty),
                                                     code.number(kMostBytes / check.elementBytes));
  return code.less(most, product);
}

/// Visits checks that the inputs decide, of what runs in any case, each once.
void Checks::forEachOfEntry(llvm::function_ref<void(const Check &)> visit) {
  llvm::StringSet<> seen;
  auto checkOp = [&](Operation *op) {
    forEachCheck(op, [&](const Check &check) {
      if (isEntryKnown(check) && seen.insert(keyOf(check)).second)
        visit(check);
    });
  };
  for (Operation &op : host.model.getBody().front()) {
    checkOp(&op);
    if (isa<graph::GroupOp>(op))
      op.walk([&](Operation *inner) { checkOp(inner); });
  }
}

Value Checks::writeEntry(const EntrySizes &entrySizes, Value values) {
  Type i32 = builder.getI32Type();
  Value status = code.integerOf(i32, 0);
  Value told[] = {code.number(0), code.number(0)};
  auto report = [&](Value fails, const std::string &message, ArrayRef<Value> numbers = {}) {
    if (Code::constant(fails) == 0)
      return;
    host.program.messages.push_back(message);
    Value number = code.integerOf(i32, host.program.messages.size());
    Value isFirst = builder.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, status,
                                                        code.integerOf(i32, 0));
    Value isIt = code.both(fails, isFirst);
    status = builder.createOrFold<arith::SelectOp>(code.loc, isIt, number, status);
    for (auto [i, value] : llvm::enumerate(numbers))
      told[i] = builder.createOrFold<arith::SelectOp>(code.loc, isIt, value, told[i]);
  };
  auto reportCheck = [&](const Check &check) {
    report(violation(check), messageOf(check), toldBy(check));
  };
  for (BlockArgument input : host.model.getArguments())
    checkTensor(input,
                "input '" + host.program.inputs[input.getArgNumber()].name + "': ", reportCheck);
  forEachOfEntry(reportCheck);
  for (const auto &[text, wanted] : entrySizes) {
    Value overflow;
    sizes.of(wanted.first, &overflow);
    if (overflow)
      report(overflow, wanted.second + "size '" + text + "' is larger than any memory");
  }
  for (auto [i, value] : llvm::enumerate(told))
    code.store(builder.getI64Type(), value, values, code.number(i));
  return status;
}

bool Checks::isEntryKnown(const Check &check) const {
  return storage.isEntryKnown(check.a) && storage.isEntryKnown(check.b) &&
         llvm::all_of(check.shape, [&](const Dim &size) { return storage.isEntryKnown(size); });
}

/// The numbers of the check's message; none if its text tells all.
Values Checks::toldBy(const Check &check) {
  if (check.kind == Check::Memory)
    return {};
  if (!check.told.empty())
    return {sizes.of(check.told[0], nullptr), sizes.of(check.told[1], nullptr)};
  return {sizes.of(check.a, nullptr), sizes.of(check.b, nullptr)};
}

void Checks::assumeEntry() {
  auto &known = checked.emplace_back();
  forEachOfEntry([&](const Check &check) { known.insert(keyOf(check)); });
}

/// Longer formulas say less than their numbers.
static constexpr size_t kLongestName = 24;

/// The message, with the names by which the caller knows the sizes, after their numbers.
std::string Checks::messageOf(const Check &check) const {
  std::string text = check.message;
  DimVector told = check.told;
  if (told.empty() && check.kind != Check::NotNegative && check.kind != Check::Memory)
    told = {check.a, check.b};
  size_t place = 0;
  for (const Dim &size : told) {
    place = text.find("%lld", place);
    if (place == std::string::npos)
      break;
    std::string name = size.str();
    place += 4;
    bool isKnown = !size.constant() && storage.isOfShapes(size) && name.size() <= kLongestName &&
                   name.find('$') == std::string::npos;
    if (isKnown)
      text.insert(place, " ('" + name + "')");
  }
  return text;
}

void Checks::failUnless(const Check &check) {
  code.when(violation(check), [&] {
    Values told = toldBy(check);
    told.resize(2, code.number(0));
    host.fail(messageOf(check), told[0], told[1]);
  });
}

void Checks::write(Operation *op) {
  auto checkOp = [&](Operation *inner) {
    forEachCheck(inner, [&](const Check &check) {
      bool isOfRows =
          !graph::rowsOf(check.a).empty() || !graph::rowsOf(check.b).empty() ||
          llvm::any_of(check.shape, [](const Dim &size) { return !graph::rowsOf(size).empty(); });
      std::string key = keyOf(check);
      auto isIn = [&](const llvm::StringSet<> &known) { return known.contains(key); };
      if (isOfRows || llvm::any_of(checked, isIn)) // of rows: rowChecks
        return;
      checked.back().insert(key);
      failUnless(check);
    });
  };
  checkOp(op);
  if (isa<graph::GroupOp>(op))
    op->walk([&](Operation *inner) {
      if (inner != op)
        checkOp(inner);
    });
}

} // namespace heddle::lower
