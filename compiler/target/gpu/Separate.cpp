// Separate: launches, copies and memory of a device become services of the runtime, and what its
// kernels ask of the run becomes accesses to memory.

#include "compiler/target/gpu/Separate.h"

#include "compiler/target/gpu/Chip.h"
#include "compiler/target/gpu/Threads.h"

#include "runtime/executable/abi.h"

using namespace mlir;

namespace heddle::gpu {
namespace {

constexpr int64_t kHost = -1, kDevice = 0; // as the services number them

bool isOfDevice(Value pointer) {
  return cast<program::PtrType>(pointer.getType()).getSpace() == kSpace;
}

/// The host's side.
class HostOps {
public:
  explicit HostOps(const std::map<std::string, int64_t> &kernels) : kernels(kernels) {}

  void rewrite(func::FuncOp function) {
    function.walk([&](Operation *op) {
      OpBuilder b(op);
      bool isDone =
          TypeSwitch<Operation *, bool>(op)
              .Case([&](program::AreaOp area) { return rewrite(b, area); })
              .Case([&](program::AllocOp alloc) { return rewrite(b, alloc); })
              .Case([&](program::CopyOp copy) { return rewriteCopy(b, copy); })
              .Case([&](program::TransferOp transfer) { return rewriteCopy(b, transfer); })
              .Case([&](program::LaunchOp launch) { return rewrite(b, launch); })
              .Default(false);
      if (isDone)
        op->erase();
    });
  }

private:
  /// Calls a service with these words, null for its result, and returns the frame.
  Value call(OpBuilder &b, Location loc, program::Service service, Value run,
             ArrayRef<Value> words) {
    Operation *parent = b.getInsertionBlock()->getParentOp();
    auto function = dyn_cast<func::FuncOp>(parent);
    if (!function)
      function = parent->getParentOfType<func::FuncOp>();
    OpBuilder entry = OpBuilder::atBlockBegin(&function.getBody().front());
    Value frame = entry.create<program::ArrayOp>(loc, words.size());
    Type i64 = b.getI64Type();
    for (auto [i, word] : llvm::enumerate(words)) {
      if (!word)
        continue;
      bool isPointer = isa<program::PtrType>(word.getType());
      Value number = isPointer ? b.create<program::WordOp>(loc, word).getResult() : word;
      b.create<program::StoreOp>(loc, number, wordOf(b, loc, frame, i), /*alignment=*/8);
    }
    Value services = b.create<program::AreaOp>(loc, run, program::Area::Services, "");
    b.create<program::ServiceOp>(loc, service, services, run, frame);
    return b.create<program::LoadOp>(loc, i64, wordOf(b, loc, frame, 0), 8);
  }
  Value number(OpBuilder &b, Location loc, int64_t value) {
    return b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(value));
  }
  Value wordOf(OpBuilder &b, Location loc, Value frame, int64_t i) {
    return b.create<program::AtOp>(loc, frame, number(b, loc, i), b.getI64Type());
  }
  void become(OpBuilder &b, Operation *op, Value word) {
    op->getResult(0).replaceAllUsesWith(
        b.create<program::PointerOp>(op->getLoc(), op->getResult(0).getType(), word));
  }

  bool rewrite(OpBuilder &b, program::AreaOp op) {
    if (!isOfDevice(op.getResult()))
      return false;
    Location loc = op.getLoc();
    int64_t which =
        op.getArea() == program::Area::Arena ? HEDDLE_DEVICE_ARENA : HEDDLE_DEVICE_WEIGHTS;
    become(b, op,
           call(b, loc, program::Service::DeviceArea, op.getRun(),
                {Value(), number(b, loc, kDevice), number(b, loc, which)}));
    return true;
  }
  bool rewrite(OpBuilder &b, program::AllocOp op) {
    if (!isOfDevice(op.getResult()))
      return false;
    Location loc = op.getLoc();
    become(b, op,
           call(b, loc, program::Service::DeviceAlloc, op.getRun(),
                {Value(), number(b, loc, kDevice), op.getBytes()}));
    return true;
  }
  template <typename Copy> bool rewriteCopy(OpBuilder &b, Copy op) {
    if (!isOfDevice(op.getTarget()) && !isOfDevice(op.getSource()))
      return false;
    Location loc = op.getLoc();
    auto deviceOf = [&](Value pointer) {
      return number(b, loc, isOfDevice(pointer) ? kDevice : kHost);
    };
    Value run = op->template getParentOfType<func::FuncOp>().getArgument(0);
    call(b, loc, program::Service::DeviceCopy, run,
         {deviceOf(op.getTarget()), op.getTarget(), deviceOf(op.getSource()), op.getSource(),
          op.getBytes()});
    return true;
  }
  bool rewrite(OpBuilder &b, program::LaunchOp op) {
    auto kernel = kernels.find(op.getKernel().str());
    if (kernel == kernels.end())
      return false;
    Location loc = op.getLoc();
    call(b, loc, program::Service::DeviceLaunch, op.getRun(),
         {number(b, loc, kDevice), number(b, loc, kernel->second), op.getArguments(), op.getTasks(),
          op.getScratch()});
    return true;
  }

  const std::map<std::string, int64_t> &kernels;
};

/// The device's side.
class DeviceOps {
public:
  bool mayFail = false;

  void rewrite(func::FuncOp function) {
    function.walk([&](Operation *op) {
      OpBuilder b(op);
      bool isDone = TypeSwitch<Operation *, bool>(op)
                        .Case([&](program::ArgumentOp argument) { return rewrite(b, argument); })
                        .Case([&](program::FailOp fail) { return rewrite(b, fail); })
                        .Case([&](program::StatusOp status) { return rewrite(b, status); })
                        .Case<program::PrefetchOp>([](auto) { return true; })
                        .Default(false);
      if (isDone)
        op->erase();
    });
  }

private:
  /// Addresses of global memory, which LLVM follows from here to the accesses.
  bool rewrite(OpBuilder &b, program::ArgumentOp op) {
    if (op.getType().isInteger(64))
      return false;
    Location loc = op.getLoc();
    Type global = LLVM::LLVMPointerType::get(b.getContext(), /*addressSpace=*/1);
    Value word = b.create<program::ArgumentOp>(loc, b.getI64Type(), op.getArguments(), op.getSlot(),
                                               op.getInvariant());
    Value address = b.create<LLVM::IntToPtrOp>(loc, global, word);
    op.replaceAllUsesWith(
        b.create<LLVM::AddrSpaceCastOp>(loc, LLVM::LLVMPointerType::get(b.getContext()), address)
            .getResult());
    return true;
  }
  Value field(OpBuilder &b, Location loc, Value record, int64_t offset) {
    return b.create<LLVM::GEPOp>(loc, record.getType(), b.getI8Type(), record,
                                 ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  }
  /// Writes the record of the first thread that comes, heddle_device_failure_t.
  bool rewrite(OpBuilder &b, program::FailOp op) {
    mayFail = true;
    Location loc = op.getLoc();
    Value record = op.getRun();
    auto number = [&](int64_t value) -> Value {
      return b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(value));
    };
    Value zero = number(0), status = b.create<arith::AddIOp>(loc, op.getMessage(), number(1));
    auto order = LLVM::AtomicOrdering::monotonic;
    auto swap = b.create<LLVM::AtomicCmpXchgOp>(
        loc, field(b, loc, record, offsetof(heddle_device_failure_t, status)), zero, status, order,
        order);
    Value isFirst = b.create<LLVM::ExtractValueOp>(loc, swap, 1);
    b.create<scf::IfOp>(loc, isFirst, [&](OpBuilder &inside, Location loc) {
      inside.create<LLVM::StoreOp>(
          loc, op.getValue(), field(inside, loc, record, offsetof(heddle_device_failure_t, value)),
          8);
      inside.create<LLVM::StoreOp>(
          loc, op.getLimit(), field(inside, loc, record, offsetof(heddle_device_failure_t, limit)),
          8);
      inside.create<scf::YieldOp>(loc);
    });
    return true;
  }
  bool rewrite(OpBuilder &b, program::StatusOp op) {
    Location loc = op.getLoc();
    Value word = b.create<LLVM::LoadOp>(loc, b.getI64Type(), op.getRun(), 8, /*isVolatile=*/true);
    op.replaceAllUsesWith(b.create<arith::TruncIOp>(loc, b.getI32Type(), word).getResult());
    return true;
  }
};

/// Pointers of the device become `other`, everywhere below `root`.
void replacePointers(Operation *root, llvm::function_ref<bool(program::PtrType)> isReplaced,
                     Type other) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](program::PtrType type) -> std::optional<Type> {
    return isReplaced(type) ? std::optional(other) : std::nullopt;
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

/// The group of each function.
std::map<std::string, std::string> groupsOf(const program::Program &program) {
  std::map<std::string, std::string> groups;
  for (auto [group, functions] : llvm::zip(program.kernels, program.functions))
    for (const std::string &function : functions)
      groups.try_emplace(function, group);
  return groups;
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> separate(program::Program &program) {
  ModuleOp host = *program.module;
  host.getContext()->loadDialect<LLVM::LLVMDialect>();
  OwningOpRef<ModuleOp> apart = ModuleOp::create(host.getLoc());
  program::Device device;
  device.space = kSpace.str();
  std::map<std::string, int64_t> kernels;
  std::map<std::string, std::string> groups = groupsOf(program);
  SymbolTable functions(host);
  auto launched = host.walk([&](program::LaunchOp launch) {
    auto kernel = functions.lookup<func::FuncOp>(launch.getKernel());
    std::string name = kernel.getSymName().str();
    if (program::spaceOf(kernel) != kSpace || !kernels.try_emplace(name, kernels.size()).second)
      return WalkResult::advance();
    int64_t words = kernel->getAttrOfType<IntegerAttr>(program::kWords).getInt();
    int64_t threads = program::threadsOf(kernel);
    device.kernels.push_back({name, groups[name], words, threads > 1 ? threads : 0});
    return WalkResult(words > HEDDLE_MOST_WORDS ? WalkResult::interrupt() : WalkResult::advance());
  });
  if (launched.wasInterrupted())
    return makeError(ErrorCode::Limit,
                     "error: group '" + device.kernels.back().group + "' has " +
                         llvm::Twine(device.kernels.back().words) +
                         " operands and sizes, but a kernel of device 'cuda' may have " +
                         llvm::Twine(HEDDLE_MOST_WORDS) +
                         "\nnote: its \"device\" in the plan may be 0, the host");
  for (auto function : llvm::make_early_inc_range(host.getOps<func::FuncOp>()))
    if (program::spaceOf(function) == kSpace) {
      function->remove();
      apart->push_back(function);
    }
  HostOps onHost(kernels);
  for (auto function : host.getOps<func::FuncOp>())
    onHost.rewrite(function);
  MLIRContext *context = host.getContext();
  auto isOfSpace = [](program::PtrType type) { return type.getSpace() == kSpace; };
  replacePointers(host, isOfSpace, program::pointerType(context));
  DeviceOps onDevice;
  Type pointer = LLVM::LLVMPointerType::get(context);
  replacePointers(*apart, [](program::PtrType) { return true; }, pointer);
  std::map<std::string, int64_t> sharedBytes;
  for (auto function : apart->getOps<func::FuncOp>()) {
    onDevice.rewrite(function);
    sharedBytes[function.getSymName().str()] = lowerTeam(function);
  }
  for (program::DeviceKernel &kernel : device.kernels) {
    kernel.sharedBytes = sharedBytes[kernel.name];
    // Those of a region have it one after the other.
    apart->lookupSymbol(kernel.name)->walk([&](func::CallOp call) {
      kernel.sharedBytes = std::max(kernel.sharedBytes, sharedBytes[call.getCallee().str()]);
    });
  }
  device.mayFail = onDevice.mayFail;
  program.devices.push_back(std::move(device));
  return apart;
}

} // namespace heddle::gpu
