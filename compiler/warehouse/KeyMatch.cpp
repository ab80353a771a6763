// KeyMatch: a key against a loop nest, by trying the longest run of loops first.

#include "compiler/warehouse/Key.h"

using namespace mlir;

namespace heddle::warehouse {

using graph::Dim;
using graph::Loop;
using graph::LoopNest;
using Many = KeyLoop::Many;
using KeyLoops = ArrayRef<KeyLoop>;
using Loops = ArrayRef<Loop>;

namespace {
/// Exact: loops and ops are the key's and no others, as for the skeleton of one op. Full and
/// Partial: those of a subgraph.
enum class Mode { Exact, Full, Partial };

class Matcher {
public:
  explicit Matcher(Mode mode, bool explains = false) : mode(mode), explains(explains) {}

  bool matchNest(KeyLoops keys, const LoopNest &nest, Extents &extents);
  /// Why, and where, the attempt that came farthest ended.
  const std::string &reason() const { return farthest; }

private:
  bool fail(llvm::function_ref<std::string()> why);
  bool matchLoops(KeyLoops keys, Loops loops, Extents &extents);
  bool matchRun(KeyLoops keys, Loops loops, size_t length, Extents &extents);
  bool matchOps(const KeyLoop &key, const Loop &loop) const;
  bool opsFollow(const KeyLoop &key, size_t next, Loop::Kind kind, ArrayRef<std::string> ops) const;
  bool matchKind(const KeyLoop &key, const Loop &loop) const;
  size_t longestRun(const KeyLoop &key, Loops loops) const;
  const Loop *onlyChild(const Loop &loop) const;
  bool bind(const KeyLoop &key, const Dim &extent, Extents &extents) const;

  Mode mode;
  bool explains;                       // whether reasons are kept
  int64_t steps = 0;                   // a bound on what a malicious key may cost
  int64_t passed = 0, mostPassed = -1; // loops that match, from the first of the nest on
  std::string farthest;
};
} // namespace

static std::string textOf(const Loop &loop) {
  LoopNest alone;
  alone.loops = {{loop.extent, loop.kind, loop.ops, {}, {}}};
  std::string text = alone.str();
  return "'" + text.substr(text.find(':') + 1) + "'";
}

static std::string textOf(const KeyLoop &loop) {
  std::string text = loop.letter.empty() ? "" : loop.letter + ":", ops;
  text += "psw"[static_cast<size_t>(loop.kind)];
  text += loop.many == Many::Any ? "*" : loop.many == Many::Some ? "+" : "";
  for (const std::vector<std::string> &alternatives : loop.ops)
    ops += (ops.empty() ? "" : ",") + llvm::join(alternatives, "|");
  return "'" + text + (loop.takesAnyOps ? "(*)" : ops.empty() ? "" : "(" + ops + ")") + "'";
}

/// False, always.
bool Matcher::fail(llvm::function_ref<std::string()> why) {
  if (explains && passed > mostPassed) {
    mostPassed = passed;
    farthest = why();
  }
  return false;
}

static constexpr int64_t kStepLimit = 100'000;

/// Whether the op is trivial; `max` and `min` are the reduction of a loop that reduces.
static bool isTrivialIn(Loop::Kind kind, StringRef op) {
  return graph::isTrivial(op) && (kind == Loop::Kind::Parallel || (op != "max" && op != "min"));
}

/// Whether the ops are those of the key from `next` on, in order, with trivial ones between them;
/// of a part, those of the key need not all be there.
bool Matcher::opsFollow(const KeyLoop &key, size_t next, Loop::Kind kind,
                        ArrayRef<std::string> ops) const {
  if (ops.empty())
    return mode == Mode::Partial || next == key.ops.size();
  for (size_t i = next; i < key.ops.size(); ++i) {
    if (llvm::is_contained(key.ops[i], ops.front()) &&
        opsFollow(key, i + 1, kind, ops.drop_front()))
      return true;
    if (mode != Mode::Partial)
      break;
  }
  return isTrivialIn(kind, ops.front()) && opsFollow(key, next, kind, ops.drop_front());
}

bool Matcher::matchOps(const KeyLoop &key, const Loop &loop) const {
  if (key.takesAnyOps)
    return true;
  if (mode != Mode::Exact)
    return opsFollow(key, 0, loop.kind, loop.ops);
  if (key.ops.size() != loop.ops.size())
    return false;
  for (auto [alternatives, op] : llvm::zip(key.ops, loop.ops))
    if (!llvm::is_contained(alternatives, op))
      return false;
  return true;
}

bool Matcher::matchKind(const KeyLoop &key, const Loop &loop) const {
  bool mayBecome = mode == Mode::Partial && loop.kind == Loop::Kind::Parallel;
  return key.kind == loop.kind || mayBecome;
}

bool Matcher::bind(const KeyLoop &key, const Dim &extent, Extents &extents) const {
  if (key.letter.empty())
    return true;
  auto [known, isNew] = extents.try_emplace(key.letter, extent);
  return isNew || known->second == extent || mode == Mode::Exact;
}

/// The first key as a run of `length` loops from the first loop inwards; then the rest of both.
bool Matcher::matchRun(KeyLoops keys, Loops loops, size_t length, Extents &extents) {
  const KeyLoop &key = keys.front();
  const Loop *loop = &loops.front();
  Dim product = loop->extent;
  for (size_t i = 1; i < length; ++i) {
    bool isEmpty =
        mode == Mode::Exact ? loop->ops.empty() : llvm::all_of(loop->ops, graph::isTrivial);
    if (!isEmpty && !key.takesAnyOps)
      return false;
    loop = onlyChild(*loop);
    product = product * loop->extent;
  }
  if (!matchOps(key, *loop))
    return fail([&] { return "loop " + textOf(*loop) + " has other ops than " + textOf(key); });
  if (!bind(key, product, extents))
    return fail([&] { return "loops of letter '" + key.letter + "' have different sizes"; });
  passed += length;
  bool isMatch = matchLoops(key.children, loop->children, extents) &&
                 matchLoops(keys.drop_front(), loops.drop_front(), extents);
  passed -= length;
  return isMatch;
}

/// The one loop inside of this one, besides trivial ones in the nest of a subgraph; null when there
/// are others.
const Loop *Matcher::onlyChild(const Loop &loop) const {
  const Loop *only = nullptr;
  for (const Loop &child : loop.children) {
    if (mode != Mode::Exact && loop.children.size() > 1 && graph::isTrivialLoop(child))
      continue;
    if (only)
      return nullptr;
    only = &child;
  }
  return only;
}

size_t Matcher::longestRun(const KeyLoop &key, Loops loops) const {
  size_t length = 0;
  for (const Loop *loop = loops.empty() ? nullptr : &loops.front(); loop && matchKind(key, *loop);
       loop = onlyChild(*loop)) {
    ++length;
    if (key.many == Many::One)
      break;
  }
  return length;
}

bool Matcher::matchLoops(KeyLoops keys, Loops loops, Extents &extents) {
  if (++steps > kStepLimit)
    return false;
  if (loops.empty() && mode == Mode::Partial)
    return true;
  if (keys.empty())
    return loops.empty() || (mode != Mode::Exact && llvm::all_of(loops, graph::isTrivialLoop)) ||
           fail([&] { return "loop " + textOf(loops.front()) + " is one more than the key has"; });
  auto attempt = [&](llvm::function_ref<bool(Extents &)> match) {
    Extents found(extents);
    if (!match(found))
      return false;
    extents = std::move(found);
    return true;
  };
  const KeyLoop &key = keys.front();
  bool isSized = !loops.empty() && key.extent && !loops.front().extent.isConstant(*key.extent);
  for (size_t length = isSized ? 0 : longestRun(key, loops); length > 0; --length)
    if (attempt([&](Extents &found) { return matchRun(keys, loops, length, found); }))
      return true;
  // A run of no loops: what is inside of it takes its place.
  if (key.many == Many::Any && key.ops.empty()) {
    std::vector<KeyLoop> inner(key.children);
    inner.insert(inner.end(), keys.begin() + 1, keys.end());
    if (attempt([&](Extents &found) {
          return bind(key, Dim(1), found) && matchLoops(inner, loops, found);
        }))
      return true;
  }
  if (loops.empty())
    return fail([&] { return "there is no loop for " + textOf(key); });
  fail([&] {
    std::string loop = "loop " + textOf(loops.front());
    return isSized ? loop + " has the size " + loops.front().extent.str() + ", not " +
                         std::to_string(*key.extent)
                   : loop + " is no " + textOf(key);
  });
  if (mode == Mode::Exact)
    return false;
  if (graph::isTrivialLoop(loops.front()) &&
      attempt([&](Extents &found) { return matchLoops(keys, loops.drop_front(), found); }))
    return true;
  return mode == Mode::Partial &&
         attempt([&](Extents &found) { return matchLoops(keys.drop_front(), loops, found); });
}

bool Matcher::matchNest(KeyLoops keys, const LoopNest &nest, Extents &extents) {
  if (nest.loops.empty()) { // a scalar
    const KeyLoop &key = keys.front();
    bool isMatch = keys.size() == 1 && key.many == Many::Any && key.children.empty() &&
                   matchOps(key, {Dim(1), key.kind, nest.ops});
    return isMatch && bind(key, Dim(1), extents);
  }
  bool isOutside = llvm::all_of(
      nest.ops, [&](StringRef op) { return mode != Mode::Exact && graph::isTrivial(op); });
  return isOutside && matchLoops(keys, nest.loops, extents);
}

std::optional<Extents> Key::match(const LoopNest &nest, std::string *why) const {
  Extents extents;
  Matcher matcher(Mode::Exact, why != nullptr);
  if (matcher.matchNest(loops, nest, extents))
    return extents;
  if (why)
    *why = matcher.reason();
  return std::nullopt;
}

Fit Key::fit(const LoopNest &nest, Extents *extents, std::string *why) const {
  Extents found;
  Matcher matcher(Mode::Full, why != nullptr);
  if (matcher.matchNest(loops, nest, found)) {
    if (extents)
      *extents = std::move(found);
    return Fit::Full;
  }
  if (why)
    *why = matcher.reason();
  found.clear();
  return Matcher(Mode::Partial).matchNest(loops, nest, found) ? Fit::Partial : Fit::No;
}

} // namespace heddle::warehouse
