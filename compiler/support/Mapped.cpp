// Mapped: a table of the files that are mapped.

#include "compiler/support/Mapped.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#include <link.h>
#include <map>
#include <mutex>
#include <sys/mman.h>

namespace heddle::support {
namespace {

struct Table {
  std::mutex mutex;
  std::map<const char *, const char *> ends; // keyed by begin
};

/// Never destroyed: constants of a context may outlive all that is static.
Table &table() {
  static auto *known = new Table;
  return *known;
}

} // namespace

std::shared_ptr<llvm::MemoryBuffer> shareFile(std::unique_ptr<llvm::MemoryBuffer> file) {
  if (!file || file->getBufferKind() != llvm::MemoryBuffer::MemoryBuffer_MMap)
    return file;
  {
    std::lock_guard<std::mutex> lock(table().mutex);
    table().ends[file->getBufferStart()] = file->getBufferEnd();
  }
  return {file.release(), [](llvm::MemoryBuffer *mapped) {
            {
              std::lock_guard<std::mutex> lock(table().mutex);
              table().ends.erase(mapped->getBufferStart());
            }
            delete mapped;
          }};
}

void letMappedPagesGo(llvm::ArrayRef<char> bytes) {
  constexpr uintptr_t page = 4096;
  uintptr_t begin = llvm::alignTo(reinterpret_cast<uintptr_t>(bytes.begin()), page),
            end = llvm::alignDown(reinterpret_cast<uintptr_t>(bytes.end()), page);
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

void letCodeGo() {
  auto let = [](dl_phdr_info *library, size_t, void *) {
    auto *base = reinterpret_cast<const char *>(library->dlpi_addr);
    llvm::StringRef name = llvm::sys::path::filename(library->dlpi_name);
    bool isOurs =
        name.starts_with("libheddle") || name.starts_with("libMLIR") || name.starts_with("libLLVM");
    for (const ElfW(Phdr) & part : llvm::ArrayRef(library->dlpi_phdr, library->dlpi_phnum))
      if (isOurs && part.p_type == PT_LOAD && (part.p_flags & PF_X) && !(part.p_flags & PF_W))
        letMappedPagesGo({base + part.p_vaddr, part.p_filesz});
    return 0;
  };
  dl_iterate_phdr(let, nullptr);
}

void letPagesGo(llvm::ArrayRef<char> bytes) {
  std::lock_guard<std::mutex> lock(table().mutex);
  auto found = table().ends.upper_bound(bytes.begin());
  if (found != table().ends.begin() && bytes.end() <= std::prev(found)->second)
    letMappedPagesGo(bytes);
}

} // namespace heddle::support
