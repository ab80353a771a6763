// Panels: packing of codes, and the code that makes them floats.

#include "compiler/lower/stored/Panels.h"

#include "compiler/graph/Constants.h"
#include "compiler/lower/stored/Codes.h"

using namespace mlir;

namespace heddle::lower {

static constexpr int64_t kLine = 64;

StoredPanels::StoredPanels(KernelBuilder &kernel, graph::StoredAttr stored,
                           ArrayRef<int64_t> columns, int64_t vectors, int64_t ahead)
    : kernel(kernel), stored(stored), vectors(vectors), rows(stored.getRows()),
      block(stored.getBlock()), ahead(ahead) {
  pack(columns);
}

/// [panels][blocks][width] of what is less than `values` by a number; 0 where there is no column.
int64_t StoredPanels::packParameters(ElementsAttr values, ArrayRef<int64_t> columns, double less) {
  std::vector<float> from = graph::floatsOf(values), packed(columns.size() * (rows / block), 0);
  float *target = packed.data();
  for (size_t first = 0; first < columns.size(); first += width())
    for (int64_t b = 0; b < rows / block; ++b)
      for (int64_t column : columns.slice(first, width())) {
        if (column >= 0)
          *target = from[b * stored.getColumns() + column] - static_cast<float>(less);
        ++target;
      }
  auto bytes = reinterpret_cast<const char *>(packed.data());
  return kernel.addData(std::vector<char>(bytes, bytes + packed.size() * sizeof(float)));
}

/// Whole numbers take 4 bits where their range allows it, else 8, without their zero if it is one
/// for all.
void StoredPanels::pack(ArrayRef<int64_t> columns) {
  std::vector<char> storage;
  ArrayRef<char> from = graph::constantBytes(stored.getCodes(), storage);
  Type element = stored.getCodes().getElementType();
  int64_t base = 0, width = graph::bytesOf(element);
  std::optional<Codes> whole;
  if (isa<IntegerType>(element)) {
    whole.emplace(stored.getCodes());
    auto [low, high] = std::pair(whole->low, whole->high);
    bits = whole->fitHalves() ? 4 : 8;
    double zero = 0;
    std::vector<float> each =
        stored.getZeros() ? graph::floatsOf(stored.getZeros()) : std::vector<float>();
    bool isUniform = llvm::all_of(each, [&](float other) { return other == each.front(); });
    if (isUniform && !each.empty())
      zero = each.front();
    bool isSmall = std::fabs(zero) <= UINT8_MAX; // zeros that are floats may be any
    auto wholeZero = static_cast<int64_t>(isSmall ? zero : 0);
    if (bits == 4)
      base = low;
    else if (isUniform && low - wholeZero >= INT8_MIN && high - wholeZero <= INT8_MAX)
      base = wholeZero;
    else
      base = high > INT8_MAX ? 128 : 0;
    offset = static_cast<double>(base) - zero;
    if (!isUniform) {
      zeros = packParameters(stored.getZeros(), columns, static_cast<double>(base));
      offset = 0;
    }
  } else if (stored.getZeros()) {
    zeros = packParameters(stored.getZeros(), columns, 0);
  }
  if (stored.getScales())
    scales = packParameters(stored.getScales(), columns, 0);
  std::vector<char> packed(columns.size() / this->width() * rows * rowBytes(), 0);
  char *target = packed.data();
  const int64_t all = stored.getColumns(), size = rowBytes(), ofPanel = this->width();
  std::vector<std::pair<int64_t, int64_t>> halves; // the byte of a place of 4 bits, and its shift
  for (int64_t place = 0; place < ofPanel; ++place) {
    // The vectors of a pair share bytes: the first has their low halves.
    int64_t vector = place / lanes();
    halves.push_back({vector / 2 * lanes() + place % lanes(), vector % 2 * 4});
  }
  for (size_t first = 0; first < columns.size(); first += ofPanel)
    for (int64_t k = 0; k < rows; ++k, target += size)
      for (int64_t place = 0; place < ofPanel; ++place) {
        int64_t column = columns[first + place];
        if (column < 0)
          continue;
        const char *code = from.data() + (k * all + column) * width;
        if (bits == 16) {
          std::memcpy(target + place * 2, code, 2);
          continue;
        }
        int64_t value = whole->at(k * all + column) - base;
        auto [byte, shift] = bits == 8 ? std::pair(place, int64_t(0)) : halves[place];
        target[byte] = static_cast<char>(target[byte] | value << shift);
      }
  codes = kernel.addData(std::move(packed));
}

/// Integers of 32 bits as floats with the offset.
Value StoredPanels::floatsOf(Value raw) {
  Code &code = kernel.code();
  Type f32 = code.b.getF32Type();
  Value floats = code.b.create<arith::SIToFPOp>(code.loc, code.vectorOf(f32), raw);
  if (offset == 0)
    return floats;
  return code.b.create<arith::AddFOp>(code.loc, floats, code.spread(code.constantOf(f32, offset)));
}

/// The codes of a row, which begins at the pointer `row`, as vectors of floats without their zero.
Values StoredPanels::codesAt(Value row, ValueRange zero) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  Type byte = b.getI8Type(), word = b.getI32Type(), f32 = b.getF32Type();
  VectorType words = code.vectorOf(word);
  auto constant = [&](int64_t value) { return code.spread(code.integerOf(word, value)); };
  auto load = [&](Type type, int64_t at) -> Value {
    Value address = code.at(row, byte, code.number(at));
    return b.create<program::LoadOp>(code.loc, code.vectorOf(type), address, /*alignment=*/1);
  };
  for (int64_t line = 0; line < rowBytes(); line += kLine)
    code.prefetch(row, byte, code.number(ahead + line));
  Values floats;
  Type element = stored.getCodes().getElementType();
  for (int64_t j = 0; j < vectors; ++j) {
    if (element.isBF16()) {
      Value raw = b.create<arith::ExtUIOp>(code.loc, words, load(b.getI16Type(), j * lanes() * 2));
      raw = b.create<arith::ShLIOp>(code.loc, raw, constant(16));
      floats.push_back(b.create<arith::BitcastOp>(code.loc, code.vectorOf(f32), raw));
    } else if (bits == 16) {
      floats.push_back(
          b.create<arith::ExtFOp>(code.loc, code.vectorOf(f32), load(element, j * lanes() * 2)));
    } else if (bits == 8) {
      floats.push_back(
          floatsOf(b.create<arith::ExtSIOp>(code.loc, words, load(byte, j * lanes()))));
    } else {
      Value pair = b.create<arith::ExtUIOp>(code.loc, words, load(byte, j / 2 * lanes()));
      Value half = j % 2 ? b.create<arith::ShRUIOp>(code.loc, pair, constant(4)).getResult()
                         : b.create<arith::AndIOp>(code.loc, pair, constant(15)).getResult();
      floats.push_back(floatsOf(half));
    }
    if (!zero.empty())
      floats.back() = b.create<arith::SubFOp>(code.loc, floats.back(), zero[j]);
  }
  return floats;
}

/// Vectors of the scales or zeros of a block of a panel; none if there are none.
Values StoredPanels::parametersAt(int64_t data, Value panel, Value number) {
  Values found;
  if (data < 0)
    return found;
  Code &code = kernel.code();
  Value blocks = code.number(rows / block);
  Value first = code.mul(code.add(code.mul(panel, blocks), number), code.number(width()));
  for (int64_t j = 0; j < vectors; ++j)
    found.push_back(code.loadLanes(code.b.getF32Type(), kernel.data(data),
                                   code.add(first, code.number(j * lanes())), {}));
  return found;
}

SmallVector<Value> StoredPanels::sums(const RegisterTile &tile, const TileProduct &product,
                                      Value panel) {
  Code &code = kernel.code();
  Type f32 = code.b.getF32Type(), byte = code.b.getI8Type();
  int64_t count = tile.rows * tile.vectors;
  Values start(count, code.spread(code.constantOf(f32, 0)));
  // A block is summed before it is scaled, if the registers hold its sums and a row's codes. Those
  // of the blocks before may wait in memory.
  bool isScaledLast = count + 2 * tile.vectors < kernel.machine.registers;
  Values inRows;
  for (Value row : product.aRows)
    inRows.push_back(code.at(product.a, f32, row));
  Value panelBytes = code.number(rows * rowBytes());
  Value from = code.at(kernel.data(codes), byte, code.mul(panel, panelBytes));
  Values sums = code.fold(
      code.number(0), code.number(rows / block), 1, start, [&](Value number, ValueRange in) {
        bool isLast = isScaledLast && scales >= 0;
        Values scale = isLast ? Values() : parametersAt(scales, panel, number),
               zero = parametersAt(zeros, panel, number);
        Value first = code.mul(number, code.number(block));
        Values next = code.fold(
            code.number(0), code.number(block), 1, isLast ? ValueRange(start) : in,
            [&](Value k, ValueRange partial) {
              Value row = code.add(first, k);
              Values right =
                  codesAt(code.at(from, byte, code.mul(row, code.number(rowBytes()))), zero);
              Values added;
              for (int64_t j = 0; j < tile.vectors && !isLast && !scale.empty(); ++j)
                right[j] = code.b.create<arith::MulFOp>(code.loc, right[j], scale[j]);
              for (int64_t i = 0; i < tile.rows; ++i) {
                Value left = code.spread(code.load(f32, inRows[i], row));
                for (int64_t j = 0; j < tile.vectors; ++j)
                  added.push_back(code.b.create<math::FmaOp>(code.loc, left, right[j],
                                                             partial[i * tile.vectors + j]));
              }
              return added;
            });
        if (isLast)
          scale = parametersAt(scales, panel, number);
        for (int64_t i = 0; i < count && isLast; ++i)
          next[i] = code.b.create<math::FmaOp>(code.loc, next[i], scale[i % tile.vectors], in[i]);
        return next;
      });
  return SmallVector<Value>(sums.begin(), sums.end());
}

void StoredPanels::decode(Value panel, Value target, Value at) {
  Code &code = kernel.code();
  Type f32 = code.b.getF32Type(), byte = code.b.getI8Type();
  Value from = code.at(kernel.data(codes), byte, code.mul(panel, code.number(rows * rowBytes())));
  code.forEach(code.number(0), code.number(rows / block), 1, [&](Value number) {
    Values scale = parametersAt(scales, panel, number), zero = parametersAt(zeros, panel, number);
    Value first = code.mul(number, code.number(block));
    code.forEach(first, code.add(first, code.number(block)), 1, [&](Value row) {
      Values right = codesAt(code.at(from, byte, code.mul(row, code.number(rowBytes()))), zero);
      for (int64_t j = 0; j < vectors; ++j) {
        if (!scale.empty())
          right[j] = code.b.create<arith::MulFOp>(code.loc, right[j], scale[j]);
        Value place = code.add(code.mul(row, code.number(width())), code.number(j * lanes()));
        code.storeLanes(f32, right[j], target, code.add(at, place), {});
      }
    });
  });
}

} // namespace heddle::lower
