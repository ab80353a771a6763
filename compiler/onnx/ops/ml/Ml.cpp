// Ml: the traditional machine-learning ops that follow a classifier.

#include "compiler/onnx/Table.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// x[..., indices] along the last dimension; a vector x gives [1, n].
static void importArrayFeatureExtractor(Node &n) {
  Value x = n.in(0);
  Value indices = n.reshape(n.in(1), elementCount(dimsOf(n.in(1))));
  if (rankOf(x) == 0)
    refuse("the input is a scalar");
  if (rankOf(x) == 1)
    x = n.unsqueeze(x, {0});
  n.set(n.gather(x, indices, rankOf(x) - 1));
}

static void importZipMap(Node &n) {
  auto labels = std::make_shared<Labels>();
  bool isOfNumbers = n.hasAttribute("classlabels_int64s");
  if (isOfNumbers && n.hasAttribute("classlabels_strings"))
    refuse("it has both 'classlabels_strings' and 'classlabels_int64s'");
  labels->encoding = isOfNumbers ? "int_map" : "map";
  for (const std::string &text : n.getTexts("classlabels_strings"))
    labels->values.push_back(n.builder.getStringAttr(text));
  for (int64_t key : n.getInts("classlabels_int64s", {}))
    labels->values.push_back(n.builder.getI64IntegerAttr(key));
  if (labels->values.empty())
    refuse("it has neither 'classlabels_strings' nor 'classlabels_int64s'");
  Value x = n.in(0);
  if (rankOf(x) == 1)
    x = n.unsqueeze(x, {0});
  DimVector dims = dimsOf(x);
  Dim count(labels->values.size());
  if (dims.size() != 2 || (dims[1].constant() && dims[1] != count))
    refuse("input of shape " + textOf(dims) + " does not fit " + count.str() + " class labels");
  // A value of its own: the scores themselves may be another output.
  n.set(n.typed<ReshapeOp>(x.getType(), x));
  n.resultLabels[0] = labels;
}

OpRows mlRows() {
  static const OpRow rows[] = {
      {"ArrayFeatureExtractor", kMl, 1, 5, importArrayFeatureExtractor, true},
      {"ZipMap", kMl, 1, 5, importZipMap, false, "its result must be an output of the model"},
  };
  return rows;
}

} // namespace heddle::onnx
