// Files: artefacts appear whole or not at all.
#ifndef HEDDLE_SUPPORT_FILES_H
#define HEDDLE_SUPPORT_FILES_H

#include "compiler/support/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <string>

namespace heddle::support {

constexpr int64_t kMaxTextBytes = 64 << 20; // limit of a plan, a list of sizes

/// "" if `path` is a regular file or nothing, else "it is a pipe, but a regular file is needed".
std::string irregularity(llvm::StringRef path);

/// The bytes of a regular file, which are `what` in messages: "error: cannot read plan 'p': ...".
/// Other kinds of files are never waited for.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readFile(llvm::StringRef what, llvm::StringRef path, int64_t maxBytes);

/// "error: cannot write 'out/model.so': No space left on device".
llvm::Error writeError(llvm::StringRef path, int errnoValue);

/// A file that bytes are appended to. The first failure is kept and reported by `close`.
class FileWriter {
public:
  explicit FileWriter(std::string path);
  ~FileWriter();
  void write(llvm::StringRef bytes);
  void zeros(int64_t count);
  int64_t written() const { return position; }
  /// errno of the first failure, or 0; the bytes are the system's then.
  int close();

private:
  std::string path;
  int descriptor, failure = 0;
  int64_t position = 0;
};

/// Errno if a file of so many bytes may not be made at `path`, or 0. No file is left.
int probeSize(const std::string &path, int64_t bytes);

/// A hidden folder beside `path`, removed with all its files by the destructor. A file in it moves
/// to `path` in one step. Only a regular file is replaced, and through a symbolic link the file
/// that it names. The folder is locked while this process lives, so that the next one removes what
/// a killed process has left.
class Workplace {
public:
  static llvm::Expected<std::unique_ptr<Workplace>> beside(llvm::StringRef path);
  ~Workplace();
  std::string file(llvm::StringRef name) const { return folder + "/" + name.str(); }
  /// Renames `name` to the path.
  llvm::Error publish(llvm::StringRef name);

private:
  std::string folder, path;
  int lock = -1;
};

/// Pipes and devices are written to as they are.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes);

} // namespace heddle::support

#endif // HEDDLE_SUPPORT_FILES_H
