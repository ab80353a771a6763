// Pointwise: loops over the elements of the outputs, dimensions coalesced where every access allows
// it.

#include "compiler/lower/Schedule.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// A value that is stored into a tensor, shifted along one axis (an operand of a concat that ends
/// the group).
struct Root {
  Value value, target;
  int64_t axis = 0;
  Dim offset;
};
} // namespace

ValueRange outputsOf(Block *group) { return group->getTerminator()->getOperands(); }

int64_t nominalSize(const Dim &dim, int64_t nominal) {
  auto size = dim.evaluate([&](StringRef) { return std::optional<int64_t>(nominal); });
  return std::max<int64_t>(0, size.value_or(nominal));
}

int64_t opsPerElement(Block *group) {
  int64_t count = 1;
  for (Operation &op : *group) {
    if (isa<graph::ExpOp, graph::LogOp, graph::TanhOp, graph::SigmoidOp, graph::ErfOp,
            graph::PowOp>(op))
      count += 16;
    else if (!isa<graph::ConstantOp, graph::YieldOp>(op))
      count += isa<graph::ResizeOp, graph::GatherOp, graph::TransposeOp>(op) ? 4 : 1;
  }
  return count;
}

Values foldLanes(Elements &elements, Value low, Value high, ValueRange initial,
                 llvm::function_ref<Values(Value, ValueRange)> body) {
  Code &code = elements.code();
  Value length = code.sub(high, low), lanes = code.number(code.lanes);
  Value full = code.mul(code.div(length, lanes), lanes), middle = code.add(low, full);
  Values carried = code.fold(low, middle, code.lanes, initial, [&](Value i, ValueRange in) {
    Elements::Scope scope(elements);
    return body(i, in);
  });
  Value rest = code.sub(length, full);
  if (code.lanes == 1 || Code::constant(rest) == 0)
    return carried;
  SmallVector<Type> types;
  for (Value value : carried)
    types.push_back(value.getType());
  auto tail = [&] {
    Elements::Scope scope(elements);
    Value before = elements.mask;
    elements.mask = code.both(before, code.maskOf(rest));
    Values result = body(middle, carried);
    elements.mask = before;
    return result;
  };
  if (types.empty()) {
    code.when(code.less(code.number(0), rest), [&] { tail(); });
    return {};
  }
  return code.choose(code.less(code.number(0), rest), types, tail, [&] { return carried; });
}

void forLanes(Elements &elements, Value low, Value high, llvm::function_ref<void(Value)> body) {
  foldLanes(elements, low, high, {}, [&](Value i, ValueRange) {
    body(i);
    return Values();
  });
}

static void collectRoots(Block *group, Value value, Root root, SmallVectorImpl<Root> &roots) {
  auto concat = value.getDefiningOp<graph::ConcatOp>();
  if (!concat || concat->getBlock() != group || !value.hasOneUse() ||
      (root.value && root.axis != (int64_t)concat.getAxis())) {
    root.value = value;
    roots.push_back(root);
    return;
  }
  root.value = value;
  root.axis = concat.getAxis();
  for (Value operand : concat.getXs()) {
    collectRoots(group, operand, root, roots);
    root.offset = root.offset + graph::dimsOf(operand)[root.axis];
  }
}

/// Whether dimensions i and i + 1 of the roots' shape are always kept or always broadcast together.
static bool mayCoalesce(Block *group, size_t rank, size_t i) {
  for (Operation &op : *group) {
    if (op.hasTrait<graph::Elementwise>() || isa<graph::ConstantOp, graph::YieldOp>(op))
      continue;
    auto broadcast = dyn_cast<graph::BroadcastOp>(op);
    if (!broadcast)
      return false;
    DimVector from = graph::dimsOf(broadcast.getX()), to = graph::dimsOf(broadcast.getResult());
    if (to.size() > rank)
      return false;
    auto isKept = [&](size_t root) -> std::optional<bool> { // null: only the run knows
      int64_t inResult = (int64_t)root - (int64_t)(rank - to.size());
      int64_t inSource = inResult - (int64_t)(to.size() - from.size());
      if (inResult >= 0 && to[inResult].isConstant(1))
        return std::nullopt;
      if (inSource < 0 || from[inSource].isConstant(1))
        return false;
      return from[inSource] == to[inResult] ? std::optional<bool>(true) : std::nullopt;
    };
    auto first = isKept(i), second = isKept(i + 1);
    if (!first || !second || *first != *second)
      return false;
  }
  return true;
}

bool isPlacedAlong(const KernelBuilder &kernel, Value tensor, int64_t axis) {
  while (const loop::Placement *placement = kernel.placementOf(tensor)) {
    if (placement->axis == axis)
      return true;
    tensor = placement->whole;
  }
  return false;
}

namespace {
/// One set of loops that stores roots of one shape.
class Nest {
public:
  Nest(KernelBuilder &kernel, Block *group, ArrayRef<Root> roots, int64_t chunk)
      : kernel(kernel), group(group), roots(roots), chunk(chunk) {}

  void emit(llvm::function_ref<void(Elements &)> prepare) {
    DimVector dims = graph::dimsOf(roots.front().value);
    // Runs of coalesced dimensions; each is walked by the index of its last one.
    for (size_t i = 0; i < dims.size(); ++i) {
      bool joins = i > 0 && canCoalesce && mayCoalesce(group, dims.size(), i - 1) &&
                   llvm::none_of(roots, [&](const Root &root) {
                     return isPlacedAlong(kernel, root.target, i);
                   });
      if (joins && !runs.empty()) {
        runs.back().extent = runs.back().extent * dims[i];
        runs.back().dimension = i;
      } else {
        runs.push_back({dims[i], i});
      }
    }
    if (runs.empty())
      runs.push_back({Dim(1), SIZE_MAX});
    rank = dims.size();
    split();
    kernel.beginPhase();
    Code &code = kernel.code();
    const Dim &last = runs.back().extent;
    auto width = last.constant();
    if (width && *width * 2 <= code.lanes)
      code.lanes = 1;
    Elements elements(kernel, group);
    if (prepare)
      prepare(elements);
    Dim tasks(1);
    for (size_t i = 0; i < taskRuns; ++i)
      tasks = tasks * runs[i].extent;
    Dim chunks = isChunked ? last.ceilDiv(Dim(chunk)) : Dim(1);
    kernel.forEachTask([&](Value task) {
      Elements::Scope scope(elements);
      Indices place(rank, elements.uniform(code.number(0)));
      Value rest = task, low = code.number(0), high = kernel.dim(last);
      if (isChunked) {
        Value count = kernel.dim(chunks);
        low = code.mul(code.rem(rest, count), code.number(chunk));
        high = code.min(code.add(low, code.number(chunk)), high);
        rest = code.div(rest, count);
      }
      for (size_t i = taskRuns; i-- > 0;) {
        Value extent = kernel.dim(runs[i].extent);
        place[runs[i].dimension] = elements.uniform(i == 0 ? rest : code.rem(rest, extent));
        if (i > 0)
          rest = code.div(rest, extent);
      }
      inner(elements, taskRuns, place, low, high);
    });
    Dim total = graph::elementCount(dims);
    kernel.endPhase(tasks * chunks, total * Dim(opsPerElement(group)));
  }

  bool canCoalesce = true;

private:
  struct Run {
    Dim extent;
    size_t dimension;
  };

  /// Which runs make the tasks: enough elements in one, enough tasks for the workers.
  void split() {
    int64_t inside = nominalSize(runs.back().extent);
    taskRuns = runs.size() - 1;
    while (taskRuns > 0 && runs[taskRuns - 1].extent.constant() &&
           inside * *runs[taskRuns - 1].extent.constant() <= chunk)
      inside *= *runs[--taskRuns].extent.constant();
    bool isDynamic = !runs.back().extent.constant().has_value();
    isChunked = taskRuns + 1 == runs.size() && (inside > 2 * chunk || (isDynamic && taskRuns == 0));
  }

  void inner(Elements &elements, size_t run, Indices &place, Value low, Value high) {
    Code &code = kernel.code();
    if (run + 1 < runs.size()) {
      code.forEach(code.number(0), kernel.dim(runs[run].extent), 1, [&](Value i) {
        Elements::Scope scope(elements);
        place[runs[run].dimension] = elements.uniform(i);
        inner(elements, run + 1, place, low, high);
      });
      return;
    }
    if (rank == 0) {
      storeRoots(elements, place);
      return;
    }
    forLanes(elements, low, high, [&](Value i) {
      Indices here(place);
      here[runs.back().dimension] = {i, code.lanes == 1 ? 0 : 1, {}};
      storeRoots(elements, here);
    });
  }

  void storeRoots(Elements &elements, ArrayRef<Index> place) {
    for (const Root &root : roots) {
      Value value = elements.at(root.value, place);
      Indices target(place);
      if (!root.offset.isConstant(0))
        target[root.axis] = elements.shift(target[root.axis], kernel.dim(root.offset));
      elements.store(root.target, value, target);
    }
  }

  KernelBuilder &kernel;
  Block *group;
  ArrayRef<Root> roots;
  int64_t chunk;
  SmallVector<Run> runs;
  size_t taskRuns = 0, rank = 0;
  bool isChunked = false;
};
} // namespace

void emitPointwise(KernelBuilder &kernel, Block *group, const Schedule &schedule,
                   llvm::function_ref<void(Elements &)> prepare) {
  SmallVector<Root> roots;
  for (Value output : outputsOf(group)) {
    Root root;
    root.target = output;
    collectRoots(group, output, root, roots);
  }
  llvm::erase_if(roots, [&](const Root &root) { // is there already
    return root.value != root.target && kernel.placementOf(root.value);
  });
  bool hasConcat = llvm::any_of(roots, [](const Root &root) { return root.value != root.target; });
  // Roots of one shape share their loops.
  while (!roots.empty()) {
    DimVector dims = graph::dimsOf(roots.front().value);
    SmallVector<Root> same, others;
    for (const Root &root : roots)
      (graph::dimsOf(root.value) == dims ? same : others).push_back(root);
    Nest nest(kernel, group, same, schedule.knob("chunk", 4096));
    nest.canCoalesce = !hasConcat;
    nest.emit(prepare);
    roots = others;
  }
}

} // namespace heddle::lower
