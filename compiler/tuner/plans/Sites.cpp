// Sites: see Sites.h.

#include "compiler/tuner/plans/Sites.h"

#include "compiler/partition/Partition.h"
#include "compiler/records/GroupKey.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace heddle::tuner {

StringRef nameOf(Section section) {
  switch (section) {
  case Section::Layouts:
    return "layouts";
  case Section::Fusion:
    return "fusion";
  case Section::Split:
    return "split";
  }
  llvm_unreachable("all sections have names");
}

static std::string sourceNameOf(Operation *op) { return graph::sourceName(op->getLoc()); }

namespace {
/// Collects sites: those that are alike become one.
class Finder {
public:
  Finder(const std::map<std::string, std::string> &layouts,
         llvm::function_ref<double(graph::GroupOp)> secondsOf)
      : layouts(layouts), secondsOf(secondsOf) {}

  void visit(graph::GroupOp group) {
    key = records::keyOf(group).hash;
    seconds = secondsOf(group);
    Block &body = group.getBody().front();
    for (auto [place, op] : llvm::enumerate(body.without_terminator()))
      visit(&op, place, body);
    visitRoot(group);
    visitKind(group);
  }

  std::vector<Site> take() {
    std::vector<Site> all;
    for (auto &[like, site] : sites)
      all.push_back(std::move(site));
    return all;
  }

private:
  void visit(Operation *op, size_t place, Block &body) {
    std::string name = sourceNameOf(op);
    if (name.empty())
      return;
    if (auto layout = layouts.find(name); layout != layouts.end())
      add(Section::Layouts, layout->second == "last" ? "first" : "last", name, Twine(place));
    bool isInner = llvm::any_of(op->getUsers(), [&](Operation *user) {
      return user != body.getTerminator() && sourceNameOf(user) != name;
    });
    if (isInner && !isa<graph::ConstantOp>(op))
      add(Section::Fusion, "apart", name, Twine(place));
  }

  /// Groups read what this one computes, and could compute it themselves.
  void visitRoot(graph::GroupOp group) {
    Operation *root = group.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
    if (!root || sourceNameOf(root).empty() || group->use_empty())
      return;
    std::string like;
    for (Operation *user : group->getUsers()) {
      auto reader = user->getParentOfType<graph::GroupOp>();
      if (!reader)
        return;
      like += records::keyOf(reader).hash;
    }
    add(Section::Fusion, "joined", sourceNameOf(root), like);
  }

  /// Sites that feedback splits may be split by a search as well.
  void visitKind(graph::GroupOp group) {
    std::string name = group.getName().split('#').first.str();
    auto steps = partition::stepsOf(group);
    if (!steps.empty() && partition::isSplittable(steps.front()))
      add(Section::Split, steps.front(), name, "");
  }

  void add(Section section, StringRef value, const std::string &name, const Twine &like) {
    std::string text = (nameOf(section) + "|" + value + "|" + key + "|" + like).str();
    Site &site = sites.try_emplace(text, Site{section, value.str(), {}}).first->second;
    if (!llvm::is_contained(site.names, name))
      site.names.push_back(name);
    site.seconds += seconds;
  }

  const std::map<std::string, std::string> &layouts;
  llvm::function_ref<double(graph::GroupOp)> secondsOf;
  llvm::MapVector<std::string, Site, llvm::StringMap<unsigned>> sites;
  std::string key; // the visited group's
  double seconds = 0;
};
} // namespace

std::vector<Site> sitesOf(ModuleOp module, const std::map<std::string, std::string> &layouts,
                          llvm::function_ref<double(graph::GroupOp)> secondsOf) {
  Finder finder(layouts, secondsOf);
  module.walk<WalkOrder::PreOrder>([&](graph::GroupOp group) { finder.visit(group); });
  return finder.take();
}

bool contradicts(ArrayRef<Site> sites, const Decisions &decisions) {
  std::set<std::pair<Section, std::string>> decided;
  for (size_t number : decisions)
    for (const std::string &name : sites[number].names)
      if (!decided.insert({sites[number].section, name}).second)
        return sites[number].section != Section::Split;
  return false;
}

plan::Plan planOf(ArrayRef<Site> sites, const Decisions &decisions) {
  plan::Plan plan;
  plan.path = "the plan of a search";
  for (size_t number : decisions) {
    const Site &site = sites[number];
    for (const std::string &name : site.names)
      switch (site.section) {
      case Section::Layouts:
        plan.layouts[name] = site.value;
        break;
      case Section::Fusion:
        plan.fusion[name] = site.value;
        break;
      case Section::Split:
        plan.split[name].push_back(site.value);
        break;
      }
  }
  return plan;
}

} // namespace heddle::tuner
