// Digest: 128 bits of BLAKE3 that stand for bytes, and keys made of an entry's dependencies.
//
// A cryptographic hash, since models come from anywhere: no model can be made to be taken for
// another one.
#ifndef HEDDLE_CACHE_DIGEST_H
#define HEDDLE_CACHE_DIGEST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/BLAKE3.h"

#include <array>
#include <string>

namespace heddle::cache {

using Digest = std::array<uint8_t, 16>;

/// The digest of the digests of pieces, which threads make.
Digest digestOf(llvm::StringRef bytes);

/// Digest of a file that is mapped for reading: its pages are let go on the way.
Digest digestOfMapped(llvm::StringRef bytes);

/// 32 hexadecimal digits.
std::string hexOf(const Digest &digest);

/// The digest of a list of values; no two lists give the same bytes.
class Key {
public:
  /// `kind` tells apart what is kept; all keys change when the compiler's code does.
  explicit Key(llvm::StringRef kind);
  Key &add(llvm::StringRef text);
  Key &add(int64_t number);
  Key &add(const Digest &digest);
  Digest digest();

private:
  llvm::TruncatedBLAKE3<16> hasher;
};

} // namespace heddle::cache

#endif // HEDDLE_CACHE_DIGEST_H
