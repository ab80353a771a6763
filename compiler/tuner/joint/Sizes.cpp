// Sizes: see Sizes.h.

#include "compiler/tuner/joint/Sizes.h"

#include "compiler/graph/cost/Traffic.h"

using namespace mlir;

namespace heddle::tuner {

using graph::Dim;

static int64_t valueOf(const Dim &dim, const cards::Sizes &sizes, int64_t otherwise) {
  auto value = dim.evaluate([&](StringRef symbol) {
    auto known = sizes.find(symbol.str());
    return std::optional<int64_t>(known == sizes.end() ? otherwise : known->second);
  });
  return value.value_or(otherwise);
}

Shape shapeAt(graph::GroupOp group, const Instance &instance, const cards::Sizes &others,
              int64_t otherwise) {
  cards::Sizes sizes = instance.sizes;
  sizes.insert(others.begin(), others.end());
  auto at = [&](const Dim &dim) { return std::max<int64_t>(1, valueOf(dim, sizes, otherwise)); };
  Shape shape;
  shape.weight = instance.weight;
  shape.flops = static_cast<double>(at(cost::flopsOf(group)));
  for (Operation &op : group.getBody().front()) {
    if (auto matmul = dyn_cast<graph::MatmulOp>(op)) {
      graph::DimVector dims = graph::dimsOf(matmul.getResult());
      shape.columns = at(dims.pop_back_val());
      shape.rows = at(dims.pop_back_val());
      shape.batches = at(graph::elementCount(dims));
      break;
    }
    if (auto conv = dyn_cast<graph::ConvOp>(op)) {
      graph::DimVector dims = graph::dimsOf(conv.getResult());
      shape.columns = at(graph::dimsOf(conv.getW())[0]);
      dims.pop_back();
      shape.rows = at(graph::elementCount(dims));
      break;
    }
  }
  return shape;
}

warehouse::KnobValues knobsAt(const plan::Choice &choice, const cards::Sizes &sizes,
                              int64_t otherwise) {
  for (const plan::Version &version : choice.versions)
    if (llvm::all_of(version.when, [&](auto &bound) {
          return valueOf(*Dim::parse(bound.first), sizes, otherwise) <= bound.second;
        }))
      return version.knobs;
  return choice.knobs;
}

std::vector<size_t> toConfirm(ArrayRef<warehouse::KnobValues> knobs) {
  std::vector<size_t> indices;
  for (size_t begin = 0, end; begin < knobs.size(); begin = end) {
    for (end = begin + 1; end < knobs.size() && knobs[end] == knobs[begin];)
      ++end;
    for (size_t index : {begin, begin + (end - begin) / 2, end - 1})
      if (indices.empty() || indices.back() != index)
        indices.push_back(index);
  }
  return indices;
}

} // namespace heddle::tuner
