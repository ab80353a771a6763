// Ends: the policies that fuse nothing, and whatever may be one kernel. With the second, nothing
// but the table of mechanisms and the cards holds ops apart, so tests of meaning show that these
// say all that makes a kernel right.

#include "compiler/partition/policy/FusionPolicy.h"

using namespace mlir;

namespace heddle::partition {

namespace {
class Ends : public FusionPolicy {
public:
  explicit Ends(bool fuses) : fuses(fuses) {}
  bool claims(ArrayRef<Operation *>, const Mechanism &) const override { return fuses; }
  bool givesBack(Operation *, ArrayRef<Operation *>,
                 llvm::function_ref<bool(Operation *)>) const override {
    return false;
  }
  bool widensAtReaders() const override { return fuses; }
  bool readsThroughTransposes() const override { return fuses; }
  bool pays(Operation *, const Group &, const Surroundings &) const override { return fuses; }
  bool recomputes(const Group &, const Surroundings &) const override { return fuses; }
  size_t mostReaders() const override { return kMostOps; }
  bool joinsParts(const Group &, int64_t) const override { return fuses; }
  bool stitches(const Group &, const Group &) const override { return fuses; }
  std::string whyApart(const estimate::Stitching &, const program::Machine &) const override {
    return "";
  }
  bool joins(const SiblingPair &) const override { return fuses; }
  size_t mostAtOnce() const override { return fuses ? kMostOps : 1; }

private:
  bool fuses;
};
} // namespace

const FusionPolicy &fuseNothing() {
  static const Ends policy(false);
  return policy;
}

const FusionPolicy &fuseAll() {
  static const Ends policy(true);
  return policy;
}

const FusionPolicy *findPolicy(StringRef name) {
  if (name == "lanes")
    return &lanes();
  if (name == "nothing")
    return &fuseNothing();
  return name == "all" ? &fuseAll() : nullptr;
}

} // namespace heddle::partition
