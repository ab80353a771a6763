// Given: groups that a plan has op by op are made as it says, whatever the policy finds. What the
// plan has in several groups is computed in each of those that read it.

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/partition/Steps.h"
#include "compiler/partition/given/Parts.h"

using namespace mlir;

namespace heddle::partition {

namespace {
class Given {
public:
  explicit Given(Groups &groups) : groups(groups), ops(groups.options.given.size()) {
    for (auto [line, group] : llvm::enumerate(groups.options.given))
      for (auto &[node, numbers] : group.parts)
        for (int64_t number : numbers)
          linesOf[{node, number}].push_back(line);
  }

  std::vector<Claim> run() {
    // Last to first, so that it is known which groups read an op.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(groups.block)))
      if (auto lines = linesOf.find(partOf(&op)); lines != linesOf.end())
        place(&op, lines->second);
    std::vector<Claim> claims;
    for (auto [line, members] : llvm::enumerate(ops))
      if (mayBe(groups.options.given[line], members)) {
        llvm::sort(members, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
        claims.push_back({members, mechanism::find(groups.options.given[line].mechanism)});
      }
    return claims;
  }

private:
  void put(Operation *op, size_t line) {
    ops[line].push_back(op);
    lineOf[op] = line;
  }

  void place(Operation *op, ArrayRef<size_t> lines) {
    llvm::SmallSetVector<size_t, 4> readers;
    bool isReadElsewhere = false;
    for (Operation *user : op->getUsers()) {
      auto line = lineOf.find(groups.block.findAncestorOpInBlock(*user));
      if (line != lineOf.end() && llvm::is_contained(lines, line->second))
        readers.insert(line->second);
      else
        isReadElsewhere = true;
    }
    // A result that others read is better made by a group that does not compute it for itself.
    auto other = llvm::find_if(lines, [&](size_t line) { return !readers.contains(line); });
    size_t owner = other == lines.end() ? lines.front() : *other;
    if (!isReadElsewhere && !readers.empty())
      owner = readers.front();
    for (size_t reader : readers)
      if (reader != owner)
        copyFor(op, reader);
    put(op, owner);
  }

  void copyFor(Operation *op, size_t reader) {
    Operation *copy = OpBuilder(op).clone(*op);
    op->replaceUsesWithIf(copy->getResults(), [&](OpOperand &use) {
      auto line = lineOf.find(groups.block.findAncestorOpInBlock(*use.getOwner()));
      return line != lineOf.end() && line->second == reader;
    });
    put(copy, reader);
  }

  /// Whether these are all ops of the line, and the mechanism may be asked for them.
  bool mayBe(const GivenGroup &line, ArrayRef<Operation *> members) const {
    const Mechanism *made = mechanism::find(line.mechanism);
    Parts found;
    for (Operation *op : members)
      if (auto [node, number] = partOf(op); number >= 0)
        found[node].insert(number);
    if (!made || members.empty() || found != line.parts ||
        graph::sourceName(members.front()->getLoc()) != line.name)
      return false;
    OpSet all(members.begin(), members.end());
    bool areOfOneKind = llvm::all_of(members, [&](Operation *op) {
      bool mayBeIn = members.size() == 1 || !isAlone(op) || made == &mechanism::kSerial;
      bool isStoredInside = op->hasAttr(graph::kIsStored) && op != members.front();
      return mayBeIn && !isStoredInside && (!isHost(op) || isa<graph::ReshapeOp>(op)) &&
             graph::rowsOf(op) == graph::rowsOf(members.front());
    });
    return areOfOneKind && (members.size() == 1 || isElementByElement(*made) ||
                            groups.serves(*made, std::move(all)));
  }

  /// Whether the groups of the mechanism may be computed element by element, which any op allows.
  static bool isElementByElement(const Mechanism &made) {
    return &made == &mechanism::kPointwise || &made == &mechanism::kContraction ||
           &made == &mechanism::kWindow;
  }

  Groups &groups;
  std::map<std::pair<std::string, int64_t>, SmallVector<size_t, 1>> linesOf;
  std::vector<SmallVector<Operation *>> ops; // of each line, last to first
  llvm::DenseMap<Operation *, size_t> lineOf;
};
} // namespace

void takeGiven(Groups &groups) {
  if (!groups.options.given.empty())
    addClaims(groups, Given(groups).run());
}

} // namespace heddle::partition
