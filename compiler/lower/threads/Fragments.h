// Fragments: parts that threads in step have of matrices, as program.load_fragments and
// program.multiply_fragments define them.
#ifndef HEDDLE_LOWER_THREADS_FRAGMENTS_H
#define HEDDLE_LOWER_THREADS_FRAGMENTS_H

#include "compiler/lower/threads/Team.h"

namespace heddle::lower {

/// Threads that have matrices together; rows, columns and steps of a product.
inline constexpr int64_t kInStep = 32, kRowsOfFragment = 16, kColumnsOfFragment = 8,
                         kStepsOfFragment = 16;

/// Matrices in memory: lines of so many elements, each a row, or a column, with its steps side by
/// side. Lines are longer than what they hold, so that eight of them are read from all banks.
struct FragmentLines {
  Value memory;
  Type element; // f16 or bf16
  int64_t length;
  static int64_t lengthFor(int64_t steps) { return steps + 8; }
};

/// The number of this thread among those in step.
Value lane(Code &code, Team &team);
Value zeroFragment(Code &code);
/// 16 rows from `line` on, and steps from `step` on, as a left operand.
Value loadRows(Code &code, Team &team, const FragmentLines &lines, Value line, Value step);
/// Two right operands, of 8 columns each.
Values loadColumns(Code &code, Team &team, const FragmentLines &lines, Value line, Value step);
Value multiplyFragments(Code &code, Value left, Value right, Value sum, Type element);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_THREADS_FRAGMENTS_H
