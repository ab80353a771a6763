// File: see file.h. POSIX calls, because streams do not say why they failed.

#include "tools/heddle/file.h"

#include "tools/heddle/failure.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle::cli {

namespace {
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
  int number;
};
} // namespace

[[noreturn]] static void failWriting(const std::string &path) {
  bool isFull = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  throw Failure(isFull ? HEDDLE_LIMIT : HEDDLE_USAGE,
                "cannot write '" + path + "': " + std::strerror(errno));
}

TemporaryFile::TemporaryFile(const std::string &name, const std::string &what) {
  std::string folder = std::filesystem::temp_directory_path();
  file = folder + "/heddle-" + name + "-XXXXXX";
  Descriptor made(mkostemp(file.data(), O_CLOEXEC));
  if (made.number < 0)
    throw Failure(HEDDLE_LIMIT, "cannot make a file in '" + folder + "' for " + what + ": " +
                                    std::strerror(errno) + "\nnote: TMPDIR names another folder");
}

TemporaryFile::~TemporaryFile() { unlink(file.c_str()); }

std::string readFile(const std::string &path, int64_t maxBytes) {
  auto failReading = [&] { failUsage("cannot read '" + path + "': " + std::strerror(errno)); };
  Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat about;
  if (file.number < 0 || fstat(file.number, &about))
    failReading();
  if (!S_ISREG(about.st_mode))
    failUsage("cannot read '" + path + "': it is " +
              (S_ISDIR(about.st_mode)    ? "a folder"
               : S_ISFIFO(about.st_mode) ? "a pipe"
                                         : "a device or a socket") +
              ", but a regular file is needed");
  if (about.st_size > maxBytes)
    throw Failure(HEDDLE_LIMIT, "cannot read '" + path + "': it has " +
                                    std::to_string(about.st_size) + " bytes, but at most " +
                                    std::to_string(maxBytes) + " are allowed");
  std::string content;
  char buffer[1 << 16];
  while (true) {
    ssize_t count = read(file.number, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      failReading();
    content.append(buffer, static_cast<size_t>(count));
    // Stops at the limit if the file grows meanwhile.
    if (count == 0 || static_cast<int64_t>(content.size()) > maxBytes)
      return content;
  }
}

static bool writeAll(int file, std::string_view content) {
  while (!content.empty()) {
    ssize_t count = write(file, content.data(), content.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    content.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void writeFile(const std::string &path, std::string_view content) {
  struct stat there;
  bool isInPlace = stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode);
  std::string target = isInPlace ? path : path + ".part-" + std::to_string(getpid());
  Descriptor file(
      open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (isInPlace ? 0 : O_TRUNC), 0666));
  if (file.number < 0)
    failWriting(path);
  bool isWritten = writeAll(file.number, content);
  if (isInPlace) {
    if (!isWritten)
      failWriting(path);
    return;
  }
  if (!isWritten || rename(target.c_str(), path.c_str()) != 0) {
    int reason = errno;
    unlink(target.c_str());
    errno = reason;
    failWriting(path);
  }
}

std::filesystem::path binaryFolder() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path();
}

bool isArtefact(const std::string &path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  char magic[4] = {};
  if (file.number >= 0 && read(file.number, magic, sizeof magic) == sizeof magic &&
      std::memcmp(magic, "\177ELF", sizeof magic) == 0)
    return true;
  return path.ends_with(".so");
}

} // namespace heddle::cli
