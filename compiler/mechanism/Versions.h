// Versions: how a group's schedule says that some of its knobs depend on sizes.
#ifndef HEDDLE_MECHANISM_VERSIONS_H
#define HEDDLE_MECHANISM_VERSIONS_H

#include "llvm/ADT/StringRef.h"

namespace heddle::mechanism {

/// Attribute of a schedule: a list of other schedules, each for the sizes that it says under
/// `kWhen`.
inline constexpr llvm::StringLiteral kVersions = "versions";
/// "f32" or "bf16", where a version has another precision than the group.
inline constexpr llvm::StringLiteral kPrecision = "precision";
/// A dictionary of i64: what sizes are at most, by their texts.
inline constexpr llvm::StringLiteral kWhen = "when";

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_VERSIONS_H
