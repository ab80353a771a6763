// File: whole files, read and written. A file appears whole or not at all.
#ifndef HEDDLE_TOOLS_HEDDLE_FILE_H
#define HEDDLE_TOOLS_HEDDLE_FILE_H

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace heddle::cli {

constexpr int64_t kMaxTextBytes = 256 << 20;           // limit of a plan, an explanation, assembly
constexpr int64_t kMaxTensorBytes = int64_t(64) << 30; // limit of an .npy or .pb file

/// Reads a regular file; other kinds are refused, and never waited for.
std::string readFile(const std::string &path, int64_t maxBytes = kMaxTextBytes);

/// Writes a temporary file beside `path`, which is then renamed. Other than regular files, such as
/// /dev/null, are written in place.
void writeFile(const std::string &path, std::string_view content);

/// An empty file in the folder for temporary files, which goes with this object.
class TemporaryFile {
public:
  /// `name` is a part of its name; `what` it is for, in messages.
  TemporaryFile(const std::string &name, const std::string &what);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile &) = delete;

  const std::string &path() const { return file; }

private:
  std::string file;
};

/// The folder of this binary, or an empty path if it is not known.
std::filesystem::path binaryFolder();

/// Is it an artefact? By its first bytes, or by the ending of its name.
bool isArtefact(const std::string &path);

} // namespace heddle::cli

#endif
