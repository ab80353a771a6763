// Chooser: replaying a plan, and the walk that offers, chooses, applies and records.

#include "compiler/plan/Chooser.h"

#include "compiler/estimate/Precision.h"
#include "compiler/plan/MatrixRule.h"
#include "compiler/plan/Versions.h"
#include "compiler/support/Error.h"
#include "compiler/support/Suggest.h"

using namespace mlir;

namespace heddle::plan {

std::string whyNotShort(const Choice &choice, graph::GroupOp group,
                        const program::Machine &machine) {
  const mechanism::Mechanism *mechanism = choice.mechanismFor(group);
  return mechanism ? estimate::whyNotShort(*mechanism, mechanism::opsOf(group.getBody().front()),
                                           machine.on(choice.device))
                   : "it names no mechanism";
}

void choosePrecision(Choice &choice, graph::GroupOp group, const program::Machine &machine) {
  estimate::Precision precision{false, whyNotShort(choice, group, machine)};
  if (precision.why.empty())
    precision = estimate::precisionOf(group, machine.on(choice.device));
  choice.isShort = precision.isShort;
  choice.whyPrecision = precision.why;
}

llvm::Expected<Choice> ShortChooser::choose(graph::GroupOp group, ArrayRef<warehouse::Offer> offers,
                                            const program::Machine &machine) {
  auto choice = choices.choose(group, offers, machine);
  if (!choice || llvm::none_of(mechanism::opsOf(group.getBody().front()), graph::isContraction))
    return choice;
  if (chooseMatrices(*choice, group, offers, machine.on(choice->device)))
    return choice;
  choosePrecision(*choice, group, machine);
  return choice;
}

llvm::Expected<Choice> PlanChooser::choose(graph::GroupOp group, ArrayRef<warehouse::Offer> offers,
                                           const program::Machine &machine) {
  const GroupPlan *wish = plan.find(group.getName());
  if (!wish)
    return otherwise.choose(group, offers, machine);
  auto refuse = [&](const Twine &what) {
    return makeError(ErrorCode::Usage, plan.path + ":" + Twine(wish->line) + ": group '" +
                                           wish->name + "': error: " + what);
  };
  Choice choice;
  choice.device = wish->device;
  choice.isShort = wish->isShort;
  choice.measured = wish->measured;
  if (choice.isShort)
    choice.whyPrecision = "the plan says so";
  auto checked = [&]() -> llvm::Expected<Choice> {
    bool isEverShort = choice.isShort || llvm::any_of(choice.versions, [](const Version &version) {
                         return version.isShort.value_or(false);
                       });
    std::string why = isEverShort ? whyNotShort(choice, group, machine) : "";
    if (!why.empty())
      return refuse("its precision is bf16, but " + why);
    return choice;
  };
  if (wish->card.empty()) {
    if (!wish->knobs.empty() || !wish->versions.empty())
      return refuse("it has " + Twine(wish->knobs.empty() ? "versions" : "knobs") + " but no card");
    return checked();
  }
  SmallVector<StringRef> offered;
  for (const warehouse::Offer &offer : offers) {
    if (offer.card->name == wish->card)
      choice.card = offer.card;
    if (offer.isOffered())
      offered.push_back(offer.card->name);
  }
  std::string allowed = offered.empty() ? "none" : llvm::join(offered, ", ");
  if (!choice.card)
    return refuse("there is no card '" + wish->card + "'; cards for this group: " + allowed +
                  "; name a folder of cards with --schedules");
  for (const warehouse::Offer &offer : offers)
    if (offer.card == choice.card && !offer.isOffered())
      return refuse("card '" + wish->card + "' is not for it: " + offer.refusal +
                    "; cards for this group: " + allowed);
  const std::string &device = machine.on(choice.device).device;
  if (choice.card->isOfThreads() ? choice.card->target != device
                                 : machine.on(choice.device).mostThreads > 1)
    return refuse("card '" + wish->card + "' is for target '" + choice.card->target +
                  "', but 'device' is " + Twine(choice.device) + ", which is '" + device + "'");
  if (!wish->cardHash.empty() && wish->cardHash != choice.card->hash)
    return refuse("card '" + wish->card + "' has changed since the plan was made: its hash is " +
                  choice.card->hash + ", the plan has " + wish->cardHash +
                  "; remove 'card_hash' to take the card as it is");
  if (std::string why = choice.card->knobRefusal(wish->knobs); !why.empty())
    return refuse(why);
  choice.knobs = wish->knobs;
  for (const warehouse::Knob &knob : choice.card->knobs)
    choice.knobs.try_emplace(knob.name, knob.initial);
  for (auto [i, version] : llvm::enumerate(wish->versions)) {
    std::string why = whyNoCondition(group, version.when);
    if (why.empty())
      why = choice.card->knobRefusal(version.knobs);
    if (!why.empty())
      return refuse("version " + Twine(i) + ": " + why);
    choice.versions.push_back(version);
    for (auto &[name, value] : choice.knobs)
      choice.versions.back().knobs.try_emplace(name, value);
  }
  return checked();
}

static std::vector<std::string> opsOf(graph::GroupOp group) {
  std::vector<std::string> names;
  for (Operation &op : group.getBody().front().without_terminator()) {
    if (isa<graph::ConstantOp>(op))
      continue;
    std::string name = graph::sourceName(op.getLoc());
    if (!name.empty() && !llvm::is_contained(names, name))
      names.push_back(std::move(name));
  }
  return names;
}

/// Why an op that the plan wants in a group is not in it.
static std::string whyApart(func::FuncOp function, graph::GroupOp group, StringRef name) {
  graph::GroupOp other;
  function.walk([&](graph::GroupOp each) {
    if (each != group && llvm::is_contained(opsOf(each), name))
      other = each;
  });
  if (!other)
    return "the model computes no op of this name in a group";
  // Ops of the other group that this one reads directly could join it; a way back through a third
  // one closes a cycle.
  bool isRead = llvm::is_contained(other->getUsers(), group.getOperation());
  group.walk([&](Operation *op) {
    isRead |= llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() == other.getOperation();
    });
  });
  if (!isRead)
    return "group '" + other.getName().str() + "', which computes it, is not read by this group";
  for (Operation *user : other->getUsers()) {
    auto third = dyn_cast<graph::GroupOp>(user);
    if (!third)
      third = user->getParentOfType<graph::GroupOp>();
    if (third && third != group)
      return "group '" + third.getName().str() +
             "' reads it too; in this group it would be a cycle, or be computed twice";
  }
  return "no mechanism carries them out as one kernel";
}

/// Groups are in the plan's order, unless what they read does not allow it.
void PlanChooser::checkOrder(
    func::FuncOp function,
    llvm::function_ref<void(const GroupPlan &, const Twine &)> complain) const {
  llvm::DenseMap<Block *, const GroupPlan *> before;
  function.walk<WalkOrder::PreOrder>([&](graph::GroupOp group) {
    const GroupPlan *wish = plan.find(group.getName());
    if (!wish || !wish->order)
      return;
    const GroupPlan *&last = before[group->getBlock()];
    if (last && *wish->order < *last->order)
      complain(*wish, "its order is " + Twine(*wish->order) + ", but it has to follow '" +
                          last->name + "' (order " + Twine(*last->order) +
                          "): it reads what that computes, or a size, a branch or a loop between "
                          "them keeps them apart");
    last = wish;
  });
}

/// Why a device's number is wrong; "" if it is right.
static std::string whyNoDevice(int64_t device, const program::Machine &machine) {
  int64_t last = machine.others.size();
  if (device >= 0 && device <= last)
    return "";
  std::string known;
  for (int64_t i = 0; i <= last; ++i)
    known += (i ? ", " : "") + std::to_string(i) + " ('" + machine.on(i).device + "')";
  return "its device is " + std::to_string(device) + ", but the target's " +
         (last ? "devices are " : "one device is ") + known;
}

llvm::Error PlanChooser::check(func::FuncOp function, StringRef model,
                               const program::Machine &machine) const {
  std::vector<std::string> names;
  std::map<std::string, graph::GroupOp> groups;
  function.walk([&](graph::GroupOp group) {
    names.push_back(group.getName().str());
    groups[names.back()] = group;
  });
  SmallVector<StringRef> known(names.begin(), names.end());
  std::vector<std::string> problems;
  auto complain = [&](const GroupPlan &group, const Twine &what) {
    problems.push_back(
        (plan.path + ":" + Twine(group.line) + ": group '" + group.name + "': error: " + what)
            .str());
  };
  if (!plan.model.empty() && plan.model != model)
    problems.push_back(plan.path + ": error: the plan was made for a model of fingerprint " +
                       plan.model + ", but this one has " + model.str() +
                       "; make the plan anew, or remove 'model' to try it");
  auto regionOf = [&](const GroupPlan &group) -> int64_t {
    return groups[group.name].getRegion().value_or(-1);
  };
  checkOrder(function, complain);
  std::map<int64_t, const GroupPlan *> firstOf; // the first group of each region
  for (const GroupPlan &group : plan.groups) {
    if (!llvm::is_contained(known, group.name)) {
      std::string near = support::nearest(group.name, known);
      complain(group, "the model has no group of this name" +
                          (near.empty() ? Twine("; remove it, or make the plan anew")
                                        : "; did you mean '" + near + "'?"));
      continue;
    }
    if (std::string why = whyNoDevice(group.device, machine); !why.empty())
      complain(group, why);
    if (group.region >= 0) {
      auto [first, isNew] = firstOf.try_emplace(group.region, &group);
      if (!isNew && (regionOf(group) < 0 || regionOf(group) != regionOf(*first->second)))
        complain(group, "it cannot be launched at once with '" + first->second->name +
                            "' (region " + Twine(group.region) +
                            "): one reads the other, or something that is no group of the region "
                            "is between them");
    }
    if (group.ops.empty())
      continue;
    std::vector<std::string> made = opsOf(groups[group.name]);
    for (const std::string &op : group.ops)
      if (!llvm::is_contained(made, op))
        complain(group,
                 "op '" + op + "' cannot be in it: " + whyApart(function, groups[group.name], op));
    for (const std::string &op : made)
      if (!llvm::is_contained(group.ops, op))
        complain(group, "op '" + op +
                            "' is in it, but is not in its 'ops'; name the group that "
                            "it shall be in, or add it");
  }
  if (!problems.empty())
    return makeError(ErrorCode::Usage, llvm::join(problems, "\n"));
  return llvm::Error::success();
}

llvm::Error choose(func::FuncOp function, const warehouse::Warehouse &warehouse, Chooser &chooser,
                   const program::Machine &machine, Plan &plan) {
  SmallVector<graph::GroupOp> groups;
  function.walk<WalkOrder::PreOrder>([&](graph::GroupOp group) { groups.push_back(group); });
  for (graph::GroupOp group : groups)
    group.clearChoice(); // of an earlier time, which others would be offered cards by
  llvm::Error problems = llvm::Error::success();
  for (graph::GroupOp group : groups) {
    auto offers = warehouse.offer(group);
    auto choice = chooser.choose(group, offers, machine);
    llvm::Error error = choice ? applyChoice(*choice, group) : choice.takeError();
    if (error) {
      problems = llvm::joinErrors(std::move(problems), std::move(error));
      continue;
    }
    GroupPlan line;
    line.name = group.getName().str();
    line.ops = opsOf(group);
    line.key = graph::loopNestOf(group).str();
    line.order = plan.groups.size();
    line.device = group.deviceNumber();
    line.isShort = group.isShort();
    line.measured = choice->measured;
    line.whyPrecision = choice->whyPrecision;
    if (auto region = group.getRegion())
      line.region = *region;
    if (choice->card) {
      line.card = choice->card->name;
      line.cardHash = choice->card->hash;
      line.knobs = choice->knobs;
      line.versions = choice->versions;
    }
    plan.groups.push_back(std::move(line));
  }
  if (problems)
    return makeError(ErrorCode::Usage, llvm::toString(std::move(problems)));
  return llvm::Error::success();
}

} // namespace heddle::plan
