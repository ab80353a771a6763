// IntegerPanels: packing of codes, rows as integers, and the sums of their products.

#include "compiler/lower/stored/IntegerPanels.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Constants.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/stored/Codes.h"

#include "mlir/IR/Threading.h"

using namespace mlir;

namespace heddle::lower {

/// Steps that are written one after the other; so many that their sums fit 16 bits: 8 times two
/// products of at most 15 * 127.
static constexpr int64_t kUnrolled = 8, kHalved = 4;

/// Pointers to the rows of a tile: codes, scales, and what the sums of their blocks begin with.
struct IntegerPanels::Rows {
  Values codes, steps, totals;
};

IntegerPanels::IntegerPanels(KernelBuilder &kernel, graph::StoredAttr stored,
                             ArrayRef<int64_t> columns, int64_t vectors, int64_t ahead)
    : kernel(kernel), vectors(vectors), ahead(ahead) {
  pack(stored, columns);
}

void IntegerPanels::pack(graph::StoredAttr stored, ArrayRef<int64_t> columns) {
  Codes from(stored.getCodes());
  length = stored.getRows();
  block = stored.getBlock();
  bits = from.fitHalves() ? 4 : 8;
  isSigned = bits == 8 && kernel.machine.dot == program::Dot::SignedBytes;
  bool areWords = kernel.machine.dot == program::Dot::Words;
  isWide = bits == 8 && areWords;
  isHalved = bits == 4 && areWords;
  const int64_t base =
      bits == 4 ? from.low : (from.high > INT8_MAX ? 0 : INT8_MIN) + (isSigned ? 128 : 0);
  std::vector<float> zeros = stored.getZeros() ? graph::floatsOf(stored.getZeros())
                                               : std::vector<float>(1, 0.0F),
                     scales = graph::floatsOf(stored.getScales());
  bool isOne = llvm::all_of(zeros, [&](float each) { return each == zeros.front(); }) &&
               std::fabs(zeros.front()) <= UINT8_MAX && std::trunc(zeros.front()) == zeros.front();
  areZerosOwn = !isOne;
  zero = isOne ? static_cast<int64_t>(zeros.front()) - base : 0;
  isZeroExact = llvm::all_of(scales, [&](float scale) {
    double product = static_cast<double>(scale) * static_cast<double>(zero);
    return std::isfinite(scale) && product == static_cast<double>(static_cast<float>(product));
  });
  areFinite = llvm::all_of(llvm::concat<float>(scales, zeros),
                           [](float each) { return std::isfinite(each); });
  const int64_t all = stored.getColumns(), blocks = length / block;
  std::vector<char> packed(columns.size() * blocks * (blockBytes() / width()), 0);
  auto packColumn = [&](char *target, int64_t number, int64_t place, int64_t column) {
    for (int64_t k = 0; k < block; ++k) {
      int64_t inStep = k % step(), byte = inStep % 4;
      if (isWide)
        byte = byte == 1 ? 2 : byte == 2 ? 1 : byte; // of which even bytes are a pair, and odd ones
      char *at = target +
                 ((k / step() * vectors + place / lanes()) * lanes() + place % lanes()) * 4 + byte;
      int64_t code = from.at((number * block + k) * all + column) - base;
      *at = static_cast<char>(*at | code << (inStep / 4 * 4));
    }
    auto store = [&](int64_t vector, float value) {
      std::memcpy(target + codeBytes() + (vector * width() + place) * 4, &value, sizeof value);
    };
    store(0, scales[number * all + column]);
    if (areZerosOwn)
      store(1, zeros[number * all + column] - static_cast<float>(base));
  };
  parallelFor(stored.getContext(), 0, columns.size() / width(), [&](size_t panel) {
    for (int64_t number = 0; number < blocks; ++number)
      for (int64_t place = 0; place < width(); ++place)
        if (int64_t column = columns[panel * width() + place]; column >= 0)
          packColumn(packed.data() + (panel * blocks + number) * blockBytes(), number, place,
                     column);
  });
  data = kernel.addData(std::move(packed));
}

void IntegerPanels::roundRows(Value a, Block *group) {
  Dim count = graph::elementCount(graph::dimsOf(a)), blocks = count.floorDiv(Dim(block));
  Dim beyond(fitsMatrices() ? program::kMatrixSize * length : 0); // what matrixSums may read
  rows = kernel.addTemporary(count * Dim(isWide ? 2 : 1) + beyond);
  steps = kernel.addTemporary(blocks * Dim(4));
  if (areZerosOwn || zero != 0)
    totals = kernel.addTemporary(blocks * Dim(4));
  int64_t size = estimate::thresholdAt(group->getParentOp(), estimate::kProductCopy);
  int64_t ofTask = std::max<int64_t>(1, size / block);
  kernel.beginPhase();
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Value first = code.mul(task, code.number(ofTask));
    Value end = code.min(code.add(first, code.number(ofTask)), kernel.dim(blocks));
    code.forEach(first, end, 1, [&](Value number) { roundBlock(a, number); });
  });
  kernel.endPhase(blocks.ceilDiv(Dim(ofTask)), count.floorDiv(Dim(lanes())));
}

/// Floats of a tensor, which may have been stored as bf16 for other sizes' sake (ShortResults.h).
static Value floatsAt(KernelBuilder &kernel, Value a, Value at) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  if (!graph::storageOf(a).isBF16())
    return code.loadLanes(b.getF32Type(), kernel.pointer(a), at, {});
  Value bits = code.loadLanes(b.getI16Type(), kernel.pointer(a), at, {});
  bits = b.create<arith::ExtUIOp>(code.loc, code.vectorOf(b.getI32Type()), bits);
  bits = b.create<arith::ShLIOp>(code.loc, bits, code.spread(code.integerOf(b.getI32Type(), 16)));
  return b.create<arith::BitcastOp>(code.loc, code.vectorOf(b.getF32Type()), bits);
}

void IntegerPanels::roundBlock(Value a, Value number) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  Type word = b.getI32Type(), f32 = b.getF32Type();
  Value first = code.mul(number, code.number(block));
  Value none = code.spread(code.integerOf(word, 0));
  auto forEachVector = [&](vector::CombiningKind kind,
                           llvm::function_ref<Value(Value, Value)> next) {
    Value lanes = code.fold(code.number(0), code.number(block), code.lanes, none,
                            [&](Value i, ValueRange in) {
                              Value at = code.add(first, i);
                              return Values{next(at, in[0])};
                            })[0];
    return b.create<vector::ReductionOp>(code.loc, kind, lanes).getResult();
  };
  Value largest = forEachVector(vector::CombiningKind::MAXUI, [&](Value at, Value in) -> Value {
    Value bits = magnitudeBits(code, floatsAt(kernel, a, at));
    return b.create<arith::MaxUIOp>(code.loc, in, bits);
  });
  BlockRounding rounding = roundingOf(code, largest);
  Type element = isWide ? b.getI16Type() : b.getI8Type();
  Value sum = forEachVector(vector::CombiningKind::ADD, [&](Value at, Value in) -> Value {
    Value place = roundedBy(code, rounding, floatsAt(kernel, a, at));
    Value codes = b.create<arith::FPToSIOp>(code.loc, code.vectorOf(word), place);
    Value narrow = b.create<arith::TruncIOp>(code.loc, code.vectorOf(element), codes);
    code.storeLanes(element, narrow, kernel.temporary(rows), at, {});
    return b.create<arith::AddIOp>(code.loc, in, codes);
  });
  code.store(f32, rounding.step, kernel.temporary(steps), number);
  if (totals < 0)
    return;
  sum = b.create<arith::MulIOp>(code.loc, sum, code.integerOf(word, areZerosOwn ? -1 : -zero));
  if (areZerosOwn)
    sum = b.create<arith::SIToFPOp>(code.loc, f32, sum);
  code.store(sum.getType(), sum, kernel.temporary(totals), number);
}

Value IntegerPanels::dot(Value codes, Value word, Value sum) {
  auto kind = isWide                                            ? program::DotKind::Pairs
              : isHalved                                        ? program::DotKind::HalfBytes
              : kernel.machine.dot == program::Dot::SignedBytes ? program::DotKind::Bytes
                                                                : program::DotKind::UnsignedBytes;
  Code &code = kernel.code();
  return code.b.create<program::DotOp>(code.loc, kind, codes, code.spread(word), sum);
}

/// Adds the products of step() elements from `k` of a block on, whose codes begin at `bytes`, to
/// `sums`: those of the tile, and of a small tile again, as an instruction waits for its sum.
void IntegerPanels::addStep(const RegisterTile &tile, const Rows &rows, Value bytes, Value k,
                            Values &sums) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  Type byte = b.getI8Type(), word = b.getI32Type();
  auto constant = [&](int64_t value) { return code.spread(code.integerOf(word, value)); };
  auto load = [&](Type type, Value pointer, Value at) -> Value {
    return b.create<program::LoadOp>(code.loc, type, code.at(pointer, byte, at), /*alignment=*/1);
  };
  int64_t shift = bits == 4 ? 4 : 8, mask = bits == 4 ? 0x0f0f0f0f : 0x00ff00ff;
  SmallVector<Values, 2> parts(bits == 4 || isWide ? 2 : 1);
  Value at = code.mul(k, code.number(width() * bits / 8));
  for (int64_t j = 0; j < tile.vectors; ++j) {
    Value codes = load(code.vectorOf(word), bytes, code.add(at, code.number(j * lanes() * 4)));
    if (parts.size() == 1) {
      parts[0].push_back(codes);
      continue;
    }
    parts[0].push_back(b.create<arith::AndIOp>(code.loc, codes, constant(mask)));
    codes = b.create<arith::ShRUIOp>(code.loc, codes, constant(shift));
    parts[1].push_back(b.create<arith::AndIOp>(code.loc, codes, constant(mask)));
  }
  int64_t count = tile.rows * tile.vectors, chains = sums.size() / count;
  for (auto [number, codes] : llvm::enumerate(parts)) {
    Value place = code.add(code.mul(k, code.number(isWide ? 2 : 1)), code.number(number * 4));
    for (int64_t i = 0; i < tile.rows; ++i) {
      Value left = load(word, rows.codes[i], place);
      for (int64_t j = 0; j < tile.vectors; ++j) {
        Value &sum = sums[i * tile.vectors + j];
        sum = dot(codes[j], left, sum);
      }
    }
    if (chains > 1) // the other chain is next
      std::rotate(sums.begin(), sums.begin() + count, sums.end());
  }
}

/// The integer sums of a block, less the zeros that all codes have.
Values IntegerPanels::sumsOfBlock(const RegisterTile &tile, const Rows &rows, Value bytes,
                                  Value number) {
  constexpr int64_t kChained = 4;
  Code &code = kernel.code();
  Type word = code.b.getI32Type();
  int64_t count = tile.rows * tile.vectors;
  Value none = code.spread(code.integerOf(word, 0));
  Values sums(count <= kChained && !isHalved ? 2 * count : count, none);
  if (totals >= 0 && !areZerosOwn)
    for (int64_t i = 0; i < count; ++i)
      sums[i] = code.spread(code.load(word, rows.totals[i / tile.vectors], number));
  Rows inBlock;
  Value first = code.mul(number, code.number(block * (isWide ? 2 : 1)));
  for (Value row : rows.codes)
    inBlock.codes.push_back(code.at(row, code.b.getI8Type(), first));
  int64_t unrolled = std::gcd(isHalved ? kHalved : kUnrolled, block / step()) * step();
  Value ones = code.spread(code.integerOf(word, 0x10001));
  sums = code.fold(code.number(0), code.number(block), unrolled, sums, [&](Value k, ValueRange in) {
    Values next(in.begin(), in.end());
    if (isHalved)
      next.assign(count, none);
    for (int64_t i = 0; i < unrolled; i += step())
      addStep(tile, inBlock, bytes, code.add(k, code.number(i)), next);
    for (int64_t i = 0; isHalved && i < count; ++i)
      next[i] =
          code.b.create<program::DotOp>(code.loc, program::DotKind::Pairs, next[i], ones, in[i]);
    return next;
  });
  for (size_t i = count; i < sums.size(); ++i)
    sums[i - count] = code.b.create<arith::AddIOp>(code.loc, sums[i - count], sums[i]);
  sums.truncate(count);
  return sums;
}

/// Adds the sum of a block times the scales of its columns and of its row.
Value IntegerPanels::addScaled(Value block, Value scale, Value steps, Value number, Value sum) {
  Code &code = kernel.code();
  Type f32 = code.b.getF32Type();
  if (block.getType() != code.vectorOf(f32))
    block = code.b.create<arith::SIToFPOp>(code.loc, code.vectorOf(f32), block);
  // Scaled by one after the other, a sum overflows only where the result does.
  block = code.b.create<arith::MulFOp>(code.loc, block, scale);
  Value step = code.spread(code.load(f32, steps, number));
  return code.b.create<math::FmaOp>(code.loc, block, step, sum);
}

Value IntegerPanels::codesOf(Value panel) {
  Code &code = kernel.code();
  return code.at(kernel.data(data), code.b.getI8Type(),
                 code.mul(panel, code.number(bytesOfPanel())));
}

SmallVector<Value> IntegerPanels::sums(const RegisterTile &tile, const TileProduct &product,
                                       Value panel) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  Type f32 = b.getF32Type(), byte = b.getI8Type(), word = b.getI32Type();
  int64_t count = tile.rows * tile.vectors, blocks = length / block;
  Rows rows;
  for (Value row : product.aRows) {
    Value first = code.div(row, code.number(block));
    rows.codes.push_back(
        code.at(kernel.temporary(this->rows), byte, code.mul(row, code.number(isWide ? 2 : 1))));
    rows.steps.push_back(code.at(kernel.temporary(steps), f32, first));
    if (totals >= 0)
      rows.totals.push_back(code.at(kernel.temporary(totals), areZerosOwn ? f32 : word, first));
  }
  Value from = codesOf(panel);
  Values start(count, code.spread(code.constantOf(f32, 0)));
  Values made =
      code.fold(code.number(0), code.number(blocks), 1, start, [&](Value number, ValueRange in) {
        Value bytes = code.at(from, byte, code.mul(number, code.number(blockBytes())));
        for (int64_t line = 0; ahead && tile.rows == 1 && line < blockBytes(); line += 64)
          code.prefetch(bytes, byte, code.number(ahead + line));
        Values sums = sumsOfBlock(tile, rows, bytes, number);
        auto parameters = [&](int64_t which) {
          Values found;
          for (int64_t j = 0; j < tile.vectors; ++j)
            found.push_back(code.loadLanes(
                f32, code.at(bytes, byte, code.number(codeBytes() + which * width() * 4)),
                code.number(j * lanes()), {}));
          return found;
        };
        Values scales = parameters(0), zeros = areZerosOwn ? parameters(1) : Values(), next;
        for (int64_t i = 0; i < count; ++i) {
          int64_t row = i / tile.vectors, j = i % tile.vectors;
          Value sum = sums[i];
          if (areZerosOwn) {
            sum = b.create<arith::SIToFPOp>(code.loc, code.vectorOf(f32), sum);
            Value total = code.spread(code.load(f32, rows.totals[row], number));
            sum = b.create<math::FmaOp>(code.loc, total, zeros[j], sum);
          }
          next.push_back(addScaled(sum, scales[j], rows.steps[row], number, in[i]));
        }
        return next;
      });
  return SmallVector<Value>(made.begin(), made.end());
}

} // namespace heddle::lower
