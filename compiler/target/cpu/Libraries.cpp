// Libraries: which libraries that calls need this machine has.

#include "compiler/target/cpu/Target.h"

#include <dlfcn.h>
#include <mutex>

namespace heddle::cpu {

static std::string whyNotOpened(const std::string &file) {
  if (dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE))
    return "";
  return std::string("oneDNN is not on this machine: ") + dlerror() +
         "; install Debian's 'libdnnl2', or name its file in HEDDLE_ONEDNN";
}

std::string whyNoLibrary(const Target &target, llvm::StringRef file) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known; // keyed by file
  if (!target.isHost)
    return "";
  std::string path = target.oneDnn.empty() ? file.str() : target.oneDnn;
  std::lock_guard<std::mutex> lock(mutex);
  auto [place, isNew] = known.try_emplace(path);
  if (isNew)
    place->second = whyNotOpened(path);
  return place->second;
}

} // namespace heddle::cpu
