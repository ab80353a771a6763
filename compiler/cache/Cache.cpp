// Cache: files that are renamed to their place, and one number that says about how many bytes there
// are, so that the folder is only read when it is full.

#include "compiler/cache/Cache.h"

#include "compiler/cache/Folder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle::cache {
namespace {

namespace fs = llvm::sys::fs;

constexpr llvm::StringLiteral kTallyName = "bytes", kNewPrefix = "new-";

bool isEntryName(llvm::StringRef name) {
  return name.size() == 2 * sizeof(Digest) && llvm::all_of(name, llvm::isHexDigit);
}

struct File {
  std::string path;
  int64_t bytes;
  std::chrono::system_clock::time_point used;
};

/// The entries, and what writers that died have left an hour ago.
std::vector<File> filesIn(const std::string &folder, std::vector<std::string> &abandoned) {
  std::vector<File> files;
  std::error_code error;
  auto now = std::chrono::system_clock::now();
  for (fs::directory_iterator at(folder, error, /*follow_symlinks=*/false), end;
       at != end && !error; at.increment(error)) {
    llvm::StringRef name = llvm::sys::path::filename(at->path());
    auto status = at->status();
    if (!status)
      continue; // another process has removed it
    if (isEntryName(name))
      files.push_back({at->path(), int64_t(status->getSize()), status->getLastModificationTime()});
    else if (name.starts_with(kNewPrefix) &&
             now - status->getLastModificationTime() > std::chrono::hours(1))
      abandoned.push_back(at->path());
  }
  return files;
}

Usage sumOf(llvm::ArrayRef<File> files) {
  Usage usage;
  for (const File &file : files) {
    usage.bytes += file.bytes;
    ++usage.entries;
  }
  return usage;
}

/// The number of bytes that `folder` holds, locked against other processes.
class Tally {
public:
  explicit Tally(const Folder &folder) : file(folder.openFile(kTallyName.str(), O_RDWR | O_CREAT)) {
    while (file >= 0 && flock(file, LOCK_EX) && errno == EINTR)
      ;
  }
  ~Tally() {
    if (file >= 0)
      close(file);
  }
  explicit operator bool() const { return file >= 0; }
  std::optional<int64_t> read() const {
    char text[32];
    ssize_t size = pread(file, text, sizeof text, 0);
    int64_t number;
    if (size <= 0 || llvm::StringRef(text, size).trim().getAsInteger(10, number))
      return std::nullopt;
    return number;
  }
  void write(int64_t bytes) const {
    std::string text = std::to_string(bytes) + "\n";
    if (ftruncate(file, 0) || pwrite(file, text.data(), text.size(), 0) < 0)
      return; // counted again by the next one
  }

private:
  int file;
};

} // namespace

std::optional<Entry> Cache::open(const Digest &key) const {
  Folder trusted(folder);
  if (!trusted)
    return std::nullopt;
  bool isDamaged;
  auto entry = Entry::open(trusted, key, isDamaged);
  if (isDamaged)
    remove(key);
  if (entry)
    utimensat(trusted.get(), hexOf(key).c_str(), nullptr, AT_SYMLINK_NOFOLLOW); // it is in use
  return entry;
}

std::unique_ptr<llvm::MemoryBuffer> Cache::find(const Digest &key) const {
  auto entry = open(key);
  if (!entry)
    return nullptr;
  auto copy = llvm::MemoryBuffer::getMemBufferCopy(entry->body());
  if (entry->isSound())
    return copy;
  remove(key);
  return nullptr;
}

void Cache::store(const Digest &key, llvm::StringRef body, llvm::StringRef note) {
  place(key, body, note, -1);
}

void Cache::storeFile(const Digest &key, const std::string &path, llvm::StringRef note) {
  int source = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (source >= 0 && !fstat(source, &status) && status.st_size > 0) {
    void *memory = mmap(nullptr, status.st_size, PROT_READ, MAP_SHARED, source, 0);
    if (memory != MAP_FAILED) {
      place(key, {static_cast<char *>(memory), size_t(status.st_size)}, note, source);
      munmap(memory, status.st_size);
    }
  }
  if (source >= 0)
    ::close(source);
}

void Cache::place(const Digest &key, llvm::StringRef body, llvm::StringRef note, int source) {
  int64_t bytes = body.size() + note.size();
  if (bytes > limitBytes)
    return;
  Folder trusted(folder, /*makes=*/true);
  if (!trusted)
    return;
  static std::atomic<int64_t> number{0};
  std::string made = kNewPrefix.str() + std::to_string(getpid()) + "-" + std::to_string(number++) +
                     "-" + hexOf(key);
  if (writeEntry(trusted, made, key, body, note, source) ||
      ::renameat(trusted.get(), made.c_str(), trusted.get(), hexOf(key).c_str()))
    ::unlinkat(trusted.get(), made.c_str(), 0);
  else
    added += bytes;
}

void Cache::remove(const Digest &key) const {
  if (Folder trusted(folder); trusted)
    ::unlinkat(trusted.get(), hexOf(key).c_str(), 0);
}

std::string Cache::complaint() const { return Folder(folder).complaint(); }

void Cache::settle() {
  if (!added)
    return;
  Tally tally{Folder(folder)};
  if (!tally)
    return;
  auto before = tally.read();
  int64_t bytes = before ? *before + added : usage().bytes;
  // Some more than needed goes, since the folder has to be read for it.
  tally.write(bytes > limitBytes ? shrink(limitBytes - limitBytes / 8).bytes : bytes);
  added = 0;
}

Usage Cache::usage() const {
  if (!Folder(folder))
    return {};
  std::vector<std::string> abandoned;
  return sumOf(filesIn(folder, abandoned));
}

Usage Cache::shrink(int64_t bytes) const {
  if (!Folder(folder))
    return {};
  std::vector<std::string> abandoned;
  std::vector<File> files = filesIn(folder, abandoned);
  for (const std::string &path : abandoned)
    ::unlink(path.c_str());
  llvm::sort(files, [](const File &a, const File &b) {
    return a.used != b.used ? a.used < b.used : a.path < b.path;
  });
  Usage usage = sumOf(files);
  for (const File &file : files) {
    if (usage.bytes <= bytes)
      break;
    ::unlink(file.path.c_str());
    usage.bytes -= file.bytes;
    --usage.entries;
  }
  return usage;
}

std::string defaultFolder() {
  llvm::SmallString<256> path;
  if (!llvm::sys::path::cache_directory(path) || !llvm::sys::path::is_absolute(path))
    return "";
  llvm::sys::path::append(path, "heddle", "compiled");
  return path.str().str();
}

} // namespace heddle::cache
