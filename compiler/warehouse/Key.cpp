// Key: reading a key, and matching it against a loop nest by trying the longest run first.

#include "compiler/warehouse/Key.h"

#include "compiler/support/Error.h"

using namespace mlir;

namespace heddle::warehouse {

using graph::Dim;
using graph::Loop;
using graph::LoopNest;
using Many = KeyLoop::Many;

namespace {
/// Recursive descent over the text of a key.
class Reader {
public:
  explicit Reader(StringRef text) : text(text), rest(text) {}

  llvm::Expected<std::vector<KeyLoop>> read() {
    std::vector<KeyLoop> loops;
    if (!readLoops(loops, 0) || !problem.empty() || !(rest = rest.ltrim()).empty())
      return makeError(ErrorCode::Usage,
                       "key '" + text + "', at column " + Twine(text.size() - rest.size() + 1) +
                           ": " + (problem.empty() ? "a loop is needed here" : problem) +
                           "; a loop is written 'k:s(dot)', see docs/spec/cards.md");
    return loops;
  }

private:
  bool take(char wanted) {
    rest = rest.ltrim();
    return rest.consume_front(StringRef(&wanted, 1));
  }
  StringRef word() {
    rest = rest.ltrim();
    StringRef found = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest = rest.drop_front(found.size());
    return found;
  }
  bool fail(const Twine &why) {
    if (problem.empty())
      problem = why.str();
    return false;
  }

  bool readLoops(std::vector<KeyLoop> &loops, int depth) {
    if (depth > 32)
      return fail("loops are nested more than 32 deep");
    do {
      if (!readLoop(loops.emplace_back(), depth))
        return false;
      rest = rest.ltrim();
    } while (!rest.empty() && rest.front() != '}');
    return true;
  }

  bool readLoop(KeyLoop &loop, int depth) {
    StringRef kind = word();
    if (take('=')) {
      StringRef number = word();
      int64_t extent;
      if (number.getAsInteger(10, extent))
        return fail("'" + number + "' is not a size");
      loop.extent = extent;
      loop.letter = kind.str();
      if (!take(':'))
        return fail("':' is missing behind the size");
      kind = word();
    } else if (take(':')) {
      loop.letter = kind.str();
      kind = word();
    }
    size_t number = StringRef("psw").find(kind);
    if (kind.size() != 1 || number == StringRef::npos)
      return fail("'" + kind +
                  "' is no kind of loop; kinds: p (parallel), s (reduction), w (window)");
    loop.kind = static_cast<Loop::Kind>(number);
    loop.many = take('*') ? Many::Any : take('+') ? Many::Some : Many::One;
    if (loop.extent && loop.many != Many::One)
      return fail("a run of loops has no size; use the guards 'min' and 'max'");
    if (take('(') && !readOps(loop))
      return false;
    if (!take('{'))
      return true;
    return readLoops(loop.children, depth + 1) && (take('}') || fail("'}' is missing"));
  }

  bool readOps(KeyLoop &loop) {
    if (take('*')) {
      loop.takesAnyOps = true;
      return take(')') || fail("')' is missing");
    }
    do {
      auto &alternatives = loop.ops.emplace_back();
      do {
        alternatives.push_back(word().str());
        if (alternatives.back().empty())
          return fail("the name of an op is missing");
      } while (take('|'));
    } while (take(','));
    return take(')') || fail("')' is missing");
  }

  StringRef text, rest;
  std::string problem;
};

using KeyLoops = ArrayRef<KeyLoop>;
using Loops = ArrayRef<Loop>;
} // namespace

static bool matchOps(const KeyLoop &key, ArrayRef<std::string> ops) {
  if (key.takesAnyOps)
    return true;
  if (key.ops.size() != ops.size())
    return false;
  for (auto [alternatives, op] : llvm::zip(key.ops, ops))
    if (!llvm::is_contained(alternatives, op))
      return false;
  return true;
}

static bool matchLoops(KeyLoops keys, Loops loops, Extents &extents);

static void bindExtent(const KeyLoop &key, const Dim &extent, Extents &extents) {
  if (!key.letter.empty())
    extents[key.letter] = extent;
}

/// The first key as a run of `length` loops from the first loop inwards; then the rest of both.
static bool matchRun(KeyLoops keys, Loops loops, size_t length, Extents &extents) {
  const KeyLoop &key = keys.front();
  const Loop *loop = &loops.front();
  Dim product = loop->extent;
  for (size_t i = 1; i < length; ++i) {
    if (loop->children.size() != 1 || (!loop->ops.empty() && !key.takesAnyOps))
      return false;
    loop = &loop->children.front();
    product = product * loop->extent;
  }
  if (!matchOps(key, loop->ops) || !matchLoops(key.children, loop->children, extents))
    return false;
  bindExtent(key, product, extents);
  return matchLoops(keys.drop_front(), loops.drop_front(), extents);
}

static size_t longestRun(const KeyLoop &key, Loops loops) {
  size_t length = 0;
  while (!loops.empty() && loops.front().kind == key.kind) {
    ++length;
    if (key.many == Many::One || loops.front().children.size() != 1)
      break;
    loops = loops.front().children;
  }
  return length;
}

static bool matchLoops(KeyLoops keys, Loops loops, Extents &extents) {
  if (keys.empty())
    return loops.empty();
  const KeyLoop &key = keys.front();
  if (!loops.empty() && key.extent && !loops.front().extent.isConstant(*key.extent))
    return false;
  for (size_t length = longestRun(key, loops); length > 0; --length) {
    Extents found(extents);
    if (matchRun(keys, loops, length, found)) {
      extents = std::move(found);
      return true;
    }
  }
  // A run of no loops: what stands inside of it takes its place.
  if (key.many != Many::Any || !key.ops.empty())
    return false;
  std::vector<KeyLoop> inner(key.children);
  inner.insert(inner.end(), keys.begin() + 1, keys.end());
  bindExtent(key, Dim(1), extents);
  return matchLoops(inner, loops, extents);
}

llvm::Expected<Key> Key::parse(StringRef text) {
  auto loops = Reader(text).read();
  if (!loops)
    return loops.takeError();
  Key key;
  key.text = text.str();
  key.loops = std::move(*loops);
  return key;
}

std::optional<Extents> Key::match(const LoopNest &nest) const {
  Extents extents;
  if (nest.loops.empty()) { // a scalar
    bool isMatch = loops.size() == 1 && loops.front().many == Many::Any &&
                   loops.front().children.empty() && matchOps(loops.front(), nest.ops);
    if (isMatch)
      bindExtent(loops.front(), Dim(1), extents);
    return isMatch ? std::optional<Extents>(extents) : std::nullopt;
  }
  if (!nest.ops.empty() || !matchLoops(loops, nest.loops, extents))
    return std::nullopt;
  return extents;
}

static bool hasLetterIn(KeyLoops loops, StringRef letter) {
  return llvm::any_of(loops, [&](const KeyLoop &loop) {
    return loop.letter == letter || hasLetterIn(loop.children, letter);
  });
}

bool Key::hasLetter(StringRef letter) const { return hasLetterIn(loops, letter); }

/// One loop a dimension of the operand, in its order.
template <typename Op> static LoopNest foldInOrder(Op op, StringRef name) {
  LoopNest nest;
  std::vector<Loop> *inside = &nest.loops;
  graph::DimVector dims = graph::dimsOf(op.getX());
  for (auto [i, dim] : llvm::enumerate(dims)) {
    bool isFolded = llvm::is_contained(op.getAxes(), static_cast<int64_t>(i));
    Loop loop{dim, isFolded ? Loop::Kind::Reduction : Loop::Kind::Parallel, {}, {}};
    if (i + 1 == dims.size())
      loop.ops = {name.str()};
    inside->push_back(std::move(loop));
    inside = &inside->front().children;
  }
  if (dims.empty())
    nest.ops = {name.str()};
  return nest;
}

static LoopNest convSkeleton(graph::ConvOp op) {
  LoopNest nest = graph::loopNestOf(op);
  if (op.getGroups() == 1 || !graph::dimsOf(op.getW())[1].isConstant(1))
    return nest;
  // The loop over the one channel of a group is no loop: windows stand where it stood.
  std::vector<Loop> *loops = &nest.loops;
  while (!loops->empty() && loops->front().kind == Loop::Kind::Parallel)
    loops = &loops->front().children;
  if (!loops->empty() && !loops->front().children.empty()) {
    std::vector<Loop> windows = std::move(loops->front().children);
    *loops = std::move(windows);
  }
  return nest;
}

LoopNest skeletonOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, LoopNest>(op)
      .Case<graph::ReduceSumOp>([](auto fold) { return foldInOrder(fold, "sum"); })
      .Case<graph::ReduceProdOp>([](auto fold) { return foldInOrder(fold, "prod"); })
      .Case<graph::ReduceMaxOp>([](auto fold) { return foldInOrder(fold, "max"); })
      .Case<graph::ReduceMinOp>([](auto fold) { return foldInOrder(fold, "min"); })
      .Case<graph::ConvOp>([](auto conv) { return convSkeleton(conv); })
      .Default([](Operation *other) { return graph::loopNestOf(other); });
}

static bool decides(Loops loops) {
  return llvm::any_of(loops, [](const Loop &loop) {
    return loop.kind != Loop::Kind::Parallel || decides(loop.children);
  });
}

SmallVector<Operation *> decidingOps(graph::GroupOp group) {
  SmallVector<Operation *> all, deciding;
  for (Operation &op : group.getBody().front().without_terminator()) {
    if (isa<graph::ConstantOp>(op))
      continue;
    all.push_back(&op);
    if (decides(graph::loopNestOf(&op).loops))
      deciding.push_back(&op);
  }
  return deciding.empty() ? all : deciding;
}

} // namespace heddle::warehouse
