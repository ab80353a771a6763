// Folder: the cache's folder, which only its owner may write to.
//
// An artefact of the cache is code that will run, so an entry must come from this user: the folder
// and each file in it belong to the user of this process, nobody else may write to them, and no
// symbolic link, pipe or device stands for one of them. All files are reached through the open
// folder, so that none of this changes between the check and the use.
#ifndef HEDDLE_CACHE_FOLDER_H
#define HEDDLE_CACHE_FOLDER_H

#include <string>

namespace heddle::cache {

class Folder {
public:
  /// Opens the folder; `makes` says whether a missing one is made.
  explicit Folder(const std::string &path, bool makes = false);
  ~Folder();
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;

  /// Whether it is there and can be trusted.
  explicit operator bool() const { return descriptor >= 0; }
  int get() const { return descriptor; }
  /// Why it cannot be trusted; "" if it can, or is not there.
  const std::string &complaint() const { return whyNot; }
  /// A regular file that only its owner may write to, or -1. `flags` are those of open.
  int openFile(const std::string &name, int flags) const;

private:
  int descriptor = -1;
  std::string whyNot;
};

} // namespace heddle::cache

#endif // HEDDLE_CACHE_FOLDER_H
