// Importer: an ONNX model becomes a module of the graph dialect.
//
// The module has the attribute `graph.model` (the file's name) and one `func.func @main`. Its
// arguments and results carry `graph.name`; a result that stands for maps carries `graph.labels`
// and `graph.encoding` ("map" or, where labels are numbers, "int_map":
// [n, labels], one map per row). `graph.strings` of the module are the
// strings of the model.
#ifndef HEDDLE_ONNX_IMPORTER_H
#define HEDDLE_ONNX_IMPORTER_H

#include "compiler/Prelude.h"
#include "compiler/support/Error.h"

namespace heddle::onnx {

/// Attribute of a module: the files beside the model's that its external data came from.
constexpr llvm::StringLiteral kExternalFiles = "graph.external_files";

struct ImportOptions {
  /// "x" -> {"1", "3", "?", "width"} fixes or names the sizes of input x ("?" keeps the model's);
  /// "batch" -> {"4"} gives a named size its value, where no input has that name.
  std::vector<std::pair<std::string, std::vector<std::string>>> shapes;
  /// Files of functions that nodes of the model may call: each its name and its bytes.
  std::vector<std::pair<std::string, std::string>> functions;
  /// Constants of initializers carry `graph.weight`, running statistics of normalisations
  /// `graph.statistics` (graph/edit/Weights.h).
  bool marksWeights = false;
  /// Imports for training: BatchNormalization takes the statistics of the batch. Updated running
  /// statistics are further results of @main, with `graph.updates`.
  bool usesBatchStatistics = false;
  bool keepsUnbiasedVariance = false; // running variances are divided by count - 1, not count
  int64_t kvCache = 0;     // past keys and values are buffers for so many tokens; 0: they are not
  std::string kvCacheType; // of these: "f32", "bf16", "f16", "int8" with scales; "": the model's
  bool drops = false;      // as in training: Dropout drops
  std::vector<std::string> alsoResults; // tensors of the main graph that become results, too
  int64_t maxNodes = 200'000;           // after inlining of functions and branches
  int64_t maxDepth = 64;                // functions and subgraphs inside one another
  int64_t maxBytes = int64_t(16) << 30; // limit for the model's file and its external data
};

/// Reads "x=1x3x?xwidth" or "batch=4".
llvm::Error addShapeOption(ImportOptions &options, llvm::StringRef text);

/// The error holds all problems of the model, one a line. The context must have the dialects of
/// `loadDialects`.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importModel(mlir::MLIRContext &context, llvm::StringRef path, const ImportOptions &options = {});
/// As importModel; `name` stands for the file in messages. External data is refused.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importModelFromBytes(mlir::MLIRContext &context, llvm::ArrayRef<char> bytes, llvm::StringRef name,
                     const ImportOptions &options = {});
void loadDialects(mlir::MLIRContext &context);

/// The table of supported ops as markdown.
std::string supportTable();

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_IMPORTER_H
