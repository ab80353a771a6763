// Features: see Features.h. Sizes and counts are log2(1 + x), shares and flags are as they are.

#include "compiler/learn/Features.h"

#include "compiler/estimate/Tiling.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/learn/Vocabulary.h"

#include <cmath>

using namespace mlir;

namespace heddle::learn {

using estimate::bytesOf;
using estimate::countOf;
using estimate::Extents;
using estimate::flopsOf;
using estimate::GroupInput;
using estimate::Tiling;
using graph::Dim;

static constexpr size_t kDims = 4; // the last dimensions of a node's result

static double rounded(double value) { return std::round(value * 1e4) / 1e4; }
static double logOf(double value) { return rounded(std::log2(1 + std::max(0.0, value))); }

llvm::ArrayRef<llvm::StringLiteral> nodeNames() {
  static constexpr llvm::StringLiteral names[] = {
      "is_float",       "is_integer",  "bytes_per_element",
      "rank",           "dim_last",    "dim_2",
      "dim_3",          "dim_4",       "elements",
      "bytes",          "flops",       "combined",
      "is_elementwise", "is_movement", "is_reduction",
      "is_product",     "is_costly",   "is_constant",
      "is_result",      "readers",     "window",
      "strides",        "dilations",   "groups"};
  return names;
}

namespace {
/// Window of convolutions and pools, as products; 1 for other ops.
struct Window {
  double window = 1, strides = 1, dilations = 1, groups = 1;
};
} // namespace

static Window windowOf(Operation *op) {
  Window found;
  auto product = [](ArrayRef<int64_t> sizes) {
    double value = 1;
    for (int64_t size : sizes)
      value *= static_cast<double>(size);
    return value;
  };
  if (auto conv = dyn_cast<graph::ConvOp>(op)) {
    found.window = countOf(ArrayRef(graph::dimsOf(conv.getW())).drop_front(2));
    found.strides = product(conv.getStrides());
    found.dilations = product(conv.getDilations());
    found.groups = static_cast<double>(conv.getGroups());
  } else if (auto pool = dyn_cast<graph::PoolOp>(op)) {
    found.window = product(pool.getWindow());
    found.strides = product(pool.getStrides());
    found.dilations = product(pool.getDilations());
  }
  return found;
}

/// The terms that each element of the result sums up or compares.
static double combinedOf(Operation *op, double elements) {
  if (!graph::combinedAxes(op).empty())
    return countOf(graph::dimsOf(op->getOperand(0))) / std::max(1.0, elements);
  if (graph::isContraction(op) || isa<graph::ConvFilterGradientOp>(op))
    return countOf(flopsOf(op)) / (2 * std::max(1.0, elements));
  return 1;
}

/// Facts about a value, whoever makes it; the rest is 0.
static std::vector<double> nodeOf(Value value) {
  graph::DimVector dims = graph::dimsOf(value);
  Type element = graph::storageOf(value);
  double elements = countOf(ArrayRef<Dim>(dims)), bytes = countOf(bytesOf(value));
  std::vector<double> node = {double(isa<FloatType>(element)), double(isa<IntegerType>(element)),
                              static_cast<double>(graph::bytesOf(element)),
                              static_cast<double>(dims.size())};
  for (size_t i = 0; i < kDims; ++i)
    node.push_back(i < dims.size() ? logOf(countOf(dims[dims.size() - 1 - i])) : 0);
  node.push_back(logOf(elements));
  node.push_back(logOf(bytes));
  node.resize(nodeNames().size());
  return node;
}

static double &at(std::vector<double> &node, StringRef name) {
  size_t index = llvm::find(nodeNames(), name) - nodeNames().begin();
  assert(index < node.size());
  return node[index];
}

static std::vector<double> nodeOf(Operation *op) {
  std::vector<double> node = nodeOf(op->getResult(0));
  Window window = windowOf(op);
  double elements = countOf(graph::dimsOf(op->getResult(0)));
  at(node, "flops") = logOf(countOf(flopsOf(op)));
  at(node, "combined") = logOf(combinedOf(op, elements));
  at(node, "is_elementwise") = graph::isElementwise(op);
  at(node, "is_movement") = graph::isMovement(op);
  at(node, "is_reduction") = !graph::combinedAxes(op).empty();
  at(node, "is_product") = graph::isContraction(op) || isa<graph::ConvFilterGradientOp>(op);
  at(node, "is_costly") = graph::isCostly(op);
  at(node, "is_constant") = isa<graph::ConstantOp>(op);
  at(node, "window") = logOf(window.window);
  at(node, "strides") = logOf(window.strides);
  at(node, "dilations") = logOf(window.dilations);
  at(node, "groups") = logOf(window.groups);
  return node;
}

/// Arguments of a group that was cut out say so; in a model, constants are ops.
static bool isConstant(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return function && function.getArgAttr(argument.getArgNumber(), "heddle.constant");
  }
  return isa_and_nonnull<graph::ConstantOp>(value.getDefiningOp());
}

GroupFeatures featuresOf(graph::GroupOp group) {
  GroupFeatures features;
  llvm::DenseMap<Value, int64_t> numbers;
  Block &body = group.getBody().front();
  auto add = [&](Value value, size_t op, std::vector<double> node) {
    numbers[value] = static_cast<int64_t>(features.ops.size());
    features.ops.push_back(static_cast<int64_t>(op));
    features.nodes.push_back(std::move(node));
  };
  for (const GroupInput &input : estimate::inputsOf(group)) {
    add(input.value, indexOf(opNames(), "input"), nodeOf(input.value));
    at(features.nodes.back(), "is_constant") = isConstant(input.value);
  }
  for (Operation &op : body.without_terminator()) {
    if (op.getNumResults() == 0)
      continue;
    add(op.getResult(0), indexOf(opNames(), op.getName().stripDialect()), nodeOf(&op));
    for (Value more : op.getResults().drop_front())
      numbers[more] = numbers[op.getResult(0)];
    llvm::SmallSetVector<int64_t, 4> read; // each edge once
    for (Value operand : op.getOperands())
      if (auto maker = numbers.find(operand); maker != numbers.end())
        read.insert(maker->second);
    for (int64_t maker : read)
      features.edges.emplace_back(maker, numbers[op.getResult(0)]);
  }
  for (Value result : body.getTerminator()->getOperands())
    if (auto made = numbers.find(result); made != numbers.end())
      at(features.nodes[made->second], "is_result") = 1;
  std::vector<double> readers(features.ops.size());
  for (auto &[maker, reader] : features.edges)
    ++readers[maker];
  for (auto [node, count] : llvm::zip(features.nodes, readers))
    at(node, "readers") = logOf(count);
  return features;
}

// --- candidates

namespace {
/// Numbers with their names, which are the same for all candidates.
class Numbers {
public:
  void add(StringRef name, double value) {
    names.push_back(name.str());
    values.push_back(rounded(value));
  }
  void addLog(StringRef name, double value) { add(name, logOf(value)); }

  std::vector<std::string> names;
  std::vector<double> values;
};

struct Totals {
  double flops = 0, readBytes = 0, weightBytes = 0, writtenBytes = 0, elements = 0, ops = 0;
};
} // namespace

static Totals totalsOf(graph::GroupOp group) {
  Totals totals;
  totals.flops = countOf(flopsOf(group));
  for (const GroupInput &input : estimate::inputsOf(group)) {
    double bytes = countOf(input.bytes);
    (isConstant(input.value) ? totals.weightBytes : totals.readBytes) += bytes;
  }
  for (Value result : group.getBody().front().getTerminator()->getOperands()) {
    totals.writtenBytes += countOf(bytesOf(result));
    totals.elements = std::max(totals.elements, countOf(graph::dimsOf(result)));
  }
  for ([[maybe_unused]] Operation &op : group.getBody().front().without_terminator())
    ++totals.ops;
  return totals;
}

static void addMachine(const program::Machine &machine, Numbers &numbers) {
  numbers.addLog("machine_lanes", static_cast<double>(machine.lanes));
  numbers.addLog("machine_registers", static_cast<double>(machine.registers));
  numbers.addLog("machine_l1_bytes", static_cast<double>(machine.l1Bytes));
  numbers.addLog("machine_l2_bytes", static_cast<double>(machine.l2Bytes));
  numbers.addLog("machine_workers", static_cast<double>(machine.workers));
  numbers.add("machine_dot", static_cast<double>(machine.dot));
  numbers.add("machine_permutes_words", machine.permutesWords);
  numbers.add("machine_permutes_bytes", machine.permutesBytes);
}

static void addGroup(const Totals &totals, const Extents &extents, Numbers &numbers) {
  double bytes = totals.readBytes + totals.weightBytes + totals.writtenBytes;
  numbers.addLog("group_ops", totals.ops);
  numbers.addLog("group_flops", totals.flops);
  numbers.addLog("group_read_bytes", totals.readBytes);
  numbers.addLog("group_weight_bytes", totals.weightBytes);
  numbers.addLog("group_written_bytes", totals.writtenBytes);
  numbers.addLog("group_intensity", totals.flops / std::max(1.0, bytes));
  numbers.add("is_product", extents.isProduct);
  numbers.addLog("batches", extents.batches);
  numbers.addLog("rows", extents.rows);
  numbers.addLog("columns", extents.columns);
  numbers.addLog("depth", extents.depth);
  numbers.addLog("taps", extents.taps);
  numbers.add("element_bytes", extents.elementBytes);
}

static void addTiling(const Tiling &tiling, const Extents &extents, double opsPerElement,
                      const program::Machine &machine, const Totals &totals, Numbers &numbers) {
  numbers.addLog("tile_rows", tiling.m);
  numbers.addLog("tile_columns", tiling.n);
  numbers.addLog("row_tiles", tiling.rowTiles);
  numbers.addLog("column_tiles", tiling.columnTiles);
  numbers.add("rows_fill", tiling.rowsFill);
  numbers.add("columns_fill", tiling.columnsFill);
  numbers.add("lanes_fill", tiling.lanesFill);
  numbers.add("register_use", std::min(8.0, tiling.registers));
  numbers.add("register_spill", std::clamp(tiling.registers - 1, 0.0, 8.0));
  numbers.add("loads_per_product", tiling.loads);
  numbers.addLog("l1_use", tiling.l1);
  numbers.addLog("l2_use", tiling.l2);
  numbers.addLog("tasks", tiling.tasks);
  numbers.addLog("tasks_per_worker",
                 tiling.tasks / std::max(1.0, static_cast<double>(machine.workers)));
  numbers.add("balance", tiling.balance);
  numbers.addLog("ops_per_element", opsPerElement);
  numbers.addLog("padded_flops", tiling.arithmetic);
  // Terms of a roofline: vector instructions of arithmetic and of loads, and bytes.
  double lanes =
      std::max(1.0, static_cast<double>(machine.lanes) * 4 / std::max(1.0, extents.elementBytes));
  double scalar = extents.isProduct ? tiling.arithmetic
                                    : std::max(totals.flops, totals.elements * opsPerElement);
  numbers.addLog("vector_operations", scalar / lanes);
  numbers.addLog("vector_loads", extents.isProduct ? scalar / 2 / lanes * tiling.loads : 0);
  numbers.addLog("moved_bytes", totals.readBytes + totals.weightBytes + totals.writtenBytes);
}

static Numbers numbersOf(const Totals &totals, const Extents &extents, double opsPerElement,
                         const Candidate &candidate, const program::Machine &machine) {
  Numbers numbers;
  addMachine(machine, numbers);
  addGroup(totals, extents, numbers);
  size_t mechanism = indexOf(mechanismNames(), candidate.mechanism);
  for (auto [i, name] : llvm::enumerate(mechanismNames()))
    numbers.add(("mechanism_" + name).str(), i == mechanism);
  numbers.add("has_card", candidate.hasCard);
  for (StringRef name : knobNames()) { // 0 for none, 1 for the value 0
    auto knob = candidate.knobs.find(name.str());
    bool isSet = knob != candidate.knobs.end();
    numbers.add(("knob_" + name).str(), isSet ? 1 + logOf(static_cast<double>(knob->second)) : 0);
  }
  addTiling(estimate::tilingOf(extents, mechanism::find(candidate.mechanism), candidate.knobs,
                               machine, totals.flops, totals.elements),
            extents, opsPerElement, machine, totals, numbers);
  numbers.add("has_bf16", candidate.isShort);
  return numbers;
}

std::vector<double> featuresOf(graph::GroupOp group, const Candidate &candidate,
                               const program::Machine &machine) {
  double opsPerElement = static_cast<double>(estimate::opsPerElement(&group.getBody().front()));
  return numbersOf(totalsOf(group), estimate::extentsOf(group), opsPerElement, candidate, machine)
      .values;
}

std::vector<std::string> candidateNames() { return numbersOf({}, {}, 1, {}, {}).names; }

} // namespace heddle::learn
