// Step: see Step.h. The graph of the model stays as it is; what follows from it is added after it.

#include "compiler/training/Step.h"

#include "compiler/grad/Gradients.h"
#include "compiler/graph/edit/Weights.h"
#include "compiler/support/Error.h"
#include "compiler/training/Activations.h"
#include "compiler/training/Losses.h"
#include "compiler/training/Optimizers.h"
#include "compiler/training/Selection.h"
#include "compiler/training/Signature.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace heddle::graph;
using heddle::grad::Maker;

namespace heddle::training {

static llvm::Error refuse(const Twine &message) {
  return makeError(ErrorCode::Refused, "error: " + message);
}

/// Arithmetic on weights is done in f32 at least.
static Type arithmeticOf(Value weight) {
  Type element = elementOf(weight);
  return element.getIntOrFloatBitWidth() < 32 ? Float32Type::get(weight.getContext()) : element;
}

/// Whether a run may find these sizes equal, or 1.
static bool fits(ArrayRef<Dim> sizes, ArrayRef<Dim> wanted) {
  return sizes.size() == wanted.size() && llvm::all_of(llvm::zip(sizes, wanted), [](auto pair) {
           auto [size, other] = pair;
           return !size.constant() || !other.constant() || size == other || size.isConstant(1);
         });
}

namespace {
class StepMaker {
public:
  StepMaker(ModuleOp module, const Recipe &recipe)
      : recipe(recipe), signature(module), builder(signature.terminator()),
        m(builder, NameLoc::get(builder.getStringAttr("train"))) {}

  llvm::Error make() {
    if (llvm::Error error = findOutput())
      return error;
    if (recipe.phase == Phase::Derivative)
      return makeDerivative();
    if (llvm::Error error = findLoss())
      return error;
    if (llvm::Error error = findGradients())
      return error;
    if (recipe.trains())
      dropOutputs();
    if (recipe.phase == Phase::Update) {
      keepOnlyWeights();
      update();
      return llvm::Error::success();
    }
    addWeights(selection.trained);
    if (recipe.trains()) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfterValue(loss.value);
      isWhole = isFinite(loss.value);
    }
    if (recipe.phase == Phase::Step)
      update();
    else if (recipe.phase == Phase::Gradients)
      accumulate();
    addWeights(selection.statistics);
    updateStatistics();
    if (loss.value)
      signature.insertOutput(0, kLoss, loss.value);
    eraseDeadOps();
    return llvm::Error::success();
  }

private:
  llvm::Error findOutput() {
    auto number =
        recipe.output.empty() ? std::optional<unsigned>(0) : signature.findOutput(recipe.output);
    if (!number)
      return refuse("the model has no output '" + recipe.output + "'");
    output = signature.output(*number);
    if (recipe.output.empty())
      recipe.output = signature.outputName(*number).str();
    return llvm::Error::success();
  }

  DenseSet<Operation *> opsSoFar() {
    DenseSet<Operation *> ops;
    for (Operation &op : *builder.getBlock())
      ops.insert(&op);
    return ops;
  }

  llvm::Error findLoss() {
    auto type = labelsType(recipe, output);
    if (!type)
      return refuse(llvm::toString(type.takeError()));
    if (recipe.phase == Phase::Predict) { // only which weights the output depends on
      loss.gradient = m.like(output, 1);
      return llvm::Error::success();
    }
    Value labels;
    if (*type) {
      auto wanted = cast<RankedTensorType>(*type);
      labels = signature.input(recipe.labels);
      if (!labels)
        labels = signature.addInput(recipe.labels, wanted);
      if (!fits(dimsOf(labels), dimsOf(wanted)) ||
          isa<FloatType>(elementOf(labels)) != isa<FloatType>(wanted.getElementType()))
        return refuse("the input '" + recipe.labels +
                      "', which the recipe has as labels, does not fit the output '" +
                      recipe.output + "': the loss '" + recipe.loss + "' needs labels " +
                      grad::textOf(dimsOf(*type)));
      labels = m.broadcast(m.cast(labels, wanted.getElementType()), dimsOf(*type));
    }
    m.location = NameLoc::get(builder.getStringAttr(kLoss));
    forward = opsSoFar();
    loss = makeLoss(m, recipe, output, labels);
    return llvm::Error::success();
  }

  /// Finds gradients of the weights that the loss depends on.
  llvm::Error findGradients() {
    auto selected = selectWeights(*builder.getBlock(), output, recipe);
    if (!selected)
      return selected.takeError();
    SmallVector<Value> values;
    for (const Weight &weight : selected->trained)
      values.push_back(weight.value);
    DenseSet<Operation *> exact = opsSoFar();
    auto found = grad::gradientsOrNull(builder, m.location, output, values, loss.gradient);
    if (!found)
      return refuse("the loss has no derivative: " + llvm::toString(found.takeError()));
    if (recipe.narrowsActivations)
      narrowActivations(*builder.getBlock(), forward, exact, builder.getBF16Type());
    selection.statistics = std::move(selected->statistics);
    for (auto [weight, gradient] : llvm::zip(selected->trained, *found)) {
      if (!gradient)
        continue;
      selection.trained.push_back(weight);
      gradients.push_back(m.cast(gradient, arithmeticOf(weight.value)));
    }
    if (gradients.empty())
      return refuse("the loss does not depend on any weight that is trained: " +
                    Twine(selected->trained.size()) +
                    " initializers of floating-point numbers are asked for by 'trainable' and not "
                    "'frozen', and none of them has a derivative");
    return llvm::Error::success();
  }

  /// All but those of running statistics.
  void dropOutputs() {
    for (unsigned i = signature.outputs(); i-- > 0;)
      if (signature.updated(i).empty())
        signature.eraseOutput(i);
  }

  /// An update needs nothing of the model but its weights, and the gradients that were accumulated.
  void keepOnlyWeights() {
    SmallVector<Type> types, arithmetic;
    for (const Weight &weight : selection.trained) {
      types.push_back(weight.value.getType());
      arithmetic.push_back(
          tensorOf(m.builder.getContext(), dimsOf(weight.value), arithmeticOf(weight.value)));
    }
    while (signature.outputs() > 0)
      signature.eraseOutput(0);
    // Checks of sizes, which nothing reads, are of the model's inputs as well.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*builder.getBlock())))
      if (&op != signature.terminator())
        op.erase();
    signature.eraseUnusedInputs();
    for (auto [weight, type] : llvm::zip(selection.trained, types))
      weight.value = signature.addInput(weight.name, type);
    for (auto [weight, type, gradient] : llvm::zip(selection.trained, arithmetic, gradients)) {
      gradient = addAccumulated(weight, type);
      signature.addNext(gradient, m.zeros(gradient));
    }
  }

  /// Weights are inputs from here on.
  void addWeights(std::vector<Weight> &weights) {
    for (Weight &weight : weights) {
      Value input = signature.addInput(weight.name, weight.value.getType());
      weight.value.replaceAllUsesWith(input);
      weight.value = input;
    }
  }

  Value isFinite(Value x) {
    Value isNan = m.make<IsNanOp>(x), isInf = m.make<IsInfOp>(x, true, true);
    return m.unary<NotOp>(m.make<OrOp>(isNan.getType(), isNan, isInf));
  }
  /// `next`, or `now` after a step whose loss or gradients are no numbers: it changes nothing.
  void setNext(Value now, Value next) {
    next = m.cast(next, elementOf(now));
    signature.addNext(now, isWhole ? m.select(m.broadcast(isWhole, dimsOf(now)), next, now) : next);
  }

  /// The norm of all gradients together, known before any weight changes.
  Value norm() {
    Value squares;
    for (Value gradient : gradients) {
      Value square;
      {
        OpBuilder::InsertionGuard guard(builder);
        if (Operation *op = gradient.getDefiningOp())
          builder.setInsertionPointAfter(op); // while it is in a cache
        square = m.cast(sumOfAll(m.mul(gradient, gradient)), builder.getF32Type());
      }
      squares = squares ? m.add(squares, square) : square;
    }
    Value norm = m.unary<SqrtOp>(squares), isOfNumbers = isFinite(norm);
    isWhole = isWhole ? m.make<AndOp>(isWhole.getType(), isWhole, isOfNumbers) : isOfNumbers;
    signature.addOutput(kNorm, norm);
    return norm;
  }

  /// Pascanu et al., On the Difficulty of Training Recurrent Neural Networks (2013), Algorithm 1,
  /// over all gradients together; and each of their elements by itself.
  void clip(Value norm) {
    if (recipe.clipNorm > 0) {
      Type f32 = builder.getF32Type();
      Value factor = m.div(m.scalar(f32, recipe.clipNorm), m.add(norm, 1e-6));
      factor = m.binary<MinOp>(factor, m.scalar(f32, 1));
      for (Value &gradient : gradients)
        gradient =
            m.mul(gradient, m.broadcast(m.cast(factor, elementOf(gradient)), dimsOf(gradient)));
    }
    if (recipe.clipValue > 0)
      for (Value &gradient : gradients) {
        Value most = m.like(gradient, recipe.clipValue);
        gradient = m.binary<MaxOp>(m.binary<MinOp>(gradient, most), m.neg(most));
      }
  }

  Value sumOfAll(Value x) { return m.sum(x, llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)))); }

  void update() {
    clip(norm());
    const Optimizer &optimizer = *findOptimizer(recipe.optimizer);
    Value rate = signature.addInput(kRate, scalarOf(builder.getF32Type()));
    Value count =
        m.cast(signature.addInput(kStep, scalarOf(builder.getI64Type())), builder.getF64Type());
    count = m.add(count, 1);
    for (auto [weight, gradient] : llvm::zip(selection.trained, gradients)) {
      m.location = NameLoc::get(builder.getStringAttr(weight.name + ".update"));
      const Group *group = groupOf(weight.name);
      Type element = elementOf(gradient);
      Update each{recipe,
                  recipe.setting("weight_decay"),
                  {m.cast(rate, element), count},
                  m.cast(weight.value, element),
                  gradient,
                  {}};
      if (group) {
        each.weightDecay = group->weightDecay.value_or(each.weightDecay);
        if (group->rate != 1)
          each.shared.rate = m.mul(each.shared.rate, group->rate);
      }
      SmallVector<Value> states;
      for (StringRef state : optimizer.states)
        states.push_back(signature.addInput(weight.name + "/" + state.str(), gradient.getType()));
      each.states.assign(states.begin(), states.end());
      optimizer.rule(m, each);
      setNext(weight.value, each.weight);
      for (auto [now, next] : llvm::zip(states, each.states))
        setNext(now, next);
    }
  }

  const Group *groupOf(StringRef name) const {
    for (const Group &group : recipe.groups)
      if (matches(name, group.match))
        return &group;
    return nullptr;
  }

  Value addAccumulated(const Weight &weight, Type type) {
    return signature.addInput(weight.name + "/gradient", type);
  }
  /// The mean over the micro-batches of an update, so far.
  void accumulate() {
    OpBuilder::InsertionGuard guard(builder);
    for (auto [weight, gradient] : llvm::zip(selection.trained, gradients)) {
      if (Operation *op = gradient.getDefiningOp())
        builder.setInsertionPointAfter(op); // it is not needed any longer
      Value now = addAccumulated(weight, gradient.getType());
      setNext(now, m.add(now, m.mul(gradient, 1.0 / recipe.accumulate)));
    }
  }

  void updateStatistics() {
    for (unsigned i = signature.outputs(); i-- > 0;) {
      std::string name = signature.updated(i).str();
      if (name.empty())
        continue;
      Value next = signature.output(i);
      auto found = llvm::find_if(selection.statistics,
                                 [&](const Weight &each) { return each.name == name; });
      signature.eraseOutput(i);
      if (found != selection.statistics.end())
        setNext(found->value, next);
    }
  }

  /// Products with a vector: of one number the derivative itself, of more what an input weighs
  /// them with.
  llvm::Error makeDerivative() {
    SmallVector<Value> xs;
    for (const std::string &name : recipe.variables) {
      Value x = signature.input(name);
      for (auto constant : builder.getBlock()->getOps<ConstantOp>())
        if (auto weight = constant->getAttrOfType<StringAttr>(kWeight); weight && weight == name)
          x = constant.getResult();
      if (!x)
        return refuse("there is no input or initializer '" + name +
                      "' to differentiate with respect to; inputs: " + signature.inputNames());
      xs.push_back(x);
    }
    Value seed = elementCount(dimsOf(output)).isConstant(1)
                     ? m.like(output, 1)
                     : m.broadcast(signature.addInput("grad." + recipe.output, output.getType()),
                                   dimsOf(output));
    auto found = grad::gradients(builder, m.location, output, xs, seed);
    if (!found)
      return refuse("output '" + recipe.output +
                    "' has no derivative: " + llvm::toString(found.takeError()));
    for (auto [name, gradient] : llvm::zip(recipe.variables, *found))
      signature.addOutput("grad." + name, gradient);
    return llvm::Error::success();
  }

  RankedTensorType scalarOf(Type element) { return RankedTensorType::get({}, element); }

  void eraseDeadOps() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*builder.getBlock())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  Recipe recipe;
  Signature signature;
  OpBuilder builder;
  Maker m;
  Value output;
  DenseSet<Operation *> forward; // ops of the model
  Loss loss;
  Selection selection;
  SmallVector<Value> gradients; // one for each of selection.trained
  Value isWhole;                // whether what a step computes is numbers; null: always
};
} // namespace

llvm::Error makeStep(ModuleOp module, const Recipe &recipe) {
  return StepMaker(module, recipe).make();
}

} // namespace heddle::training
