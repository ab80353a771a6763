// RunOps: what kernels and the program around them ask of a run. The host's part is that of the
// runtime, which a call carries; devices have arenas and weights of their own.

#include "compiler/target/testing/interpreter/Interpreter.h"

using namespace mlir;

namespace heddle::interpreter {

static StringRef spaceOf(Value pointer) {
  return cast<program::PtrType>(pointer.getType()).getSpace();
}

bool Run::isFine(const Step &step, Value pointer, uint64_t address, int64_t bytes,
                 int64_t alignment) {
  std::string why = memory.whyNot(address, bytes, spaceOf(pointer));
  if (why.empty() && address % alignment)
    why = "an address that is not aligned to " + std::to_string(alignment) + " bytes";
  if (!why.empty())
    stop(step, "it takes " + why);
  return why.empty();
}

static void argument(Run &run, Activation &activation, const Step &step) {
  auto op = cast<program::ArgumentOp>(step.op);
  uint64_t address = wordOf(activation, step, 0) + 8 * op.getSlot();
  if (!run.isFine(step, op.getArguments(), address, 8, 8))
    return;
  activation.values[step.results[0]] = Bits{*reinterpret_cast<const uint64_t *>(address)};
}

/// Arenas and weights of devices, and what the call has of the host.
static const void *placeOf(Run &run, program::Area area, StringRef space) {
  if (!space.empty())
    return (area == program::Area::Arena ? run.arenas : run.weights)[space.str()];
  switch (area) {
  case program::Area::Arena:
    return run.call->arena;
  case program::Area::Inputs:
    return run.call->inputs;
  case program::Area::Outputs:
    return run.call->outputs;
  case program::Area::Symbols:
    return run.call->symbols;
  case program::Area::OutputDims:
    return run.call->output_dims;
  case program::Area::Weights:
    return run.call->weights;
  case program::Area::Services:
    return run.call->services;
  case program::Area::Seed:
    return &run.call->seed;
  }
  llvm_unreachable("all areas are above");
}

static void area(Run &run, Activation &activation, const Step &step) {
  auto op = cast<program::AreaOp>(step.op);
  activation.values[step.results[0]] = bitsOf(placeOf(run, op.getArea(), spaceOf(op.getResult())));
}

static void alloc(Run &run, Activation &activation, const Step &step) {
  int64_t bytes = wordOf(activation, step, 1);
  StringRef space = spaceOf(step.op->getResult(0));
  void *made = nullptr;
  if (space.empty())
    made = run.call->alloc(run.call, bytes);
  else if (!run.call->status && bytes >= 0)
    made = run.memory.make(bytes, space);
  if (space.empty())
    run.memory.add(made, bytes);
  activation.values[step.results[0]] = bitsOf(made);
}

static void allocOutput(Run &run, Activation &activation, const Step &step) {
  int64_t output = cast<program::AllocOutputOp>(step.op).getOutput();
  int64_t bytes = wordOf(activation, step, 1);
  void *made = run.call->alloc_output(run.call, output, bytes);
  run.memory.add(made, bytes);
  activation.values[step.results[0]] = bitsOf(made);
}

static void fail(Run &run, Activation &activation, const Step &step) {
  run.call->fail(run.call, wordOf(activation, step, 1), wordOf(activation, step, 2),
                 wordOf(activation, step, 3));
}

/// The tasks in three parts, one after the other, each with memory of its own.
static void launch(Run &run, Activation &activation, const Step &step) {
  auto op = cast<program::LaunchOp>(step.op);
  const Function *kernel = run.code.find(op.getKernel());
  int64_t tasks = wordOf(activation, step, 2), scratch = wordOf(activation, step, 3);
  if (tasks <= 0 || run.call->status)
    return;
  std::string outer = run.space;
  run.space = cast<program::PtrType>(kernel->type.getInput(3)).getSpace().str();
  constexpr int64_t kParts = 3;
  for (int64_t part = 0; part < kParts && run.problem.empty(); ++part) {
    uint64_t begin = tasks * part / kParts, end = tasks * (part + 1) / kParts;
    if (begin == end)
      continue;
    char *memory = scratch > 0 ? run.memory.make(scratch, run.space) : nullptr;
    run.enter(*kernel,
              {activation.values[step.operands[1]], Bits{begin}, Bits{end}, bitsOf(memory)});
    run.memory.remove(memory);
  }
  run.space = outer;
}

static thread_local Run *running = nullptr; // a service of
static void *(*allocateOfRuntime)(heddle_call_t *, int64_t);

/// A service allocates what its results are.
static void *allocate(heddle_call_t *call, int64_t bytes) {
  void *made = allocateOfRuntime(call, bytes);
  running->memory.add(made, bytes);
  return made;
}

/// As abi.h numbers it.
static int numberOf(program::Service service) {
  using Service = program::Service;
  static_assert(int(Service::ListCast) + 1 == HEDDLE_SERVICE_LIST_RANK &&
                int(Service::StringConcat) + 1 == HEDDLE_SERVICE_STRING_CONCAT &&
                int(Service::Fourier) + 1 == HEDDLE_SERVICE_FOURIER &&
                int(Service::DeviceArea) == HEDDLE_SERVICE_DEVICE_AREA);
  if (service == Service::ListRank)
    return HEDDLE_SERVICE_LIST_RANK;
  bool isAfterIt = int(service) >= HEDDLE_SERVICE_LIST_RANK && service < Service::ListRank;
  return int(service) + isAfterIt;
}

static void service(Run &run, Activation &activation, const Step &step) {
  auto op = cast<program::ServiceOp>(step.op);
  auto *frame = reinterpret_cast<int64_t *>(wordOf(activation, step, 2));
  if (!run.space.empty())
    return run.stop(step, "a kernel of " + nameOfSpace(run.space) + " calls a service of the host");
  if (!run.isFine(step, op.getFrame(), wordOf(activation, step, 2), 8, 8))
    return;
  running = &run;
  allocateOfRuntime = run.call->alloc;
  run.call->alloc = allocate;
  run.call->services[numberOf(op.getService())](run.call, frame);
  run.call->alloc = allocateOfRuntime;
  bool isOfList = op.getService() == program::Service::ListAt;
  if (isOfList) // a tensor of a list, which may be the caller's
    run.memory.addUnbounded(reinterpret_cast<const void *>(frame[0]));
}

void addRun(Actions &actions) {
  actions["program.argument"] = argument;
  actions["program.area"] = area;
  actions["program.status"] = [](Run &run, Activation &activation, const Step &step) {
    activation.values[step.results[0]] = Bits{uint32_t(run.call->status)};
  };
  actions["program.alloc"] = alloc;
  actions["program.alloc_output"] = allocOutput;
  actions["program.fail"] = fail;
  actions["program.launch"] = launch;
  actions["program.service"] = service;
}

} // namespace heddle::interpreter
