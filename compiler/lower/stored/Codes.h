// Codes: the integers of at most 8 bits that a constant in fewer bits is kept as.
#ifndef HEDDLE_LOWER_STORED_CODES_H
#define HEDDLE_LOWER_STORED_CODES_H

#include "compiler/graph/Constants.h"

namespace heddle::lower {

class Codes {
public:
  explicit Codes(mlir::ElementsAttr codes) : bytes(graph::constantBytes(codes, storage)) {
    mlir::Type element = codes.getElementType();
    for (int64_t code = 0; code < 256; ++code) {
      char byte = static_cast<char>(code);
      numbers[code] = static_cast<int64_t>(*graph::elementAt(byte, element, 0));
    }
    for (char code : bytes) {
      low = std::min(low, numbers[static_cast<uint8_t>(code)]);
      high = std::max(high, numbers[static_cast<uint8_t>(code)]);
    }
  }

  int64_t at(int64_t place) const { return numbers[static_cast<uint8_t>(bytes[place])]; }
  /// Whether 4 bits hold what codes are more than the lowest one.
  bool fitHalves() const { return high - low < 16; }

  int64_t low = INT64_MAX, high = INT64_MIN; // of all

private:
  std::vector<char> storage;
  llvm::ArrayRef<char> bytes;
  int64_t numbers[256];
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_STORED_CODES_H
