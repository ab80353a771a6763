// Trial: from a card's example, or the input beside the card, to programs of one group.

#include "compiler/cards/Trial.h"

#include "compiler/graph/edit/CutOut.h"
#include "compiler/graph/edit/Sizes.h"
#include "compiler/support/Error.h"
#include "compiler/trial/Numbers.h"
#include "compiler/warehouse/Warehouse.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace heddle::cards {

using namespace trial;

/// The attribute of a value that is an argument of a function.
static Attribute argumentAttr(Value value, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(value.getParentBlock()->getParentOp());
  return function && argument ? function.getArgAttr(argument.getArgNumber(), name) : Attribute();
}

/// The value as a constant of the trial: its own, or a random one where the card asks for that.
static llvm::Expected<ElementsAttr> constantOf(graph::GroupOp group, Value value, Random &random) {
  ElementsAttr own = graph::ownConstant(value);
  if (own && !isa<DenseElementsAttr>(graph::codesOf(own)))
    return makeError(ErrorCode::Usage, "error: group '" + group.getName() +
                                           "' reads a constant that is not in the text");
  if (own)
    return own;
  Attribute range = argumentAttr(value, "heddle.range");
  if (range && !isRange(range))
    return makeError(ErrorCode::Usage, "error: 'heddle.range' of argument " +
                                           Twine(cast<BlockArgument>(value).getArgNumber()) +
                                           " must be two whole numbers such as [0, 9]");
  if (argumentAttr(value, "heddle.constant"))
    return randomConstant(cast<RankedTensorType>(value.getType()), range, random);
  for (const graph::Dim &dim : graph::dimsOf(value))
    if (!dim.constant() && !dim.symbolName())
      return makeError(ErrorCode::Usage, "error: group '" + group.getName() +
                                             "' reads a tensor of size '" + dim.str() +
                                             "', which is neither a number nor a symbol");
  return ElementsAttr();
}

/// The group, after those that make its operands where the card's mechanism reads them.
static SmallVector<graph::GroupOp> groupsOf(const warehouse::Card &card, graph::GroupOp group) {
  llvm::SetVector<graph::GroupOp> groups;
  if (card.mechanism->readsProducers) {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(group.getBody(), captured);
    for (Value value : captured)
      if (auto producer = value.getDefiningOp<graph::GroupOp>())
        groups.insert(producer);
  }
  groups.insert(group);
  return groups.takeVector();
}

/// The groups as a program; what they read from outside are its inputs, but for constants and
/// arguments that stand for them.
static llvm::Expected<Trial> cutOut(const warehouse::Card &card, graph::GroupOp group,
                                    Random &random) {
  llvm::Error problem = llvm::Error::success();
  graph::CutOut made = graph::cutOut(groupsOf(card, group), [&](Value value) -> ElementsAttr {
    auto constant = constantOf(group, value, random);
    if (constant)
      return *constant;
    problem = llvm::joinErrors(std::move(problem), constant.takeError());
    return {};
  });
  if (problem)
    return std::move(problem);
  for (auto [i, value] : llvm::enumerate(made.outside))
    if (Attribute range = argumentAttr(value, "heddle.range"))
      made.main().setArgAttr(i, "heddle.range", range);
  return Trial{group.getName().str(), textOf(*made.module)};
}

/// @example with all that it computes in one group.
static OwningOpRef<ModuleOp> grouped(const warehouse::Card &card) {
  func::FuncOp example = card.example;
  OwningOpRef<ModuleOp> module = ModuleOp::create(example.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto function = cast<func::FuncOp>(builder.clone(*example));
  function.setName("main");
  Block &block = function.getBody().front();
  Operation *terminator = block.getTerminator();
  builder.setInsertionPoint(terminator);
  auto results = llvm::to_vector(terminator->getOperands());
  auto group = builder.create<graph::GroupOp>(example.getLoc(), terminator->getOperandTypes(),
                                              "example", card.mechanism->name);
  Block *body = builder.createBlock(&group.getBody());
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
    if (!isa<graph::ConstantOp>(op) && &op != group.getOperation())
      op.moveBefore(body, body->end());
  builder.setInsertionPointToEnd(body);
  builder.create<graph::YieldOp>(example.getLoc(), results);
  terminator->setOperands(group.getResults());
  return module;
}

/// The module with another size for each constant one that is `from`, or null if its ops do not
/// allow that.
static OwningOpRef<ModuleOp> withSize(ModuleOp module, int64_t from, const graph::Dim &to) {
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> changed(module.clone());
  graph::replaceDims(*changed,
                     [&](const graph::Dim &dim) { return dim.isConstant(from) ? to : dim; });
  return succeeded(verify(*changed)) ? std::move(changed) : nullptr;
}

/// Appends a trial of each group that the card is for, where they all may run; gives their number.
static size_t appendTrials(const warehouse::Card &card, ModuleOp module, const std::string &remark,
                           Random &random, MayRun mayRun, std::vector<Trial> &trials) {
  std::vector<Trial> made;
  module.walk([&](graph::GroupOp group) {
    if (!card.refusal(group).empty())
      return;
    auto trial = cutOut(card, group, random);
    if (trial)
      made.push_back({trial->name + remark, std::move(trial->text), /*isVariation=*/true});
    else
      llvm::consumeError(trial.takeError());
  });
  if (!llvm::all_of(made, mayRun))
    return 0;
  llvm::move(made, std::back_inserter(trials));
  return made.size();
}

/// Appends the groups with other sizes than the numbers in their text, which may be just those for
/// which the card is right: symbols in their place if the ops and the card allow that, else other
/// numbers.
static void appendVariations(const warehouse::Card &card, ModuleOp module, Random &random,
                             MayRun mayRun, std::vector<Trial> &trials) {
  llvm::SetVector<int64_t> sizes;
  module.walk([&](func::FuncOp function) {
    for (Type type : function.getArgumentTypes())
      if (isa<RankedTensorType>(type))
        for (const graph::Dim &dim : graph::dimsOf(type))
          if (dim.constant().value_or(1) > 1)
            sizes.insert(*dim.constant());
  });
  OwningOpRef<ModuleOp> loosened(module.clone());
  std::vector<Trial> symbolic;
  for (int64_t size : sizes) {
    std::string symbol = "size_" + std::to_string(size);
    std::vector<Trial> made;
    auto changed = withSize(*loosened, size, graph::Dim::symbol(symbol));
    if (changed && appendTrials(card, *changed, " of any size", random, mayRun, made)) {
      loosened = std::move(changed);
      symbolic = std::move(made);
      continue;
    }
    for (int64_t other : {size + 1, 2 * size + 3, size - 1})
      if (auto changed = withSize(module, size, graph::Dim(other));
          changed && appendTrials(card, *changed,
                                  " with " + std::to_string(other) + " for " + std::to_string(size),
                                  random, mayRun, trials))
        break;
  }
  llvm::move(symbolic, std::back_inserter(trials));
}

static llvm::Expected<std::vector<Trial>> trialsOfExample(const warehouse::Card &card,
                                                          Random &random, MayRun mayRun) {
  OwningOpRef<ModuleOp> module = grouped(card);
  graph::GroupOp group = groupOf(*module);
  if (std::string why = card.refusal(group); !why.empty())
    return makeError(ErrorCode::Usage,
                     card.path + ": error: the card is not for its own @example: " + why);
  auto trial = cutOut(card, group, random);
  if (!trial)
    return trial.takeError();
  std::vector<Trial> trials{std::move(*trial)};
  appendVariations(card, *module, random, mayRun, trials);
  return trials;
}

static llvm::Expected<std::vector<Trial>>
trialsOfInput(const warehouse::Card &card, StringRef input, Random &random, MayRun mayRun) {
  std::string problems;
  ScopedDiagnosticHandler handler(card.module.get().getContext(), [&](Diagnostic &diagnostic) {
    problems += (problems.empty() ? "" : "; ") + diagnostic.str();
  });
  auto module = parseSourceFile<ModuleOp>(input, card.module.get().getContext());
  if (!module)
    return makeError(ErrorCode::Usage, input + ": error: " + problems);
  SmallVector<graph::GroupOp> groups;
  module->walk([&](graph::GroupOp group) { groups.push_back(group); });
  std::vector<Trial> trials;
  std::string refusals;
  for (graph::GroupOp group : groups) {
    if (std::string why = card.refusal(group); !why.empty()) {
      refusals += ("; '" + group.getName() + "': " + why).str();
      continue;
    }
    auto trial = cutOut(card, group, random);
    if (!trial)
      return trial.takeError();
    trials.push_back(std::move(*trial));
  }
  if (trials.empty())
    return makeError(ErrorCode::Usage,
                     card.path + ": error: the card is for no group of '" + input + "'" + refusals);
  appendVariations(card, *module, random, mayRun, trials);
  return trials;
}

llvm::Expected<std::vector<Trial>> trialsOf(const warehouse::Card &card, Random &random,
                                            MayRun mayRun) {
  if (card.example)
    return trialsOfExample(card, random, mayRun);
  SmallString<128> input(llvm::sys::path::parent_path(card.path));
  llvm::sys::path::append(input, "Inputs", card.name + ".mlir");
  if (!llvm::sys::fs::exists(input))
    return makeError(ErrorCode::Usage, card.path +
                                           ": error: there is nothing to try the card on; write a "
                                           "'func.func @example' into it, or the file '" +
                                           input + "'");
  return trialsOfInput(card, input, random, mayRun);
}

} // namespace heddle::cards
