// Mapped: files in memory, whose pages the process need not hold once it has read them.
#ifndef HEDDLE_SUPPORT_MAPPED_H
#define HEDDLE_SUPPORT_MAPPED_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace heddle::support {

/// Shares a file's bytes. `letPagesGo` knows them, where they are a mapping, as long as they live.
std::shared_ptr<llvm::MemoryBuffer> shareFile(std::unique_ptr<llvm::MemoryBuffer> file);

/// Gives up the pages of `bytes` that are those of a file of `shareFile`: they stay readable, and
/// the system fetches them again. Other memory is left as it is. For any thread.
void letPagesGo(llvm::ArrayRef<char> bytes);

/// As `letPagesGo`, of a file that the caller knows to be mapped, for reading alone.
void letMappedPagesGo(llvm::ArrayRef<char> bytes);

/// Gives up the pages of the compiler's own code, some 90 MB, until it runs again.
void letCodeGo();

} // namespace heddle::support

#endif // HEDDLE_SUPPORT_MAPPED_H
