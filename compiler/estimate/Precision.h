// Precision: whether the factors of a group's products can be rounded to bf16, and whether that
// saves time.
#ifndef HEDDLE_ESTIMATE_PRECISION_H
#define HEDDLE_ESTIMATE_PRECISION_H

#include "compiler/mechanism/Mechanism.h"
#include "compiler/program/Machine.h"

namespace heddle::estimate {

/// Why factors cannot be rounded where the mechanism carries out these ops on the machine; "" if
/// they can.
std::string whyNotShort(const mechanism::Mechanism &mechanism, mechanism::Ops ops,
                        const program::Machine &machine);

struct Precision {
  bool isShort = false;
  std::string why;
};

/// Asks a roofline about a group whose factors can be rounded, with typical sizes of symbols. A
/// machine that emulates products of bf16 counts as one that has them.
Precision precisionOf(graph::GroupOp group, const program::Machine &machine);

/// Asks about products in registers that hold matrices, which the machine has. With factors of f32,
/// the group multiplies `share` as often as its products say.
Precision precisionOfMatrices(graph::GroupOp group, const program::Machine &machine, double share);

} // namespace heddle::estimate

#endif // HEDDLE_ESTIMATE_PRECISION_H
