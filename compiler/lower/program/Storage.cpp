// Storage: inputs and outputs described, steps numbered, buffers placed.

#include "compiler/lower/program/Storage.h"

#include "compiler/graph/Typical.h"
#include "compiler/graph/edit/Sharing.h"
#include "compiler/graph/ragged/Ragged.h"
#include "compiler/lower/Schedule.h"

using namespace mlir;

namespace heddle::lower {

static program::Io describeValue(Value value, DictionaryAttr attributes,
                                 const std::map<std::string, int64_t> &symbols) {
  program::Io io;
  if (graph::ListType list = graph::listOf(value)) {
    io.kind = llvm::StringSwitch<program::IoKind>(list.getKind())
                  .Case("sequence", program::IoKind::Sequence)
                  .Case("optional", program::IoKind::Optional)
                  .Case(graph::kAnyRank, program::IoKind::AnyRank)
                  .Default(program::IoKind::OptionalSequence);
    io.tensorRank = std::max<int64_t>(list.getRank(), -1);
  }
  io.dtype = graph::onnxTypeOf(graph::elementOf(value));
  for (const Dim &dim : graph::dimsOf(value)) {
    auto name = dim.symbolName();
    auto known = name ? symbols.find(*name) : symbols.end();
    io.dims.push_back(
        {dim.constant().value_or(-1), known == symbols.end() ? -1 : known->second, dim.str()});
  }
  if (!attributes)
    return io;
  if (auto name = attributes.getAs<StringAttr>("graph.name"))
    io.name = name.str();
  if (auto labels = attributes.getAs<ArrayAttr>("graph.labels"))
    for (Attribute label : labels) {
      auto text = dyn_cast<StringAttr>(label);
      io.labels.push_back(text ? text.str() : std::to_string(cast<IntegerAttr>(label).getInt()));
    }
  if (auto encoding = attributes.getAs<StringAttr>("graph.encoding"))
    io.encoding = llvm::StringSwitch<program::Encoding>(encoding)
                      .Case("map", program::Encoding::Map)
                      .Case("int_map", program::Encoding::IntMap)
                      .Default(program::Encoding::Dense);
  return io;
}

Storage::Storage(func::FuncOp model, const std::map<Operation *, std::shared_ptr<Kernel>> &kernels,
                 const mechanism::Placements &placements, RowTables &tables,
                 program::Program &program)
    : model(model), kernels(kernels), placements(placements), tables(tables), program(program) {
  spaces += program.spaces.size();
  describe();
  number();
  place();
}

void Storage::describe() {
  if (auto strings = model->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(graph::kStrings))
    for (Attribute text : strings)
      program.strings.push_back(cast<StringAttr>(text).str());
  for (BlockArgument input : model.getArguments())
    for (const Dim &dim : graph::dimsOf(input))
      if (auto name = dim.symbolName(); name && !inputSymbols.count(*name)) {
        inputSymbols[*name] = program.symbols.size();
        program.symbols.push_back(*name);
      }
  findBoundByValues();
  for (BlockArgument input : model.getArguments()) {
    unsigned number = input.getArgNumber();
    program.inputs.push_back(describeValue(input, model.getArgAttrDict(number), inputSymbols));
    if (model.getArgAttr(number, graph::kBuffer))
      program.inputs.back().shares = number;
  }
  auto results = cast<func::ReturnOp>(model.getBody().front().getTerminator());
  for (auto [i, output] : llvm::enumerate(results.getOperands())) {
    program.outputs.push_back(describeValue(output, model.getResultAttrDict(i), inputSymbols));
    if (auto input = sharedInput(i))
      program.outputs.back().shares = *input;
  }
}

/// Whether a cast keeps every value.
static bool isWidening(Type from, Type to) {
  return from.isIntOrIndex() && to.isIntOrIndex() &&
         from.getIntOrFloatBitWidth() <= to.getIntOrFloatBitWidth() &&
         (from.isUnsignedInteger() || !to.isUnsignedInteger());
}

/// Most elements of an input whose values may be sizes: more are no shape, and each is listed.
static constexpr int64_t kMostElements = 4096;

/// The elements of inputs that a small tensor of integers has, if it does: through views, casts,
/// and parts and sequences of vectors.
std::optional<Storage::InputElements> Storage::inputElementsOf(Value value) const {
  if (auto input = dyn_cast<BlockArgument>(value)) {
    auto type = cast<RankedTensorType>(value.getType());
    if (input.getOwner()->getParentOp() != model || !type.hasStaticShape() ||
        !type.getElementType().isIntOrIndex())
      return std::nullopt;
    if (type.getNumElements() > kMostElements)
      return std::nullopt;
    InputElements elements;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      elements.push_back({input, i});
    return elements;
  }
  Operation *op = value.getDefiningOp();
  if (auto group = dyn_cast<graph::GroupOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return inputElementsOf(group.getBody().front().getTerminator()->getOperand(number));
  }
  if (isa<graph::ReshapeOp>(op))
    return inputElementsOf(op->getOperand(0));
  if (isa<graph::CastOp>(op) &&
      isWidening(graph::storageOf(op->getOperand(0)), graph::storageOf(value)))
    return inputElementsOf(op->getOperand(0));
  if (graph::rankOf(value) != 1)
    return std::nullopt;
  if (auto slice = dyn_cast<graph::SliceOp>(op)) {
    auto whole = inputElementsOf(slice.getX());
    auto start = graph::dimsOf(slice.getStarts())[0].constant(),
         size = graph::dimsOf(value)[0].constant();
    if (!whole || !start || !size)
      return std::nullopt;
    InputElements elements;
    for (int64_t i = 0; i < *size; ++i)
      elements.push_back((*whole)[*start + i * slice.getSteps()[0]]);
    return elements;
  }
  if (auto concat = dyn_cast<graph::ConcatOp>(op)) {
    InputElements elements;
    for (Value part : concat.getXs()) {
      auto found = inputElementsOf(part);
      if (!found)
        return std::nullopt;
      elements.append(*found);
    }
    return elements;
  }
  return std::nullopt;
}

void Storage::findBoundByValues() {
  for (auto op : model.getBody().front().getOps<graph::BindSizesOp>())
    if (auto elements = inputElementsOf(op.getX()); elements && !op.getTold()) {
      llvm::for_each(graph::dimsOf(op.getSymbols()),
                     [&](const Dim &symbol) { addSymbolOfValues(symbol); });
      boundByValues.insert({op, std::move(*elements)});
    }
  for (const Dim &total : tables.totals)
    addSymbolOfValues(graph::overRows(total, tables.of()));
  program.bindsValues = !symbolsOfValues.empty();
}

void Storage::addSymbolOfValues(const Dim &symbol) {
  std::string name = *symbol.symbolName();
  inputSymbols[name] = program.symbols.size();
  program.symbols.push_back(name);
  symbolsOfValues.push_back(name);
}

bool Storage::isEntryKnown(const Dim &dim) const {
  SmallVector<std::string> names;
  dim.collectSymbols(names);
  return llvm::all_of(names, [&](const std::string &name) { return inputSymbols.count(name); });
}

bool Storage::isEntryKnown(Value value) const {
  return llvm::all_of(graph::dimsOf(value), [&](const Dim &dim) { return isEntryKnown(dim); });
}

Dim Storage::bytesOf(Value value) {
  return graph::elementCount(graph::dimsOf(value)) * Dim(graph::bytesOf(graph::storageOf(value)));
}

/// The input, a buffer that the run writes, which a scatter to it extends where it lies.
static Value extendedBuffer(Value value) {
  auto group = value.getDefiningOp<graph::GroupOp>();
  auto model = group ? group->getParentOfType<func::FuncOp>() : func::FuncOp();
  if (!group || group.getNumResults() != 1)
    return {};
  Operation *op = group.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  auto input =
      op && graph::isScatter(op) ? dyn_cast<BlockArgument>(op->getOperand(0)) : BlockArgument();
  bool isBuffer = input && input.getOwner()->getParentOp() == model &&
                  model.getArgAttr(input.getArgNumber(), graph::kBuffer);
  return isBuffer ? Value(input) : Value();
}

/// The value whose memory this one is.
Value Storage::rootOf(Value value) const {
  for (;;) {
    Operation *op = value.getDefiningOp();
    if (auto placed = placements.find(value); placed != placements.end())
      value = placed->second.whole;
    else if (Value buffer = extendedBuffer(value))
      value = buffer;
    else if (isa_and_nonnull<graph::ReshapeOp, graph::DynamicReshapeOp>(op))
      value = op->getOperand(0);
    else
      return value;
  }
}

int64_t Storage::spaceOf(Value root) const {
  Operation *maker = root.getDefiningOp();
  auto known = maker ? kernels.find(maker) : kernels.end();
  return known == kernels.end() ? 0 : known->second->space;
}

/// Whether shapes of inputs alone decide the size.
bool Storage::isOfShapes(const Dim &dim) const {
  SmallVector<std::string> names;
  dim.collectSymbols(names);
  return llvm::none_of(
      names, [&](const std::string &name) { return llvm::is_contained(symbolsOfValues, name); });
}

std::optional<unsigned> Storage::sharedInput(int64_t output) const {
  func::FuncOp function = model; // whose methods are not const
  auto input = function.getResultAttrOfType<IntegerAttr>(output, graph::kShares);
  return input ? std::optional<unsigned>(input.getInt()) : std::nullopt;
}

/// Whether element i of all that depends on `value` in its group needs element i of it alone.
static bool isReadInPlace(Value value, Operation *group) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (!group->isProperAncestor(user) || user->hasTrait<OpTrait::IsTerminator>())
      return true;
    return graph::isElementwise(user) && user->getNumResults() == 1 &&
           graph::dimsOf(user->getResult(0)) == graph::dimsOf(value) &&
           isReadInPlace(user->getResult(0), group);
  });
}

/// Whether nobody but the group reads the value's memory when it runs, or later.
bool Storage::isReadBefore(Value value, graph::GroupOp group) const {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    Operation *reader = group->getBlock()->findAncestorOpInBlock(*user);
    if (auto view = dyn_cast_or_null<graph::ReshapeOp>(reader); view && view == user)
      return isReadBefore(view.getResult(), group) &&
             llvm::none_of(view->getUsers(),
                           [&](Operation *other) { return group->isAncestor(other); });
    return reader == group || (isa_and_nonnull<graph::GroupOp>(reader) &&
                               steps.at(reader).second < steps.at(group).first);
  });
}

/// Whether the group of `root` may write it where `input` lies: nobody reads the input afterwards,
/// and the group itself reads it at the elements that it writes.
bool Storage::mayOverwrite(BlockArgument input, Value root) const {
  auto group = root.getDefiningOp<graph::GroupOp>();
  if (!group || firstWrite(group) != steps.at(group).first ||
      scheduleOf(group).mechanism != &mechanism::kPointwise ||
      graph::dimsOf(root) != graph::dimsOf(input))
    return false;
  return isReadBefore(input, group) && isReadInPlace(input, group);
}

void Storage::number() {
  int64_t step = 0;
  std::function<void(Operation *)> visit = [&](Operation *op) {
    int64_t first = step++;
    if (!isa<graph::GroupOp>(op))
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Operation &inner : block)
            visit(&inner);
    steps[op] = {first, step++};
  };
  for (Operation &op : model.getBody().front())
    visit(&op);
  // Groups of a region run at the same time.
  std::map<std::pair<Block *, int64_t>, std::pair<int64_t, int64_t>> spans;
  auto spanOf = [&](graph::GroupOp group) -> std::pair<int64_t, int64_t> * {
    auto region = group.getRegion();
    return region ? &spans.try_emplace({group->getBlock(), (int64_t)*region}, steps[group])
                         .first->second
                  : nullptr;
  };
  model.walk([&](graph::GroupOp group) {
    if (auto *span = spanOf(group))
      *span = {std::min(span->first, steps[group].first),
               std::max(span->second, steps[group].second)};
  });
  model.walk([&](graph::GroupOp group) {
    if (auto *span = spanOf(group))
      steps[group] = *span;
  });
}

/// The last step at which the memory of `value` is read, through aliases, regions and loops.
int64_t Storage::lastUse(Value value, int depth) const {
  int64_t last = -1;
  if (depth > 64)
    return INT64_MAX;
  Block *home = value.getParentBlock();
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    // A use inside of a group is a use by the group; one inside of a loop lasts as long as the
    // loop.
    Operation *counted = user;
    for (Operation *op = user; op && op->getBlock() != home; op = op->getParentOp()) {
      Operation *parent = op->getParentOp();
      if (isa_and_nonnull<graph::GroupOp, graph::LoopOp, graph::ScanOp>(parent))
        counted = parent;
    }
    if (auto known = steps.find(counted); known != steps.end())
      last = std::max(last, known->second.second);
    if (isa<graph::ReshapeOp, graph::DynamicReshapeOp>(user) && steps.count(user))
      last = std::max(last, lastUse(user->getResult(0), depth + 1));
    // Without a single iteration the initial values are the results.
    int64_t number = use.getOperandNumber();
    if (auto loop = dyn_cast<graph::LoopOp>(user); loop && number >= 2)
      last = std::max(last, lastUse(loop.getResult(number - 2), depth + 1));
    if (auto scan = dyn_cast<graph::ScanOp>(user); scan && number < (int64_t)scan.getStateCount())
      last = std::max(last, lastUse(scan.getResult(number), depth + 1));
    if (isa<graph::YieldOp>(user))
      if (auto branch = dyn_cast<graph::IfOp>(user->getParentOp()))
        last = std::max(last, lastUse(branch.getResult(use.getOperandNumber()), depth + 1));
  }
  return last;
}

/// The first step at which the memory of a group's result is written: its own, or that of a group
/// whose result lies inside.
int64_t Storage::firstWrite(graph::GroupOp group) const {
  int64_t first = steps.at(group).first;
  for (Operation &op : group.getBody().front())
    for (Value operand : op.getOperands())
      if (placements.count(operand))
        first = std::min(first, firstWrite(operand.getDefiningOp<graph::GroupOp>()));
  return first;
}

/// Whether a routine finds the sizes of a result, and makes its memory.
bool Storage::isFound(Value result) {
  Operation *op = result.getDefiningOp();
  if (!op)
    return false;
  bool isInverse = isa<graph::UniqueOp>(op) && cast<OpResult>(result).getResultNumber() == 1;
  bool finds = op->hasTrait<graph::Routine>() && graph::bindsSizes(op);
  return (finds || isa<graph::CustomOp>(op)) && !isInverse;
}

/// A result of a routine that lies where the program says.
static bool isOfRoutine(Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->hasTrait<graph::Routine>() && !Storage::isFound(value);
}

void Storage::place() {
  // Outputs that a group or a routine computes are written where the caller wants them.
  auto results = cast<func::ReturnOp>(model.getBody().front().getTerminator());
  for (auto [i, output] : llvm::enumerate(results.getOperands())) {
    Value root = rootOf(output);
    Operation *maker = root.getDefiningOp();
    bool isPlaced = isa_and_nonnull<graph::GroupOp>(maker) || isOfRoutine(root);
    if (!isPlaced || spaceOf(root) || maker->getParentOp() != model || outputOf.count(root) ||
        lateOutputOf.count(root))
      continue;
    if (auto input = sharedInput(i); input && !mayOverwrite(model.getArgument(*input), root))
      continue; // copied at the end, when all have read the input
    if (isEntryKnown(output) && isEntryKnown(root))
      outputOf[root] = i;
    else if (!isEntryKnown(output) && !isEntryKnown(root))
      lateOutputOf[root] = i;
  }
  if (!program.isSanitized) { // else each has memory of its own, as if its size were known late
    collectBuffers();
    collectCopies();
  }
  plan = planMemory(buffers, [&](const Dim &bytes) { return graph::typicalSize(model, bytes); });
  describeArena();
}

bool Storage::launchesOnce(graph::GroupOp group) const {
  const Kernel &kernel = *kernels.at(group);
  return isa<graph::LoopOp, graph::ScanOp>(group->getParentOp()) && kernel.rows.empty() &&
         kernel.versions.empty() && !program.isSanitized &&
         llvm::any_of(kernel.phases, [](const Phase &phase) { return phase.isInvariant; }) &&
         llvm::all_of(kernel.temporaries, [&](const Dim &bytes) { return isEntryKnown(bytes); });
}

/// Collects what lies in the arena, and for how long.
void Storage::collectBuffers() {
  if (tables.lengths) {
    bufferOf[tables.lengths.getLengths()] = buffers.size();
    buffers.push_back({tables.bytes(), steps[tables.lengths].first, INT64_MAX});
  }
  model.walk([&](Operation *op) {
    auto [first, last] = steps[op];
    for (Value result : op->getResults())
      if (isOfRoutine(result) && !outputOf.count(result) && isEntryKnown(result)) {
        bufferOf[result] = buffers.size();
        buffers.push_back({bytesOf(result), first, std::max(last, lastUse(result))});
      }
  });
  model.walk([&](graph::GroupOp group) {
    auto [first, last] = steps[group];
    for (Value result : group.getResults())
      if (!outputOf.count(result) && rootOf(result) == result && isEntryKnown(result)) {
        bufferOf[result] = buffers.size();
        buffers.push_back(
            {bytesOf(result), firstWrite(group), std::max(last, lastUse(result)), spaceOf(result)});
      }
    auto &kernel = *kernels.at(group);
    if (launchesOnce(group)) // which later iterations read
      std::tie(first, last) = steps[group->getParentOp()];
    for (auto [i, bytes] : llvm::enumerate(kernel.temporaries))
      if (isEntryKnown(bytes)) {
        temporaryOf[{group, (int64_t)i}] = buffers.size();
        buffers.push_back({bytes, first, last, kernel.space});
      }
  });
}

/// Copies of tensors in spaces whose kernels, or for the host whose ops, read them. They are made
/// before each op that reads one, unless it is there, and are alive as long as the tensor.
void Storage::collectCopies() {
  if (program.spaces.empty())
    return;
  auto add = [&](Value value, int64_t space, Operation *reader) {
    Value root = rootOf(value);
    if (isa_and_nonnull<graph::ConstantOp>(root.getDefiningOp()) || spaceOf(root) == space ||
        !isEntryKnown(root))
      return;
    auto [known, isNew] = copyOf.insert({{root, space}, int64_t(buffers.size())});
    if (isNew)
      buffers.push_back({bytesOf(root), steps[reader].first, lastUse(root), space});
    Buffer &buffer = buffers[known->second];
    buffer.first = std::min(buffer.first, steps[reader].first);
    buffer.last = std::max(buffer.last, steps[reader].second);
  };
  model.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto group = dyn_cast<graph::GroupOp>(op);
    if (!group) { // views read nothing, and outputs are copied from where they lie
      if (!isa<graph::ReshapeOp, graph::DynamicReshapeOp, func::FuncOp, func::ReturnOp>(op))
        for (Value operand : op->getOperands())
          add(operand, 0, op);
      return WalkResult::advance();
    }
    const Kernel &kernel = *kernels.at(group);
    for (Argument argument : kernel.arguments)
      if (argument.kind == Argument::Kind::Tensor &&
          !group->isAncestor(argument.tensor.getParentBlock()->getParentOp()))
        add(argument.tensor, kernel.space, group);
    return WalkResult::skip();
  });
}

/// The memory plan as reports want it: steps are counted in kernels.
void Storage::describeArena() {
  SmallVector<graph::GroupOp> groups;
  model.walk([&](graph::GroupOp group) { groups.push_back(group); });
  auto kernelAt = [&](int64_t step) {
    int64_t last = 0;
    for (auto [i, group] : llvm::enumerate(groups))
      if (steps[group].first <= step)
        last = std::max<int64_t>(last, i);
    return last;
  };
  std::vector<int64_t> sizes;
  for (const Buffer &buffer : buffers)
    sizes.push_back(graph::typicalSize(model, buffer.bytes));
  std::vector<int64_t> offsets = plan.offsets(sizes);
  bool areKnown =
      llvm::all_of(buffers, [](const Buffer &buffer) { return buffer.bytes.constant(); });
  for (auto [buffer, bytes, offset] : llvm::zip(buffers, sizes, offsets))
    if (buffer.space == 0)
      program.arenaBytes =
          std::max<int64_t>(program.arenaBytes, llvm::alignTo(offset + bytes, kAlignment));
  auto add = [&](int64_t kernel, bool isTemporary, int64_t index, int64_t number) {
    const Buffer &buffer = buffers[number];
    program.buffers.push_back({kernel, isTemporary, index, buffer.bytes.str(), sizes[number],
                               areKnown ? std::optional(offsets[number]) : std::nullopt,
                               std::min(kernel, kernelAt(buffer.first)), kernelAt(buffer.last)});
  };
  for (auto [kernel, group] : llvm::enumerate(groups)) {
    for (auto [i, result] : llvm::enumerate(group.getResults()))
      if (auto known = bufferOf.find(result); known != bufferOf.end())
        add(kernel, false, i, known->second);
    for (size_t i = 0; i < kernels.at(group)->temporaries.size(); ++i)
      if (auto known = temporaryOf.find({group, i}); known != temporaryOf.end())
        add(kernel, true, i, known->second);
  }
}

} // namespace heddle::lower
