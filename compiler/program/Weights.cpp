// Weights: equal bytes are stored once, whichever program of a model asks for them.

#include "compiler/program/Program.h"

#include "llvm/Support/xxhash.h"

namespace heddle::program {

const Weights::Piece *Weights::find(llvm::ArrayRef<char> bytes, uint64_t hash) const {
  auto [first, last] = byContent.equal_range(hash);
  for (auto each = first; each != last; ++each)
    if (pieces[each->second].bytes == bytes)
      return &pieces[each->second];
  return nullptr;
}

static uint64_t hashOf(llvm::ArrayRef<char> bytes) {
  return llvm::xxh3_64bits(llvm::StringRef(bytes.data(), bytes.size()));
}

int64_t Weights::add(llvm::ArrayRef<char> bytes, uint64_t hash) {
  int64_t offset = (size + 63) / 64 * 64;
  byContent.emplace(hash, pieces.size());
  pieces.push_back({offset, bytes});
  size = offset + static_cast<int64_t>(bytes.size());
  return offset;
}

int64_t Weights::borrow(llvm::ArrayRef<char> bytes) {
  uint64_t hash = hashOf(bytes);
  usedBytes += bytes.size();
  const Piece *known = find(bytes, hash);
  return known ? known->offset : add(bytes, hash);
}

int64_t Weights::own(std::vector<char> bytes) {
  uint64_t hash = hashOf(bytes);
  usedBytes += bytes.size();
  if (const Piece *known = find(bytes, hash))
    return known->offset;
  owned.push_back(std::make_shared<std::vector<char>>(std::move(bytes)));
  return add(*owned.back(), hash);
}

Weights Weights::shared() const {
  Weights copy = *this;
  copy.usedBytes = 0;
  return copy;
}

} // namespace heddle::program
