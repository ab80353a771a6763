// Digest: pieces of 4 MiB, so that the digest does not depend on the number of threads.

#include "compiler/cache/Digest.h"

#include "compiler/cache/Identity.h"
#include "compiler/support/Mapped.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Threading.h"

#include <atomic>
#include <thread>

namespace heddle::cache {

static llvm::ArrayRef<uint8_t> bytesOf(llvm::StringRef text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

/// `done` hears of each piece that was read.
static Digest digestOf(llvm::StringRef bytes, void (*done)(llvm::ArrayRef<char>)) {
  constexpr size_t piece = 4 << 20;
  std::vector<Digest> digests(llvm::divideCeil(bytes.size(), piece));
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < digests.size();) {
      llvm::StringRef read = bytes.substr(i * piece, piece);
      digests[i] = llvm::BLAKE3::hash<16>(bytesOf(read));
      done({read.data(), read.size()});
    }
  };
  size_t cores = llvm::hardware_concurrency().compute_thread_count();
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min({cores, digests.size(), size_t(4)}); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  return llvm::BLAKE3::hash<16>(
      {reinterpret_cast<const uint8_t *>(digests.data()), digests.size() * sizeof(Digest)});
}

Digest digestOf(llvm::StringRef bytes) {
  return digestOf(bytes, [](llvm::ArrayRef<char>) {});
}

Digest digestOfMapped(llvm::StringRef bytes) { return digestOf(bytes, support::letMappedPagesGo); }

std::string hexOf(const Digest &digest) { return llvm::toHex(digest, /*LowerCase=*/true); }

Key::Key(llvm::StringRef kind) {
  add(kind);
  add(codeIdentity());
}

Key &Key::add(int64_t number) {
  hasher.update(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(&number), sizeof number));
  return *this;
}

Key &Key::add(llvm::StringRef text) {
  add(int64_t(text.size()));
  hasher.update(bytesOf(text));
  return *this;
}

Key &Key::add(const Digest &digest) {
  hasher.update(llvm::ArrayRef(digest.data(), digest.size()));
  return *this;
}

Digest Key::digest() { return hasher.final(); }

} // namespace heddle::cache
