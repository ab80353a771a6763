// Functions: the functions of all kernels, each distinct one once.
#ifndef HEDDLE_LOWER_FUNCTIONS_H
#define HEDDLE_LOWER_FUNCTIONS_H

#include "compiler/lower/Kernel.h"

#include "llvm/ADT/MapVector.h"

namespace heddle::lower {

/// Groups of one form become functions of one text, however their tensors and weights differ: one
/// of them is enough. Where there are many of a form whose texts differ in numbers only (the column
/// that each of a hundred Slices takes, the scale of each layer), one reads these from its
/// arguments. Names are those of texts, so that other models have the same functions, too.
class Functions {
public:
  explicit Functions(mlir::ModuleOp module) : module(module) {}

  /// Erases the kernel's functions that are known, and names the others. The kernel must stay where
  /// it is until `merge` has been called.
  void add(Kernel &kernel);
  /// Makes those that differ in numbers one. No function may be added after.
  void merge();

private:
  using Numbers = llvm::SmallVector<mlir::TypedAttr>;
  struct User {
    Kernel *kernel;
    size_t phase;
  };
  struct Member {
    mlir::func::FuncOp function;
    Numbers numbers;
    llvm::SmallVector<User, 1> users;
  };
  using Form = std::vector<Member>; // texts that are equal but for their numbers

  std::string nameOf(llvm::StringRef text);
  static std::vector<Form> partsOf(Form form);
  void merge(Form &form);

  mlir::ModuleOp module;
  llvm::MapVector<std::string, Form, std::map<std::string, unsigned>> forms; // by their text
  llvm::StringMap<char> names;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_FUNCTIONS_H
