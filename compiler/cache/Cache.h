// Cache: what was compiled before, in a folder that processes share.
//
// An entry is one file, named by its key. It appears whole, by a rename, and its footer holds a
// digest of all that is before: what is damaged is removed and counts as missing. A use sets
// the file's time, so that what nobody uses goes first when the folder is over its limit. Nothing
// here is an error of a compilation: a cache that cannot be read has nothing, one that cannot be
// written keeps nothing.
#ifndef HEDDLE_CACHE_CACHE_H
#define HEDDLE_CACHE_CACHE_H

#include "compiler/cache/Entry.h"

#include <atomic>
#include <memory>

namespace llvm {
class MemoryBuffer;
}

namespace heddle::cache {

constexpr int64_t kDefaultLimitBytes = int64_t(10) << 30;

struct Usage {
  int64_t bytes = 0, entries = 0;
};

class Cache {
public:
  /// The folder is made when something is stored.
  explicit Cache(std::string folder, int64_t limitBytes = kDefaultLimitBytes)
      : folder(std::move(folder)), limitBytes(limitBytes) {}
  /// Counts what was stored, and makes room where that is over the limit.
  ~Cache() { settle(); }

  /// The entry of this key; whether its body is sound is not known yet.
  std::optional<Entry> open(const Digest &key) const;
  /// A copy of a sound body, or null.
  std::unique_ptr<llvm::MemoryBuffer> find(const Digest &key) const;

  void store(const Digest &key, llvm::StringRef body, llvm::StringRef note = "");
  /// Stores a body that is a file.
  void storeFile(const Digest &key, const std::string &path, llvm::StringRef note);
  void remove(const Digest &key) const;

  Usage usage() const;
  /// Removes the entries that were used last the longest ago, until at most `bytes` are left.
  /// Returns what is left.
  Usage shrink(int64_t bytes) const;

  const std::string &path() const { return folder; }
  int64_t limit() const { return limitBytes; }

  std::string pathOf(const Digest &key) const { return folder + "/" + hexOf(key); }
  /// Why the folder is not used although it is there; "" if it is.
  std::string complaint() const;

private:
  void place(const Digest &key, llvm::StringRef body, llvm::StringRef note, int source);
  void settle();

  std::string folder;
  int64_t limitBytes;
  std::atomic<int64_t> added{0};
};

/// heddle/compiled in the user's folder for caches; "" without a home.
std::string defaultFolder();

} // namespace heddle::cache

#endif // HEDDLE_CACHE_CACHE_H
