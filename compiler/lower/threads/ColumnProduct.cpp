// ColumnProduct: products of few rows, whose time is that of reading the right operand once. A team
// has a column, of each part: its threads read neighbouring steps of it, as they lie in memory or
// as constants are packed, and meet the same steps of all rows.

#include "compiler/graph/Typical.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/threads/Product.h"
#include "compiler/lower/threads/Tile.h"

using namespace mlir;

namespace heddle::lower {
namespace {

/// Rows that are few, and bytes that a thread reads at once.
constexpr int64_t kMostRows = 4, kTogether = 16;

class ColumnProduct final : public ThreadProduct {
public:
  explicit ColumnProduct(const Parts &parts)
      : ThreadProduct(parts), element(factors ? factors : operands.rightType()),
        together(kTogether / graph::bytesOf(element)) {}

  bool isServed() const {
    auto rows = operands.rows.constant();
    return rows && *rows <= kMostRows && !wishedRows && !wishedColumns &&
           isa<graph::MatmulOp>(product.root) && (isPacked() || operands.isRightAlongDepth);
  }
  void emit() override;

private:
  struct Task {
    Value matrix, column;
    SmallVector<Indices> rows; // their places in the result
  };
  bool isPacked() const {
    auto constant = product.root->getOperand(1).getDefiningOp<graph::ConstantOp>();
    bool isStored = constant && isa<graph::StoredAttr>(constant.getValue()); // smaller as it is
    return !isStored && operands.hasConstantRight(element);
  }
  Values rightAt(Elements &e, const Task &task, Value first, int64_t part);
  Values addProducts(Elements &e, const Task &task, Value number, ValueRange sums);
  Value isStep(Value k);
  Value factorOf(Value value);

  const Type element;     // of columns that are packed
  const int64_t together; // steps
  int64_t packed = -1;    // the right operand, a constant of the kernel
  int64_t lines = 0;      // of the packed columns of a matrix
};

/// Whether there is such a step; null where there always is.
Value ColumnProduct::isStep(Value k) {
  if (operands.length.mod(Dim(together)).isConstant(0))
    return {};
  return kernel.code().less(k, kernel.dim(operands.length));
}

/// A factor, rounded where the product's are.
Value ColumnProduct::factorOf(Value value) {
  Code &code = kernel.code();
  if (!factors)
    return value;
  Value rounded = code.b.create<arith::TruncFOp>(code.loc, factors, value);
  return code.b.create<arith::ExtFOp>(code.loc, sum, rounded);
}

/// The elements of a part's column from a step on.
Values ColumnProduct::rightAt(Elements &e, const Task &task, Value first, int64_t part) {
  Code &code = kernel.code();
  Values values;
  if (packed >= 0) {
    int64_t filled = llvm::alignTo(*operands.length.constant(), together);
    Value line =
        code.add(code.mul(task.matrix, code.number(lines)),
                 code.add(code.mul(task.column, code.number(product.parts)), code.number(part)));
    Value at = code.add(code.mul(line, code.number(filled)), first);
    Value lanes = code.b.create<program::LoadOp>(
        code.loc, VectorType::get({together}, program::computeType(element)),
        code.at(kernel.data(packed), element, at), kTogether);
    for (int64_t i = 0; i < together; ++i) {
      Value value = code.b.create<vector::ExtractOp>(code.loc, lanes, i);
      values.push_back(factors ? code.b.create<arith::ExtFOp>(code.loc, sum, value).getResult()
                               : widened(e, value, 1));
    }
    return values;
  }
  Value column = code.add(task.column, kernel.dim(operands.columns * Dim(part)));
  for (int64_t i = 0; i < together; ++i) {
    Value k = code.add(first, code.number(i));
    values.push_back(guardedBy(e, isStep(k), [&] {
      return factorOf(widened(e, operands.right(e, task.rows.front(), {}, k, column), 1));
    }));
  }
  return values;
}

Values ColumnProduct::addProducts(Elements &e, const Task &task, Value number, ValueRange sums) {
  Code &code = kernel.code();
  Value first = code.mul(number, code.number(together));
  SmallVector<Values> columns;
  for (int64_t part = 0; part < product.parts; ++part)
    columns.push_back(rightAt(e, task, first, part));
  Values next;
  for (auto [row, place] : llvm::enumerate(task.rows)) {
    Values left;
    for (int64_t i = 0; i < together; ++i) {
      Value k = code.add(first, code.number(i));
      left.push_back(guardedBy(
          e, isStep(k), [&] { return factorOf(widened(e, operands.left(e, place, {}, k), 0)); }));
    }
    for (auto [part, column] : llvm::enumerate(columns)) {
      Value total = sums[row * product.parts + part];
      for (auto [x, y] : llvm::zip(left, column))
        total = multiplyAdd(code, x, y, total);
      next.push_back(total);
    }
  }
  return next;
}

void ColumnProduct::emit() {
  Operation *root = product.root;
  int64_t columns = graph::typicalSize(root, operands.matrices * operands.columns),
          length = graph::typicalSize(root, operands.length), rows = *operands.rows.constant();
  int64_t threads = Team::sizeFor(kernel.machine, columns, length);
  kernel.beginPhase(threads);
  Team team(kernel, threads);
  Elements e(kernel, group);
  Code &code = kernel.code();
  if (isPacked()) {
    SmallVector<int64_t> columnOf;
    int64_t all = *operands.columns.constant();
    for (int64_t column = 0; column < all; ++column)
      for (int64_t part = 0; part < product.parts; ++part)
        columnOf.push_back(part * all + column);
    lines = columnOf.size();
    packed = kernel.addData(operands.constantRight(columnOf, together, element));
  }
  kernel.forEachTask([&](Value number) {
    Elements::Scope scope(e);
    Task task{code.div(number, kernel.dim(operands.columns)),
              code.rem(number, kernel.dim(operands.columns)),
              {}};
    for (int64_t row = 0; row < rows; ++row)
      task.rows.push_back(operands.placeOf(e, task.matrix, operands.rowOf(e, code.number(row))));
    Values zeros(rows * product.parts, code.constantOf(sum, 0));
    Values sums = team.fold(
        e, code.number(0), kernel.dim(operands.length.ceilDiv(Dim(together))), zeros,
        [&](Value step, ValueRange carried) { return addProducts(e, task, step, carried); });
    for (Value &total : sums)
      total = team.combine(root, total);
    team.onFirst([&] {
      for (auto [row, place] : llvm::enumerate(task.rows)) {
        place.back() = e.shift(place.back(), task.column);
        emitResults(e, place, [&](int64_t part) { return sums[row * product.parts + part]; });
      }
    });
  });
  kernel.endPhase(operands.matrices * operands.columns, work());
}

} // namespace

std::unique_ptr<ThreadProduct> makeColumnProduct(const ThreadProduct::Parts &parts) {
  auto made = std::make_unique<ColumnProduct>(parts);
  return made->isServed() ? std::move(made) : nullptr;
}

} // namespace heddle::lower
