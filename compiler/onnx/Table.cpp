// Table: lookup by name, suggestions, and the table as markdown.

#include "compiler/onnx/Table.h"

#include "compiler/onnx/Importer.h"
#include "compiler/support/Suggest.h"

namespace heddle::onnx {

namespace {
struct Category {
  const char *name;
  OpRows rows;
};
} // namespace

static const std::vector<Category> &categories() {
  static const std::vector<Category> all = {{"element-wise", elementwiseRows()},
                                            {"activation", activationRows()},
                                            {"movement", movementRows()},
                                            {"slicing and indexing", slicingRows()},
                                            {"resizing", resizeRows()},
                                            {"places", placeRows()},
                                            {"suppression", suppressionRows()},
                                            {"image files", imageRows()},
                                            {"contraction", contractionRows()},
                                            {"convolution and pooling", convolutionRows()},
                                            {"normalization", normalizationRows()},
                                            {"reduction", reductionRows()},
                                            {"recurrent", recurrentRows()},
                                            {"control flow", controlRows()},
                                            {"quantization", quantizeRows()},
                                            {"sequences and optionals", sequenceRows()},
                                            {"strings", stringRows()},
                                            {"lookup", lookupRows()},
                                            {"ai.onnx.ml", mlRows()},
                                            {"maps", mapRows()},
                                            {"trees", treeRows()},
                                            {"features", featureRows()},
                                            {"linear models", linearRows()},
                                            {"com.microsoft", contribRows()},
                                            {"com.microsoft, attention", contribAttentionRows()},
                                            {"com.microsoft, fused", contribFusedRows()},
                                            {"com.microsoft, plain", contribPlainRows()},
                                            {"com.microsoft, blocks", contribBlockRows()},
                                            {"com.microsoft, experts", contribExpertRows()},
                                            {"com.microsoft, linear", contribLinearRows()},
                                            {"attention", attentionRows()},
                                            {"sequence models", sequenceModelRows()},
                                            {"losses", lossRows()},
                                            {"sampling", samplingRows()},
                                            {"windows", windowRows()},
                                            {"regions", regionRows()},
                                            {"Fourier transforms", fourierRows()},
                                            {"signals", signalRows()},
                                            {"step by step", stepwiseRows()},
                                            {"sums of products", einsumRows()},
                                            {"random numbers", randomRows()},
                                            {"training", trainingRows()},
                                            {"derivatives", gradientRows()},
                                            {"matrices of different sizes", heddleRows()},
                                            {"triangular matrices", triangularRows()}};
  return all;
}

const OpRow *findRow(llvm::StringRef domain, llvm::StringRef name) {
  static const auto index = [] {
    llvm::StringMap<const OpRow *> map;
    for (const Category &category : categories())
      for (const OpRow &row : category.rows)
        map[(llvm::Twine(row.domain) + ":" + row.name).str()] = &row;
    return map;
  }();
  return index.lookup((domain + ":" + name).str());
}

std::string suggestRow(llvm::StringRef domain, llvm::StringRef name) {
  std::vector<llvm::StringRef> names;
  for (const Category &category : categories())
    for (const OpRow &row : category.rows) {
      if (row.domain != domain && name == row.name)
        return "'" + name.str() + "' is an op of domain '" +
               (*row.domain ? row.domain : "ai.onnx") + "'";
      if (row.domain == domain)
        names.push_back(row.name);
    }
  std::string nearest = support::nearest(name, names);
  return nearest.empty() ? "'heddle ops' lists those that are supported"
                         : "did you mean '" + nearest + "'?";
}

std::optional<int64_t> newestVersion(llvm::StringRef domain) {
  if (domain.empty())
    return kNewestOpset;
  if (domain == kMl)
    return kNewestMlOpset;
  if (domain == kMicrosoft || domain == kHeddle || domain == kPreview || domain == kTraining)
    return 1;
  return std::nullopt;
}

std::string supportTable() {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const Category &category : categories()) {
    out << "## " << category.name << "\n\n| op | domain | opsets | remarks |\n|---|---|---|---|\n";
    std::vector<OpRow> rows(category.rows.begin(), category.rows.end());
    llvm::sort(rows, [](const OpRow &a, const OpRow &b) {
      return llvm::StringRef(a.name) < llvm::StringRef(b.name);
    });
    for (const OpRow &row : rows)
      out << "| " << row.name << " | " << (*row.domain ? row.domain : "ai.onnx") << " | "
          << row.first << "-" << row.last << " | " << row.note << " |\n";
    out << "\n";
  }
  return text;
}

} // namespace heddle::onnx
