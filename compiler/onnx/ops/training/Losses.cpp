// Losses: log-likelihoods of target classes, weighted and reduced.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// -logs[n, target[n, ...], ...] * weight[target], reduced as 'reduction' says. `logs` is wide.
static Value likelihoodLoss(Node &n, Value logs, Value target, Value weight) {
  Type element = elementOf(logs);
  if (rankOf(logs) < 2 || rankOf(target) != rankOf(logs) - 1)
    refuse("scores of rank " + Twine(rankOf(logs)) + " do not fit targets of rank " +
           Twine(rankOf(target)) + ": scores must be [batch, classes, ...], targets [batch, ...]");
  std::string reduction = n.getText("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    refuse("'reduction' is '" + reduction + "', but must be 'none', 'sum' or 'mean'");
  DimVector places = dimsOf(logs);
  places.erase(places.begin() + 1);
  target = n.reshape(target, places); // there is one target for each, which the run checks
  Value zero = n.scalar(element, 0), isIgnored;
  if (n.hasAttribute("ignore_index")) {
    int64_t ignored = n.getInt("ignore_index", 0);
    isIgnored = n.compare<EqualOp>(target, n.integerScalar(elementOf(target), ignored));
    target = n.select(isIgnored, n.integerScalar(elementOf(target), 0), target);
  }
  Value picked =
      n.infer<GatherElementsOp>({logs, n.unsqueeze(target, {1})}, {n.integer("axis", 1)});
  Value loss = n.unary<NegOp>(n.squeeze(picked, {1})), weights;
  if (weight)
    weights = n.gather(n.cast(weight, element), target, 0);
  else if (isIgnored)
    weights = n.full(dimsOf(loss), element, 1);
  if (isIgnored)
    weights = n.select(isIgnored, zero, weights);
  if (weight)
    loss = n.mul(loss, weights);
  if (isIgnored)
    loss = n.select(isIgnored, zero, loss);
  if (reduction == "none")
    return loss;
  Ints axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(loss)));
  if (reduction == "mean" && !weights)
    return n.mean(loss, axes, false);
  Value sum = n.reduce<ReduceSumOp>(loss, axes, false);
  return reduction == "sum" ? sum : n.div(sum, n.reduce<ReduceSumOp>(weights, axes, false));
}

static void importNegativeLogLikelihoodLoss(Node &n) {
  Type element = elementOf(n.in(0));
  Value logs = n.cast(n.in(0), wideType(n, element));
  n.set(n.cast(likelihoodLoss(n, logs, n.in(1), n.optional(2)), element));
}

static void importSoftmaxCrossEntropyLoss(Node &n) {
  Type element = elementOf(n.in(0));
  Value scores = n.cast(n.in(0), wideType(n, element));
  if (rankOf(scores) < 2)
    refuse("the scores must have rank 2 or more");
  Value shifted = n.sub(scores, n.reduce<ReduceMaxOp>(scores, {1}));
  Value sum = n.reduce<ReduceSumOp>(n.unary<ExpOp>(shifted), {1});
  Value logs = n.sub(shifted, n.unary<LogOp>(sum));
  n.set(0, n.cast(likelihoodLoss(n, logs, n.in(1), n.optional(2)), element));
  if (n.wants(1))
    n.set(1, n.cast(logs, element));
}

OpRows lossRows() {
  static const OpRow rows[] = {
      {"NegativeLogLikelihoodLoss", "", 12, 27, importNegativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", "", 12, 27, importSoftmaxCrossEntropyLoss},
  };
  return rows;
}

} // namespace heddle::onnx
