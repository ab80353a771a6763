// Environment: what holds while ops are evaluated: the values of size symbols, and the limits.
#ifndef HEDDLE_REFERENCE_ENVIRONMENT_H
#define HEDDLE_REFERENCE_ENVIRONMENT_H

#include "compiler/graph/Graph.h"
#include "compiler/reference/Tensor.h"
#include "compiler/support/Error.h"

namespace heddle::reference {

struct Limits {
  int64_t bytes = int64_t(16) << 30;     // all live tensors together
  int64_t trips = int64_t(10) * 1000000; // limit of one loop
  int depth = 64;                        // limit of nested regions
};

class Environment {
public:
  explicit Environment(Limits limits = {}) : limits(limits) {}

  std::optional<int64_t> lookup(llvm::StringRef symbol) const;
  /// The size that a type's expression stands for; nullopt while a symbol of it is unknown.
  std::optional<int64_t> evaluate(const graph::Dim &dim) const;
  /// Holds the sizes of a tensor against its type: unbound symbols are bound, others must agree.
  llvm::Error bind(mlir::Operation *op, mlir::Type type, llvm::ArrayRef<int64_t> shape);
  /// Sizes of a tensor type; an error if a symbol is unknown.
  llvm::Expected<llvm::SmallVector<int64_t>> shapeOf(mlir::Operation *op, mlir::Type type) const;
  /// A tensor of zeros, unless the limit of bytes forbids it.
  llvm::Expected<Tensor> allocate(mlir::Operation *op, mlir::Type element,
                                  llvm::ArrayRef<int64_t> shape);

  /// The lengths of the rows along `of`, values of the symbol `size(of)` (graph/ragged/Ragged.h).
  void setRows(llvm::StringRef of, llvm::StringRef size, std::vector<int64_t> lengths);
  /// While it lives, one row along `of` is all there is.
  class Row {
  public:
    Row(Environment &environment, llvm::StringRef of, int64_t row);
    ~Row();
    Row(const Row &) = delete;

  private:
    Environment &environment;
    llvm::StringMap<int64_t> before;
  };

  /// Symbols bound while a Scope lives are forgotten at its end.
  class Scope {
  public:
    explicit Scope(Environment &environment)
        : environment(environment), size(environment.bound.size()) {}
    ~Scope();
    Scope(const Scope &) = delete;

  private:
    Environment &environment;
    size_t size;
  };

  /// Lists and strings are numbers in tensors: 1, 2 ... for a list, 0 for an absent one; a string's
  /// place in the table, which begins with the module's.
  int64_t addList(Tensors list);
  const Tensors *list(int64_t handle) const;
  void loadStrings(mlir::ModuleOp module);
  int64_t numberOf(llvm::StringRef text);
  llvm::Expected<std::string> stringOf(mlir::Operation *op, int64_t number) const;

  const Limits limits;
  uint64_t seed = 0; // for graph.run_seed
  int depth = 0;

private:
  struct Rows {
    std::string of, symbol;
    std::vector<int64_t> lengths;
  };

  llvm::StringMap<int64_t> symbols;
  std::vector<Rows> rows;
  std::vector<std::string> bound; // in order of binding
  std::vector<std::unique_ptr<Tensors>> lists;
  std::vector<std::string> strings;
  llvm::StringMap<int64_t> numbers; // by string
  std::shared_ptr<int64_t> liveBytes = std::make_shared<int64_t>(0);
};

/// "node 'n' (graph.op): error: message".
llvm::Error opError(mlir::Operation *op, const llvm::Twine &message,
                    ErrorCode code = ErrorCode::Refused);
std::string textOf(llvm::ArrayRef<int64_t> shape);

} // namespace heddle::reference

#endif // HEDDLE_REFERENCE_ENVIRONMENT_H
