// Files: temporary folder, flush, rename.

#include "compiler/target/cpu/Files.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle::cpu {

llvm::Error writeError(llvm::StringRef path, int errnoValue) {
  // What ran out is a limit; where it cannot be written at all is the caller's mistake.
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

llvm::Expected<std::unique_ptr<Workplace>> Workplace::beside(llvm::StringRef path) {
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  std::string folder = (parent.empty() ? "." : parent.str()) + "/.heddle-XXXXXX";
  if (llvm::sys::fs::is_directory(path))
    return writeError(path, EISDIR);
  if (!mkdtemp(folder.data()))
    return writeError(path, errno);
  auto place = std::make_unique<Workplace>();
  place->folder = folder;
  place->path = path.str();
  return place;
}

Workplace::~Workplace() { llvm::sys::fs::remove_directories(folder, /*IgnoreErrors=*/true); }

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

} // namespace heddle::cpu
