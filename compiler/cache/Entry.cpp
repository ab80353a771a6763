// Entry: body, note, footer, in this order, so that a body is where a linker or loader wants it.

#include "compiler/cache/Entry.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <future>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace heddle::cache {
namespace {

struct Footer {
  char magic[8];
  uint64_t bodySize, noteSize;
  Digest key, ofBody, ofRest;
};
constexpr char magic[8] = {'H', 'e', 'd', 'd', 'l', 'e', 'C', '1'};

/// Digest of the note and of the footer before this field.
Digest digestOfRest(const Footer &footer, llvm::StringRef note) {
  std::string rest(reinterpret_cast<const char *>(&footer), offsetof(Footer, ofRest));
  return digestOf(rest + note.str());
}

int writeAll(int file, llvm::StringRef bytes) {
  while (!bytes.empty()) {
    constexpr size_t largestCall = 1 << 30;
    ssize_t done = ::write(file, bytes.data(), std::min(bytes.size(), largestCall));
    if (done < 0 && errno != EINTR)
      return errno;
    bytes = bytes.drop_front(std::max<ssize_t>(done, 0));
  }
  return 0;
}

} // namespace

std::optional<Entry> Entry::open(const Folder &folder, const Digest &key, bool &isDamaged) {
  Entry entry;
  isDamaged = false;
  entry.file = folder.openFile(hexOf(key), O_RDONLY);
  struct stat status;
  if (entry.file < 0 || fstat(entry.file, &status))
    return std::nullopt;
  isDamaged = true;
  entry.size = status.st_size;
  if (entry.size < sizeof(Footer))
    return std::nullopt;
  void *mapped = mmap(nullptr, entry.size, PROT_READ, MAP_SHARED, entry.file, 0);
  if (mapped == MAP_FAILED)
    return std::nullopt;
  entry.memory = static_cast<const char *>(mapped);
  Footer footer;
  std::memcpy(&footer, entry.memory + entry.size - sizeof footer, sizeof footer);
  size_t content = entry.size - sizeof footer;
  if (std::memcmp(footer.magic, magic, sizeof magic) || footer.key != key ||
      footer.bodySize > content || footer.noteSize != content - footer.bodySize)
    return std::nullopt;
  entry.bodySize = footer.bodySize;
  entry.noteSize = footer.noteSize;
  entry.ofBody = footer.ofBody;
  if (footer.ofRest != digestOfRest(footer, entry.note()))
    return std::nullopt;
  isDamaged = false;
  return entry;
}

Entry::Entry(Entry &&other)
    : file(std::exchange(other.file, -1)), memory(std::exchange(other.memory, nullptr)),
      size(other.size), bodySize(other.bodySize), noteSize(other.noteSize), ofBody(other.ofBody) {}

Entry::~Entry() {
  if (memory)
    munmap(const_cast<char *>(memory), size);
  if (file >= 0)
    close(file);
}

bool Entry::isSound() const { return digestOfMapped(body()) == ofBody; }

int Entry::copyTo(const std::string &path) const {
  int target = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0777);
  if (target < 0)
    return errno;
  // One core reads while another one writes.
  auto sound = std::async(std::launch::async, [this] { return isSound(); });
  int failure = copyBytes(file, body(), target);
  if (close(target) && !failure)
    failure = errno;
  return sound.get() ? failure : EBADMSG;
}

int copyBytes(int source, llvm::StringRef memory, int target) {
  off_t from = 0;
  while (!memory.empty()) {
    ssize_t done = copy_file_range(source, &from, target, nullptr, memory.size(), 0);
    if (done <= 0)
      return writeAll(target, memory); // other file systems, and what is not a file
    memory = memory.drop_front(done);
  }
  return 0;
}

int writeEntry(const Folder &folder, const std::string &name, const Digest &key,
               llvm::StringRef body, llvm::StringRef note, int source) {
  int file = folder.openFile(name, O_WRONLY | O_CREAT | O_EXCL);
  if (file < 0)
    return EACCES;
  Footer footer{};
  std::memcpy(footer.magic, magic, sizeof magic);
  footer.bodySize = body.size();
  footer.noteSize = note.size();
  footer.key = key;
  footer.ofBody = source >= 0 ? digestOfMapped(body) : digestOf(body);
  footer.ofRest = digestOfRest(footer, note);
  int failure = source >= 0 ? copyBytes(source, body, file) : writeAll(file, body);
  if (!failure)
    failure = writeAll(file, note);
  if (!failure)
    failure = writeAll(file, {reinterpret_cast<const char *>(&footer), sizeof footer});
  if (close(file) && !failure)
    failure = errno;
  return failure;
}

} // namespace heddle::cache
