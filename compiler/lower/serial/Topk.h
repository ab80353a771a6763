// Topk: the best k of each row along an axis, in order; of equal ones the first comes first.
#ifndef HEDDLE_LOWER_SERIAL_TOPK_H
#define HEDDLE_LOWER_SERIAL_TOPK_H

#include "compiler/lower/Elements.h"

namespace heddle::lower {

class Topk {
public:
  Topk(KernelBuilder &kernel, Elements &e, graph::TopkOp op);
  /// The rest of the phase that has begun: one task a row.
  void emit();

private:
  /// An entry of the row: its value and its index.
  struct Entry {
    Value value, index;
  };
  void select();
  void sort();
  void merge(Value from, Value to, Value width);
  Value isBetter(Value x, Value y);
  Value isEither(Value x, Value y);
  Entry choose(Value condition, const Entry &yes, const Entry &no);
  Value read(Value index);
  void write(Value rank, const Entry &entry);
  Entry loadRun(Value at);
  void storeRun(Value at, const Entry &entry);

  KernelBuilder &kernel;
  Elements &e;
  graph::TopkOp op;
  Code &code;
  Type element;
  size_t axis;
  Dim length; // of a row
  Indices place;
  Value indices, values; // of two halves of scratch, `length` entries each
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_SERIAL_TOPK_H
