// Model: a model or an artefact, compiled or loaded, and the options that say how.
#ifndef HEDDLE_TOOLS_HEDDLE_MODEL_H
#define HEDDLE_TOOLS_HEDDLE_MODEL_H

#include "tools/heddle/handles.h"
#include "tools/heddle/tensor/difference.h"
#include "tools/heddle/tensor/feeds.h"
#include "tools/heddle/terminal/parser.h"

#include <nlohmann/json.hpp>

#include <functional>

namespace heddle::cli {

using Json = nlohmann::ordered_json;

/// Types of the kinds of heddle/compile_options.def.
namespace kinds {
using Text = std::string; // "": not given
using Path = std::string;
using Choice = std::string;
using Words = std::string;
using Number = int;
using Bytes = int64_t;
using Flag = bool;
} // namespace kinds

/// Who adds the flags of the table.
enum class Group { Common, Sizes, OpenSizes, Compile, Own };

/// heddle_compile_options_t with texts of its own.
struct CompileOptions {
#define HEDDLE_OPTION(kind, field, ...) kinds::kind field = {};
#define HEDDLE_OPTION_BY_HAND HEDDLE_OPTION
#define HEDDLE_LIST(field, ...) std::vector<std::string> field;
#include <heddle/compile_options.def>

  CompileOptions() { opt_level = 3; } // here 0 is what a compiler calls -O0
  bool isUncached = false;            // whatever the folder
  bool showProgress = false;
  std::vector<std::string> customOps; // libraries, which are loaded when they are read
  std::vector<std::string> dims;      // as shapes, for single sizes
  std::string trainingFile;           // file of the recipe
};

/// The flags of one group.
void addGroup(Parser app, CompileOptions &options, Group group);
void addCompileOptions(Parser app, CompileOptions &options);
/// --shape and --dim, which fix sizes for good, and those that leave sizes open
void addSizeOptions(Parser app, CompileOptions &options);
/// --cache
Argument addCacheOption(Parser app, Parser::Value folder);
/// --input, --shape, --dim, --data, --seed
void addFeedOptions(Parser app, FeedOptions &options);
void addTolerance(Parser app, Tolerance &tolerance);
/// Calls `use` with the options as the C API takes them, and shows its progress.
void withRawOptions(const CompileOptions &options,
                    const std::function<void(const heddle_compile_options_t &)> &use);

Compiled compileModel(const std::string &path, const CompileOptions &options);

/// A module in this process: an artefact that is loaded, else a model that is compiled. Where its
/// products have smaller numbers, a tolerance without a share gets one of 5e-2.
Module openModel(const std::string &path, const CompileOptions &options,
                 Tolerance *tolerance = nullptr);

std::vector<const heddle_value_t *> inputsOf(const Module &module);
std::vector<const heddle_value_t *> outputsOf(const Module &module);

/// Runs of one session on the same feeds. The outputs of the first run are where the next ones
/// write, so that a timed run allocates nothing.
class Runner {
public:
  /// Called with a group's number and its nanoseconds in each run.
  using Profile = std::function<void(int64_t group, int64_t nanoseconds)>;

  Runner(const Module &module, int threads, const Feeds &feeds, Profile profile = {});
  ~Runner();
  Runner(const Runner &) = delete;

  void run();
  /// Seeds the random numbers of the next run.
  void seed(uint64_t number) { heddle_session_seed(session.get(), number); }
  std::vector<Tensor> outputs() const;
  heddle_memory_t memory() const { return heddle_session_memory(session.get()); }
  int threads() const { return heddle_session_threads(session.get()); }

private:
  Profile profile;
  Session session;
  std::vector<heddle_tensor_t> inputs, results, reused;
};

/// Returns the value of a text; it is_discarded() where the text is none. The parser takes two
/// seconds to compile, so it is compiled once.
Json parseJson(const std::string &text);
/// {"name", "dtype", "shape"} and, with a limit, the first values.
Json describe(const std::string &name, const Tensor &tensor, int64_t firstValues = 0);
Json describe(const Difference &difference);
/// Standard output, in whole; a failure to write is a failure of the command.
void print(const std::string &text);
void print(const Json &json);
/// Standard error, a line each.
void printNotes(const std::vector<std::string> &notes);

} // namespace heddle::cli

#endif
