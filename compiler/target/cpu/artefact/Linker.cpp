// Linker: finds it, runs it, and turns what it says into an error.

#include "compiler/target/cpu/artefact/Linker.h"

#include "compiler/target/cpu/Versioned.h"

#include "llvm/Support/Program.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace heddle::cpu {
namespace {

struct Linker {
  std::string path;
  bool isDriver = false; // a C compiler, which wants -Wl, before a linker's arguments
};

/// The one that comes with this library, in a wheel: bin/heddle-ld beside lib/libheddle.so.
std::string ownLinker() {
  Dl_info about;
  if (!dladdr(reinterpret_cast<void *>(&runLinker), &about) || !about.dli_fname)
    return "";
  llvm::SmallString<256> path(about.dli_fname);
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::append(path, "..", "bin", "heddle-ld");
  return llvm::sys::fs::can_execute(path) ? path.str().str() : "";
}

llvm::Expected<Linker> findLinker(llvm::StringRef path) {
  if (std::string own = ownLinker(); !own.empty())
    return Linker{own, false};
  for (const std::string &name : {versioned("ld.lld"), std::string("ld.lld"), std::string("ld")})
    if (auto found = llvm::sys::findProgramByName(name))
      return Linker{*found, false};
  if (auto found = llvm::sys::findProgramByName("cc"))
    return Linker{*found, true};
  return makeError(ErrorCode::Limit, "error: cannot write '" + path +
                                         "': no linker found in PATH\nnote: looked for " +
                                         versioned("ld.lld") +
                                         ", ld.lld, ld and cc; Debian has them in '" +
                                         versioned("lld") + "' and 'binutils'");
}

std::vector<std::string> forDriver(const std::vector<std::string> &arguments) {
  std::vector<std::string> result = {"-nostdlib"};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    bool plain = argument[0] != '-' || argument == "-shared" || argument == "-r" ||
                 argument == "-o" || argument.rfind("-L", 0) == 0 || argument.rfind("-l", 0) == 0;
    if (argument == "-z")
      result.push_back("-Wl,-z," + arguments[++i]);
    else
      result.push_back(plain ? argument : "-Wl," + argument);
  }
  return result;
}

struct Ended {
  int status = 0;
  std::string output;
};

/// Runs `arguments`; its output comes through a pipe, so that a full disk does not lose it.
int runChild(const std::vector<std::string> &arguments, Ended &ended) {
  std::vector<char *> words;
  for (const std::string &argument : arguments)
    words.push_back(const_cast<char *>(argument.c_str()));
  words.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    return errno;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child;
  int failure = posix_spawn(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char buffer[4096];
  for (ssize_t got; !failure && (got = read(ends[0], buffer, sizeof buffer)) != 0;)
    if (got > 0)
      ended.output.append(buffer, got);
    else if (errno != EINTR)
      break;
  close(ends[0]);
  while (!failure && waitpid(child, &ended.status, 0) < 0)
    if (errno != EINTR)
      failure = errno;
  return failure;
}

} // namespace

llvm::Error runLinker(std::vector<std::string> arguments, llvm::StringRef path) {
  auto linker = findLinker(path);
  if (!linker)
    return linker.takeError();
  if (linker->isDriver)
    arguments = forDriver(arguments);
  arguments.insert(arguments.begin(), linker->path);
  Ended ended;
  if (int failure = runChild(arguments, ended))
    return makeError(ErrorCode::Limit, "error: cannot write '" + path + "': cannot run '" +
                                           linker->path + "': " + std::strerror(failure));
  if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0)
    return llvm::Error::success();
  std::string how = WIFSIGNALED(ended.status)
                        ? std::string("was killed by ") + strsignal(WTERMSIG(ended.status)) +
                              " (a full disk does that)"
                        : "exited with " + std::to_string(WEXITSTATUS(ended.status));
  return makeError(ErrorCode::Limit, "error: cannot write '" + path + "': '" + linker->path + "' " +
                                         how + ": " + llvm::StringRef(ended.output).trim());
}

bool hasLLVMLinker() {
  return !ownLinker().empty() || llvm::sys::findProgramByName(versioned("ld.lld")) ||
         llvm::sys::findProgramByName("ld.lld");
}

std::string pathOfLoaded(const char *name) {
  void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (!library)
    return "";
  link_map *map = nullptr;
  std::string path = dlinfo(library, RTLD_DI_LINKMAP, &map) ? "" : map->l_name;
  dlclose(library);
  return path;
}

} // namespace heddle::cpu
