// HostLaunch: arguments of kernels, and their launches: one after the other, or those of a region
// all at once.
//
// Slots of a region that launches K kernels: 0 the call, then for each kernel the number of its
// tasks, then the slots of each kernel.

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/ragged/Ragged.h"
#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

static int64_t regionOf(graph::GroupOp group) { return group.getRegion().value_or(-1); }

/// Groups of a region that one launch can run: those of one phase, when there are several.
SmallVector<graph::GroupOp> Host::launchedWith(graph::GroupOp group) {
  auto [known, isNew] = regions.try_emplace(group->getBlock());
  if (isNew)
    for (graph::GroupOp other : group->getBlock()->getOps<graph::GroupOp>())
      if (const auto &phases = kernels.at(other)->phases;
          regionOf(other) >= 0 && phases.size() == 1 && !phases.front().isAlone &&
          kernels.at(other)->rows.empty())
        known->second[regionOf(other)].push_back(other);
  const SmallVector<graph::GroupOp> &members = known->second[regionOf(group)];
  bool isOneOfThem = llvm::is_contained(members, group);
  return members.size() > 1 && isOneOfThem ? members : SmallVector<graph::GroupOp>{group};
}

int64_t Host::argumentSlots() {
  int64_t mostOfOne = 1, most = 1;
  for (auto &[group, kernel] : kernels)
    mostOfOne = std::max<int64_t>(mostOfOne, kernel->arguments.size() + 2); // and of all rows
  func::FuncOp(model).walk([&](graph::GroupOp group) {
    int64_t slots = 0;
    auto members = launchedWith(group);
    if (members.front() != group)
      return;
    for (graph::GroupOp member : members)
      slots += kernels.at(member)->arguments.size() + 1;
    // Those of its region that are launched alone come after.
    most = std::max<int64_t>(most, slots + 1 + (members.size() > 1 ? mostOfOne : 0));
  });
  return std::max(most, mostOfOne);
}

void Host::storeArguments(graph::GroupOp group, int64_t base) {
  const Kernel &kernel = *kernels.at(group);
  for (const Dim &size : kernel.sizes)
    if (graph::rowsOf(size).empty())
      dim(size);
  Type i64 = builder.getI64Type();
  Block *body = &group.getBody().front();
  auto outputs = body->getTerminator()->getOperands();
  for (auto [slot, argument] : llvm::enumerate(kernel.arguments)) {
    Value value;
    switch (argument.kind) {
    case Argument::Kind::Call:
      value = call;
      break;
    case Argument::Kind::Tensor: {
      Value tensor = argument.tensor;
      for (auto [i, output] : llvm::enumerate(outputs))
        if (output == tensor && tensor.getParentBlock() == body &&
            !isa<graph::ConstantOp>(tensor.getDefiningOp())) {
          tensor = group.getResult(i);
          break;
        }
      value = pointerOf(tensor);
      break;
    }
    case Argument::Kind::Temporary: {
      auto known = storage.temporaryOf.find({group, argument.index});
      value = known == storage.temporaryOf.end()
                  ? alloc(dim(kernel.temporaries[argument.index]))
                  : code->at(arena, builder.getI8Type(), offsets[known->second]);
      break;
    }
    case Argument::Kind::Data: {
      std::vector<char> &bytes = *kernel.data[argument.index];
      auto [place, isNew] = dataOf.try_emplace(&bytes, 0);
      if (isNew)
        place->second = program.weights.own(std::move(bytes));
      Value weights = area(program::Area::Weights);
      value = entryCode->at(weights, entry.getI8Type(), entryCode->number(place->second));
      break;
    }
    case Argument::Kind::Size:
      if (Dim size = *Dim::parse(argument.text); graph::rowsOf(size).empty())
        value = dim(size);
      else // each row has its own
        value = code->number(0);
      break;
    case Argument::Kind::Number:
      value = code->number(argument.index);
      break;
    case Argument::Kind::LibraryCall:
      program.calls.push_back(kernel.calls[argument.index]);
      value = code->number(program.calls.size() - 1);
      break;
    case Argument::Kind::Message:
      program.messages.push_back(argument.text);
      value = code->number(program.messages.size() - 1);
      break;
    }
    if (isa<program::PtrType>(value.getType()))
      value = builder.create<program::WordOp>(code->loc, value);
    code->store(i64, value, arguments, code->number(base + slot));
  }
}

/// A function that begins the tasks of a kernel: none where the run has failed, little work on this
/// thread. In line these branches would be most of the code around hundreds of kernels.
func::FuncOp Host::starterOf(func::FuncOp target) {
  func::FuncOp &known = starters[target];
  if (known)
    return known;
  OpBuilder b(builder.getContext());
  b.setInsertionPoint(function);
  Type pointer = code->pointerType(), i64 = b.getI64Type();
  known = b.create<func::FuncOp>(code->loc, ("start_" + target.getSymName()).str(),
                                 b.getFunctionType({pointer, pointer, i64, i64}, {}));
  known.setPrivate();
  Block *body = known.addEntryBlock();
  b.setInsertionPointToEnd(body);
  Code inside(b, code->loc, 1);
  Value run = body->getArgument(0), slots = body->getArgument(1), tasks = body->getArgument(2);
  Value status = b.create<program::StatusOp>(code->loc, run);
  Value isFine = b.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, status,
                                         inside.integerOf(b.getI32Type(), 0));
  inside.when(isFine, [&] {
    Value parallelWork = inside.number(estimate::thresholdAt(model, estimate::kParallelWork));
    inside.choose(
        inside.less(body->getArgument(3), parallelWork), TypeRange(),
        [&] {
          Value none = b.create<program::NullOp>(code->loc);
          b.create<func::CallOp>(code->loc, target,
                                 ValueRange{slots, inside.number(0), tasks, none});
          return Values();
        },
        [&] {
          b.create<program::LaunchOp>(code->loc, target.getSymName(), run, slots, tasks,
                                      inside.number(0));
          return Values();
        });
  });
  b.create<func::ReturnOp>(code->loc);
  return known;
}

void Host::launch(func::FuncOp target, Value slots, Value tasks, Value work, Value scratch,
                  bool needsScratch) {
  if (!needsScratch) {
    builder.create<func::CallOp>(code->loc, starterOf(target),
                                 ValueRange{call, slots, tasks, work});
    return;
  }
  code->when(isFine(), [&] {
    builder.create<program::LaunchOp>(code->loc, target.getSymName(), call, slots, tasks, scratch);
  });
}

/// How many of a kernel's tasks are before `part` of `all` tasks of a region of `count` kernels, of
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
  // Products of so many tasks could overflow; they are one kernel after the other.
  Value areMany = code.less(code.number(INT64_C(1) << 28), all);
  return code.b.createOrFold<arith::SelectOp>(code.loc, areMany, inTurn, spread);
}

/// A function that runs a part of all tasks. Those of equal kernels and slots are one.
func::FuncOp Host::dispatcherOf(ArrayRef<func::FuncOp> targets, ArrayRef<int64_t> bases,
                                bool areEqual) {
  std::string key = areEqual ? "equal " : "";
  for (auto [target, base] : llvm::zip(targets, bases))
    key += (func::FuncOp(target).getSymName() + "@" + Twine(base) + " ").str();
  func::FuncOp &known = dispatchers[key];
  if (known)
    return known;
  OpBuilder b(builder.getContext());
  b.setInsertionPoint(function);
  known = b.create<func::FuncOp>(code->loc, "region" + std::to_string(dispatchers.size()),
                                 func::FuncOp(targets.front()).getFunctionType());
  known.setPrivate();
  Block *body = known.addEntryBlock();
  b.setInsertionPointToEnd(body);
  Code inside(b, code->loc, 1);
  Value slots = body->getArgument(0);
  Type i64 = b.getI64Type();
  int64_t count = targets.size();
  auto tasksOf = [&](Value i) { return inside.load(i64, slots, inside.add(i, inside.number(1))); };
  Value zero = inside.number(0), all;
  if (!areEqual)
    all = inside.fold(zero, inside.number(count), 1, zero, [&](Value i, ValueRange sum) {
      return Values{inside.add(sum[0], tasksOf(i))};
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
        return tasksBefore(inside, body->getArgument(part), tasks, carried[0], all, i, count);
      };
      Value low = place(1), high = place(2);
      inside.when(inside.less(low, high), [&] {
        Value base = inside.add(inside.number(bases[first] - first * stride),
                                inside.mul(i, inside.number(stride)));
        b.create<func::CallOp>(
            code->loc, func::FuncOp(targets[first]),
            ValueRange{inside.at(slots, i64, base), low, high, body->getArgument(3)});
      });
      return Values{inside.add(carried[0], tasks)};
    };
    before = inside.fold(inside.number(first), inside.number(end), 1, before, runPart)[0];
  }
  b.create<func::ReturnOp>(code->loc);
  return known;
}

func::FuncOp Host::functionOf(const Phase &phase) {
  if (!phaseFunctions)
    phaseFunctions.emplace(program.module.get());
  return phaseFunctions->lookup<func::FuncOp>(phase.function);
}

void Host::launchRegion(ArrayRef<graph::GroupOp> members) {
  SmallVector<func::FuncOp> targets;
  SmallVector<int64_t> bases;
  int64_t base = 1 + members.size();
  Value tasks = code->number(0), scratch = code->number(0);
  Dim work;
  bool needsScratch = false, areEqual = true;
  const Phase &first = kernels.at(members.front())->phases.front();
  code->store(builder.getI64Type(), builder.create<program::WordOp>(code->loc, call), arguments,
              code->number(0));
  for (auto [i, member] : llvm::enumerate(members)) {
    const Phase &phase = kernels.at(member)->phases.front();
    targets.push_back(functionOf(phase));
    bases.push_back(base);
    base += kernels.at(member)->arguments.size();
    Value own = dim(phase.tasks);
    code->store(builder.getI64Type(), own, arguments, code->number(1 + i));
    tasks = code->add(tasks, own);
    scratch = code->max(scratch, dim(phase.scratchBytes));
    work = work + phase.work;
    needsScratch |= !phase.scratchBytes.isConstant(0);
    areEqual &= phase.tasks == first.tasks && phase.work == first.work;
  }
  launch(dispatcherOf(targets, bases, areEqual), arguments, tasks, dim(work), scratch,
         needsScratch);
  ++program.launches;
}

/// Tells the runtime which group's kernels begin and end here, when it is to know.
void Host::profile(graph::GroupOp group, llvm::function_ref<void()> launches) {
  if (!program.isProfiled)
    return launches();
  int64_t number = llvm::find(program.kernels, group.getName()) - program.kernels.begin();
  callOn(program::Service::Profile, {code->number(number)});
  launches();
  callOn(program::Service::Profile, {code->number(-1)});
}

/// The number of the version that is for the sizes of the run; null where there is one.
Value Host::versionOf(const Kernel &kernel) {
  Value chosen;
  for (size_t i = kernel.versions.size(); i-- > 0;) {
    Value number = code->number(i), fits;
    for (const Bound &bound : kernel.versions[i])
      fits = code->both(fits, code->less(dim(bound.size), code->number(bound.most + 1)));
    chosen = fits ? builder.createOrFold<arith::SelectOp>(code->loc, fits, number, chosen) : number;
  }
  return chosen;
}

void Host::launchAlone(graph::GroupOp group, Value slots) {
  const Kernel &kernel = *kernels.at(group);
  bool isOnce = storage.launchesOnce(group);
  Value chosen = versionOf(kernel);
  for (const Phase &phase : kernel.phases) {
    Value tasks = dim(phase.tasks), scratch = dim(phase.scratchBytes);
    Value work = dim(phase.work);
    auto write = [&] {
      launch(functionOf(phase), slots, tasks, work, scratch, !phase.scratchBytes.isConstant(0));
    };
    bool isLast = phase.version + 1 == (int64_t)kernel.versions.size();
    if (isOnce && phase.isInvariant) {
      code->when(isFirst, write);
    } else if (phase.version < 0) {
      write();
    } else {
      Value isChosen = builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq,
                                                           chosen, code->number(phase.version));
      code->when(isChosen, write);
    }
    program.launches += phase.version < 0 || isLast; // of all versions' one
  }
}

void Host::writeGroup(graph::GroupOp group) {
  const Kernel &kernel = *kernels.at(group);
  if (!kernel.rows.empty())
    return launchRows(group);
  auto members = launchedWith(group);
  if (members.size() == 1) {
    // A region that is still open keeps its slots.
    int64_t base = openSlots;
    storeArguments(group, base);
    Value slots = code->at(arguments, builder.getI64Type(), code->number(base));
    profile(group, [&] { launchAlone(group, slots); });
    return;
  }
  int64_t base = 1 + members.size();
  for (graph::GroupOp member : members) {
    if (member == group)
      break;
    base += kernels.at(member)->arguments.size();
  }
  storeArguments(group, base);
  openSlots = base + kernel.arguments.size();
  if (group != members.back())
    return;
  profile(group, [&] { launchRegion(members); });
  openSlots = 0;
}

} // namespace heddle::lower
