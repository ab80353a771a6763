// Draft: a card's text, put together from a group and what was chosen for it.

#include "compiler/cards/Draft.h"

#include "compiler/cards/Example.h"
#include "compiler/cards/Explain.h"
#include "compiler/cards/Trial.h"
#include "compiler/graph/LoopNest.h"
#include "compiler/pipeline/Planning.h"
#include "compiler/plan/Plan.h"
#include "compiler/support/Error.h"
#include "compiler/warehouse/TransformOps.h"

#include "llvm/Support/Path.h"

using namespace mlir;

namespace heddle::cards {

using warehouse::Card;

/// "n %n panels %panels" for each knob of the mechanism that a knob of the card sets.
static std::string callOf(const Card &card) {
  auto schedule = card.module.get().lookupSymbol<transform::NamedSequenceOp>("schedule");
  std::string text;
  for (Operation &op : schedule.getBody().front()) {
    if (!warehouse::mechanismOf(&op))
      continue;
    text = op.getName().getStringRef().str() + " ";
    if (auto call = dyn_cast<transform::CallOp>(op))
      return text + "\"" + call.getFunction().str() + "\" %group";
    auto written = dyn_cast<transform::KernelOp>(op);
    if (written)
      text += "\"" + written.getFrame().str() + "\" ";
    text += "%group";
    if (written && written.getSource())
      text += " from \"" + written.getSource()->str() + "\"";
    auto names = op.getAttrOfType<ArrayAttr>("names");
    for (auto [name, knob] :
         llvm::zip(names.getAsRange<StringAttr>(), op.getOperands().drop_front()))
      if (auto argument = dyn_cast<BlockArgument>(knob))
        text += (" " + name.getValue() + " %" + card.knobs[argument.getArgNumber() - 1].name).str();
  }
  return text;
}

static std::string argumentsOf(const Card &card, const warehouse::KnobValues &values) {
  std::string text = "%group: !transform.any_op {transform.readonly}";
  for (const warehouse::Knob &knob : card.knobs) {
    auto value = values.find(knob.name);
    std::string domain;
    llvm::raw_string_ostream stream(domain);
    llvm::interleaveComma(knob.domain, stream);
    text += llvm::formatv(",\n      %{0}: !transform.param<i64> {{transform.readonly,\n"
                          "        heddle.knob = [{1}], heddle.default = {2} : i64}",
                          knob.name, domain, value == values.end() ? knob.initial : value->second);
  }
  return text;
}

static std::string listOf(ArrayRef<std::string> words) {
  return "[\"" + llvm::join(words, "\", \"") + "\"]";
}

/// The pattern of the card: the group's nest, or the key by which `from` is for it.
static std::string matchOf(graph::GroupOp group, const Card &from, bool isNest) {
  std::string dtypes = from.dtypes.empty() ? "" : "dtypes = " + listOf(from.dtypes) + ",\n    ";
  if (isNest)
    return dtypes + "nest = \"" + graph::loopNestOf(group).str() + "\"";
  std::vector<std::string> keys;
  for (const warehouse::Key &key : from.keys)
    keys.push_back(key.str());
  return dtypes +
         (!from.readsParts   ? ""
          : *from.readsParts ? "parts = true, "
                             : "parts = false, ") +
         "key = " + listOf(keys);
}

/// The functions of a kernel that is in the card.
static std::string kernelOf(const Card &card) {
  return card.mechanism->type == mechanism::CardType::Kernel ? card.code : "";
}

/// A name of a model in a comment of one line.
static std::string oneLine(StringRef name) {
  std::string line = name.str();
  std::ranges::replace_if(line, [](char c) { return !llvm::isPrint(c); }, ' ');
  return line;
}

static std::string textOf(StringRef name, graph::GroupOp group, const Card &from,
                          const warehouse::KnobValues &knobs, StringRef model, bool isNest) {
  return llvm::formatv(R"(// {0}: say in one line what this card does.
//
// Matches   the loops of group '{1}' of {2}; name the ops that matter.
// Produces  what '{3}' makes, as card '{4}' asks for it; say what differs.
// Needs     say what has to hold, and what happens where it does not.
// Why       say why this is faster, and where it was measured.
module attributes {{transform.with_named_sequence, heddle.card = {{
    target = "{5}", priority = {6} : i64, {7}}} {{
  transform.named_sequence @schedule(
      {8}) {{
    {9} : !transform.any_op
    transform.yield
  }
{11}  // What the card is proved on: 'heddle cards check' compiles it for many sizes.
{10}}
)",
                       name, oneLine(group.getName()), oneLine(llvm::sys::path::filename(model)),
                       from.mechanism->name, from.name, from.target, from.priority + 10,
                       matchOf(group, from, isNest), argumentsOf(from, knobs), callOf(from),
                       exampleOf(group), kernelOf(from));
}

static graph::GroupOp firstThatDecides(ModuleOp module) {
  graph::GroupOp first, deciding;
  module.walk<WalkOrder::PreOrder>([&](graph::GroupOp group) {
    first = first ? first : group;
    bool decides = llvm::any_of(group.getBody().front(),
                                [](Operation &op) { return warehouse::decides(&op); });
    deciding = deciding || !decides ? deciding : group;
  });
  return deciding ? deciding : first;
}

llvm::Expected<std::string> draft(StringRef name, const ModelSource &source,
                                  const CompileOptions &options, StringRef wanted) {
  if (name.empty() || !llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return makeError(ErrorCode::Usage, "error: a card's name is made of letters, digits and '_', "
                                       "but this is '" +
                                           name + "'");
  auto compiled = planOf(source, options);
  if (!compiled)
    return compiled.takeError();
  ModuleOp module = *(*compiled)->graph;
  graph::GroupOp group = firstThatDecides(module);
  if (!wanted.empty()) {
    auto found = findGroup(module, source.path, wanted);
    if (!found)
      return found.takeError();
    group = *found;
  }
  if (!group)
    return makeError(ErrorCode::Usage, source.path + ": error: the model has no groups");
  auto cards = loadCards(**compiled);
  auto plan = plan::parsePlan((*compiled)->planJson, source.path);
  if (!cards || !plan)
    return llvm::joinErrors(cards.takeError(), plan.takeError());
  std::string place = source.path + ": group '" + group.getName().str() + "': error: ";
  const plan::GroupPlan *made = plan->find(group.getName());
  const Card *from = made ? cards->find(made->card) : nullptr;
  if (!from)
    return makeError(ErrorCode::Usage, place + "it has no card, so there is no mechanism to name");
  if (!from->source.empty())
    return makeError(ErrorCode::Usage, place + "its card '" + from->name +
                                           "' is a kernel in C; copy '" + from->path + "' and '" +
                                           from->source + "' instead");
  // A nest claims only what its mechanism carries out as a whole; a key asks for less.
  std::string problem;
  for (bool isNest : {true, false}) {
    std::string text = textOf(name, group, *from, made->knobs, source.path, isNest);
    auto card = warehouse::parseCard(*(*compiled)->context, text, name.str() + ".mlir");
    std::string why = card ? card->refusal(group) : llvm::toString(card.takeError());
    if (why.empty()) {
      Random random;
      auto trials = trialsOf(*card, random, [](const Trial &) { return false; });
      if (trials)
        return text;
      why = llvm::toString(trials.takeError());
    }
    problem = problem.empty() ? why : problem;
  }
  return makeError(ErrorCode::Usage,
                   place + "no card can be for it: " + problem + "; name another one with --group");
}

} // namespace heddle::cards
