// HostChecks: what shapes promise but only the run can tell: sizes are not negative, a reshape
// keeps its elements, what is multiplied or joined agrees. Checked in heddle_program_sizes, before
// anything runs, where the inputs decide; beside the op where something computed decides.

#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// Two sizes that must be equal, or of which the first may also be 1, or less.
enum class Fit { Equal, OrOne, OrLess };
struct Agreement {
  Dim a, b;
  Fit fit;
  std::string what;
};
} // namespace

/// Bytes of a tensor that no memory holds: sums and products of sizes below it do not overflow.
static constexpr double kTooManyBytes = 1e15;

static SmallVector<Agreement> agreementsOf(Operation *op) {
  SmallVector<Agreement> result;
  auto requireFit = [&](const Dim &a, const Dim &b, Fit fit, const Twine &what) {
    bool holds = a == b || (fit == Fit::OrOne && a.isConstant(1)) ||
                 (fit == Fit::OrLess && (b - a).isNeverNegative());
    if (!holds)
      result.push_back({a, b, fit, what.str()});
  };
  auto require = [&](const Dim &a, const Dim &b, bool orOne, const Twine &what) {
    requireFit(a, b, orOne ? Fit::OrOne : Fit::Equal, what);
  };
  auto requireInside = [&](Value indices, Value x, int64_t axis) {
    DimVector from = graph::dimsOf(indices), to = graph::dimsOf(x);
    for (size_t i = 0; i < from.size(); ++i)
      if ((int64_t)i != axis)
        requireFit(from[i], to[i], Fit::OrLess,
                   "indices of size %lld are beyond a dimension of %lld");
  };
  auto requireSame = [&](ArrayRef<Dim> a, ArrayRef<Dim> b, const Twine &what) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      require(a[i], b[i], false, what);
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
      .Case([&](graph::GatherElementsOp op) {
        requireInside(op.getIndices(), op.getX(), op.getAxis());
      })
      .Case([&](graph::ScatterElementsOp op) {
        requireInside(op.getIndices(), op.getX(), op.getAxis());
        requireSame(graph::dimsOf(op.getUpdates()), graph::dimsOf(op.getIndices()),
                    "%lld updates do not fit %lld indices");
      })
      .Case([&](graph::GatherNdOp op) {
        DimVector x = graph::dimsOf(op.getX()), indices = graph::dimsOf(op.getIndices());
        requireSame(ArrayRef<Dim>(x).take_front(op.getBatchDims()), indices,
                    "a batch of %lld does not fit %lld indices");
      })
      .Case([&](graph::ScatterNdOp op) {
        DimVector x = graph::dimsOf(op.getX()), updates = graph::dimsOf(op.getUpdates()),
                  wanted = graph::dimsOf(op.getIndices());
        int64_t depth = wanted.pop_back_val().constant().value_or(0);
        wanted.append(x.begin() + depth, x.end());
        requireSame(updates, wanted, "updates of size %lld do not fit a size of %lld");
      })
      .Case([&](graph::PadOp op) { // what is mirrored must be there
        DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
        for (size_t i = 0; i < from.size() && op.getMode() != "constant"; ++i)
          if (!from[i].constant().value_or(0))
            requireFit(Dim::min(to[i], Dim(1)), from[i], Fit::OrLess,
                       "a dimension that is empty cannot be padded with its own elements");
      })
      .Case([&](graph::ResizeOp op) {
        DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
        for (size_t i = 0; i < from.size(); ++i)
          if (!from[i].constant().value_or(0))
            requireFit(Dim::min(to[i], Dim(1)), from[i], Fit::OrLess,
                       "a dimension that is empty cannot be resized");
      })
      .Case([&](graph::ReverseSequenceOp op) {
        require(graph::dimsOf(op.getLengths())[0], graph::dimsOf(op.getX())[op.getBatchAxis()],
                false, "%lld lengths do not fit a batch of %lld");
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
    if (isa<RankedTensorType>(result.getType())) {
      for (const Dim &size : graph::dimsOf(result))
        if (!size.isNeverNegative())
          visit({size, Dim(0), Check::NotNegative,
                 node + "size '" + size.str() +
                     "' would be %lld: the inputs are too small for this model"});
      if (Dim bytes = bytesOf(result); !bytes.constant())
        visit({bytes, Dim(0), Check::Memory,
               node + "a tensor of size '" + bytes.str() + "' in bytes is larger than any memory"});
    }
  for (const Agreement &agreement : agreementsOf(op)) {
    Check::Kind kind = agreement.fit == Fit::Equal   ? Check::Equal
                       : agreement.fit == Fit::OrOne ? Check::EqualOrOne
                                                     : Check::AtMost;
    visit({agreement.a, agreement.b, kind, node + agreement.what});
  }
}

/// i1: the check does not hold.
Value Host::violation(const Check &check) {
  if (check.kind == Check::Memory)
    return builder.createOrFold<arith::CmpFOp>(
        code->loc, arith::CmpFPredicate::UGT, magnitude(check.a),
        code->constantOf(builder.getF64Type(), kTooManyBytes));
  if (check.kind == Check::AtMost)
    return code->less(dim(check.b), dim(check.a));
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

/// f64: about the size, or more; integers could overflow.
Value Host::magnitude(const Dim &size) {
  Type f64 = builder.getF64Type();
  auto number = [&](double value) { return code->constantOf(f64, value); };
  Value total = number(0);
  for (const auto &[product, coefficient] : size.sum()) {
    if (coefficient < 0)
      continue;
    Value value = number(coefficient);
    for (const Dim::Atom &factor : product) {
      Value part;
      if (factor.kind == Dim::Kind::Symbol) {
        part = builder.create<arith::SIToFPOp>(code->loc, f64, dim(Dim::symbol(factor.text)));
      } else {
        Value left = magnitude(*factor.lhs), right = magnitude(*factor.rhs);
        switch (factor.kind) {
        case Dim::Kind::FloorDiv:
          part = builder.createOrFold<arith::DivFOp>(
              code->loc, left,
              builder.createOrFold<arith::MaximumFOp>(code->loc, right, number(1)));
          break;
        case Dim::Kind::Max:
          part = builder.createOrFold<arith::MaximumFOp>(code->loc, left, right);
          break;
        case Dim::Kind::Mod:
        case Dim::Kind::Min:
          part = builder.createOrFold<arith::MinimumFOp>(code->loc, left, right);
          break;
        case Dim::Kind::Symbol:
          break;
        }
      }
      value = builder.createOrFold<arith::MulFOp>(code->loc, value, part);
    }
    total = builder.createOrFold<arith::AddFOp>(code->loc, total, value);
  }
  return total;
}

/// In heddle_program_sizes: the number of the first message whose check fails, 0 when all hold.
Value Host::writeEntryChecks() {
  Type i32 = builder.getI32Type();
  Value status = code->integerOf(i32, 0);
  llvm::StringMap<bool> seen;
  auto checkOp = [&](Operation *op) {
    forEachCheck(op, [&](const Check &check) {
      std::string kind = std::to_string(check.kind);
      bool isNew = seen.insert({check.a.str() + "|" + check.b.str() + "|" + kind, true}).second;
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
