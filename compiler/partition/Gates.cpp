// Gates: a product that is read in parts only, and what is computed from those, element by element,
// become one group: the cell of an LSTM, the first step of a GRU's, a gated linear unit. The parts
// of one element then meet in registers.

#include "compiler/partition/Partitioner.h"

#include "compiler/loop/Forms.h"

using namespace mlir;

namespace heddle::partition {

/// More would leave too few registers for rows.
static constexpr int64_t kMostParts = 4;

void Partitioner::joinGates() {
  for (size_t i = 0, count = groups.size(); i < count; ++i)
    if (auto readers = readersOfParts(groups[i]); !readers.empty())
      join(groups[i], readers);
}

/// The groups that read parts of the product's result, where nothing else does and they can be one
/// with it: what others read of them is read behind the last one, where the group will stand.
SmallVector<size_t> Partitioner::readersOfParts(const Group &product) {
  if (!options.fuses || product.members.empty() || !product.is(Kind::Contraction))
    return {};
  Value whole = product.root()->getResult(0);
  graph::DimVector dims = graph::dimsOf(whole);
  SmallVector<Operation *> slices(whole.getUsers());
  auto parts = loop::partsOf(slices, dims);
  if (!parts || parts->count < 2 || parts->count > kMostParts)
    return {};
  dims.back() = graph::Dim(parts->columns);
  SetVector<size_t> readers;
  size_t size = product.members.size();
  Operation *last = nullptr;
  for (Operation *slice : slices) {
    auto known = groupOf.find(slice);
    if (known == groupOf.end())
      return {};
    const Group &reader = groups[known->second];
    if (!readers.insert(known->second))
      continue;
    bool isPerElement = llvm::all_of(reader.members, [&](Operation *member) {
      return isElementwise(member) || isa<graph::BroadcastOp>(member) ||
             llvm::is_contained(slices, member);
    });
    if (!reader.is(Kind::Pointwise) || !isPerElement || reader.isClaimed ||
        graph::dimsOf(reader.root()->getResult(0)) != dims)
      return {};
    size += reader.members.size();
    if (!last || places.at(reader.root()) > places.at(last))
      last = reader.root();
  }
  auto isBehind = [&](Operation *user) {
    user = block.findAncestorOpInBlock(*user);
    auto known = groupOf.find(user);
    if (known == groupOf.end())
      return places.at(user) > places.at(last);
    return readers.contains(known->second) ||
           places.at(groups[known->second].root()) > places.at(last);
  };
  bool fits = size <= kMostOps && !isRefused(last, partition::nameOf(Kind::Gates)) &&
              llvm::all_of(product.members, [&](Operation *op) { return isWanted(op, last); });
  for (size_t reader : readers)
    fits &=
        llvm::all_of(groups[reader].members, [&](Operation *op) { return isWanted(op, last); }) &&
        llvm::all_of(groups[reader].root()->getUsers(), isBehind);
  return fits ? SmallVector<size_t>(readers.begin(), readers.end()) : SmallVector<size_t>();
}

void Partitioner::join(Group &product, ArrayRef<size_t> readers) {
  size_t index = *llvm::max_element(readers, [&](size_t a, size_t b) {
    return places.at(groups[a].root()) < places.at(groups[b].root());
  });
  Group &all = groups[index];
  SmallVector<Value> results;
  auto take = [&](Group &group) {
    for (Operation *member : group.members)
      groupOf[member] = index;
    all.members.append(group.members);
    group.members.clear();
  };
  for (size_t reader : readers)
    if (reader != index) {
      results.push_back(groups[reader].root()->getResult(0));
      take(groups[reader]);
    }
  take(product);
  auto isOutside = [&](Operation *user) {
    auto known = groupOf.find(block.findAncestorOpInBlock(*user));
    return known == groupOf.end() || known->second != index;
  };
  for (Value result : results)
    if (llvm::any_of(result.getUsers(), isOutside))
      all.alsoRead.push_back(result);
  llvm::sort(all.members, [&](Operation *a, Operation *b) { return places.at(a) > places.at(b); });
  all.kind = partition::nameOf(Kind::Gates).str();
}

} // namespace heddle::partition
