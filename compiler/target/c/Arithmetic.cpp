// Arithmetic: ops of arith and math, lane by lane.

#include "compiler/target/c/Printer.h"

using namespace mlir;

namespace heddle::c {

using Operands = ArrayRef<std::string>;

static std::string cast(const std::string &type, const std::string &value) {
  return "(" + type + ")" + value;
}
/// The integer of `width` bits that an expression of more bits ends in.
static std::string narrowed(unsigned width, const std::string &expression) {
  std::string text = "(" + unsignedOf(width) + ")(" + expression + ")";
  if (width == 8 || width == 16 || width == 32 || width == 64)
    return text;
  return "(" + unsignedOf(width) + ")((" + expression + ") & " +
         std::to_string((uint64_t(1) << width) - 1) + "u)";
}
/// The number that the bits are as a signed integer.
static std::string withSign(unsigned width, const std::string &value) {
  if (width == 8 || width == 16 || width == 32 || width == 64)
    return cast(signedOf(width), value);
  std::string half = std::to_string(uint64_t(1) << (width - 1));
  return "((int64_t)(" + value + " ^ " + half + "u) - " + half + ")";
}
/// An unsigned type in which no promotion to int overflows.
static std::string wide(unsigned width) { return width <= 32 ? "uint32_t" : "uint64_t"; }

static std::string suffixOf(Type type) { return getElementTypeOrSelf(type).isF32() ? "f" : ""; }

static std::string comparison(arith::CmpIPredicate predicate, unsigned width, Operands x) {
  using P = arith::CmpIPredicate;
  auto text = [&](bool isSigned, const char *sign) {
    auto as = [&](const std::string &value) {
      return isSigned ? withSign(width, value) : cast(unsignedOf(width), value);
    };
    return "(uint8_t)(" + as(x[0]) + " " + sign + " " + as(x[1]) + ")";
  };
  switch (predicate) {
  case P::eq:
    return text(false, "==");
  case P::ne:
    return text(false, "!=");
  case P::slt:
    return text(true, "<");
  case P::sle:
    return text(true, "<=");
  case P::sgt:
    return text(true, ">");
  case P::sge:
    return text(true, ">=");
  case P::ult:
    return text(false, "<");
  case P::ule:
    return text(false, "<=");
  case P::ugt:
    return text(false, ">");
  case P::uge:
    return text(false, ">=");
  }
  llvm_unreachable("all predicates are above");
}

static std::string comparison(arith::CmpFPredicate predicate, Operands x) {
  using P = arith::CmpFPredicate;
  const std::string &a = x[0], &b = x[1];
  auto text = [&](const std::string &condition) { return "(uint8_t)(" + condition + ")"; };
  auto plain = [&](const char *sign) { return a + " " + sign + " " + b; };
  switch (predicate) {
  case P::AlwaysFalse:
    return "0u";
  case P::AlwaysTrue:
    return "1u";
  case P::OEQ:
    return text(plain("=="));
  case P::OGT:
    return text(plain(">"));
  case P::OGE:
    return text(plain(">="));
  case P::OLT:
    return text(plain("<"));
  case P::OLE:
    return text(plain("<="));
  case P::ONE:
    return text(plain("<") + " || " + plain(">"));
  case P::ORD:
    return text("!isnan(" + a + ") && !isnan(" + b + ")");
  case P::UEQ:
    return text("!(" + plain("<") + " || " + plain(">") + ")");
  case P::UGT:
    return text("!(" + plain("<=") + ")");
  case P::UGE:
    return text("!(" + plain("<") + ")");
  case P::ULT:
    return text("!(" + plain(">=") + ")");
  case P::ULE:
    return text("!(" + plain(">") + ")");
  case P::UNE:
    return text(plain("!="));
  case P::UNO:
    return text("isnan(" + a + ") || isnan(" + b + ")");
  }
  llvm_unreachable("all predicates are above");
}

bool Printer::integers(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      !getElementTypeOrSelf(op->getOperand(0).getType()).isIntOrIndex())
    return false;
  unsigned width = widthOf(op->getOperand(0).getType());
  auto plain = [&](const char *sign) {
    lanes(op, [&](Operands x) {
      return narrowed(width, cast(wide(width), x[0]) + " " + sign + " " + cast(wide(width), x[1]));
    });
    return true;
  };
  auto choice = [&](bool isSigned, const char *sign) {
    lanes(op, [&](Operands x) {
      auto as = [&](const std::string &value) {
        return isSigned ? withSign(width, value) : cast(unsignedOf(width), value);
      };
      return cast(unsignedOf(width),
                  "(" + as(x[0]) + " " + sign + " " + as(x[1]) + " ? " + x[0] + " : " + x[1] + ")");
    });
    return true;
  };
  auto called = [&](const char *name, bool isSigned) {
    std::string function = helper(name);
    lanes(op, [&](Operands x) {
      std::string text;
      for (const std::string &each : x)
        text += (text.empty() ? "" : ", ") + (isSigned ? withSign(width, each) : each);
      return narrowed(width, function + "(" + text + ")");
    });
    return true;
  };
  auto shifted = [&](const char *name, bool isSigned) {
    std::string function = helper(name);
    lanes(op, [&](Operands x) {
      return narrowed(width, function + "(" + (isSigned ? withSign(width, x[0]) : x[0]) + ", " +
                                 x[1] + ", " + std::to_string(width) + "u)");
    });
    return true;
  };
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](arith::AddIOp) { return plain("+"); })
      .Case([&](arith::SubIOp) { return plain("-"); })
      .Case([&](arith::MulIOp) { return plain("*"); })
      .Case([&](arith::AndIOp) { return plain("&"); })
      .Case([&](arith::OrIOp) { return plain("|"); })
      .Case([&](arith::XOrIOp) { return plain("^"); })
      .Case([&](arith::MaxSIOp) { return choice(true, ">"); })
      .Case([&](arith::MinSIOp) { return choice(true, "<"); })
      .Case([&](arith::MaxUIOp) { return choice(false, ">"); })
      .Case([&](arith::MinUIOp) { return choice(false, "<"); })
      .Case([&](arith::DivSIOp) { return called("divide", true); })
      .Case([&](arith::DivUIOp) { return called("divide_unsigned", false); })
      .Case([&](arith::RemSIOp) { return called("remainder", true); })
      .Case([&](arith::RemUIOp) { return called("remainder_unsigned", false); })
      .Case([&](arith::FloorDivSIOp) { return called("divide_floor", true); })
      .Case([&](arith::CeilDivSIOp) { return called("divide_ceil", true); })
      .Case([&](math::AbsIOp) { return called("magnitude", true); })
      .Case([&](math::IPowIOp) { return called("power", true); })
      .Case([&](math::CtPopOp) { return called("ones", false); })
      .Case([&](arith::ShLIOp) { return shifted("shift_left", false); })
      .Case([&](arith::ShRUIOp) { return shifted("shift_right", false); })
      .Case([&](arith::ShRSIOp) { return shifted("shift_right_signed", true); })
      .Case([&](math::CountLeadingZerosOp) {
        std::string function = helper("leading_zeros");
        lanes(op, [&](Operands x) {
          return narrowed(width, function + "(" + x[0] + ", " + std::to_string(width) + "u)");
        });
        return true;
      })
      .Case([&](math::CountTrailingZerosOp) {
        std::string function = helper("trailing_zeros");
        lanes(op, [&](Operands x) {
          return narrowed(width, function + "(" + x[0] + ", " + std::to_string(width) + "u)");
        });
        return true;
      })
      .Case([&](arith::CmpIOp each) {
        lanes(op, [&](Operands x) { return comparison(each.getPredicate(), width, x); });
        return true;
      })
      .Default(false);
}

/// Prints the greater or the lesser of two numbers; a NaN wins, and -0 is less than 0.
void Printer::extreme(Operation *op, bool isMaximum) {
  bool isSingle = getElementTypeOrSelf(op->getResult(0).getType()).isF32();
  llvm::APFloat limit(0.0f);
  // One comparison does beside a constant, whose sign decides nothing.
  bool isSimple = matchPattern(op->getOperand(1), m_ConstantFloat(&limit)) && !limit.isNaN() &&
                  !(limit.isZero() && limit.isNegative() == isMaximum);
  if (isSimple) {
    const char *sign = isMaximum ? " <= " : " >= ";
    lanes(op, [&](Operands x) { return "!(" + x[0] + sign + x[1] + ") ? " + x[0] + " : " + x[1]; });
    return;
  }
  std::string function =
      helper(std::string(isMaximum ? "maximum" : "minimum") + (isSingle ? "f" : ""));
  lanes(op, [&](Operands x) { return function + "(" + x[0] + ", " + x[1] + ")"; });
}

bool Printer::floats(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0)
    return false;
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  if (!element.isF32() && !element.isF64())
    return false;
  auto plain = [&](const char *sign) {
    lanes(op, [&](Operands x) { return x[0] + " " + sign + " " + x[1]; });
    return true;
  };
  auto called = [&](const char *name) {
    std::string function = name + suffixOf(element);
    lanes(op, [&](Operands x) { return function + "(" + x[0] + ", " + x[1] + ")"; });
    return true;
  };
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](arith::AddFOp) { return plain("+"); })
      .Case([&](arith::SubFOp) { return plain("-"); })
      .Case([&](arith::MulFOp) { return plain("*"); })
      .Case([&](arith::DivFOp) { return plain("/"); })
      .Case([&](arith::RemFOp) { return called("fmod"); })
      .Case([&](arith::MaxNumFOp) { return called("fmax"); })
      .Case([&](arith::MinNumFOp) { return called("fmin"); })
      .Case([&](arith::MaximumFOp) { return extreme(op, true), true; })
      .Case([&](arith::MinimumFOp) { return extreme(op, false), true; })
      .Case([&](math::PowFOp) { return called("pow"); })
      .Case([&](math::Atan2Op) { return called("atan2"); })
      .Case([&](math::CopySignOp) { return called("copysign"); })
      .Case([&](arith::NegFOp) {
        lanes(op, [](Operands x) { return "-" + x[0]; });
        return true;
      })
      .Case([&](math::FmaOp) {
        lanes(op, [](Operands x) { return x[0] + " * " + x[1] + " + " + x[2]; });
        return true;
      })
      .Case([&](arith::CmpFOp each) {
        lanes(op, [&](Operands x) { return comparison(each.getPredicate(), x); });
        return true;
      })
      .Default(false);
}

bool Printer::functionsOfMath(Operation *op) {
  static const std::map<StringRef, StringRef> names = {
      {"math.absf", "fabs"},     {"math.exp", "exp"},     {"math.exp2", "exp2"},
      {"math.expm1", "expm1"},   {"math.log", "log"},     {"math.log1p", "log1p"},
      {"math.log2", "log2"},     {"math.log10", "log10"}, {"math.sqrt", "sqrt"},
      {"math.cbrt", "cbrt"},     {"math.erf", "erf"},     {"math.sin", "sin"},
      {"math.cos", "cos"},       {"math.tan", "tan"},     {"math.asin", "asin"},
      {"math.acos", "acos"},     {"math.atan", "atan"},   {"math.sinh", "sinh"},
      {"math.cosh", "cosh"},     {"math.tanh", "tanh"},   {"math.asinh", "asinh"},
      {"math.acosh", "acosh"},   {"math.atanh", "atanh"}, {"math.floor", "floor"},
      {"math.ceil", "ceil"},     {"math.trunc", "trunc"}, {"math.round", "round"},
      {"math.roundeven", "rint"}};
  auto found = names.find(op->getName().getStringRef());
  Type element = op->getNumOperands() ? getElementTypeOrSelf(op->getOperand(0).getType()) : Type();
  if (!element || (!element.isF32() && !element.isF64()))
    return false;
  if (isa<math::RsqrtOp>(op)) {
    std::string root = "sqrt" + suffixOf(element), one = element.isF32() ? "1.0f" : "1.0";
    lanes(op, [&](Operands x) { return one + " / " + root + "(" + x[0] + ")"; });
    return true;
  }
  if (found == names.end())
    return false;
  std::string function = found->second.str() + suffixOf(element);
  lanes(op, [&](Operands x) { return function + "(" + x[0] + ")"; });
  return true;
}

bool Printer::conversions(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() != 1)
    return false;
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  Type to = getElementTypeOrSelf(op->getResult(0).getType());
  if (isa<program::PtrType>(from) || isa<program::PtrType>(to))
    return false;
  unsigned narrow = widthOf(from), width = widthOf(to);
  bool isReal = to.isF32() || to.isF64();
  auto as = [&](auto &&text) {
    lanes(op, [&](Operands x) { return text(x[0]); });
    return true;
  };
  auto toInteger = [&](const char *name32, const char *name64) {
    std::string function = helper(width <= 32 ? name32 : name64);
    return as([&](const std::string &x) { return narrowed(width, function + "(" + x + ")"); });
  };
  return TypeSwitch<Operation *, bool>(op)
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) {
        return as([&](const std::string &x) { return cast(unsignedOf(width), x); });
      })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto) {
        return as([&](const std::string &x) { return narrowed(width, withSign(narrow, x)); });
      })
      .Case([&](arith::TruncIOp) {
        return as([&](const std::string &x) { return narrowed(width, x); });
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) {
        return isReal && (from.isF32() || from.isF64()) &&
               as([&](const std::string &x) { return cast(to.isF32() ? "float" : "double", x); });
      })
      .Case([&](arith::SIToFPOp) {
        return isReal && as([&](const std::string &x) {
                 return cast(to.isF32() ? "float" : "double", withSign(narrow, x));
               });
      })
      .Case([&](arith::UIToFPOp) {
        return isReal && as([&](const std::string &x) {
                 return cast(to.isF32() ? "float" : "double", cast(unsignedOf(narrow), x));
               });
      })
      .Case([&](arith::FPToSIOp) { return toInteger("to_int32", "to_int64"); })
      .Case([&](arith::FPToUIOp) {
        return toInteger(width < 32 ? "to_int32" : "to_int64", "to_uint64");
      })
      .Case([&](arith::BitcastOp) {
        if (op->getOperand(0).getType() == op->getResult(0).getType() ||
            (!isReal && !from.isF32() && !from.isF64()))
          return as([](const std::string &x) { return x; });
        std::string function = helper(to.isF32()     ? "float_of"
                                      : to.isF64()   ? "double_of"
                                      : from.isF32() ? "bits_of_float"
                                                     : "bits_of_double");
        return as([&](const std::string &x) { return function + "(" + x + ")"; });
      })
      .Default(false);
}

bool Printer::arithmetic(Operation *op) {
  if (auto number = dyn_cast<arith::ConstantOp>(op)) {
    auto vector = dyn_cast<VectorType>(number.getType());
    if (!vector) {
      names[number.getResult()] = constant(number.getValue(), number.getType());
      return true;
    }
    std::string text;
    for (Attribute each : llvm::cast<DenseElementsAttr>(number.getValue()).getValues<Attribute>())
      text += (text.empty() ? "" : ", ") + constant(each, vector.getElementType());
    line(define(number.getResult()) + " = {{" + text + "}};");
    return true;
  }
  if (isa<arith::SelectOp>(op)) {
    lanes(op, [](Operands x) { return x[0] + " ? " + x[1] + " : " + x[2]; });
    return true;
  }
  return integers(op) || floats(op) || functionsOfMath(op) || conversions(op);
}

} // namespace heddle::c
