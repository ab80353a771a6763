// LoopNest: the loops of each family of ops, their text, and how those of a group grow together.

#include "compiler/graph/LoopNest.h"

using namespace mlir;

namespace heddle::graph {

using Kind = Loop::Kind;
using Names = std::vector<std::string>;

namespace {
/// Puts loops one inside of the other, from the outside in.
class Builder {
public:
  void add(ArrayRef<Dim> extents, Kind kind = Kind::Parallel) {
    for (const Dim &extent : extents)
      path.push_back({extent, kind, {}, {}});
  }

  /// The innermost loop does `ops`; the first `shared` loops walk what the first operand's do.
  LoopNest finish(Names ops, int64_t shared) {
    LoopNest nest;
    nest.shared = std::min<int64_t>(shared, path.size());
    if (path.empty()) {
      nest.ops = std::move(ops);
      return nest;
    }
    path.back().ops = std::move(ops);
    while (path.size() > 1) {
      Loop inner = std::move(path.back());
      path.pop_back();
      path.back().children.push_back(std::move(inner));
    }
    nest.loops = std::move(path);
    return nest;
  }

private:
  std::vector<Loop> path;
};
} // namespace

static StringRef mnemonicOf(Operation *op) { return op->getName().stripDialect(); }

static LoopNest parallelNest(ArrayRef<Dim> extents, Names ops, int64_t shared) {
  Builder builder;
  builder.add(extents);
  return builder.finish(std::move(ops), shared);
}

static LoopNest matmulNest(MatmulOp op) {
  DimVector result = dimsOf(op.getResult());
  Builder builder;
  builder.add(result);
  builder.add({dimsOf(op.getA()).back()}, Kind::Reduction);
  return builder.finish({"dot"}, result.size() - 1);
}

/// conv and conv_transpose: the dimensions of the result, then channels, then the window.
template <typename Op> static LoopNest convNest(Op op, const Dim &channels, StringRef name) {
  DimVector window = dimsOf(op.getW());
  Builder builder;
  builder.add(dimsOf(op.getResult()));
  builder.add({channels}, Kind::Reduction);
  builder.add(ArrayRef<Dim>(window).drop_front(2), Kind::Window);
  return builder.finish({name.str()}, 1);
}

static LoopNest poolNest(PoolOp op) {
  DimVector window;
  for (int64_t size : op.getWindow())
    window.push_back(Dim(size));
  Builder builder;
  builder.add(dimsOf(op.getResult()));
  builder.add(window, Kind::Window);
  return builder.finish({op.getKind() == "max" ? "max" : "sum"}, op.getChannelsLast() ? 1 : 2);
}

/// The dimensions of x that stay, then those that are folded.
static LoopNest foldNest(Value x, ArrayRef<int64_t> axes, StringRef name) {
  DimVector kept, folded;
  int64_t shared = 0;
  for (auto [i, dim] : llvm::enumerate(dimsOf(x))) {
    bool isFolded = llvm::is_contained(axes, static_cast<int64_t>(i));
    (isFolded ? folded : kept).push_back(dim);
    // Loops walk x's dimensions in order until one that stays comes behind one that is folded.
    if (isFolded || folded.empty())
      ++shared;
  }
  Builder builder;
  builder.add(kept);
  builder.add(folded, Kind::Reduction);
  bool isInOrder = shared == static_cast<int64_t>(kept.size() + folded.size());
  return builder.finish({name.str()}, isInOrder ? shared : axes.empty() ? 0 : axes.front());
}

static LoopNest transposeNest(TransposeOp op) {
  int64_t shared = 0;
  for (auto [i, axis] : llvm::enumerate(op.getPermutation())) {
    if (axis != static_cast<int64_t>(i))
      break;
    ++shared;
  }
  return parallelNest(dimsOf(op.getResult()), {"permute"}, shared);
}

/// Walks all of a tensor in an order that matters.
static LoopNest serialNest(Value walked, StringRef name) {
  Builder builder;
  builder.add(dimsOf(walked), Kind::Reduction);
  return builder.finish({name.str()}, 0);
}

static LoopNest blockNest(Block &block) {
  LoopNest nest;
  for (Operation &inner : block.without_terminator())
    append(nest, loopNestOf(&inner));
  return nest;
}

static LoopNest ifNest(IfOp op) {
  LoopNest nest = blockNest(op.getThenRegion().front());
  LoopNest other = blockNest(op.getElseRegion().front());
  nest.loops.insert(nest.loops.end(), other.loops.begin(), other.loops.end());
  nest.ops = {"if"};
  nest.shared = 0;
  return nest;
}

static LoopNest repeatNest(Block &body, const Dim &extent, StringRef name) {
  LoopNest inner = blockNest(body), nest;
  nest.loops.push_back({extent, Kind::Reduction, {name.str()}, std::move(inner.loops)});
  return nest;
}

static LoopNest scanNest(ScanOp op) {
  Dim extent = Dim::symbol("?");
  if (op.getInputs().size() > op.getStateCount())
    if (DimVector dims = dimsOf(op.getInputs()[op.getStateCount()]); !dims.empty())
      extent = dims.front();
  return repeatNest(op.getBody().front(), extent, "scan");
}

/// Ops that write each element of the result once. Broadcast and reshape decide no schedule.
static LoopNest movementNest(Operation *op) {
  DimVector result = dimsOf(op->getResult(0));
  if (isa<ConstantOp, SizesOp>(op))
    return parallelNest({}, {}, 0);
  if (isa<BroadcastOp, DynamicBroadcastOp, ReshapeOp, DynamicReshapeOp>(op))
    return parallelNest(result, {}, result.size());
  int64_t shared = op->getNumOperands() == 0 ? 0 : result.size();
  if (auto gather = dyn_cast<GatherOp>(op))
    shared = gather.getAxis();
  else if (isa<GatherElementsOp, GatherNdOp, ReverseSequenceOp, RangeOp>(op))
    shared = 0;
  return parallelNest(result, {mnemonicOf(op).str()}, shared);
}

LoopNest loopNestOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, LoopNest>(op)
      .Case<GroupOp>([](GroupOp group) { return blockNest(group.getBody().front()); })
      .Case<IfOp>([](IfOp branch) { return ifNest(branch); })
      .Case<LoopOp>(
          [](LoopOp loop) { return repeatNest(loop.getBody().front(), Dim::symbol("?"), "loop"); })
      .Case<ScanOp>([](ScanOp scan) { return scanNest(scan); })
      .Case<YieldOp, BindSizesOp>([](auto) { return LoopNest(); })
      .Case<MatmulOp>([](MatmulOp matmul) { return matmulNest(matmul); })
      .Case<ConvOp>([](ConvOp conv) { return convNest(conv, dimsOf(conv.getW())[1], "dot"); })
      .Case<ConvTransposeOp>([](ConvTransposeOp conv) {
        return convNest(conv, dimsOf(conv.getW())[0].floorDiv(Dim(conv.getGroups())), "dot");
      })
      .Case<PoolOp>([](PoolOp pool) { return poolNest(pool); })
      .Case<ReduceSumOp>([](auto fold) { return foldNest(fold.getX(), fold.getAxes(), "sum"); })
      .Case<ReduceProdOp>([](auto fold) { return foldNest(fold.getX(), fold.getAxes(), "prod"); })
      .Case<ReduceMaxOp>([](auto fold) { return foldNest(fold.getX(), fold.getAxes(), "max"); })
      .Case<ReduceMinOp>([](auto fold) { return foldNest(fold.getX(), fold.getAxes(), "min"); })
      .Case<ArgMaxOp, ArgMinOp, CumsumOp, TopkOp>([](auto fold) {
        return foldNest(fold.getX(), {static_cast<int64_t>(fold.getAxis())}, mnemonicOf(fold));
      })
      .Case<ScatterElementsOp, ScatterNdOp>(
          [](auto scatter) { return serialNest(scatter.getUpdates(), mnemonicOf(scatter)); })
      .Case<TransposeOp>([](TransposeOp transpose) { return transposeNest(transpose); })
      .Default([](Operation *other) { return movementNest(other); });
}

static void appendNames(Names &names, const Names &more) {
  names.insert(names.end(), more.begin(), more.end());
}

static void appendLoop(std::vector<Loop> &loops, const Loop &next, int64_t shared) {
  bool merges = shared > 0 && !loops.empty() && loops.back().kind == Kind::Parallel &&
                next.kind != Kind::Window && loops.back().extent == next.extent;
  if (!merges) {
    loops.push_back(next);
    return;
  }
  Loop &loop = loops.back();
  loop.kind = next.kind;
  appendNames(loop.ops, next.ops);
  for (const Loop &child : next.children)
    appendLoop(loop.children, child, shared - 1);
}

void append(LoopNest &nest, const LoopNest &next) {
  appendNames(nest.ops, next.ops);
  if (nest.loops.empty() && nest.shared == 0)
    nest.shared = next.shared;
  for (const Loop &loop : next.loops)
    appendLoop(nest.loops, loop, next.shared);
}

/// m, n, k, then the rest of the alphabet, then x1, x2, ...
static std::string letterOf(size_t number) {
  constexpr StringLiteral kLetters = "mnkabcdefghijloqrtuvxyz";
  return number < kLetters.size() ? kLetters.substr(number, 1).str()
                                  : "x" + std::to_string(number - kLetters.size() + 1);
}

static void print(llvm::raw_ostream &stream, ArrayRef<Loop> loops, bool extents, size_t &used) {
  std::vector<std::string> letters;
  for (auto [i, loop] : llvm::enumerate(loops)) {
    std::string letter;
    for (size_t j = 0; j < i; ++j)
      if (loops[j].extent == loop.extent)
        letter = letters[j];
    letters.push_back(letter.empty() ? letterOf(used++) : letter);
    stream << (i ? " " : "") << letters.back();
    if (extents)
      stream << "=" << loop.extent.str();
    stream << ":" << "psw"[static_cast<int>(loop.kind)];
    if (!loop.ops.empty())
      stream << "(" << llvm::join(loop.ops, ",") << ")";
    if (!loop.children.empty()) {
      stream << " { ";
      print(stream, loop.children, extents, used);
      stream << " }";
    }
  }
}

std::string LoopNest::str(bool extents) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (!ops.empty())
    stream << "(" << llvm::join(ops, ",") << ")" << (loops.empty() ? "" : " ");
  size_t used = 0;
  print(stream, loops, extents, used);
  return text;
}

} // namespace heddle::graph
