// Numbers: f32 and f64 are the machine's; of narrower floats APFloat knows the bits.

#include "compiler/target/testing/interpreter/Numbers.h"

#include "compiler/program/Dialect.h"

#include "llvm/ADT/bit.h"

using namespace mlir;

namespace heddle::interpreter {

unsigned widthOf(Type element) {
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
}

double realOf(uint64_t bits, Type element) {
  if (element.isF32())
    return llvm::bit_cast<float>(uint32_t(bits));
  if (element.isF64())
    return llvm::bit_cast<double>(bits);
  llvm::APFloat number(cast<FloatType>(element).getFloatSemantics(),
                       llvm::APInt(widthOf(element), bits));
  bool isInexact;
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
  return number.convertToDouble();
}

uint64_t bitsOf(double real, Type element) {
  if (element.isF32())
    return llvm::bit_cast<uint32_t>(float(real));
  if (element.isF64())
    return llvm::bit_cast<uint64_t>(real);
  llvm::APFloat number(real);
  bool isInexact;
  number.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                 &isInexact);
  return number.bitcastToAPInt().getZExtValue();
}

} // namespace heddle::interpreter
