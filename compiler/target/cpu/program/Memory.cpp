// Memory: accesses to memory, and sizes that say whether they left int64, as ops of LLVM.

#include "compiler/program/Dialect.h"
#include "compiler/target/cpu/program/Ops.h"

using namespace mlir;

namespace heddle::cpu {

Type pointerOf(OpBuilder &b) { return LLVM::LLVMPointerType::get(b.getContext()); }

Value numberOf(OpBuilder &b, Location loc, int64_t value) {
  return b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(value));
}

Value addressOf(OpBuilder &b, Location loc, Value pointer, Type element, Value index) {
  return b.create<LLVM::GEPOp>(loc, pointer.getType(), element, pointer,
                               ArrayRef<LLVM::GEPArg>{index});
}

namespace {
struct MemoryOps {
  OpBuilder &b;
  Location loc;

  /// The addresses of a vector of indices.
  Value addresses(Value pointer, Value indices, VectorType lanes) {
    auto pointers = LLVM::getFixedVectorType(pointer.getType(), lanes.getNumElements());
    return b.create<LLVM::GEPOp>(loc, pointers, lanes.getElementType(), pointer,
                                 ArrayRef<LLVM::GEPArg>{indices});
  }

  template <typename Checked> void checked(Operation *op) {
    Type both = LLVM::LLVMStructType::getLiteral(b.getContext(), {b.getI64Type(), b.getI1Type()});
    Value made = b.create<Checked>(loc, both, op->getOperand(0), op->getOperand(1));
    Value overflow = b.create<LLVM::ExtractValueOp>(loc, made, 1);
    Value result = b.create<LLVM::ExtractValueOp>(loc, made, 0);
    op->replaceAllUsesWith(ValueRange{result, overflow});
  }

  Value lower(program::AtOp op) {
    // Pointers have 8 bytes.
    Type element = isa<LLVM::LLVMPointerType>(op.getElement()) ? b.getI64Type() : op.getElement();
    return addressOf(b, loc, op.getPointer(), element, op.getIndex());
  }
  Value lower(program::LoadOp op) {
    auto load = b.create<LLVM::LoadOp>(loc, op.getType(), op.getPointer(), op.getAlignment());
    load.setInvariant(op.getInvariant());
    return load;
  }
  Value lower(program::MaskedLoadOp op) {
    return b.create<LLVM::MaskedLoadOp>(loc, op.getType(), op.getPointer(), op.getMask(),
                                        ValueRange{op.getOtherwise()}, op.getAlignment());
  }
  Value lower(program::GatherOp op) {
    Value places = addresses(op.getPointer(), op.getIndices(), op.getType());
    return b.create<LLVM::masked_gather>(loc, op.getType(), places, op.getMask(),
                                         ValueRange{op.getOtherwise()},
                                         b.getI32IntegerAttr(op.getAlignment()));
  }
  void lower(program::ScatterOp op) {
    Value places = addresses(op.getPointer(), op.getIndices(), op.getValue().getType());
    b.create<LLVM::masked_scatter>(loc, op.getValue(), places, op.getMask(),
                                   b.getI32IntegerAttr(op.getAlignment()));
  }
  void lower(program::CopyOp op) {
    if (op.getOverlapping())
      b.create<LLVM::MemmoveOp>(loc, op.getTarget(), op.getSource(), op.getBytes(), false);
    else
      b.create<LLVM::MemcpyOp>(loc, op.getTarget(), op.getSource(), op.getBytes(), false);
  }
  Value lower(program::ArrayOp op) {
    Value words = numberOf(b, loc, op.getWords());
    return b.create<LLVM::AllocaOp>(loc, pointerOf(b), b.getI64Type(), words);
  }
};
} // namespace

bool lowerMemory(OpBuilder &b, Operation *op) {
  MemoryOps ops{b, op->getLoc()};
  Location loc = op->getLoc();
  auto become = [&](auto made) { op->replaceAllUsesWith(ValueRange{made}); };
  return TypeSwitch<Operation *, bool>(op)
      .Case<program::AtOp, program::LoadOp, program::MaskedLoadOp, program::GatherOp,
            program::ArrayOp>([&](auto each) { return become(ops.lower(each)), true; })
      .Case<program::ScatterOp, program::CopyOp>([&](auto each) { return ops.lower(each), true; })
      .Case([&](program::StoreOp store) {
        b.create<LLVM::StoreOp>(loc, store.getValue(), store.getPointer(), store.getAlignment());
        return true;
      })
      .Case([&](program::MaskedStoreOp store) {
        b.create<LLVM::MaskedStoreOp>(loc, store.getValue(), store.getPointer(), store.getMask(),
                                      store.getAlignment());
        return true;
      })
      .Case([&](program::PrefetchOp fetch) { // for reading, into all caches, of data
        b.create<LLVM::Prefetch>(loc, fetch.getPointer(), /*rw=*/0, /*hint=*/3, /*cache=*/1);
        return true;
      })
      .Case(
          [&](program::NullOp) { return become(b.create<LLVM::ZeroOp>(loc, pointerOf(b))), true; })
      .Case([&](program::WordOp word) {
        become(b.create<LLVM::PtrToIntOp>(loc, b.getI64Type(), word.getPointer()).getResult());
        return true;
      })
      .Case([&](program::PointerOp pointer) {
        become(b.create<LLVM::IntToPtrOp>(loc, pointerOf(b), pointer.getWord()).getResult());
        return true;
      })
      .Case([&](program::FreezeOp freeze) {
        become(b.create<LLVM::FreezeOp>(loc, freeze.getX()).getResult());
        return true;
      })
      .Case([&](program::AddOp) { return ops.checked<LLVM::SAddWithOverflowOp>(op), true; })
      .Case([&](program::MulOp) { return ops.checked<LLVM::SMulWithOverflowOp>(op), true; })
      .Default(false);
}

} // namespace heddle::cpu
