// Tile: see Tile.h.

#include "compiler/lower/threads/Tile.h"

using namespace mlir;

namespace heddle::lower {

Value multiplyAdd(Code &code, Value x, Value y, Value sum) {
  if (isa<FloatType>(sum.getType()))
    return code.b.create<math::FmaOp>(code.loc, x, y, sum);
  return code.b.create<arith::AddIOp>(code.loc, sum, code.b.create<arith::MulIOp>(code.loc, x, y));
}

Slot slotAt(Code &code, Team &team, int64_t lines, int64_t steps, bool isAlongSteps, Value i) {
  int64_t size = isAlongSteps ? steps : lines;
  int64_t parts = std::max<int64_t>(1, size / team.threads), // of a run of neighbours
      apart = std::max<int64_t>(1, team.threads / size);
  Value count = code.number(parts);
  Value inner = code.add(code.rem(team.rank(), code.number(size)),
                         code.mul(code.rem(i, count), code.number(team.threads)));
  Value outer = code.add(code.div(team.rank(), code.number(size)),
                         code.mul(code.div(i, count), code.number(apart)));
  return isAlongSteps ? Slot{outer, inner} : Slot{inner, outer};
}

SmallVector<Slot> slotsOf(Code &code, Team &team, int64_t lines, int64_t steps, bool isAlongSteps) {
  SmallVector<Slot> slots;
  for (int64_t i = 0; i < std::max<int64_t>(1, lines * steps / team.threads); ++i)
    slots.push_back(slotAt(code, team, lines, steps, isAlongSteps, code.number(i)));
  return slots;
}

Value placeOf(Code &code, const Slot &slot, int64_t lines) {
  return code.add(code.mul(slot.step, code.number(paddedLine(lines))), slot.line);
}

Value ThreadTile::rowOf(int64_t chunk) {
  Code &code = kernel.code();
  Value line = code.div(team.rank(), code.number(sizes.columns / sizes.ofColumns));
  return code.add(code.mul(line, code.number(kNeighbours)),
                  code.number(chunk * sizes.rows / rowChunks()));
}

Value ThreadTile::columnOf(int64_t chunk) {
  Code &code = kernel.code();
  Value column = code.rem(team.rank(), code.number(sizes.columns / sizes.ofColumns));
  return code.add(code.mul(column, code.number(kNeighbours)),
                  code.number(chunk * sizes.columns / columnChunks()));
}

Values ThreadTile::zeros() {
  return Values(sizes.ofRows * sizes.ofColumns, kernel.code().constantOf(sum, 0));
}

Values ThreadTile::multiply(Value left, Value right, int64_t depth, ValueRange sums) {
  Code &code = kernel.code();
  Type vector = VectorType::get({kNeighbours}, sum);
  int64_t alignment = std::min<int64_t>(16, kNeighbours * graph::bytesOf(sum));
  auto read = [&](Value memory, int64_t chunks, llvm::function_ref<Value(int64_t)> placeOf) {
    Values values;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      Value at = code.at(memory, sum, placeOf(chunk));
      Value lanes = code.b.create<program::LoadOp>(code.loc, vector, at, alignment);
      for (int64_t i = 0; i < kNeighbours; ++i)
        values.push_back(code.b.create<vector::ExtractOp>(code.loc, lanes, i));
    }
    return values;
  };
  Values next(sums.begin(), sums.end());
  for (int64_t k = 0; k < depth; ++k) {
    Values a = read(left, rowChunks(), [&](int64_t chunk) {
      return code.add(rowOf(chunk), code.number(k * paddedLine(sizes.rows)));
    });
    Values b = read(right, columnChunks(), [&](int64_t chunk) {
      return code.add(columnOf(chunk), code.number(k * paddedLine(sizes.columns)));
    });
    for (auto [i, x] : llvm::enumerate(a))
      for (auto [j, y] : llvm::enumerate(b)) {
        Value &to = next[i * sizes.ofColumns + j];
        to = multiplyAdd(code, x, y, to);
      }
  }
  return next;
}

void ThreadTile::put(Value memory, int64_t chunk, ValueRange sums) {
  Code &code = kernel.code();
  Value first = code.sub(rowOf(chunk), code.number(chunk * sizes.rows / rowChunks()));
  for (int64_t i = 0; i < kNeighbours; ++i)
    for (int64_t j = 0; j < sizes.ofColumns; ++j) {
      Value row = code.mul(code.add(first, code.number(i)), code.number(paddedLine(sizes.columns)));
      Value column = code.add(columnOf(j / kNeighbours), code.number(j % kNeighbours));
      code.store(sum, sums[(chunk * kNeighbours + i) * sizes.ofColumns + j], memory,
                 code.add(row, column));
    }
}

void ThreadTile::forEach(ValueRange sums, llvm::function_ref<void(Value, Value, Value)> body) {
  Code &code = kernel.code();
  for (int64_t i = 0; i < sizes.ofRows; ++i)
    for (int64_t j = 0; j < sizes.ofColumns; ++j)
      body(code.add(rowOf(i / kNeighbours), code.number(i % kNeighbours)),
           code.add(columnOf(j / kNeighbours), code.number(j % kNeighbours)),
           sums[i * sizes.ofColumns + j]);
}

ArrayRef<TileForm> numberTiles() {
  static constexpr TileForm kForms[] = {{{128, 128, 8, 8}, 8, 1},
                                        {{64, 64, 4, 4}, 16, 0.8},
                                        {{32, 32, 4, 4}, 16, 0.5},
                                        {{16, 64, 4, 4}, 16, 0.4},
                                        {{64, 16, 4, 4}, 16, 0.4}};
  return kForms;
}

namespace {
class NumberTile final : public ProductTile {
public:
  NumberTile(KernelBuilder &kernel, Team &team, Type sum, const TileForm &form)
      : kernel(kernel), sum(sum), depth(form.depth), tile(kernel, team, sum, form) {}

  Type element() const override { return sum; }
  int64_t pieceSize() const override { return leftSize() + paddedLine(tile.sizes.columns) * depth; }
  Value leftPlace(const Slot &slot) override {
    return placeOf(kernel.code(), slot, tile.sizes.rows);
  }
  Value rightPlace(const Slot &slot) override {
    Code &code = kernel.code();
    return code.add(placeOf(code, slot, tile.sizes.columns), code.number(leftSize()));
  }
  Values zeros() override { return tile.zeros(); }
  Values multiply(Value piece, ValueRange sums) override {
    Code &code = kernel.code();
    return tile.multiply(piece, code.at(piece, sum, code.number(leftSize())), depth, sums);
  }
  int64_t passes() const override { return tile.rowChunks(); }
  void put(Value memory, int64_t pass, ValueRange sums) override { tile.put(memory, pass, sums); }
  Value rowOf(int64_t pass, Value row) override {
    Code &code = kernel.code();
    return code.add(row, code.number(pass * tile.sizes.rows / passes()));
  }

private:
  int64_t leftSize() const { return paddedLine(tile.sizes.rows) * depth; }

  KernelBuilder &kernel;
  Type sum;
  int64_t depth;
  ThreadTile tile;
};
} // namespace

std::unique_ptr<ProductTile> makeNumberTile(KernelBuilder &kernel, Team &team, Type sum,
                                            const TileForm &form) {
  return std::make_unique<NumberTile>(kernel, team, sum, form);
}

} // namespace heddle::lower
