// Pipeline: the path of a model, in one list.
#ifndef HEDDLE_PIPELINE_PIPELINE_H
#define HEDDLE_PIPELINE_PIPELINE_H

#include "compiler/cache/Cache.h"
#include "compiler/support/Json.h"
#include "compiler/target/Backend.h"

#include "llvm/Support/ThreadPool.h"

#include <set>

namespace heddle {

namespace plan {
struct Plan;
}
namespace learn {
class Model;
}
namespace partition {
class FusionPolicy;
}

/// Types of the kinds of heddle/compile_options.def.
namespace options {
using Text = std::string;
using Path = std::string;
using Choice = bool; // true for its last word
using Words = std::set<std::string>;
using Number = int;
using Bytes = int64_t;
using Flag = bool;
} // namespace options

#ifdef NDEBUG
constexpr bool kIsDebug = false;
#else
constexpr bool kIsDebug = true;
#endif

struct CompileOptions {
#define HEDDLE_OPTION(kind, field, member, value, ...) options::kind member = value;
#define HEDDLE_LIST(field, count, member, ...) std::vector<std::string> member;
#include "heddle/compile_options.def"

  int optLevel = 3;
  bool keepsSubnormals = false; // else they are 0
  bool isStrict = false;        // rounds as the ops do
  bool areIntegers = false;     // products with constant weights, unless a plan says which
  /// How products have factors of bf16; None: only where a plan says so.
  program::ShortFloats shortFloats = program::ShortFloats::None;
  std::string kvCacheType;                                    // "": as the model has them
  std::string planText;                                       // content of planPath
  std::vector<std::pair<std::string, std::string>> functions; // names and bytes of functionPaths
  std::vector<std::string> scheduleFolders;
  std::string oneDnn;                      // the file of its library; "" lets the system find it
  std::shared_ptr<learn::Model> costModel; // chooses where records do not; null: the rules
  std::string costModelProblem;            // why that of costModelPath is not used
  std::shared_ptr<cache::Cache> cache;     // null: everything is compiled anew
  std::function<void(llvm::StringRef stage, double fraction)> progress;
  std::function<void(llvm::StringRef stage, llvm::StringRef text)> print;
  const partition::FusionPolicy *fusion = nullptr; // null: for lanes
  bool isSanitized = false;                        // see program::Program
  bool isPlanned = false; // the graph's groups have their schedules: begins at lower
};

/// A group that was made and then split again, since its kernel could not be made or did not pay.
struct Feedback {
  std::string group, step, why;
};

/// A group whose mechanism does not serve it, and that is computed element by element instead.
struct Simplified {
  std::string group, mechanism;
};

struct Compiled {
  std::unique_ptr<llvm::DefaultThreadPool> pool; // the context's, if jobs are limited
  // Early, so that it goes late: the modules live in it, and program.weights borrows from it.
  std::shared_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> graph;
  program::Program program;
  std::shared_ptr<const target::Target> target;
  std::unique_ptr<target::Code> code; // null if it was only planned
  program::Machine machine;
  bool isStrict = false;                                         // no cards of `math = "fast"`
  program::ShortFloats shortFloats = program::ShortFloats::None; // as the options ask
  std::map<std::string, std::string> whyPrecision;               // of groups that have a choice
  bool plansOnly = false;
  std::vector<std::string> scheduleFolders;
  std::string fingerprint;                 // the model's, before anything was chosen
  std::shared_ptr<const plan::Plan> given; // empty if the options have none
  std::string planJson, reportJson;
  std::string costJson; // what the cost model said of each group; "" if there is none
  std::vector<Feedback> feedback;
  std::vector<Simplified> simplified;
  /// Variants for the other targets that were asked for, the one that asks most first; this one
  /// asks more than all of them, and its weights hold theirs.
  std::vector<std::unique_ptr<Compiled>> variants;
};

/// A model as a file, or as bytes that stand for one.
struct ModelSource {
  std::string path; // or a name for messages
  std::optional<llvm::ArrayRef<char>> bytes;
};

llvm::Expected<std::unique_ptr<Compiled>> compile(const ModelSource &source,
                                                  const CompileOptions &options);

/// Compiles a module of the graph dialect (one func @main) that lives in `context`.
llvm::Expected<std::unique_ptr<Compiled>> compileGraph(std::shared_ptr<mlir::MLIRContext> context,
                                                       mlir::OwningOpRef<mlir::ModuleOp> graph,
                                                       const CompileOptions &options);

/// The groups that were split again, as JSON: of each its name, step and reason.
Json feedbackJson(const Compiled &compiled);
/// Ops that compute on dequantised values all the same, as JSON: of each the ONNX node's name, the
/// graph op and the reason.
Json unfoldedJson(const Compiled &compiled);

/// The groups as graph ops; the kernels and the program around them as loops.
std::string graphText(const Compiled &compiled);
llvm::Expected<std::string> loopsText(const Compiled &compiled);

/// Refuses a target, shapes and a recipe that no model could be compiled with.
llvm::Error checkOptions(const CompileOptions &options);

/// The imported graph, as the reference interpreter takes it.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importGraph(mlir::MLIRContext &context, const ModelSource &source, const CompileOptions &options);

/// Imports as compileGraph begins: with the options' sizes and the outputs that share memory.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importGiven(mlir::MLIRContext &context, const ModelSource &source, const CompileOptions &options);

} // namespace heddle

#endif // HEDDLE_PIPELINE_PIPELINE_H
