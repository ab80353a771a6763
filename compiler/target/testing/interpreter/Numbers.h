// Numbers: bits as numbers and back.
#ifndef HEDDLE_TARGET_TESTING_INTERPRETER_NUMBERS_H
#define HEDDLE_TARGET_TESTING_INTERPRETER_NUMBERS_H

#include "compiler/Prelude.h"

namespace heddle::interpreter {

/// Bits of a number or pointer in a register.
unsigned widthOf(mlir::Type element);
/// The low `width` bits.
inline uint64_t narrowed(uint64_t bits, unsigned width) {
  return width >= 64 ? bits : bits & ((uint64_t(1) << width) - 1);
}
/// The number that the bits are as a signed integer.
inline int64_t withSign(uint64_t bits, unsigned width) {
  return width >= 64 ? int64_t(bits) : int64_t(bits << (64 - width)) >> (64 - width);
}
double realOf(uint64_t bits, mlir::Type element);
uint64_t bitsOf(double real, mlir::Type element);

} // namespace heddle::interpreter

#endif // HEDDLE_TARGET_TESTING_INTERPRETER_NUMBERS_H
