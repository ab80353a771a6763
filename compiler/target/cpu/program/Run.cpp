// Run: what a program asks of its run, as accesses to heddle_call_t and calls through it.

#include "compiler/program/Dialect.h"
#include "compiler/target/cpu/program/Ops.h"

#include "runtime/executable/abi.h"

using namespace mlir;

namespace heddle::cpu {

static int64_t offsetOf(program::Area area) {
  switch (area) {
  case program::Area::Arena:
    return offsetof(heddle_call_t, arena);
  case program::Area::Inputs:
    return offsetof(heddle_call_t, inputs);
  case program::Area::Outputs:
    return offsetof(heddle_call_t, outputs);
  case program::Area::Symbols:
    return offsetof(heddle_call_t, symbols);
  case program::Area::OutputDims:
    return offsetof(heddle_call_t, output_dims);
  case program::Area::Weights:
    return offsetof(heddle_call_t, weights);
  case program::Area::Services:
    return offsetof(heddle_call_t, services);
  case program::Area::Seed:
    return offsetof(heddle_call_t, seed);
  }
  llvm_unreachable("all areas are above");
}

static int64_t numberOfService(program::Service service) {
  using Service = program::Service;
  static const std::map<Service, int64_t> numbers = {
      {Service::ListMake, HEDDLE_SERVICE_LIST_MAKE},
      {Service::ListInsert, HEDDLE_SERVICE_LIST_INSERT},
      {Service::ListErase, HEDDLE_SERVICE_LIST_ERASE},
      {Service::ListAt, HEDDLE_SERVICE_LIST_AT},
      {Service::ListLength, HEDDLE_SERVICE_LIST_LENGTH},
      {Service::ListConcat, HEDDLE_SERVICE_LIST_CONCAT},
      {Service::ListSplit, HEDDLE_SERVICE_LIST_SPLIT},
      {Service::ListCast, HEDDLE_SERVICE_LIST_CAST},
      {Service::ListRank, HEDDLE_SERVICE_LIST_RANK},
      {Service::StringConcat, HEDDLE_SERVICE_STRING_CONCAT},
      {Service::StringSplit, HEDDLE_SERVICE_STRING_SPLIT},
      {Service::StringNormalize, HEDDLE_SERVICE_STRING_NORMALIZE},
      {Service::StringMatch, HEDDLE_SERVICE_STRING_MATCH},
      {Service::StringCast, HEDDLE_SERVICE_STRING_CAST},
      {Service::Profile, HEDDLE_SERVICE_PROFILE},
      {Service::Library, HEDDLE_SERVICE_LIBRARY},
      {Service::ImageDecode, HEDDLE_SERVICE_IMAGE_DECODE},
      {Service::Custom, HEDDLE_SERVICE_CUSTOM},
      {Service::Topk, HEDDLE_SERVICE_TOPK},
      {Service::Cumsum, HEDDLE_SERVICE_CUMSUM},
      {Service::Nonzero, HEDDLE_SERVICE_NONZERO},
      {Service::Unique, HEDDLE_SERVICE_UNIQUE},
      {Service::Suppress, HEDDLE_SERVICE_SUPPRESS},
      {Service::Forest, HEDDLE_SERVICE_FOREST},
      {Service::Fourier, HEDDLE_SERVICE_FOURIER},
      {Service::DeviceArea, HEDDLE_SERVICE_DEVICE_AREA},
      {Service::DeviceAlloc, HEDDLE_SERVICE_DEVICE_ALLOC},
      {Service::DeviceCopy, HEDDLE_SERVICE_DEVICE_COPY},
      {Service::DeviceLaunch, HEDDLE_SERVICE_DEVICE_LAUNCH}};
  return numbers.at(service);
}

namespace {
struct RunOps {
  OpBuilder &b;
  Location loc;

  Value field(Value run, int64_t offset, Type type, int64_t alignment = 8) {
    Value address = addressOf(b, loc, run, b.getI8Type(), numberOf(b, loc, offset));
    return b.create<LLVM::LoadOp>(loc, type, address, alignment);
  }

  Value call(Value callee, Type result, ValueRange operands) {
    SmallVector<Type> types(operands.getTypes());
    auto type = LLVM::LLVMFunctionType::get(
        result ? result : LLVM::LLVMVoidType::get(b.getContext()), types);
    SmallVector<Value> all{callee};
    all.append(operands.begin(), operands.end());
    auto made = b.create<LLVM::CallOp>(loc, type, all);
    return result ? made.getResult() : Value();
  }

  /// Calls the function at that offset; its first operand is the run.
  Value callOf(Value run, int64_t offset, Type result, ValueRange others) {
    SmallVector<Value> operands{run};
    operands.append(others.begin(), others.end());
    return call(field(run, offset, pointerOf(b)), result, operands);
  }

  Value lower(program::ArgumentOp op) {
    Value slot = numberOf(b, loc, op.getSlot());
    Value address = addressOf(b, loc, op.getArguments(), b.getI64Type(), slot);
    auto word = b.create<LLVM::LoadOp>(loc, b.getI64Type(), address, 8);
    word.setInvariant(op.getInvariant());
    if (op.getType().isInteger(64))
      return word;
    return b.create<LLVM::IntToPtrOp>(loc, pointerOf(b), word);
  }
  Value lower(program::AreaOp op) {
    Value offset = numberOf(b, loc, offsetOf(op.getArea()));
    if (op.getArea() == program::Area::Seed) // it is in the run itself
      return addressOf(b, loc, op.getRun(), b.getI8Type(), offset);
    return field(op.getRun(), offsetOf(op.getArea()), pointerOf(b));
  }
  Value lower(program::StatusOp op) {
    return field(op.getRun(), offsetof(heddle_call_t, status), b.getI32Type(), 4);
  }
  Value lower(program::AllocOp op) {
    return callOf(op.getRun(), offsetof(heddle_call_t, alloc), pointerOf(b), op.getBytes());
  }
  Value lower(program::AllocOutputOp op) {
    Value output = numberOf(b, loc, op.getOutput());
    return callOf(op.getRun(), offsetof(heddle_call_t, alloc_output), pointerOf(b),
                  {output, op.getBytes()});
  }
  void lower(program::FailOp op) {
    callOf(op.getRun(), offsetof(heddle_call_t, fail), {},
           {op.getMessage(), op.getValue(), op.getLimit()});
  }
  void lower(program::LaunchOp op) {
    Type pointer = pointerOf(b), i64 = b.getI64Type();
    auto type = b.getFunctionType({pointer, i64, i64, pointer}, {}); // heddle_kernel_fn
    Value kernel = b.create<func::ConstantOp>(loc, type, op.getKernelAttr());
    Value address = b.create<UnrealizedConversionCastOp>(loc, pointer, kernel).getResult(0);
    callOf(op.getRun(), offsetof(heddle_call_t, launch), {},
           {address, op.getArguments(), op.getTasks(), op.getScratch()});
  }
  void lower(program::ServiceOp op) {
    Value number = numberOf(b, loc, numberOfService(op.getService()));
    Value address = addressOf(b, loc, op.getServices(), b.getI64Type(), number);
    Value callee = b.create<LLVM::LoadOp>(loc, pointerOf(b), address, 8);
    call(callee, {}, {op.getRun(), op.getFrame()});
  }
};
} // namespace

bool lowerRun(OpBuilder &b, Operation *op) {
  RunOps ops{b, op->getLoc()};
  return TypeSwitch<Operation *, bool>(op)
      .Case<program::ArgumentOp, program::AreaOp, program::StatusOp, program::AllocOp,
            program::AllocOutputOp>([&](auto each) {
        op->replaceAllUsesWith(ValueRange{ops.lower(each)});
        return true;
      })
      .Case<program::FailOp, program::LaunchOp, program::ServiceOp>([&](auto each) {
        ops.lower(each);
        return true;
      })
      .Default(false);
}

} // namespace heddle::cpu
