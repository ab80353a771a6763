// Sizes: see Sizes.h.

#include "compiler/tuner/joint/Sizes.h"

#include "compiler/estimate/Traffic.h"
#include "compiler/graph/edit/CutOut.h"
#include "compiler/graph/edit/Sizes.h"

using namespace mlir;

namespace heddle::tuner {

using graph::Dim;

static int64_t valueOf(const Dim &dim, const trial::Sizes &sizes, int64_t otherwise) {
  auto value = dim.evaluate([&](StringRef symbol) {
    auto known = sizes.find(symbol.str());
    return std::optional<int64_t>(known == sizes.end() ? otherwise : known->second);
  });
  return value.value_or(otherwise);
}

/// The group's work at an instance; symbols that the instance does not list are `otherwise`.
static Shape shapeAt(graph::GroupOp group, const Instance &instance, int64_t otherwise) {
  auto at = [&](const Dim &dim) {
    return std::max<int64_t>(1, valueOf(dim, instance.sizes, otherwise));
  };
  Shape shape;
  shape.weight = instance.weight;
  shape.flops = static_cast<double>(at(estimate::flopsOf(group)));
  for (Operation &op : group.getBody().front()) {
    if (auto matmul = dyn_cast<graph::MatmulOp>(op)) {
      graph::DimVector dims = graph::dimsOf(matmul.getResult());
      shape.columns = at(dims.pop_back_val());
      shape.rows = at(dims.pop_back_val());
      graph::DimVector right = graph::dimsOf(matmul.getB());
      // Batches that share one right operand are more rows of the same product.
      while (!dims.empty() && right[dims.size() - 1].isConstant(1))
        shape.rows *= at(dims.pop_back_val());
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

warehouse::KnobValues knobsAt(const plan::Choice &choice, const trial::Sizes &sizes,
                              int64_t otherwise) {
  for (const plan::Version &version : choice.versions)
    if (llvm::all_of(version.when, [&](auto &bound) {
          return valueOf(*Dim::parse(bound.first), sizes, otherwise) <= bound.second;
        }))
      return version.knobs;
  return choice.knobs;
}

/// Tiles have no more rows than there are, and no more vectors of columns: with known sizes kernels
/// see to that themselves.
static void fitTile(const warehouse::Card &card, const Shape &shape, int64_t lanes,
                    warehouse::KnobValues &knobs) {
  const warehouse::Knob *m = card.knob("m"), *n = card.knob("n");
  if (m && knobs["m"] > shape.rows) {
    int64_t fitting = 0;
    for (int64_t value : m->domain)
      fitting = value <= shape.rows ? std::max(fitting, value) : fitting;
    knobs["m"] = fitting > 0 ? fitting : knobs["m"];
  }
  int64_t columns = llvm::alignTo(shape.columns, std::max<int64_t>(1, lanes));
  if (n)
    for (int64_t value : n->domain)
      if (value >= columns)
        knobs["n"] = std::min(knobs["n"], value);
}

/// The knobs of the card by rule in a program for these sizes alone; `otherwise` where the rule
/// takes another card.
static llvm::Expected<warehouse::KnobValues>
knobsAlone(graph::GroupOp group, const warehouse::Card &card, const trial::Sizes &sizes,
           const Shape &shape, const program::Machine &machine,
           const warehouse::KnobValues &otherwise) {
  graph::CutOut cut = graph::cutOut(group, graph::ownConstant);
  graph::substituteSymbols(*cut.module, [&](StringRef symbol) -> std::optional<Dim> {
    auto known = sizes.find(symbol.str());
    return known == sizes.end() ? std::nullopt : std::optional(Dim(known->second));
  });
  auto choice = plan::DefaultChooser().choose(cut.group(), {{&card, ""}}, machine);
  if (!choice)
    return choice.takeError();
  if (choice->card != &card)
    return otherwise;
  fitTile(card, shape, machine.lanes, choice->knobs);
  return choice->knobs;
}

llvm::Expected<std::vector<JointPoint>> pointsOf(graph::GroupOp group, const plan::Choice &choice,
                                                 ArrayRef<Instance> instances,
                                                 const program::Machine &machine,
                                                 int64_t otherwise) {
  std::vector<JointPoint> points;
  for (const Instance &instance : instances) {
    Shape shape = shapeAt(group, instance, otherwise);
    auto byDefault = knobsAt(choice, instance.sizes, otherwise);
    auto alone = knobsAlone(group, *choice.card, instance.sizes, shape, machine, byDefault);
    if (!alone)
      return alone.takeError();
    points.push_back({shape, std::move(byDefault), std::move(*alone)});
  }
  return points;
}

std::vector<size_t> toConfirm(ArrayRef<warehouse::KnobValues> knobs) {
  constexpr size_t kParts = 8;
  size_t farthest = std::max<size_t>(1, knobs.size() / kParts);
  std::vector<size_t> indices;
  for (size_t begin = 0, end; begin < knobs.size(); begin = end) {
    for (end = begin + 1; end < knobs.size() && knobs[end] == knobs[begin];)
      ++end;
    for (size_t index : {begin, begin + (end - begin) / 2, end - 1}) {
      while (!indices.empty() && indices.back() + farthest < index)
        indices.push_back(indices.back() + farthest);
      if (indices.empty() || indices.back() != index)
        indices.push_back(index);
    }
  }
  return indices;
}

} // namespace heddle::tuner
