// Table: every ONNX op that can be imported, one line an op, in the file of its category.
#ifndef HEDDLE_ONNX_TABLE_H
#define HEDDLE_ONNX_TABLE_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

struct OpRow {
  const char *name;
  const char *domain;  // "" is ai.onnx
  int64_t first, last; // opset versions of the domain
  void (*import)(Node &);
  /// Maps may pass: results have the keys of operand 0.
  bool keepsLabels = false;
  const char *note = "";
  bool takesMaps = false; // inputs of the model that are maps
  /// Meaning of an op of our own: a function, as textOf has it (algebra/Body.h).
  const char *body = nullptr;
};

using OpRows = llvm::ArrayRef<OpRow>;
constexpr int64_t kNewestOpset = 27, kNewestMlOpset = 5;
constexpr const char *kMl = "ai.onnx.ml";
constexpr const char *kMicrosoft = "com.microsoft";
constexpr const char *kHeddle = "heddle";
constexpr const char *kPreview = "ai.onnx.preview";
constexpr const char *kTraining = "ai.onnx.preview.training";

OpRows elementwiseRows();
OpRows activationRows();
OpRows movementRows();
OpRows slicingRows();
OpRows resizeRows();
OpRows placeRows();
OpRows suppressionRows();
OpRows imageRows();
OpRows contractionRows();
OpRows convolutionRows();
OpRows normalizationRows();
OpRows reductionRows();
OpRows recurrentRows();
OpRows controlRows();
OpRows quantizeRows();
OpRows mlRows();
OpRows treeRows();
OpRows featureRows();
OpRows linearRows();
OpRows contribRows();
OpRows contribAttentionRows();
OpRows contribFusedRows();
OpRows contribPlainRows();
OpRows contribBlockRows();
OpRows contribExpertRows();
OpRows contribLinearRows();
OpRows mapRows();
OpRows attentionRows();
OpRows sequenceModelRows();
OpRows lossRows();
OpRows samplingRows();
OpRows windowRows();
OpRows regionRows();
OpRows fourierRows();
OpRows signalRows();
OpRows stepwiseRows();
OpRows einsumRows();
OpRows randomRows();
OpRows trainingRows();
OpRows gradientRows();
OpRows heddleRows();
OpRows triangularRows();
OpRows sequenceRows();
OpRows stringRows();
OpRows lookupRows();

/// The row, or null.
const OpRow *findRow(llvm::StringRef domain, llvm::StringRef name);
/// "did you mean 'Conv'?", or where the table is.
std::string suggestRow(llvm::StringRef domain, llvm::StringRef name);
/// Newest version of a domain that is known; nullopt for an unknown domain.
std::optional<int64_t> newestVersion(llvm::StringRef domain);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_TABLE_H
