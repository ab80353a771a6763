// HostChecks: what shapes promise but only the run can tell: sizes are not negative, a reshape
// keeps its elements, what is multiplied or joined agrees. Checked in heddle_program_sizes, before
// anything runs, where the inputs decide; beside the op where something computed decides.

#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// Two sizes that must be equal, or of which the first may also be 1.
struct Agreement {
  Dim a, b;
  bool orOne;
  std::string what;
};
} // namespace

static SmallVector<Agreement> agreementsOf(Operation *op) {
  SmallVector<Agreement> result;
  auto require = [&](const Dim &a, const Dim &b, bool orOne, const Twine &what) {
    if (a != b && !(orOne && a.isConstant(1)))
      result.push_back({a, b, orOne, what.str()});
  };
  TypeSwitch<Operation *>(op)
      .Case([&](graph::ReshapeOp op) {
        require(graph::elementCount(graph::dimsOf(op.getX())),
                graph::elementCount(graph::dimsOf(op.getResult())), false,
                "cannot reshape %lld elements to a shape of %lld");
      })
      .Case([&](graph::BroadcastOp op) {
        DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
        for (size_t i = 0; i < from.size(); ++i)
          require(from[i], to[to.size() - from.size() + i], true,
                  "a size of %lld cannot be broadcast to %lld");
      })
      .Case([&](graph::MatmulOp op) {
        DimVector a = graph::dimsOf(op.getA()), b = graph::dimsOf(op.getB()),
                  c = graph::dimsOf(op.getResult());
        size_t rank = a.size();
        require(a[rank - 1], b[rank - 2], false,
                "rows of the left operand have %lld elements, columns of the right one %lld");
        for (size_t i = 0; i + 2 < rank; ++i) {
          require(a[i], c[i], true, "a batch of %lld cannot be broadcast to %lld");
          require(b[i], c[i], true, "a batch of %lld cannot be broadcast to %lld");
        }
      })
      .Case([&](graph::ConvOp op) {
        DimVector x = graph::dimsOf(op.getX());
        require(op.getChannelsLast() ? x.back() : x[1],
                graph::dimsOf(op.getW())[1] * Dim(op.getGroups()), false,
                "the image has %lld channels, but the filters take %lld");
      })
      .Case([&](graph::ConcatOp op) {
        DimVector result = graph::dimsOf(op.getResult());
        for (Value x : op.getXs())
          for (auto [i, size] : llvm::enumerate(graph::dimsOf(x)))
            if ((int64_t)i != (int64_t)op.getAxis())
              require(size, result[i], false, "sizes %lld and %lld to be joined differ");
      });
  return result;
}

void Host::forEachCheck(Operation *op, llvm::function_ref<void(const Check &)> visit) {
  std::string node = "node '" + graph::sourceName(op->getLoc()) + "': ";
  for (Value result : op->getResults())
    if (isa<RankedTensorType>(result.getType()))
      for (const Dim &size : graph::dimsOf(result))
        if (!size.isNeverNegative())
          visit({size, Dim(0), Check::NotNegative,
                 node + "size '" + size.str() +
                     "' would be %lld: the inputs are too small for this model"});
  for (const Agreement &agreement : agreementsOf(op))
    visit({agreement.a, agreement.b, agreement.orOne ? Check::EqualOrOne : Check::Equal,
           node + agreement.what});
}

/// i1: the check does not hold.
Value Host::violation(const Check &check) {
  Value a = dim(check.a), b = dim(check.b);
  if (check.kind == Check::NotNegative)
    return code->less(a, b);
  auto differs = [&](Value x, Value y) -> Value {
    return builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne, x, y);
  };
  Value isWrong = differs(a, b);
  if (check.kind == Check::EqualOrOne)
    isWrong = code->both(isWrong, differs(a, code->number(1)));
  return isWrong;
}

/// In heddle_program_sizes: the number of the first message whose check fails, 0 when all hold.
Value Host::writeEntryChecks() {
  Type i32 = builder.getI32Type();
  Value status = code->integerOf(i32, 0);
  llvm::StringMap<bool> seen;
  auto checkOp = [&](Operation *op) {
    forEachCheck(op, [&](const Check &check) {
      bool isNew = seen.insert({check.a.str() + "|" + check.b.str(), true}).second;
      if (!isNew || !isEntryKnown(check.a) || !isEntryKnown(check.b))
        return;
      program.messages.push_back(withoutNumbers(check));
      Value number = code->integerOf(i32, program.messages.size());
      Value isFirst = builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq,
                                                          status, code->integerOf(i32, 0));
      Value fails = code->both(violation(check), isFirst);
      status = builder.createOrFold<arith::SelectOp>(code->loc, fails, number, status);
    });
  };
  for (Operation &op : model.getBody().front()) {
    checkOp(&op);
    if (isa<graph::GroupOp>(op))
      op.walk([&](Operation *inner) { checkOp(inner); });
  }
  return status;
}

/// heddle_program_sizes has no values to print: sizes are named instead.
std::string Host::withoutNumbers(const Check &check) {
  std::string text = check.message;
  for (const Dim *size : {&check.a, &check.b})
    if (size_t place = text.find("%lld"); place != std::string::npos)
      text.replace(place, 4, check.kind == Check::NotNegative ? "negative" : size->str());
  return text;
}

/// Beside an op: what the entry could not check.
void Host::writeChecks(Operation *op) {
  bool isTop = op->getParentOp() == model;
  auto checkOp = [&](Operation *inner) {
    forEachCheck(inner, [&](const Check &check) {
      if (isTop && isEntryKnown(check.a) && isEntryKnown(check.b))
        return;
      code->when(violation(check), [&] { fail(check.message, dim(check.a), dim(check.b)); });
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
