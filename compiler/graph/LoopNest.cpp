// LoopNest: the loops of each family of ops, their text, and how those of a group grow together.

#include "compiler/graph/LoopNest.h"

using namespace mlir;

namespace heddle::graph {

using Kind = Loop::Kind;
using Names = std::vector<std::string>;
using Ints = SmallVector<int64_t>;

namespace {
/// Puts loops one inside of the other, from the outside in.
class Builder {
public:
  void add(ArrayRef<Dim> extents, Kind kind = Kind::Parallel) {
    for (const Dim &extent : extents)
      path.push_back({extent, kind});
  }

  /// Loop i moves along dimension `dims[i]` of the tensor, or not at all where that is -1.
  void walk(Value tensor, ArrayRef<int64_t> dims) {
    DimVector sizes = dimsOf(tensor);
    for (auto [i, dim] : llvm::enumerate(dims))
      if (dim >= 0 && i < path.size() && !sizes[dim].isConstant(1))
        path[i].walks.insert({tensor.getAsOpaquePointer(), dim - (int64_t)i});
  }

  /// The innermost loop does `ops`; the first `shared` loops walk what the first operand's do. What
  /// runs once is no loop.
  LoopNest finish(Names ops, int64_t shared) {
    auto runsOnce = [](const Loop &loop) {
      return loop.kind == Kind::Parallel && loop.extent.isConstant(1);
    };
    shared = std::min<int64_t>(shared, path.size());
    shared -= std::count_if(path.begin(), path.begin() + shared, runsOnce);
    // Loops of which nothing is known stay apart.
    for (auto [i, loop] : llvm::enumerate(path))
      if (loop.walks.empty())
        loop.walks.insert({nullptr, -(int64_t)i});
    llvm::erase_if(path, runsOnce);
    LoopNest nest;
    nest.shared = shared;
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

/// 0, 1, ... as the dimensions of a tensor of this rank, the last of them at the last of `loops`.
static Ints aligned(int64_t rank, int64_t loops) {
  Ints dims;
  for (int64_t i = 0; i < loops; ++i)
    dims.push_back(std::max<int64_t>(-1, i + rank - loops));
  return dims;
}

/// Loops over the result; `isWalkedAlike`: its operands are read at the same place.
static LoopNest parallelNest(Operation *op, Names ops, int64_t shared, bool isWalkedAlike) {
  Value result = op->getResult(0);
  int64_t rank = rankOf(result);
  Builder builder;
  builder.add(dimsOf(result));
  if (isWalkedAlike) {
    builder.walk(result, aligned(rank, rank));
    for (Value operand : op->getOperands())
      builder.walk(operand, aligned(rankOf(operand), rank));
  }
  return builder.finish(std::move(ops), shared);
}

static LoopNest matmulNest(MatmulOp op) {
  DimVector result = dimsOf(op.getResult());
  int64_t rank = result.size();
  Builder builder;
  builder.add(result);
  builder.add({dimsOf(op.getA()).back()}, Kind::Reduction);
  Ints ofResult = aligned(rank, rank), ofA(ofResult), ofB(ofResult);
  ofA.back() = -1;
  ofA.push_back(rank - 1);
  ofB[rank - 2] = -1;
  ofB.push_back(rank - 2);
  builder.walk(op.getResult(), ofResult);
  builder.walk(op.getA(), ofA);
  builder.walk(op.getB(), ofB);
  return builder.finish({"dot"}, rank - 1);
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

/// The dimensions of the filters, then images and positions.
static LoopNest filterGradientNest(ConvFilterGradientOp op) {
  DimVector summed = dimsOf(op.getDy());
  summed.erase(op.getChannelsLast() ? summed.end() - 1 : summed.begin() + 1);
  Builder builder;
  builder.add(dimsOf(op.getResult()));
  builder.add(summed, Kind::Reduction);
  return builder.finish({"conv_filter_gradient"}, 0);
}

/// Of a pool's window over its images, or of those windows that hold an element.
template <typename Op> static LoopNest windowNest(Op op, StringRef name) {
  DimVector window;
  for (int64_t size : op.getWindow())
    window.push_back(Dim(size));
  Builder builder;
  builder.add(dimsOf(op.getResult()));
  builder.add(window, Kind::Window);
  return builder.finish({name.str()}, op.getChannelsLast() ? 1 : 2);
}

/// The dimensions of x that stay, then those that are reduced.
static LoopNest reductionNest(Value x, ArrayRef<int64_t> axes, StringRef name) {
  DimVector kept, reduced;
  Ints order, last;
  int64_t shared = 0;
  for (auto [i, dim] : llvm::enumerate(dimsOf(x))) {
    bool isReduced = llvm::is_contained(axes, static_cast<int64_t>(i));
    (isReduced ? reduced : kept).push_back(dim);
    (isReduced ? last : order).push_back(i);
    // Loops walk x's dimensions in order until one that stays comes after one that is reduced.
    if (isReduced || reduced.empty())
      ++shared;
  }
  Builder builder;
  builder.add(kept);
  builder.add(reduced, Kind::Reduction);
  order.append(last);
  builder.walk(x, order);
  bool isInOrder = shared == static_cast<int64_t>(kept.size() + reduced.size());
  return builder.finish({name.str()}, isInOrder ? shared : axes.empty() ? 0 : axes.front());
}

static LoopNest transposeNest(TransposeOp op) {
  int64_t shared = 0;
  for (auto [i, axis] : llvm::enumerate(op.getPermutation())) {
    if (axis != static_cast<int64_t>(i))
      break;
    ++shared;
  }
  return parallelNest(op, {"permute"}, shared, false);
}

/// Walks all of a tensor in an order that matters.
static LoopNest serialNest(Value walked, StringRef name) {
  Builder builder;
  builder.add(dimsOf(walked), Kind::Reduction);
  return builder.finish({name.str()}, 0);
}

LoopNest nestOf(ArrayRef<Operation *> ops) {
  LoopNest nest;
  // Numbers of places are computed wherever they are read.
  auto isReadBeside = [&](Operation *op) {
    return isa<IotaOp>(op) && llvm::any_of(op->getUsers(), [&](Operation *user) {
             return llvm::is_contained(ops, user);
           });
  };
  for (Operation *op : ops)
    if (!isReadBeside(op))
      append(nest, loopNestOf(op));
  coalesce(nest);
  return nest;
}

static LoopNest blockNest(Block &block) {
  return nestOf(llvm::to_vector(llvm::make_pointer_range(block.without_terminator())));
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
  if (isa<ConstantOp, SizesOp>(op))
    return LoopNest();
  int64_t rank = rankOf(op->getResult(0));
  bool isReshape = isa<ReshapeOp, DynamicReshapeOp>(op);
  if (isReshape || isa<BroadcastOp, DynamicBroadcastOp>(op))
    return parallelNest(op, {}, rank, isa<BroadcastOp>(op));
  int64_t shared = op->getNumOperands() == 0 ? 0 : rank;
  if (auto gather = dyn_cast<GatherOp>(op))
    shared = gather.getAxis();
  else if (isGather(op) || isa<ReverseSequenceOp, RangeOp>(op))
    shared = 0;
  return parallelNest(op, {mnemonicOf(op).str()}, shared, op->hasTrait<Elementwise>());
}

LoopNest loopNestOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, LoopNest>(op)
      .Case<GroupOp>([](GroupOp group) { return blockNest(group.getBody().front()); })
      .Case<IfOp>([](IfOp branch) { return ifNest(branch); })
      .Case<LoopOp>(
          [](LoopOp loop) { return repeatNest(loop.getBody().front(), Dim::symbol("?"), "loop"); })
      .Case<ScanOp>([](ScanOp scan) { return scanNest(scan); })
      .Case<YieldOp, BindSizesOp, RowLengthsOp>([](auto) { return LoopNest(); })
      .Case<MatmulOp>([](MatmulOp matmul) { return matmulNest(matmul); })
      .Case<ConvOp>([](ConvOp conv) { return convNest(conv, dimsOf(conv.getW())[1], "dot"); })
      .Case<ConvTransposeOp>([](ConvTransposeOp conv) {
        return convNest(conv, dimsOf(conv.getW())[0].floorDiv(Dim(conv.getGroups())), "dot");
      })
      .Case<ConvFilterGradientOp>(filterGradientNest)
      .Case<PoolOp>(
          [](PoolOp pool) { return windowNest(pool, pool.getKind() == "max" ? "max" : "sum"); })
      .Case<UnpoolOp>([](UnpoolOp unpool) { return windowNest(unpool, "unpool"); })
      .Case<ReduceSumOp>(
          [](auto fold) { return reductionNest(fold.getX(), fold.getAxes(), "sum"); })
      .Case<ReduceProdOp>(
          [](auto fold) { return reductionNest(fold.getX(), fold.getAxes(), "prod"); })
      .Case<ReduceMaxOp>(
          [](auto fold) { return reductionNest(fold.getX(), fold.getAxes(), "max"); })
      .Case<ReduceMinOp>(
          [](auto fold) { return reductionNest(fold.getX(), fold.getAxes(), "min"); })
      .Case<ArgMaxOp, ArgMinOp, CumsumOp, TopkOp>([](auto fold) {
        return reductionNest(fold.getX(), {static_cast<int64_t>(fold.getAxis())}, mnemonicOf(fold));
      })
      .Case<ScatterElementsOp, ScatterNdOp>(
          [](auto scatter) { return serialNest(scatter.getUpdates(), mnemonicOf(scatter)); })
      .Case<TransposeOp>([](TransposeOp transpose) { return transposeNest(transpose); })
      .Default([](Operation *other) { return movementNest(other); });
}

static void appendNames(Names &names, const Names &more) {
  names.insert(names.end(), more.begin(), more.end());
}

bool isTrivialLoop(const Loop &loop) {
  return loop.kind == Kind::Parallel &&
         llvm::all_of(loop.ops, [](StringRef op) { return isTrivial(op); }) &&
         llvm::all_of(loop.children, isTrivialLoop);
}

/// After the last loop; what only prepares an operand, such as a mask, may be between.
static void appendLoop(std::vector<Loop> &loops, const Loop &next, int64_t shared) {
  bool mayMerge = shared > 0 && next.kind != Kind::Window;
  for (Loop &loop : llvm::reverse(loops)) {
    if (mayMerge && loop.kind == Kind::Parallel && loop.extent == next.extent) {
      loop.kind = next.kind;
      appendNames(loop.ops, next.ops);
      loop.walks.insert(next.walks.begin(), next.walks.end());
      for (const Loop &child : next.children)
        appendLoop(loop.children, child, shared - 1);
      return;
    }
    if (!isTrivialLoop(loop))
      break;
  }
  loops.push_back(next);
}

void append(LoopNest &nest, const LoopNest &next) {
  appendNames(nest.ops, next.ops);
  if (nest.loops.empty() && nest.shared == 0)
    nest.shared = next.shared;
  for (const Loop &loop : next.loops)
    appendLoop(nest.loops, loop, next.shared);
}

static void coalesce(Loop &loop) {
  for (Loop &child : loop.children)
    coalesce(child);
  while (loop.children.size() == 1 && loop.ops.empty() && loop.kind != Kind::Window &&
         loop.kind == loop.children[0].kind && loop.walks == loop.children[0].walks) {
    Loop child = std::move(loop.children[0]);
    loop.extent = loop.extent * child.extent;
    loop.ops = std::move(child.ops);
    loop.children = std::move(child.children);
  }
}

void coalesce(LoopNest &nest) {
  for (Loop &loop : nest.loops)
    coalesce(loop);
}

template <typename... Ops> static std::set<StringRef> elementwiseNames() {
  std::set<StringRef> names;
  auto add = [&](bool isElementwise, StringRef name) {
    if (isElementwise)
      names.insert(name.split('.').second);
  };
  (add(Ops::template hasTrait<Elementwise>(), Ops::getOperationName()), ...);
  return names;
}

bool followsProduct(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasOneUse())
    return false;
  return isContraction(op) ||
         (isElementwise(op) && llvm::any_of(op->getOperands(), followsProduct));
}

bool isTrivial(StringRef op) {
  static const std::set<StringRef> names = elementwiseNames<
#define GET_OP_LIST
#include "compiler/graph/Ops.cpp.inc"
      >();
  return op == "iota" || names.count(op) > 0;
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
