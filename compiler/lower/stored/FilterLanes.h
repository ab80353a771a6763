// FilterLanes: rows of a matrix known only at run time, such as filters, in vectors with
// neighbouring rows in lanes.
#ifndef HEDDLE_LOWER_STORED_FILTERLANES_H
#define HEDDLE_LOWER_STORED_FILTERLANES_H

#include "compiler/lower/Schedule.h"

namespace heddle::lower {

/// Places of a matrix's columns in memory: that of k at first + (k / taps) outer + (k % taps)
/// inner, or at first + k outer if there are no taps.
struct ColumnPlaces {
  Value pointer;
  Type element;
  Value first = {}, outer = {};
  Value taps = {}, inner = {}; // null for none
};

/// Stores elements [low, high) of `lanes` rows of a matrix as its columns, in squares of registers.
/// `row` gives those at [k, k + lanes) of one of the rows.
void storeColumns(Elements &elements, Value low, Value high, const ColumnPlaces &places,
                  llvm::function_ref<Value(int64_t number, Value k)> row);

/// The numbers at [k, k + lanes) of one of the filters, of which there are `terms` each, as f32.
/// After the last filter its numbers are repeated.
Value filterLanes(Elements &elements, Value filters, Value number, Value terms, Value k);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_STORED_FILTERLANES_H
