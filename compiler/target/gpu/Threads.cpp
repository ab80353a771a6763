// Threads: see Threads.h.

#include "compiler/target/gpu/Threads.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace heddle::gpu {
namespace {

/// The name of all shared memory of a kernel, whose size a launch says.
constexpr StringLiteral kShared = "heddle_shared";
constexpr int64_t kAlignment = 16;
constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

class TeamOps {
public:
  explicit TeamOps(func::FuncOp kernel) : kernel(kernel), threads(program::threadsOf(kernel)) {}

  int64_t sharedBytes = 0;

  void rewrite() {
    kernel.walk([&](Operation *op) {
      OpBuilder b(op);
      Value made;
      bool isKnown =
          TypeSwitch<Operation *, bool>(op)
              .Case<program::RankOp, program::ShuffleOp, program::SharedOp, program::BarrierOp,
                    program::LoadFragmentsOp, program::MultiplyFragmentsOp, program::FetchOp,
                    program::RoundOp, program::AwaitOp>([&](auto op) {
                made = lower(b, op);
                return true;
              })
              .Default(false);
      if (!isKnown)
        return;
      if (made)
        op->replaceAllUsesWith(ValueRange(made));
      op->erase();
    });
  }

private:
  Value call(OpBuilder &b, Location loc, StringRef intrinsic, Type result, ValueRange operands) {
    auto called = b.create<LLVM::CallIntrinsicOp>(loc, result ? TypeRange(result) : TypeRange(),
                                                  b.getStringAttr(intrinsic), operands,
                                                  LLVM::FastmathFlagsAttr());
    return result ? called->getResult(0) : Value();
  }
  Value word(OpBuilder &b, Location loc, int64_t value) {
    return b.create<arith::ConstantOp>(loc, b.getI32IntegerAttr(value));
  }

  Value lower(OpBuilder &b, program::RankOp op) {
    Location loc = op.getLoc();
    Value thread = call(b, loc, "llvm.nvvm.read.ptx.sreg.tid.x", b.getI32Type(), {});
    if (threads <= kWarp)
      thread = b.create<arith::AndIOp>(loc, thread, word(b, loc, threads - 1));
    return b.create<arith::ExtUIOp>(loc, b.getI64Type(), thread);
  }

  Value lower(OpBuilder &b, program::BarrierOp op) {
    if (threads <= kWarp)
      return call(b, op.getLoc(), "llvm.nvvm.bar.warp.sync", {}, {word(b, op.getLoc(), -1)});
    return call(b, op.getLoc(), "llvm.nvvm.barrier0", {}, {});
  }

  /// Exchanges words of 32 bits.
  Value lower(OpBuilder &b, program::ShuffleOp op) {
    Location loc = op.getLoc();
    Type type = op.getX().getType(), i32 = b.getI32Type();
    unsigned bits = type.getIntOrFloatBitWidth(), all = bits > 32 ? 64 : 32;
    Type number = b.getIntegerType(bits), whole = b.getIntegerType(all);
    Value x = op.getX();
    if (isa<FloatType>(type))
      x = b.create<arith::BitcastOp>(loc, number, x);
    if (bits < all)
      x = b.create<arith::ExtUIOp>(loc, whole, x);
    auto exchange = [&](Value part) {
      return call(
          b, loc, "llvm.nvvm.shfl.sync.bfly.i32", i32,
          {word(b, loc, -1), part, word(b, loc, op.getDistance()), word(b, loc, kWarp - 1)});
    };
    if (all == 32) {
      x = exchange(x);
    } else {
      Value half = b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(32));
      Value low = exchange(b.create<arith::TruncIOp>(loc, i32, x));
      Value high =
          exchange(b.create<arith::TruncIOp>(loc, i32, b.create<arith::ShRUIOp>(loc, x, half)));
      high = b.create<arith::ShLIOp>(loc, b.create<arith::ExtUIOp>(loc, whole, high), half);
      x = b.create<arith::OrIOp>(loc, high, b.create<arith::ExtUIOp>(loc, whole, low));
    }
    if (bits < all)
      x = b.create<arith::TruncIOp>(loc, number, x);
    return isa<FloatType>(type) ? b.create<arith::BitcastOp>(loc, type, x).getResult() : x;
  }

  Value lower(OpBuilder &b, program::SharedOp op) {
    Location loc = op.getLoc();
    Type pointer = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
    Value begin = b.create<LLVM::AddressOfOp>(loc, pointer, declareShared());
    Value at = b.create<LLVM::GEPOp>(loc, pointer, b.getI8Type(), begin,
                                     ArrayRef<LLVM::GEPArg>{int32_t(sharedBytes)});
    sharedBytes += llvm::alignTo(op.getBytes(), kAlignment);
    return b.create<LLVM::AddrSpaceCastOp>(loc, LLVM::LLVMPointerType::get(b.getContext()), at);
  }

  /// The elements of a structure, as a vector.
  Value vectorOf(OpBuilder &b, Location loc, Type element, Value structure) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < 4; ++i)
      elements.push_back(b.create<LLVM::ExtractValueOp>(loc, element, structure, i));
    return b.create<vector::FromElementsOp>(loc, VectorType::get({4}, element), elements);
  }
  static Type structureOf(OpBuilder &b, Type element) {
    return LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, element));
  }

  Value lower(OpBuilder &b, program::LoadFragmentsOp op) {
    Location loc = op.getLoc();
    Type pointer = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace), word = b.getI32Type();
    Value row = b.create<LLVM::AddrSpaceCastOp>(loc, pointer, op.getRow());
    Value loaded =
        call(b, loc, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16", structureOf(b, word), row);
    return vectorOf(b, loc, word, loaded);
  }

  Value lower(OpBuilder &b, program::MultiplyFragmentsOp op) {
    Location loc = op.getLoc();
    bool isHalf = op.getElement().isF16();
    SmallVector<Value> operands;
    auto add = [&](Value vector, Type wanted) {
      for (int64_t i = 0; i < cast<VectorType>(vector.getType()).getNumElements(); ++i) {
        Value element = b.create<vector::ExtractOp>(loc, vector, i);
        operands.push_back(wanted ? b.create<LLVM::BitcastOp>(loc, wanted, element) : element);
      }
    };
    Type pair = isHalf ? Type(VectorType::get({2}, b.getF16Type())) : Type();
    add(op.getLeft(), pair);
    add(op.getRight(), pair);
    add(op.getSum(), Type());
    StringRef name =
        isHalf ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32" : "llvm.nvvm.mma.m16n8k16.row.col.bf16";
    Type f32 = b.getF32Type();
    return vectorOf(b, loc, f32, call(b, loc, name, structureOf(b, f32), operands));
  }

  Value lower(OpBuilder &b, program::FetchOp op) {
    Location loc = op.getLoc();
    auto inSpace = [&](Value pointer, unsigned space) -> Value {
      return b.create<LLVM::AddrSpaceCastOp>(loc, LLVM::LLVMPointerType::get(b.getContext(), space),
                                             pointer);
    };
    Value bytes = b.create<arith::TruncIOp>(loc, b.getI32Type(), op.getBytes());
    return call(
        b, loc, "llvm.nvvm.cp.async.cg.shared.global.16.s", {},
        {inSpace(op.getTarget(), kSharedSpace), inSpace(op.getSource(), kGlobalSpace), bytes});
  }
  Value lower(OpBuilder &b, program::RoundOp op) {
    return call(b, op.getLoc(), "llvm.nvvm.cp.async.commit.group", {}, {});
  }
  Value lower(OpBuilder &b, program::AwaitOp op) {
    return call(b, op.getLoc(), "llvm.nvvm.cp.async.wait.group", {},
                word(b, op.getLoc(), op.getRounds()));
  }

  StringRef declareShared() {
    auto module = kernel->getParentOfType<ModuleOp>();
    if (!module.lookupSymbol(kShared)) {
      OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
      Type none = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
      b.create<LLVM::GlobalOp>(kernel.getLoc(), none, /*isConstant=*/false, LLVM::Linkage::External,
                               kShared, Attribute(), kAlignment, kSharedSpace);
    }
    return kShared;
  }

  func::FuncOp kernel;
  int64_t threads;
};

} // namespace

int64_t lowerTeam(func::FuncOp kernel) {
  TeamOps ops(kernel);
  ops.rewrite();
  return ops.sharedBytes;
}

} // namespace heddle::gpu
