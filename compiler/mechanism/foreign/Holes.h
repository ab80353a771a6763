// Holes: how a kernel that is written by hand sees its group.
//
// The kernel walks the loops and keeps the sums; what one element is, and what becomes of it, are
// holes that the compiler fills with the group's elementwise ops (PluS's +Code). All indices are
// i64, all elements of one type E:
//   product  read_a(batch, row, k) -> E, read_b(batch, k, column) -> E,
//            write(batch, row, column, E)
//   rows     read_0(row, i) -> E, read_1(row, i, total 0) -> E ..., write(row, i, totals...)
//   nest     those of Nest.h
// A hole whose name ends in _lanes reads or writes neighbours of the last index as a vector; one in
// _part the first so many of them, a number after the indices; fetch_... prefetches what read_...
// reads.
#ifndef HEDDLE_MECHANISM_FOREIGN_HOLES_H
#define HEDDLE_MECHANISM_FOREIGN_HOLES_H

#include "compiler/mechanism/foreign/Nest.h"

namespace heddle::mechanism {

struct Hole {
  /// The functions that a kernel may call for it: of one element, of a vector, of the first so many
  /// elements of a vector, and one that only asks for an element's memory.
  enum class Form { Element, Lanes, Part, Fetch };
  static constexpr Form kForms[] = {Form::Element, Form::Lanes, Form::Part, Form::Fetch};
  /// An argument after the indices; the form of vectors takes a vector where it differs between
  /// lanes.
  struct Taken {
    mlir::Type type;
    bool isVector;
  };
  std::string name;
  int64_t indices; // i64 each
  llvm::SmallVector<Taken> taken;
  mlir::Type result; // null if it writes
  bool hasLanes = true, hasFetch = false;

  bool has(Form form) const;
  std::string nameOf(Form form) const;
  /// Without the group, its first argument.
  mlir::FunctionType typeOf(mlir::MLIRContext *context, Form form, int64_t lanes) const;
};

/// `reductions` are those of a kernel of rows; `nest` is that of a kernel of a nest, else null.
std::vector<Hole> holesOf(const Mechanism &mechanism, mlir::Type element, int64_t reductions,
                          const Nest *nest);
/// Sizes that the kernel may ask for: "rows", "columns" ...
llvm::SmallVector<std::string> extentsOf(const Mechanism &mechanism, const Nest *nest);
/// How many reductions a kernel of rows is written for: its text names read_0, read_1 ...
int64_t reductionsNamedIn(llvm::StringRef text);

/// Products and reductions of the ops, in order.
llvm::SmallVector<mlir::Operation *> decidersOf(const Mechanism &mechanism, Ops ops);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_FOREIGN_HOLES_H
