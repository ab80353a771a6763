// Integers: constants as numbers that fill 32 bits, and what sums of shifted ones begin with.

#include "compiler/lower/contraction/Integers.h"

using namespace mlir;

namespace heddle::lower {

int64_t shortBitsOf(float number) {
  auto bits = llvm::bit_cast<uint32_t>(number);
  if (std::isnan(number))
    return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/// An integer of a constant, or the bits of a float of one as bf16.
static int64_t integerAt(ArrayRef<char> bytes, Type element, int64_t i) {
  if (element.isF32()) {
    float number;
    std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
    return shortBitsOf(number);
  }
  if (element.isInteger(16)) {
    int16_t word;
    std::memcpy(&word, bytes.data() + i * 2, 2);
    return word;
  }
  auto byte = static_cast<int8_t>(bytes[i]);
  return element.isUnsignedInteger() ? static_cast<uint8_t>(byte) : byte;
}

void packIntegers(const ProductLayout &layout, const PanelSource &source,
                  std::vector<char> &packed) {
  Type from = graph::storageOf(layout.shape.b);
  int64_t length = *layout.shape.length.constant(), width = layout.panelWidth();
  int64_t filled = llvm::alignTo(length, layout.stepLength()),
          rows = *layout.panelRows().constant();
  auto number = [&](int64_t row, int64_t column) {
    int64_t inPiece = row % filled;
    if (inPiece >= length || source.columns[column] < 0)
      return int64_t(0);
    int64_t first = source.rows[row / filled * length + inPiece];
    return integerAt(source.bytes, from, first + source.columns[column]);
  };
  auto part = packConstantDots(layout.shape.root->getContext(), layout.depth, rows,
                               *layout.panels.constant(), width, number);
  packed.insert(packed.end(), part.begin(), part.end());
}

std::vector<char> startsOf(const ProductLayout &layout, ArrayRef<char> packed, int64_t columns) {
  int64_t width = layout.panelWidth(), rows = *layout.panelRows().constant();
  std::vector<int32_t> start(std::max<int64_t>(1, columns), 0);
  for (int64_t panel = 0; panel < columns / width; ++panel)
    for (int64_t i = 0; i < rows * width; ++i)
      start[panel * width + i / layout.depth % width] +=
          shiftOfSums(layout.kernel.machine) *
          static_cast<int8_t>(packed[panel * rows * width + i]);
  auto bytes = reinterpret_cast<const char *>(start.data());
  return std::vector<char>(bytes, bytes + start.size() * sizeof(int32_t));
}

SmallVector<Value> startAt(const ProductLayout &layout, Value pointer, Value panelNumber,
                           int64_t rows) {
  Code &code = layout.kernel.code();
  Value first = code.mul(panelNumber, code.number(layout.panelWidth()));
  SmallVector<Value> row, start;
  for (int64_t j = 0; j < layout.vectors; ++j)
    row.push_back(code.loadLanes(layout.accumulator, pointer,
                                 code.add(first, code.number(j * code.lanes)), {}));
  for (int64_t i = 0; i < rows; ++i)
    llvm::append_range(start, row);
  return start;
}

} // namespace heddle::lower
