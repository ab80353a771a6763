// Folder: see Folder.h.

#include "compiler/cache/Folder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle::cache {

static constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

/// "" or what is wrong with who may write to it.
static std::string complaintOf(const struct stat &status) {
  if (status.st_uid != geteuid())
    return "it belongs to user " + std::to_string(status.st_uid) + ", but this is user " +
           std::to_string(geteuid());
  if (status.st_mode & kOthersMayWrite)
    return "other users may write to it";
  return "";
}

Folder::Folder(const std::string &path, bool makes) {
  if (makes) {
    // Folders above may be anybody's; the cache's own is the user's.
    llvm::StringRef above = llvm::sys::path::parent_path(path);
    if (!above.empty() && llvm::sys::fs::create_directories(above))
      return;
    if (mkdir(path.c_str(), 0700) && errno != EEXIST)
      return;
  }
  int opened = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) {
    if (errno == ELOOP || errno == ENOTDIR)
      whyNot = "it is no folder";
    return;
  }
  struct stat status;
  whyNot = fstat(opened, &status) ? "it cannot be looked at" : complaintOf(status);
  if (!whyNot.empty()) {
    close(opened);
    return;
  }
  descriptor = opened;
}

Folder::~Folder() {
  if (descriptor >= 0)
    close(descriptor);
}

int Folder::openFile(const std::string &name, int flags) const {
  if (descriptor < 0)
    return -1;
  // A pipe would wait for its other end.
  int file = openat(descriptor, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  struct stat status;
  if (file < 0 || (!fstat(file, &status) && S_ISREG(status.st_mode) && complaintOf(status).empty()))
    return file;
  close(file);
  return -1;
}

} // namespace heddle::cache
