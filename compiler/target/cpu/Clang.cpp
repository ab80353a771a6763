// Clang: source and bitcode go through files in memory, so that nothing is left behind whatever
// happens.

#include "compiler/target/cpu/Clang.h"

#include "compiler/target/cpu/Versioned.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/Program.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace heddle::cpu {

static constexpr const char *kAttribute = "heddle-handwritten";
static constexpr std::chrono::seconds kMostTime(60);

static std::string missing() {
  return "there is no '" + versioned("clang") + "' or 'clang' in PATH; install Debian's '" +
         versioned("clang") + "'";
}

/// The path of clang; nullopt if there is none.
static std::optional<std::string> clangInPath() {
  for (const std::string &name : {versioned("clang"), std::string("clang")})
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  return std::nullopt;
}

std::string whyNoClang() { return clangInPath() ? "" : "its kernel is C or C++, but " + missing(); }

namespace {
/// A file without a name.
struct MemoryFile {
  int descriptor = memfd_create("heddle", MFD_CLOEXEC);
  MemoryFile() = default;
  MemoryFile(const MemoryFile &) = delete;
  ~MemoryFile() { close(descriptor); }

  bool write(llvm::StringRef text) {
    while (!text.empty()) {
      ssize_t done = ::write(descriptor, text.data(), text.size());
      if (done < 0 && errno != EINTR)
        return false;
      text = text.drop_front(std::max<ssize_t>(done, 0));
    }
    return lseek(descriptor, 0, SEEK_SET) == 0;
  }
  std::string read() {
    std::string text;
    char buffer[1 << 14];
    lseek(descriptor, 0, SEEK_SET);
    for (ssize_t got; (got = ::read(descriptor, buffer, sizeof buffer)) != 0;)
      if (got > 0)
        text.append(buffer, got);
      else if (errno != EINTR)
        break;
    return text;
  }
};
} // namespace

/// Waits for the child, for so long; nullopt when it had to be killed.
static std::optional<int> waitFor(pid_t child) {
  auto end = std::chrono::steady_clock::now() + kMostTime;
  for (int status;;) {
    pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child)
      return status;
    if (ended < 0 && errno != EINTR)
      return -1;
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

static llvm::Expected<std::string> findClang(llvm::StringRef path) {
  if (auto found = clangInPath())
    return *found;
  return makeError(ErrorCode::Limit,
                   path + ": error: a kernel of a card is C or C++, but " + missing());
}

static std::vector<std::string> commandOf(const std::string &clang, llvm::StringRef path,
                                          const Target &target) {
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  bool isC = llvm::sys::path::extension(path) == ".c";
  return {clang, "-x", isC ? "c" : "c++", isC ? "-std=gnu17" : "-std=gnu++20", "-", "-c",
          "-emit-llvm", "-o", "-", "-iquote", folder.empty() ? "." : folder.str(),
          "--target=" + target.triple, (target.isArm() ? "-mcpu=" : "-march=") + target.cpu,
          "-fPIC", "-O2",
          // Optimisation comes later, together with the holes that the code calls.
          "-Xclang", "-disable-llvm-passes", "-fvisibility=hidden", "-fno-math-errno",
          "-fno-stack-protector", "-fno-exceptions", "-fno-unwind-tables",
          "-fno-asynchronous-unwind-tables", "-Wno-psabi", "-Werror=implicit-function-declaration",
          "-fno-color-diagnostics", "-fno-caret-diagnostics"};
}

static llvm::Expected<std::string> compileOne(const program::Source &source, const Target &target) {
  auto clang = findClang(source.path);
  if (!clang)
    return clang.takeError();
  auto refuse = [&](ErrorCode code, const llvm::Twine &what) {
    return makeError(code, source.path + ": error: " + what);
  };
  MemoryFile input, output, messages;
  if (!input.write(source.header + "#line 1 \"" + source.path + "\"\n" + source.code))
    return refuse(ErrorCode::Limit, llvm::Twine("no memory for it: ") + std::strerror(errno));
  std::vector<std::string> words = commandOf(*clang, source.path, target);
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.descriptor, 0);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor, 1);
  posix_spawn_file_actions_adddup2(&actions, messages.descriptor, 2);
  pid_t child;
  int failure = posix_spawn(&child, clang->c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure)
    return refuse(ErrorCode::Limit, "cannot run '" + *clang + "': " + std::strerror(failure));
  std::optional<int> status = waitFor(child);
  if (!status)
    return refuse(ErrorCode::Usage, "'" + *clang + "' took more than " +
                                        llvm::Twine(kMostTime.count()) +
                                        " s for it; make the kernel smaller");
  if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0)
    return output.read();
  std::string text = llvm::StringRef(messages.read()).trim().str();
  return makeError(ErrorCode::Usage,
                   text.empty() ? source.path + ": error: '" + *clang + "' failed" : text);
}

llvm::Error compileSources(std::vector<program::Source> &sources, const Target &target) {
  std::map<std::string, std::string> known; // kernels of one card are often equal
  for (program::Source &source : sources) {
    std::string &bitcode = known[source.header + source.path + source.code];
    if (bitcode.empty()) {
      auto made = compileOne(source, target);
      if (!made)
        return made.takeError();
      bitcode = std::move(*made);
    }
    source.bitcode = bitcode;
  }
  return llvm::Error::success();
}

bool isHandwritten(const llvm::Function &function) { return function.hasFnAttribute(kAttribute); }

llvm::Error linkSources(llvm::Module &module, const std::vector<program::Source> &sources) {
  for (const program::Source &source : sources) {
    auto parsed = llvm::parseBitcodeFile({source.bitcode, source.path}, module.getContext());
    if (!parsed)
      return makeError(
          ErrorCode::Limit,
          source.path + ": error: the clang of this machine is not the one that belongs to LLVM " +
              std::to_string(LLVM_VERSION_MAJOR) + ": " + llvm::toString(parsed.takeError()) +
              "; install Debian's '" + versioned("clang") + "'");
    (*parsed)->setDataLayout(module.getDataLayout());
    (*parsed)->setTargetTriple(module.getTargetTriple());
    for (const std::string &name : source.wanted) {
      llvm::Function *function = (*parsed)->getFunction("heddle_" + name);
      if (!function || function->isDeclaration())
        return makeError(ErrorCode::Usage, source.path + ": error: it does not define 'heddle_" +
                                               name + "' (docs/spec/cards.md)");
    }
    for (llvm::Function &function : **parsed) {
      llvm::StringRef name = function.getName();
      if (!function.isDeclaration())
        function.addFnAttr(kAttribute);
      if (name.consume_front("heddle_"))
        function.setName(source.prefix + name);
    }
    if (llvm::Linker::linkModules(module, std::move(*parsed)))
      return makeError(ErrorCode::Internal,
                       "internal error: '" + source.path + "' could not be linked");
  }
  return llvm::Error::success();
}

} // namespace heddle::cpu
