// Math: transcendental functions of vectors as short polynomials.
#ifndef HEDDLE_TARGET_CPU_MATH_H
#define HEDDLE_TARGET_CPU_MATH_H

#include "compiler/Prelude.h"

namespace heddle::cpu {

/// f32 exp, tanh, erf, log and their kin become polynomials; what is left goes to libm, lane by lane.
std::unique_ptr<mlir::Pass> createMathPass();

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_MATH_H
