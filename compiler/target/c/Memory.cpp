// Memory: ops of program and vector.

#include "compiler/target/c/Printer.h"

using namespace mlir;

namespace heddle::c {

/// Bytes of an element in memory; a pointer has as many as the machine says.
static std::string bytesOf(Type element) {
  if (isa<program::PtrType>(element))
    return "sizeof(unsigned char *)";
  return std::to_string((widthOf(element) + 7) / 8);
}

bool Printer::memory(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](program::AtOp at) {
        std::string pointer = nameOf(at.getPointer()), index = nameOf(at.getIndex());
        std::string bytes = bytesOf(at.getElement());
        line(define(at) + " = " + pointer + " + (ptrdiff_t)((uint64_t)" + index + " * " + bytes +
             (bytes[0] == 's' ? "" : "u") + ");");
        return true;
      })
      .Case([&](program::LoadOp load) {
        std::string pointer = nameOf(load.getPointer());
        line(define(load.getResult()) + ";");
        std::string name = nameOf(load.getResult());
        line("memcpy(&" + name + ", " + pointer + ", sizeof " + name + ");");
        return true;
      })
      .Case([&](program::StoreOp store) {
        std::string name = nameOf(store.getValue());
        if (store.getValue().getDefiningOp<arith::ConstantOp>() || !isalpha(name[0])) {
          std::string kept = "v" + std::to_string(++count);
          line(typeOf(store.getValue().getType()) + " " + kept + " = " + name + ";");
          name = kept;
        }
        line("memcpy(" + nameOf(store.getPointer()) + ", &" + name + ", sizeof " + name + ");");
        return true;
      })
      .Case([&](program::CopyOp copy) {
        std::string function = helper(copy.getOverlapping() ? "move" : "copy");
        line(function + "(" + nameOf(copy.getTarget()) + ", " + nameOf(copy.getSource()) + ", " +
             nameOf(copy.getBytes()) + ");");
        return true;
      })
      .Case([&](program::ArrayOp) { return true; })
      .Case([&](program::NullOp null) {
        line(define(null) + " = NULL;");
        return true;
      })
      .Case([&](program::WordOp word) {
        std::string pointer = nameOf(word.getPointer());
        line(define(word) + " = (uint64_t)(uintptr_t)" + pointer + ";");
        return true;
      })
      .Case([&](program::PointerOp pointer) {
        std::string word = nameOf(pointer.getWord());
        line(define(pointer) + " = (unsigned char *)(uintptr_t)" + word + ";");
        return true;
      })
      .Default(false);
}

/// Only lanes whose mask is true touch memory.
bool Printer::maskedMemory(Operation *op) {
  auto each = [&](Value like, const std::string &body) {
    line("for (int i = 0; i < " + Twine(lanesOf(like.getType())) + "; ++i)");
    line("  " + body);
  };
  auto place = [&](Value pointer, Value vector, const std::string &index) {
    return nameOf(pointer) + " + (ptrdiff_t)(" + index + " * " +
           bytesOf(getElementTypeOrSelf(vector.getType())) + ")";
  };
  auto read = [&](Value result, Value pointer, Value mask, Value otherwise,
                  const std::string &index) {
    std::string source = nameOf(otherwise);
    line(define(result) + " = " + source + ";");
    std::string lane = laneOf(result, "i");
    each(result, "if (" + laneOf(mask, "i") + ") memcpy(&" + lane + ", " +
                     place(pointer, result, index) + ", sizeof " + lane + ");");
    return true;
  };
  auto write = [&](Value value, Value pointer, Value mask, const std::string &index) {
    std::string lane = laneOf(value, "i");
    each(value, "if (" + laneOf(mask, "i") + ") memcpy(" + place(pointer, value, index) + ", &" +
                    lane + ", sizeof " + lane + ");");
    return true;
  };
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](program::MaskedLoadOp load) {
        return read(load.getResult(), load.getPointer(), load.getMask(), load.getOtherwise(), "i");
      })
      .Case([&](program::GatherOp gather) {
        return read(gather.getResult(), gather.getPointer(), gather.getMask(),
                    gather.getOtherwise(), laneOf(gather.getIndices(), "i"));
      })
      .Case([&](program::MaskedStoreOp store) {
        return write(store.getValue(), store.getPointer(), store.getMask(), "i");
      })
      .Case([&](program::ScatterOp scatter) {
        return write(scatter.getValue(), scatter.getPointer(), scatter.getMask(),
                     laneOf(scatter.getIndices(), "i"));
      })
      .Default(false);
}

bool Printer::values(Operation *op) {
  auto checked = [&](const char *name) {
    std::string x = nameOf(op->getOperand(0)), y = nameOf(op->getOperand(1));
    std::string overflow = define(op->getResult(1));
    line(overflow + ";");
    line(define(op->getResult(0)) + " = " + helper(name) + "(" + x + ", " + y + ", &" +
         nameOf(op->getResult(1)) + ");");
    return true;
  };
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](program::AddOp) { return checked("add_checked"); })
      .Case([&](program::MulOp) { return checked("multiply_checked"); })
      .Case([&](program::FreezeOp freeze) {
        names[freeze.getResult()] = nameOf(freeze.getX());
        return true;
      })
      .Case([&](program::DotOp dot) {
        bool sumsFloats = dot.getKind() == program::DotKind::ShortFloats;
        bool sumsHalves = dot.getKind() == program::DotKind::HalfBytes;
        std::string function = helper(sumsFloats                                 ? "dot_floats"
                                      : sumsHalves                               ? "dot_halves"
                                      : dot.getKind() == program::DotKind::Pairs ? "dot_pairs"
                                      : dot.getKind() == program::DotKind::Bytes ? "dot_bytes"
                                                                                 : "dot_unsigned");
        lanes(op, [&](ArrayRef<std::string> x) {
          return sumsFloats || sumsHalves
                     ? function + "(" + x[0] + ", " + x[1] + ", " + x[2] + ")"
                     : x[2] + " + " + function + "(" + x[0] + ", " + x[1] + ")";
        });
        return true;
      })
      .Case([&](program::PermuteOp permute) {
        std::string vector = nameOf(permute.getVector());
        std::string most = std::to_string(lanesOf(permute.getType()) - 1);
        lanes(op,
              [&](ArrayRef<std::string> x) { return vector + ".v[" + x[1] + " & " + most + "u]"; });
        return true;
      })
      .Case([&](program::LookupOp lookup) {
        std::string table = nameOf(lookup.getTable());
        lanes(op, [&](ArrayRef<std::string> x) { return table + "[" + x[1] + "]"; });
        return true;
      })
      .Default(false);
}

void Printer::reduction(vector::ReductionOp op) {
  using Kind = vector::CombiningKind;
  Value vector = op.getVector();
  Type element = op.getType();
  bool isSingle = element.isF32();
  unsigned width = widthOf(element);
  std::string source = nameOf(vector);
  std::string start = op.getAcc() ? nameOf(op.getAcc()) : source + ".v[0]";
  std::string first = op.getAcc() ? "0" : "1";
  line(define(op.getResult()) + " = " + start + ";");
  std::string sum = nameOf(op.getResult()), lane = source + ".v[i]", text;
  auto compared = [&](bool isSigned, const char *sign) {
    std::string type = isSigned ? signedOf(width) : unsignedOf(width);
    return "(" + type + ")" + lane + " " + sign + " (" + type + ")" + sum + " ? " + lane + " : " +
           sum;
  };
  auto plain = [&](const char *sign) {
    return "(" + unsignedOf(width) + ")(" + sum + " " + sign + " " + lane + ")";
  };
  auto called = [&](const std::string &name) { return name + "(" + sum + ", " + lane + ")"; };
  std::string suffix = isSingle ? "f" : "";
  bool isReal = isa<FloatType>(element);
  switch (op.getKind()) {
  case Kind::ADD:
    text = isReal ? sum + " + " + lane : plain("+");
    break;
  case Kind::MUL:
    text = isReal       ? sum + " * " + lane
           : width < 32 ? "(" + unsignedOf(width) + ")((uint32_t)" + sum + " * " + lane + ")"
                        : plain("*");
    break;
  case Kind::AND:
    text = plain("&");
    break;
  case Kind::OR:
    text = plain("|");
    break;
  case Kind::XOR:
    text = plain("^");
    break;
  case Kind::MINUI:
    text = compared(false, "<");
    break;
  case Kind::MINSI:
    text = compared(true, "<");
    break;
  case Kind::MAXUI:
    text = compared(false, ">");
    break;
  case Kind::MAXSI:
    text = compared(true, ">");
    break;
  case Kind::MINNUMF:
    text = called("fmin" + suffix);
    break;
  case Kind::MAXNUMF:
    text = called("fmax" + suffix);
    break;
  case Kind::MINIMUMF:
    text = called(helper("minimum" + suffix));
    break;
  case Kind::MAXIMUMF:
    text = called(helper("maximum" + suffix));
    break;
  }
  line("for (int i = " + first + "; i < " + Twine(lanesOf(vector.getType())) + "; ++i)");
  line("  " + sum + " = " + text + ";");
}

void Printer::shuffle(vector::ShuffleOp op) {
  std::string one = nameOf(op.getV1()), two = nameOf(op.getV2()), text;
  int64_t lanes = lanesOf(op.getV1().getType());
  for (Attribute each : op.getMask()) {
    int64_t place = cast<IntegerAttr>(each).getInt();
    text += (text.empty() ? "" : ", ") + (place < lanes ? one : two) + ".v[" +
            std::to_string(place < lanes ? place : place - lanes) + "]";
  }
  line(define(op.getResult()) + " = {{" + text + "}};");
}

bool Printer::vectorOps(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<vector::BroadcastOp, vector::SplatOp>([&](Operation *each) {
        if (isa<VectorType>(each->getOperand(0).getType()) &&
            lanesOf(each->getOperand(0).getType()) != lanesOf(each->getResult(0).getType()) &&
            lanesOf(each->getOperand(0).getType()) != 1)
          return false;
        if (lanesOf(each->getOperand(0).getType()) == 1) {
          std::string only = nameOf(each->getOperand(0)) + ".v[0]";
          lanes(each, [&](ArrayRef<std::string>) { return only; });
        } else {
          lanes(each, [](ArrayRef<std::string> x) { return x[0]; });
        }
        return true;
      })
      .Case([&](vector::ExtractOp each) {
        bool isOne = !isa<VectorType>(each.getType()) && each.getSourceVectorType().getRank() == 1;
        if (!isOne)
          return false;
        std::string place = each.hasDynamicPosition()
                                ? nameOf(each.getDynamicPosition().front())
                                : std::to_string(each.getStaticPosition().front());
        std::string text = nameOf(each.getVector()) + ".v[" + place + "]";
        line(define(each.getResult()) + " = " + text + ";");
        return true;
      })
      .Case([&](vector::InsertOp each) {
        bool isOne =
            !isa<VectorType>(each.getSourceType()) && each.getDestVectorType().getRank() == 1;
        if (!isOne)
          return false;
        std::string place = each.hasDynamicPosition()
                                ? nameOf(each.getDynamicPosition().front())
                                : std::to_string(each.getStaticPosition().front());
        std::string into = nameOf(each.getDest()), value = nameOf(each.getSource());
        line(define(each.getResult()) + " = " + into + ";");
        line(nameOf(each.getResult()) + ".v[" + place + "] = " + value + ";");
        return true;
      })
      .Case([&](vector::ExtractStridedSliceOp each) {
        if (each.getSourceVectorType().getRank() != 1)
          return false;
        int64_t offset = cast<IntegerAttr>(each.getOffsets()[0]).getInt();
        std::string source = nameOf(each.getVector());
        lanes(each, [&](ArrayRef<std::string>) {
          return source + ".v[i + " + std::to_string(offset) + "]";
        });
        return true;
      })
      .Case([&](vector::InsertStridedSliceOp each) {
        if (each.getDestVectorType().getRank() != 1)
          return false;
        int64_t offset = cast<IntegerAttr>(each.getOffsets()[0]).getInt();
        std::string into = nameOf(each.getDest()), source = nameOf(each.getSource());
        line(define(each.getResult()) + " = " + into + ";");
        line("for (int i = 0; i < " + Twine(lanesOf(each.getSourceVectorType())) + "; ++i)");
        line("  " + nameOf(each.getResult()) + ".v[i + " + Twine(offset) + "] = " + source +
             ".v[i];");
        return true;
      })
      .Case<vector::BitCastOp, vector::ShapeCastOp>([&](Operation *each) {
        std::string source = nameOf(each->getOperand(0));
        line(define(each->getResult(0)) + ";");
        std::string name = nameOf(each->getResult(0));
        line("memcpy(&" + name + ", &" + source + ", sizeof " + name + ");");
        return true;
      })
      .Case([&](vector::ShuffleOp each) { return shuffle(each), true; })
      .Case([&](vector::ReductionOp each) { return reduction(each), true; })
      .Default(false);
}

bool Printer::run(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](program::ArgumentOp argument) {
        std::string from =
            nameOf(argument.getArguments()) + " + " + std::to_string(8 * argument.getSlot());
        bool isSize = argument.getType().isInteger(64);
        std::string word = helper("word") + "(" + from + ")";
        line(define(argument) + " = " + (isSize ? word : "(unsigned char *)(uintptr_t)" + word) +
             ";");
        return true;
      })
      .Case([&](program::AreaOp area) {
        std::string run = nameOf(area.getRun());
        std::string member =
            "((h_run *)(void *)" + run + ")->" + stringifyArea(area.getArea()).str();
        if (area.getArea() == program::Area::Services)
          member = "NULL";
        else if (area.getArea() == program::Area::Seed)
          member = "(unsigned char *)&" + member;
        line(define(area) + " = " + member + ";");
        return true;
      })
      .Case([&](program::StatusOp status) {
        std::string run = nameOf(status.getRun());
        line(define(status) + " = (uint32_t)((h_run *)(void *)" + run + ")->status;");
        return true;
      })
      .Case([&](program::AllocOp alloc) {
        std::string text =
            helper("alloc") + "(" + nameOf(alloc.getRun()) + ", " + nameOf(alloc.getBytes()) + ")";
        line(define(alloc) + " = " + text + ";");
        return true;
      })
      .Case([&](program::AllocOutputOp alloc) {
        std::string text = helper("alloc_output") + "(" + nameOf(alloc.getRun()) + ", " +
                           std::to_string(alloc.getOutput()) + ", " + nameOf(alloc.getBytes()) +
                           ")";
        line(define(alloc) + " = " + text + ";");
        return true;
      })
      .Case([&](program::FailOp fail) {
        line(helper("fail") + "(" + nameOf(fail.getRun()) + ", (int64_t)" +
             nameOf(fail.getMessage()) + ", (int64_t)" + nameOf(fail.getValue()) + ", (int64_t)" +
             nameOf(fail.getLimit()) + ");");
        return true;
      })
      .Case([&](program::LaunchOp launch) {
        line(helper("launch") + "(" + nameOf(launch.getRun()) + ", h_" + launch.getKernel().str() +
             ", " + nameOf(launch.getArguments()) + ", " + nameOf(launch.getTasks()) + ", " +
             nameOf(launch.getScratch()) + ");");
        return true;
      })
      .Default(false);
}

} // namespace heddle::c
