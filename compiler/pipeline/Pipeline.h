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
namespace cost {
class Model;
}

struct CompileOptions {
  std::string target = "host"; // or several: target::targetsFor
  int optLevel = 3;
  std::vector<std::string> shapes;  // "x=1x3x?x?", "batch=4"
  std::vector<std::string> typical; // "seq=128"; see graph/Typical.h
  std::vector<std::string> inPlace; // "new_state=state"; see graph/edit/Sharing.h
  std::vector<std::string> ragged;  // "batch:seq=lengths"; see ragged/Ragged.h
  bool packsRows = false;           // results of ragged rows have no padding
  std::string training;             // a recipe (training/Recipe.h); "" compiles for inference
  std::vector<std::pair<std::string, std::string>> functions; // files of them: names and bytes
  std::string planText, planPath; // a plan to carry out; empty lets the chooser decide
  std::vector<std::string> scheduleFolders;
  std::string recordsPath;                     // of tuning; "" for none
  std::shared_ptr<cost::Model> costModel;      // chooses where records do not; null: the rules
  std::string costModelPath, costModelProblem; // its file, and why that is not used
  std::set<std::string> without;               // see heddle/compiler.h
  int64_t memoryLimitBytes = 0;                // of a run (see MemoryLimit.h); 0: as it comes
  int threads = 0;                             // 1 makes an artefact without a pool
  int64_t foldLimitBytes = int64_t(64) << 20;  // larger constants stay ops
  int jobs = 0;                                // threads of the compiler; 0: all cores it may use
  std::shared_ptr<cache::Cache> cache;         // null: everything is compiled anew
  bool isProfiled = false;                     // see program::Program
  bool isSanitized = false;                    // the same
  bool isStrict = false;                       // no cards of `math = "fast"`, halves are rounded
  bool keepsSubnormals = false;                // else results that would be subnormal are 0
  std::function<void(llvm::StringRef stage, double fraction)> progress;
  std::set<std::string> printAfter; // names of stages, whose modules `print` gets as text
  std::function<void(llvm::StringRef stage, llvm::StringRef text)> print;
  bool isPlanned = false; // the graph's groups have their schedules: begins at lower
  bool plansOnly = false; // ends after the plan: there are no objects
#ifdef NDEBUG
  bool verifiesStages = false; // the module is verified after each stage (see Verify.h)
#else
  bool verifiesStages = true;
#endif
};

/// A group that was made and then split again, since its kernel could not be made or did not pay.
struct Feedback {
  std::string group, kind, why;
};

/// A group whose mechanism does not serve it, and that is computed element by element instead.
struct Simplified {
  std::string group, mechanism;
};

struct Compiled {
  std::unique_ptr<llvm::DefaultThreadPool> pool; // of the context, where jobs are limited
  // Early, so that it goes late: the modules live in it, and program.weights borrows from it.
  std::shared_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> graph;
  program::Program program;
  std::shared_ptr<const target::Target> target;
  std::unique_ptr<target::Code> code; // null where it was only planned
  program::Machine machine;
  bool isStrict = false; // no cards of `math = "fast"`
  bool plansOnly = false;
  std::vector<std::string> scheduleFolders;
  std::string fingerprint;                 // of the model, as it was before anything was chosen
  std::shared_ptr<const plan::Plan> given; // empty where the options have none
  std::string planJson, reportJson;
  std::string costJson; // what the cost model said of each group; "" if there is none
  std::vector<Feedback> feedback;
  std::vector<Simplified> simplified;
  /// For the other targets that were asked for, the one that asks most first; this one asks more
  /// than all of them, and its weights hold theirs.
  std::vector<std::unique_ptr<Compiled>> variants;
};

/// The names of all stages, in their order.
llvm::ArrayRef<llvm::StringRef> stageNames();

/// A model as a file, or as bytes that stand for one.
struct ModelSource {
  std::string path; // or a name for messages
  std::optional<llvm::ArrayRef<char>> bytes;
};

llvm::Expected<std::unique_ptr<Compiled>> compile(const ModelSource &source,
                                                  const CompileOptions &options);

/// As compile, for a module of the graph dialect (one func @main) that lives in `context`.
llvm::Expected<std::unique_ptr<Compiled>> compileGraph(std::shared_ptr<mlir::MLIRContext> context,
                                                       mlir::OwningOpRef<mlir::ModuleOp> graph,
                                                       const CompileOptions &options);

/// The groups that were split again, as JSON: of each its name, kind and reason.
Json feedbackJson(const Compiled &compiled);
/// What is dequantised and computed with all the same, as JSON: of each the ONNX node's name, the
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

/// The same with what the options say of its sizes and of what outputs share memory with: what
/// compileGraph begins with.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importGiven(mlir::MLIRContext &context, const ModelSource &source, const CompileOptions &options);

} // namespace heddle

#endif // HEDDLE_PIPELINE_PIPELINE_H
