// Backend: what the stages before it ask of a target, and the table of all that there are.
//
// A backend is a folder below compiler/target and a row of the table in Backends.cpp. It knows by
// which names it is asked for; of each name it makes a target, which says what schedules have to
// know of it and turns a program into code.
#ifndef HEDDLE_TARGET_BACKEND_H
#define HEDDLE_TARGET_BACKEND_H

#include "compiler/program/Machine.h"
#include "compiler/program/Program.h"
#include "compiler/support/Error.h"

typedef struct heddle_executable heddle_executable_t;

namespace heddle::cache {
class Cache;
}

namespace heddle::target {

class Backend;

/// Requirements of a compilation on its targets besides their names.
struct Request {
  int threads = 0; // 1: artefacts without a pool
  bool isProfiled = false, isSanitized = false;
  bool keepsSubnormals = false;
  std::string oneDnn = ""; // the file of oneDNN's library; "" lets the system find it
};

struct EmitOptions {
  int optLevel = 3;
  unsigned jobs = 1;             // threads of the compiler
  cache::Cache *cache = nullptr; // cache of code from earlier compilations
};

/// A program in memory that the runtime can run, with all that it reads.
class LoadedProgram {
public:
  virtual ~LoadedProgram() = default;
  virtual const heddle_executable_t *executable() const = 0;
};

/// A target's code of a program, which each function is given again.
class Code {
public:
  virtual ~Code() = default;
  /// The code as text, for a reader.
  virtual llvm::Expected<std::string> text(const program::Program &program) const = 0;
  /// Refused where this process cannot run it (Target::whyNotHere).
  virtual llvm::Expected<std::shared_ptr<LoadedProgram>>
  load(const program::Program &program) const = 0;

  int64_t parts = 0, bytes = 0;
  int64_t fromCache = 0; // number of cached parts
};

/// One thing that a program is compiled for: a CPU, or a language.
class Target {
public:
  Target(const Backend &backend, std::string name, std::string identity)
      : backend(backend), name(std::move(name)), identity(std::move(identity)) {}
  virtual ~Target() = default;

  /// The machine that schedules see, for runs with so many workers.
  virtual program::Machine machine(int64_t workers) const = 0;
  /// Equal for targets that make the same code of a program.
  virtual std::string fingerprint() const { return identity; }
  /// Features that a CPU must have, as the runtime asks for them.
  virtual std::vector<std::string> required() const { return {}; }
  /// "" if code may call the library "libdnnl.so.2", else why not.
  virtual std::string whyNoLibrary(llvm::StringRef file) const = 0;
  /// "" if kernels written in C or C++ can be compiled for it, else why not.
  virtual std::string whyNoSources() const = 0;
  /// Treatment of results below the normal numbers: "keep", "flush", or "caller", whose mode of the
  /// CPU decides.
  virtual llvm::StringRef subnormals() const = 0;
  /// "" if this process may load its code, else the end of a sentence about the target, "which is
  /// ...", and a note with the way out.
  virtual std::string whyNotHere() const = 0;
  /// May lower `program` on the way.
  virtual llvm::Expected<std::unique_ptr<Code>> emit(program::Program &program,
                                                     const EmitOptions &options) const = 0;

  const Backend &backend;
  const std::string name;
  const std::string identity; // equal for targets whose measurements may be exchanged
};

using Targets = std::vector<std::shared_ptr<const Target>>;

/// A program in its form for one target.
struct Form {
  const program::Program *program;
  const Target *target;
  const Code *code;
};

struct WriteOptions {
  std::string kind; // one of Backend::kinds
  int threads = 0;  // as in Request
};

class Backend {
public:
  virtual ~Backend() = default;
  /// Name of its folder; plans say it.
  virtual llvm::StringRef name() const = 0;
  /// Folders below `schedules` whose cards it takes, as far as they ask for nothing that its
  /// targets lack.
  virtual llvm::ArrayRef<llvm::StringRef> cards() const = 0;
  /// Kinds of files that it writes.
  virtual llvm::ArrayRef<llvm::StringRef> kinds() const = 0;
  /// A `--target` of its own, for messages.
  virtual llvm::StringRef example() const = 0;
  /// All names of its targets.
  virtual std::vector<std::string> targetNames() const = 0;
  /// Whether `--target` means this one. The last backend of the table is asked about all else.
  virtual bool isMeant(llvm::StringRef names) const = 0;
  /// The targets of one artefact, from the one that asks least to the one that asks most.
  virtual llvm::Expected<Targets> targetsFor(llvm::StringRef names,
                                             const Request &request) const = 0;
  /// Writes `path` whole or not at all. `variants`: the same model for other targets, the one that
  /// asks most first; all of their weights are in those of `form`.
  virtual llvm::Error write(const Form &form, llvm::ArrayRef<Form> variants,
                            const WriteOptions &options, llvm::StringRef path) const = 0;
  /// The C header that is beside an artefact, "" if there is none.
  virtual std::string header(const program::Program &program) const = 0;
  /// Passes of its own, for heddle-opt.
  virtual void registerPasses() const {}
};

/// All backends, in the order in which they are asked whether they are meant.
llvm::ArrayRef<const Backend *> backends();

/// Targets of the backend that is meant: "host", "x86-64-v2+v3+v4", "c".
llvm::Expected<Targets> targetsFor(llvm::StringRef names, const Request &request);
/// As targetsFor, of one name.
llvm::Expected<std::shared_ptr<const Target>> targetFor(llvm::StringRef name);

/// Refuses to run `model` in this process where its code is for something else.
llvm::Error checkRunsHere(const Target &target, llvm::StringRef model);

} // namespace heddle::target

#endif // HEDDLE_TARGET_BACKEND_H
