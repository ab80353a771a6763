// Fragments: tiles of products of f16 or bf16, by instructions that multiply matrices which 32
// threads in step have together.
//
// Both operands lie in shared memory with the steps of a row, or column, side by side: in lines of
// 80 bytes, so that eight of them are read at once from all banks.

#include "compiler/lower/threads/Fragments.h"
#include "compiler/lower/threads/Tile.h"

using namespace mlir;

namespace heddle::lower {

static constexpr int64_t kRows = kRowsOfFragment, kColumns = kColumnsOfFragment;

Value lane(Code &code, Team &team) { return code.rem(team.rank(), code.number(kInStep)); }

Value zeroFragment(Code &code) {
  auto vector = VectorType::get({4}, code.b.getF32Type());
  return code.b.create<arith::ConstantOp>(code.loc, DenseElementsAttr::get(vector, 0.0f));
}

static Value load(Code &code, const FragmentLines &lines, Value line, Value step) {
  Value at = code.add(code.mul(line, code.number(lines.length)), step);
  return code.b.create<program::LoadFragmentsOp>(code.loc,
                                                 VectorType::get({4}, code.b.getI32Type()),
                                                 code.at(lines.memory, lines.element, at));
}

Value loadRows(Code &code, Team &team, const FragmentLines &lines, Value line, Value step) {
  Value self = lane(code, team), sixteen = code.number(16);
  Value upper = code.mul(code.div(self, sixteen), code.number(8)); // of the last two matrices
  return load(code, lines, code.add(line, code.rem(self, sixteen)), code.add(step, upper));
}

Values loadColumns(Code &code, Team &team, const FragmentLines &lines, Value line, Value step) {
  Value self = lane(code, team), eight = code.number(8);
  Value upper = code.mul(code.div(self, code.number(16)), eight);
  Value odd = code.mul(code.rem(code.div(self, eight), code.number(2)), eight);
  Value both = load(code, lines, code.add(line, code.add(code.rem(self, eight), upper)),
                    code.add(step, odd));
  Values each;
  for (int64_t half : {0, 2})
    each.push_back(code.b.create<vector::ExtractStridedSliceOp>(
        code.loc, both, ArrayRef<int64_t>{half}, ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1}));
  return each;
}

Value multiplyFragments(Code &code, Value left, Value right, Value sum, Type element) {
  return code.b.create<program::MultiplyFragmentsOp>(code.loc, sum.getType(), left, right, sum,
                                                     element);
}

ArrayRef<TileForm> fragmentTiles(bool areFetched) {
  static constexpr TileForm kForms[] = {{{128, 128, 64, 64}, 32, 1},
                                        {{64, 64, 32, 32}, 32, 0.8},
                                        {{32, 32, 16, 16}, 32, 0.5},
                                        {{16, 64, 16, 16}, 32, 0.4},
                                        {{64, 16, 16, 16}, 32, 0.4}};
  return ArrayRef(kForms).drop_front(areFetched ? 0 : 1);
}

namespace {
class FragmentTile final : public ProductTile {
public:
  FragmentTile(KernelBuilder &kernel, Team &team, Type element, const TileForm &form)
      : kernel(kernel), team(team), type(element), form(form) {}

  Type element() const override { return type; }
  int64_t pieceSize() const override { return (form.rows + form.columns) * line(); }
  Value leftPlace(const Slot &slot) override { return placeAt(slot.line, slot.step); }
  Value rightPlace(const Slot &slot) override {
    Code &code = kernel.code();
    return placeAt(code.add(slot.line, code.number(form.rows)), slot.step);
  }
  Values zeros() override;
  Values multiply(Value piece, ValueRange sums) override;
  int64_t passes() const override { return rowsOfPart(); }
  void put(Value memory, int64_t pass, ValueRange sums) override;
  Value rowOf(int64_t pass, Value row) override;

private:
  int64_t line() const { return FragmentLines::lengthFor(form.depth); }
  /// Matrices that are the rows, and the columns, of a part.
  int64_t rowsOfPart() const { return form.ofRows / kRows; }
  int64_t columnsOfPart() const { return form.ofColumns / kColumns; }
  /// The first row, and the first column, of this thread's part; matrices of `size` count as one.
  Value partRow(int64_t size);
  Value partColumn();
  Value placeAt(Value line, Value step);

  KernelBuilder &kernel;
  Team &team;
  Type type;
  TileForm form;
};

Value FragmentTile::partRow(int64_t size) {
  Code &code = kernel.code();
  Value number = code.div(team.rank(), code.number(kInStep * (form.columns / form.ofColumns)));
  return code.mul(number, code.number(size));
}

Value FragmentTile::partColumn() {
  Code &code = kernel.code();
  Value number = code.div(team.rank(), code.number(kInStep));
  number = code.rem(number, code.number(form.columns / form.ofColumns));
  return code.mul(number, code.number(form.ofColumns));
}

Value FragmentTile::placeAt(Value row, Value step) {
  Code &code = kernel.code();
  return code.add(code.mul(row, code.number(line())), step);
}

Values FragmentTile::zeros() {
  return Values(rowsOfPart() * columnsOfPart(), zeroFragment(kernel.code()));
}

Values FragmentTile::multiply(Value piece, ValueRange sums) {
  Code &code = kernel.code();
  FragmentLines lines{piece, type, line()};
  Value row = partRow(form.ofRows), column = code.add(partColumn(), code.number(form.rows));
  Values next(sums.begin(), sums.end());
  for (int64_t first = 0; first < form.depth; first += kStepsOfFragment) {
    Value step = code.number(first);
    Values left, right;
    for (int64_t i = 0; i < rowsOfPart(); ++i)
      left.push_back(loadRows(code, team, lines, code.add(row, code.number(i * kRows)), step));
    for (int64_t j = 0; j < columnsOfPart(); j += 2)
      llvm::append_range(
          right, loadColumns(code, team, lines, code.add(column, code.number(j * kColumns)), step));
    for (auto [i, a] : llvm::enumerate(left))
      for (auto [j, b] : llvm::enumerate(right)) {
        Value &sum = next[i * columnsOfPart() + j];
        sum = multiplyFragments(code, a, b, sum, type);
      }
  }
  return next;
}

void FragmentTile::put(Value memory, int64_t pass, ValueRange sums) {
  Code &code = kernel.code();
  Type f32 = code.b.getF32Type();
  Value self = lane(code, team), four = code.number(4);
  Value row = code.add(partRow(kRows), code.div(self, four));
  Value column = code.add(partColumn(), code.mul(code.rem(self, four), code.number(2)));
  for (int64_t j = 0; j < columnsOfPart(); ++j)
    for (int64_t i = 0; i < 4; ++i) {
      Value sum = code.b.create<vector::ExtractOp>(code.loc, sums[pass * columnsOfPart() + j], i);
      Value line =
          code.mul(code.add(row, code.number(i / 2 * 8)), code.number(paddedLine(form.columns)));
      Value place = code.add(column, code.number(j * kColumns + i % 2));
      code.store(f32, sum, memory, code.add(line, place));
    }
}

Value FragmentTile::rowOf(int64_t pass, Value row) {
  Code &code = kernel.code();
  Value part = code.div(row, code.number(kRows)), within = code.rem(row, code.number(kRows));
  return code.add(code.mul(part, code.number(form.ofRows)),
                  code.add(within, code.number(pass * kRows)));
}
} // namespace

std::unique_ptr<ProductTile> makeFragmentTile(KernelBuilder &kernel, Team &team, Type element,
                                              const TileForm &form) {
  return std::make_unique<FragmentTile>(kernel, team, element, form);
}

} // namespace heddle::lower
