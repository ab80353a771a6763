// Files: temporary folder, flush, rename.

#include "compiler/support/Files.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle::support {

static std::string irregularity(mode_t mode) {
  const char *kind = S_ISREG(mode)    ? nullptr
                     : S_ISDIR(mode)  ? "a folder"
                     : S_ISFIFO(mode) ? "a pipe"
                                      : "a device or a socket";
  return kind ? std::string("it is ") + kind + ", but a regular file is needed" : "";
}

std::string irregularity(llvm::StringRef path) {
  struct stat status;
  return stat(path.str().c_str(), &status) ? "" : irregularity(status.st_mode);
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readFile(llvm::StringRef what, llvm::StringRef path, int64_t maxBytes) {
  auto fail = [&](ErrorCode code, const llvm::Twine &why) {
    return makeError(code, "error: cannot read " + what + " '" + path + "': " + why);
  };
  int file = open(path.str().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return fail(ErrorCode::Usage, std::strerror(errno));
  auto closed = llvm::make_scope_exit([&] { ::close(file); });
  struct stat status;
  if (fstat(file, &status))
    return fail(ErrorCode::Usage, std::strerror(errno));
  if (std::string problem = irregularity(status.st_mode); !problem.empty())
    return fail(ErrorCode::Usage, problem);
  if (status.st_size > maxBytes)
    return fail(ErrorCode::Limit, "it has " + llvm::Twine(int64_t(status.st_size)) +
                                      " bytes, but at most " + llvm::Twine(maxBytes) +
                                      " are allowed");
  auto buffer = llvm::MemoryBuffer::getOpenFile(file, path, status.st_size,
                                                /*RequiresNullTerminator=*/true,
                                                /*IsVolatile=*/true);
  if (!buffer)
    return fail(ErrorCode::Usage, buffer.getError().message());
  return std::move(*buffer);
}

llvm::Error writeError(llvm::StringRef path, int errnoValue) {
  // Exhausted space is a limit; a file that cannot be written at all is the caller's mistake.
  bool ranOut =
      errnoValue == ENOSPC || errnoValue == EDQUOT || errnoValue == EFBIG || errnoValue == ENOMEM;
  return makeError(ranOut ? ErrorCode::Limit : ErrorCode::Usage,
                   "error: cannot write '" + path + "': " + std::strerror(errnoValue));
}

FileWriter::FileWriter(std::string name)
    : path(std::move(name)),
      descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor < 0)
    failure = errno;
}

FileWriter::~FileWriter() { close(); }

void FileWriter::write(llvm::StringRef bytes) {
  position += bytes.size();
  while (!failure && !bytes.empty()) {
    constexpr size_t largestCall = 1 << 30;
    ssize_t done = ::write(descriptor, bytes.data(), std::min(bytes.size(), largestCall));
    if (done >= 0)
      bytes = bytes.drop_front(done);
    else if (errno != EINTR)
      failure = errno;
  }
}

void FileWriter::zeros(int64_t count) {
  static const char block[4096] = {};
  for (; count > 0; count -= sizeof block)
    write(llvm::StringRef(block, std::min<int64_t>(count, sizeof block)));
}

int FileWriter::close() {
  if (descriptor < 0)
    return failure;
  if (::close(descriptor) && !failure)
    failure = errno;
  descriptor = -1;
  return failure;
}

int probeSize(const std::string &path, int64_t bytes) {
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    return errno;
  int failure = ftruncate(file, bytes) ? errno : 0;
  close(file);
  unlink(path.c_str());
  return failure;
}

static constexpr llvm::StringLiteral kHidden = ".heddle-writing-";

/// An open and locked folder, or -1 if another process has locked it.
static int lockFolder(const std::string &folder) {
  int lock = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB)) {
    close(lock);
    return -1;
  }
  return lock;
}

/// Removes the folders of processes that did not live to do so. Folders of the last minute stay: a
/// process may have made one and not locked it yet.
static void removeAbandoned(const std::string &parent) {
  std::error_code error;
  auto now = std::chrono::system_clock::now();
  for (llvm::sys::fs::directory_iterator at(parent, error, /*follow_symlinks=*/false), end;
       at != end && !error; at.increment(error)) {
    if (!llvm::sys::path::filename(at->path()).starts_with(kHidden))
      continue;
    auto status = at->status();
    if (!status || status->getUser() != geteuid() ||
        now - status->getLastModificationTime() < std::chrono::minutes(1))
      continue;
    int lock = lockFolder(at->path());
    if (lock < 0)
      continue;
    llvm::sys::fs::remove_directories(at->path(), /*IgnoreErrors=*/true);
    close(lock);
  }
}

/// The file that is to be replaced: `path`, or what it is a symbolic link to.
static llvm::Expected<std::string> targetOf(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status, /*follow=*/false))
    return path.str(); // a new file
  if (llvm::sys::fs::is_symlink_file(status)) {
    llvm::SmallString<256> target;
    if (std::error_code error = llvm::sys::fs::real_path(path, target))
      return writeError(path, error.value());
    return targetOf(target);
  }
  if (llvm::sys::fs::is_directory(status))
    return writeError(path, EISDIR);
  if (!llvm::sys::fs::is_regular_file(status))
    return makeError(ErrorCode::Usage, "error: cannot write '" + path +
                                           "': it is no regular file, and would be replaced");
  return path.str();
}

llvm::Expected<std::unique_ptr<Workplace>> Workplace::beside(llvm::StringRef path) {
  auto target = targetOf(path);
  if (!target)
    return target.takeError();
  llvm::StringRef parent = llvm::sys::path::parent_path(*target);
  std::string above = parent.empty() ? "." : parent.str();
  removeAbandoned(above);
  std::string folder = above + "/" + kHidden.str() + "XXXXXX";
  if (!mkdtemp(folder.data()))
    return writeError(path, errno);
  auto place = std::make_unique<Workplace>();
  place->folder = folder;
  place->path = *target;
  place->lock = lockFolder(folder);
  return place;
}

Workplace::~Workplace() {
  llvm::sys::fs::remove_directories(folder, /*IgnoreErrors=*/true);
  if (lock >= 0)
    close(lock);
}

llvm::Error Workplace::publish(llvm::StringRef name) {
  // Not flushed to the disk: what a power failure takes is compiled again.
  if (rename(file(name).c_str(), path.c_str()))
    return writeError(path, errno);
  return llvm::Error::success();
}

llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes) {
  llvm::sys::fs::file_status status;
  bool exists = !llvm::sys::fs::status(path, status);
  if (exists && !llvm::sys::fs::is_regular_file(status) && !llvm::sys::fs::is_directory(status)) {
    FileWriter writer(path.str());
    writer.write(bytes);
    int failure = writer.close();
    return failure ? writeError(path, failure) : llvm::Error::success();
  }
  auto place = Workplace::beside(path);
  if (!place)
    return place.takeError();
  FileWriter writer((*place)->file("text"));
  writer.write(bytes);
  if (int failure = writer.close())
    return writeError(path, failure);
  return (*place)->publish("text");
}

} // namespace heddle::support
