// Entry: one file of the cache: a body, a note beside it, and a footer that vouches for both.
#ifndef HEDDLE_CACHE_ENTRY_H
#define HEDDLE_CACHE_ENTRY_H

#include "compiler/cache/Digest.h"
#include "compiler/cache/Folder.h"

#include <optional>

namespace heddle::cache {

/// A mapped entry. It stays readable when another process removes the file.
class Entry {
public:
  /// Nothing if there is no file, or one that is cut off, of another key or with a wrong note;
  /// `isDamaged` says which. The body is not read yet.
  static std::optional<Entry> open(const Folder &folder, const Digest &key, bool &isDamaged);
  Entry(Entry &&other);
  Entry &operator=(Entry &&) = delete;
  ~Entry();

  llvm::StringRef body() const { return {memory, bodySize}; }
  llvm::StringRef note() const { return {memory + bodySize, noteSize}; }
  /// Reads the whole body.
  bool isSound() const;
  /// Writes the body to a new file, which may share its blocks with this one where the file system
  /// can do that. Errno, or 0; EBADMSG when the body is damaged.
  int copyTo(const std::string &path) const;

private:
  Entry() = default;
  int file = -1;
  const char *memory = nullptr;
  size_t size = 0, bodySize = 0, noteSize = 0;
  Digest ofBody{};
};

/// Writes an entry to a new file: its body is `body`, or when `source` is an open file all bytes of
/// that, which `body` then maps. Errno, or 0.
int writeEntry(const Folder &folder, const std::string &name, const Digest &key,
               llvm::StringRef body, llvm::StringRef note, int source = -1);

/// Copies the first `bytes` of an open file to another's position, in the kernel where it can; they
/// lie at `memory`, too. Errno, or 0.
int copyBytes(int source, llvm::StringRef memory, int target);

} // namespace heddle::cache

#endif // HEDDLE_CACHE_ENTRY_H
