// Selection: see Selection.h.

#include "compiler/training/Selection.h"

#include "compiler/graph/edit/Clone.h"
#include "compiler/graph/edit/Weights.h"
#include "compiler/support/Error.h"
#include "compiler/support/Suggest.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::training {

static DenseSet<Operation *> opsBefore(Value value) {
  DenseSet<Operation *> seen;
  SmallVector<Value> open = {value};
  while (!open.empty())
    if (Operation *op = open.pop_back_val().getDefiningOp(); op && seen.insert(op).second)
      llvm::append_range(open, usedBy(op));
  return seen;
}

static bool isPattern(StringRef text) { return text.find_first_of("*?[") != StringRef::npos; }

/// Names and patterns that stand for no initializer, and names of some that cannot be trained.
static std::string problemsOf(const std::vector<std::string> &asked, StringRef field,
                              ArrayRef<StringRef> names) {
  std::string problems;
  for (const std::string &text : asked) {
    if (text == "*" || llvm::any_of(names, [&](StringRef name) { return matches(name, {text}); }))
      continue;
    std::string near = isPattern(text) ? "" : support::nearest(text, names);
    problems += (problems.empty() ? "" : "\n") + ("error: recipe: '" + field).str() + "' has '" +
                text + "', but the model has no such initializer" +
                (near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  return problems;
}

llvm::Expected<Selection> selectWeights(Block &body, Value loss, const Recipe &recipe) {
  DenseSet<Operation *> active = opsBefore(loss);
  SmallVector<StringRef> names;
  Selection selection;
  for (auto constant : body.getOps<ConstantOp>()) {
    auto name = constant->getAttrOfType<StringAttr>(kWeight);
    if (!name)
      continue;
    names.push_back(name);
    Weight weight{name.str(), constant.getResult()};
    bool isFloat = isa<FloatType>(elementOf(weight.value)), isUsed = active.contains(constant);
    if (constant->hasAttr(kStatistics)) {
      // The loss of a training step follows from the batch's statistics instead.
      if (recipe.usesBatchStatistics && isFloat && (isUsed || recipe.trains()))
        selection.statistics.push_back(weight);
      continue;
    }
    bool isNamed = llvm::is_contained(recipe.trainable, weight.name);
    if (isNamed && !isFloat)
      return makeError(ErrorCode::Refused,
                       "error: initializer '" + weight.name +
                           "' cannot be trained: its elements are no floating-point numbers");
    if (isFloat && isUsed && matches(name, recipe.trainable) && !matches(name, recipe.frozen) &&
        (isNamed || rankOf(weight.value) > 0))
      selection.trained.push_back(weight);
  }
  std::string problems = problemsOf(recipe.trainable, "trainable", names);
  std::string others = problemsOf(recipe.frozen, "frozen", names);
  problems += (problems.empty() || others.empty() ? "" : "\n") + others;
  if (!problems.empty())
    return makeError(ErrorCode::Usage, problems);
  return selection;
}

} // namespace heddle::training
