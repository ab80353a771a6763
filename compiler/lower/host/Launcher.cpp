// Launcher: which kernels start, with which arguments, in which functions.

#include "compiler/lower/host/Launcher.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/ragged/Ragged.h"

#include "runtime/executable/abi.h"

using namespace mlir;

namespace heddle::lower {

static int64_t regionOf(graph::GroupOp group) { return group.getRegion().value_or(-1); }

void Regions::findRegions(Block &block) {
  std::map<std::tuple<int64_t, int64_t, std::string>, SmallVector<graph::GroupOp>> groups;
  for (auto group : block.getOps<graph::GroupOp>()) {
    const Kernel &kernel = *kernels.at(group);
    if (regionOf(group) < 0 || kernel.phases.size() != 1 || kernel.phases.front().isAlone ||
        !kernel.rows.empty())
      continue;
    // Functions of a team would need the registers of all.
    const Phase &phase = kernel.phases.front();
    groups[{regionOf(group), group.deviceNumber(), phase.threads > 1 ? phase.function : ""}]
        .push_back(group);
  }
  for (auto &[key, members] : groups) {
    SmallVector<graph::GroupOp> &most = regions[&block][std::get<0>(key)];
    if (members.size() > most.size())
      most = std::move(members);
  }
}

SmallVector<graph::GroupOp> Regions::launchedWith(graph::GroupOp group) {
  if (regions.try_emplace(group->getBlock()).second)
    findRegions(*group->getBlock());
  const SmallVector<graph::GroupOp> &members = regions[group->getBlock()][regionOf(group)];
  int64_t words = 1 + members.size();
  for (graph::GroupOp member : members)
    words += kernels.at(member)->arguments.size();
  bool fits = !kernels.at(group)->space || words <= HEDDLE_MOST_WORDS;
  return members.size() > 1 && llvm::is_contained(members, group) && fits
             ? members
             : SmallVector<graph::GroupOp>{group};
}

int64_t Regions::argumentSlots(func::FuncOp model) {
  int64_t mostOfOne = 1, most = 1;
  for (auto &[group, kernel] : kernels)
    mostOfOne = std::max<int64_t>(mostOfOne, kernel->arguments.size() + 2); // and of all rows
  model.walk([&](graph::GroupOp group) {
    int64_t slots = 0;
    auto members = launchedWith(group);
    if (members.front() != group)
      return;
    for (graph::GroupOp member : members)
      slots += kernels.at(member)->arguments.size() + 1;
    // Slots of those of its region that are launched alone come after.
    most = std::max<int64_t>(most, slots + 1 + (members.size() > 1 ? mostOfOne : 0));
  });
  return std::max(most, mostOfOne);
}

Value Launcher::slotsFrom(int64_t slot) {
  return code.at(arguments, builder.getI64Type(), code.number(slot));
}

void Launcher::store(Value word, int64_t slot) {
  code.store(builder.getI64Type(), word, arguments, code.number(slot));
}

/// The memory of a tensor: that of the group's result, if the group yields it.
Value Launcher::tensorOf(graph::GroupOp group, Value tensor) {
  Block *body = &group.getBody().front();
  int64_t space = regions.kernelOf(group).space;
  for (auto [i, output] : llvm::enumerate(body->getTerminator()->getOperands()))
    if (output == tensor && tensor.getParentBlock() == body &&
        !isa<graph::ConstantOp>(tensor.getDefiningOp()))
      return memory.pointerOf(group.getResult(i), space);
  return memory.pointerOf(tensor, space);
}

Value Launcher::argumentOf(graph::GroupOp group, const Argument &argument) {
  const Kernel &kernel = regions.kernelOf(group);
  switch (argument.kind) {
  case Argument::Kind::Call:
    return host.call();
  case Argument::Kind::Tensor:
    return tensorOf(group, argument.tensor);
  case Argument::Kind::Temporary: {
    auto known = storage.temporaryOf.find({group, argument.index});
    return known == storage.temporaryOf.end()
               ? host.alloc(sizes.dim(kernel.temporaries[argument.index]), kernel.space)
               : memory.buffer(known->second);
  }
  case Argument::Kind::Data: {
    std::vector<char> &bytes = *kernel.data[argument.index];
    auto [place, isNew] = dataOf.try_emplace(&bytes, 0);
    if (isNew)
      place->second = host.program.weights.own(std::move(bytes));
    return host.weightsAt(place->second, kernel.space);
  }
  case Argument::Kind::Size: {
    Dim size = *Dim::parse(argument.text);
    return graph::rowsOf(size).empty() ? sizes.dim(size) : code.number(0); // each row has its own
  }
  case Argument::Kind::Number:
    return code.number(argument.index);
  case Argument::Kind::LibraryCall:
    host.program.calls.push_back(kernel.calls[argument.index]);
    return code.number(host.program.calls.size() - 1);
  case Argument::Kind::Message:
    host.program.messages.push_back(argument.text);
    return code.number(host.program.messages.size() - 1);
  }
  llvm_unreachable("a kind of argument");
}

void Launcher::storeArguments(graph::GroupOp group, int64_t base) {
  const Kernel &kernel = regions.kernelOf(group);
  for (const Dim &size : kernel.sizes)
    if (graph::rowsOf(size).empty())
      sizes.dim(size);
  for (auto [slot, argument] : llvm::enumerate(kernel.arguments)) {
    Value value = argumentOf(group, argument);
    if (isa<program::PtrType>(value.getType()))
      value = builder.create<program::WordOp>(code.loc, value);
    store(value, base + slot);
  }
}

/// A function that begins the tasks of a kernel: none if the run has failed, little work on this
/// thread. In line these branches would be most of the code around hundreds of kernels.
func::FuncOp Launcher::starterOf(func::FuncOp target) {
  func::FuncOp &known = starters[target];
  if (known)
    return known;
  OpBuilder b(builder.getContext());
  b.setInsertionPoint(host.function);
  Type pointer = code.pointerType(), i64 = b.getI64Type();
  known = b.create<func::FuncOp>(code.loc, ("start_" + target.getSymName()).str(),
                                 b.getFunctionType({pointer, pointer, i64, i64}, {}));
  known.setPrivate();
  Block *body = known.addEntryBlock();
  b.setInsertionPointToEnd(body);
  Code inside(b, code.loc, 1);
  Value run = body->getArgument(0), slots = body->getArgument(1), tasks = body->getArgument(2);
  Value status = b.create<program::StatusOp>(code.loc, run);
  Value isFine = b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, status,
                                         inside.integerOf(b.getI32Type(), 0));
  inside.when(isFine, [&] {
    auto launch = [&] {
      b.create<program::LaunchOp>(code.loc, target.getSymName(), run, slots, tasks,
                                  inside.number(0));
      return Values();
    };
    if (!program::spaceOf(target).empty()) { // the host cannot run it
      launch();
      return;
    }
    Value parallelWork = inside.number(estimate::thresholdAt(host.model, estimate::kParallelWork));
    inside.choose(
        inside.less(body->getArgument(3), parallelWork), TypeRange(),
        [&] {
          Value none = b.create<program::NullOp>(code.loc);
          b.create<func::CallOp>(code.loc, target,
                                 ValueRange{slots, inside.number(0), tasks, none});
          return Values();
        },
        launch);
  });
  b.create<func::ReturnOp>(code.loc);
  return known;
}

void Launcher::launch(func::FuncOp target, Value slots, Value tasks, Value work, Value scratch,
                      bool needsScratch) {
  if (!needsScratch) {
    builder.create<func::CallOp>(code.loc, starterOf(target),
                                 ValueRange{host.call(), slots, tasks, work});
    return;
  }
  code.when(host.isFine(), [&] {
    builder.create<program::LaunchOp>(code.loc, target.getSymName(), host.call(), slots, tasks,
                                      scratch);
  });
}

/// Tasks of a kernel that are before `part` of `all` tasks of a region of `count` kernels, of
/// which it is number `i`, after kernels of `before` tasks. In a region of equal kernels they are
/// one kernel after the other, so that a worker reads the weights of few. Where kernels differ a
/// task of one is not as long as one of another: each kernel's tasks are shared out for themselves,
/// floor(tasks * part / all + (i + 1/2) / count), rounded otherwise for each, so that kernels of
/// one task are spread over the workers.
static Value tasksBefore(Code &code, Value part, Value tasks, Value before, Value all, Value i,
                         int64_t count) {
  Value inTurn = code.min(code.max(code.sub(part, before), code.number(0)), tasks);
  if (!all) // the kernels are equal
    return inTurn;
  Value twice = code.number(2 * count);
  Value scaled = code.mul(code.mul(tasks, part), twice);
  Value half = code.add(code.mul(i, code.number(2)), code.number(1));
  Value rounded = code.add(scaled, code.mul(all, half));
  Value spread = code.div(rounded, code.max(code.mul(all, twice), code.number(1)));
  // Take the kernels in turn if products of so many tasks could overflow.
  Value areMany = code.less(code.number(INT64_C(1) << 28), all);
  return code.b.createOrFold<arith::SelectOp>(code.loc, areMany, inTurn, spread);
}

func::FuncOp Launcher::dispatcher(StringRef name, StringRef key, FunctionType type,
                                  llvm::function_ref<void(Code &, Block &)> write) {
  func::FuncOp &known = dispatchers[key.str()];
  if (known)
    return known;
  OpBuilder b(builder.getContext());
  b.setInsertionPoint(host.function);
  known = b.create<func::FuncOp>(code.loc, (name + Twine(dispatchers.size())).str(), type);
  known.setPrivate();
  Block *body = known.addEntryBlock();
  b.setInsertionPointToEnd(body);
  Code inside(b, code.loc, 1);
  write(inside, *body);
  b.create<func::ReturnOp>(code.loc);
  return known;
}

/// Runs the part of all tasks of a region that the worker's arguments say.
static void writeRegion(Code &code, Block &body, ArrayRef<func::FuncOp> targets,
                        ArrayRef<int64_t> bases, bool areEqual) {
  Value slots = body.getArgument(0);
  Type i64 = code.b.getI64Type();
  int64_t count = targets.size();
  auto tasksOf = [&](Value i) { return code.load(i64, slots, code.add(i, code.number(1))); };
  Value zero = code.number(0), all;
  if (!areEqual)
    all = code.fold(zero, code.number(count), 1, zero, [&](Value i, ValueRange sum) {
      return Values{code.add(sum[0], tasksOf(i))};
    })[0];
  Value before = zero;
  for (int64_t first = 0, end; first < count; first = end) {
    // Neighbours with the same function and as many slots are a loop.
    int64_t stride = first + 1 < count ? bases[first + 1] - bases[first] : 0;
    for (end = first + 1;
         end < count && targets[end] == targets[first] && bases[end] - bases[end - 1] == stride;
         ++end)
      ;
    auto runPart = [&](Value i, ValueRange carried) {
      Value tasks = tasksOf(i);
      auto place = [&](unsigned part) {
        return tasksBefore(code, body.getArgument(part), tasks, carried[0], all, i, count);
      };
      Value low = place(1), high = place(2);
      code.when(code.less(low, high), [&] {
        Value base =
            code.add(code.number(bases[first] - first * stride), code.mul(i, code.number(stride)));
        code.b.create<func::CallOp>(
            code.loc, func::FuncOp(targets[first]),
            ValueRange{code.at(slots, i64, base), low, high, body.getArgument(3)});
      });
      return Values{code.add(carried[0], tasks)};
    };
    before = code.fold(code.number(first), code.number(end), 1, before, runPart)[0];
  }
}

/// A function that runs a part of all tasks. Those of equal kernels and slots are one.
func::FuncOp Launcher::regionDispatcher(ArrayRef<func::FuncOp> targets, ArrayRef<int64_t> bases,
                                        bool areEqual) {
  std::string key = areEqual ? "equal " : "";
  for (auto [target, base] : llvm::zip(targets, bases))
    key += (func::FuncOp(target).getSymName() + "@" + Twine(base) + " ").str();
  func::FuncOp first = targets.front(),
               made = dispatcher("region", key, first.getFunctionType(),
                                 [&](Code &inside, Block &body) {
                                   writeRegion(inside, body, targets, bases, areEqual);
                                 });
  if (Attribute threads = first->getAttr(program::kThreads))
    made->setAttr(program::kThreads, threads);
  return made;
}

/// A device has its arguments by value, and has to know how many there are: of kernels that share
/// the function, as many as the one of fewest has.
static void setWords(func::FuncOp function, int64_t words) {
  if (program::spaceOf(function).empty())
    return;
  if (auto known = function->getAttrOfType<IntegerAttr>(program::kWords))
    words = std::min(words, known.getInt());
  function->setAttr(program::kWords, Builder(function.getContext()).getI64IntegerAttr(words));
}

func::FuncOp Launcher::functionOf(const Phase &phase, int64_t words) {
  if (!phaseFunctions)
    phaseFunctions.emplace(host.program.module.get());
  auto function = phaseFunctions->lookup<func::FuncOp>(phase.function);
  setWords(function, words);
  return function;
}

void Launcher::launchRegion(ArrayRef<graph::GroupOp> members) {
  SmallVector<func::FuncOp> targets;
  SmallVector<int64_t> bases;
  int64_t base = 1 + members.size();
  Value tasks = code.number(0), scratch = code.number(0);
  Dim work;
  bool needsScratch = false, areEqual = true;
  const Phase &first = regions.kernelOf(members.front()).phases.front();
  store(builder.create<program::WordOp>(code.loc, host.call()), 0);
  for (auto [i, member] : llvm::enumerate(members)) {
    const Phase &phase = regions.kernelOf(member).phases.front();
    int64_t words = regions.kernelOf(member).arguments.size();
    targets.push_back(functionOf(phase, words));
    bases.push_back(base);
    base += words;
    Value own = sizes.dim(phase.tasks);
    store(own, 1 + i);
    tasks = code.add(tasks, own);
    scratch = code.max(scratch, sizes.dim(phase.scratchBytes));
    work = work + phase.work;
    needsScratch |= !phase.scratchBytes.isConstant(0);
    areEqual &= phase.tasks == first.tasks && phase.work == first.work;
  }
  // A device shares tasks out one by one, so that it does not matter whose they are.
  areEqual |= regions.kernelOf(members.front()).isOfThreads;
  func::FuncOp together = regionDispatcher(targets, bases, areEqual);
  setWords(together, base);
  launch(together, arguments, tasks, sizes.dim(work), scratch, needsScratch);
  ++host.program.launches;
}

void Launcher::profile(graph::GroupOp group, llvm::function_ref<void()> launches) {
  if (!host.program.isProfiled)
    return launches();
  int64_t number = llvm::find(host.program.kernels, group.getName()) - host.program.kernels.begin();
  host.callOn(program::Service::Profile, {code.number(number)});
  launches();
  host.callOn(program::Service::Profile, {code.number(-1)});
}

/// The number of the version that is for the sizes of the run; null if there is one.
Value Launcher::versionOf(const Kernel &kernel) {
  Value chosen;
  for (size_t i = kernel.versions.size(); i-- > 0;) {
    Value number = code.number(i), fits;
    for (const Bound &bound : kernel.versions[i])
      fits = code.both(fits, code.less(sizes.dim(bound.size), code.number(bound.most + 1)));
    chosen = fits ? builder.createOrFold<arith::SelectOp>(code.loc, fits, number, chosen) : number;
  }
  return chosen;
}

void Launcher::launchAlone(graph::GroupOp group, Value slots) {
  const Kernel &kernel = regions.kernelOf(group);
  bool isOnce = storage.launchesOnce(group);
  Value chosen = versionOf(kernel);
  for (const Phase &phase : kernel.phases) {
    Value tasks = sizes.dim(phase.tasks), scratch = sizes.dim(phase.scratchBytes);
    Value work = sizes.dim(phase.work);
    auto write = [&] {
      launch(functionOf(phase, kernel.arguments.size()), slots, tasks, work, scratch,
             !phase.scratchBytes.isConstant(0));
    };
    bool isLast = phase.version + 1 == (int64_t)kernel.versions.size();
    if (isOnce && phase.isInvariant) {
      code.when(host.isFirst, write);
    } else if (phase.version < 0) {
      write();
    } else {
      Value isChosen = builder.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq,
                                                           chosen, code.number(phase.version));
      code.when(isChosen, write);
    }
    host.program.launches += phase.version < 0 || isLast; // of all versions' one
  }
}

void Launcher::write(graph::GroupOp group) {
  auto members = regions.launchedWith(group);
  if (members.size() == 1) {
    // A region that is still open keeps its slots.
    int64_t base = openSlots;
    storeArguments(group, base);
    Value slots = slotsFrom(base);
    profile(group, [&] { launchAlone(group, slots); });
    return;
  }
  int64_t base = 1 + members.size();
  for (graph::GroupOp member : members) {
    if (member == group)
      break;
    base += regions.kernelOf(member).arguments.size();
  }
  storeArguments(group, base);
  openSlots = base + regions.kernelOf(group).arguments.size();
  if (group != members.back())
    return;
  profile(group, [&] { launchRegion(members); });
  openSlots = 0;
}

} // namespace heddle::lower
