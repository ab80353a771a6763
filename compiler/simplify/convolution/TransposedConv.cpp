// TransposedConv: conv_transpose(x, w) = depth_to_space(conv(x, w')) for a stride s.
//
// With o + low = s q + r and k = s t + r, y[o] = sum over k of x[(o + low - k) / s] w[k] becomes
// y'[q, r] = sum over t of x[q - t] w[s t + r]: a convolution of window T = ceil(K / s) with s
// filters for each one of w, taps beyond the window being 0. Interleaving the phases r and cropping
// `low` gives y.
//
// Ops after it that take each element by itself come before the interleaving: the convolution has
// them on what it sums, and what is interleaved is of 8 bits where they quantise.
//
// Before   %y = graph.conv_transpose %x, %w {strides = 2, 2 ...} : n h w c -> n 2h 2w o; relu
// After    %p = graph.conv %x, %w' : n h w c -> n q q (2 2 o); relu, reshape, transpose, reshape,
//          slice
// Filters that are known only at run time, those of groups, and convolutions without strides have a
// convolution for each phase instead (Phases.h).
//
// Needs    channels last, so that a phase is a run of channels, and a window of known sizes. Leaves
//          alone those of dilations and strides both.

#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rewriting.h"
#include "compiler/simplify/convolution/Phases.h"

using namespace mlir;

namespace heddle::simplify {

#define GEN_PASS_DEF_TRANSPOSEDCONVPASS
#include "compiler/simplify/Passes.h.inc"

using graph::Dim;
using graph::dimsOf;
using graph::DimVector;
using graph::rankOf;

namespace {

struct TransposedConvPass : impl::TransposedConvPassBase<TransposedConvPass> {
  void runOnOperation() override {
    SmallVector<graph::ConvTransposeOp> ops;
    getOperation().walk([&](graph::ConvTransposeOp op) { ops.push_back(op); });
    for (graph::ConvTransposeOp op : ops)
      rewrite(op);
  }

private:
  static void rewrite(graph::ConvTransposeOp op) {
    if (!op.getChannelsLast())
      return;
    OpBuilder builder(op);
    bool isForEach = !hasPhases(op) || !isConstant(op.getW()) || hasNoStride(op);
    if (Value result = isForEach ? convolvePhases(builder, op) : Value()) {
      op->replaceAllUsesWith(ValueRange(result));
      op->erase();
      return;
    }
    if (hasPhases(op))
      convolveAllPhases(builder, op);
  }

  static void convolveAllPhases(OpBuilder &builder, graph::ConvTransposeOp op) {
    ArrayRef<int64_t> window = cast<RankedTensorType>(op.getW().getType()).getShape().drop_front(2);
    if (ShapedType::isDynamicShape(window))
      return;
    size_t spatial = window.size();
    SmallVector<int64_t> taps(spatial);
    for (size_t d = 0; d < spatial; ++d) {
      int64_t beyond = std::max<int64_t>(op.getOutputPadding()[d] - op.getHigh()[d], 0);
      taps[d] = llvm::divideCeil(window[d] + beyond, op.getStrides()[d]);
    }
    Value phases = convolve(builder, op, taps, phaseFilters(builder, op, taps));
    SmallVector<Operation *> moved = elementsBehind(op);
    for (Operation *each : ArrayRef(moved).drop_front()) {
      builder.setInsertionPoint(each);
      phases = ofPhases(builder, each, phases);
    }
    moved.back()->replaceAllUsesWith(ValueRange(interleave(builder, op, phases)));
    for (Operation *each : llvm::reverse(moved))
      each->erase();
  }

  static bool hasNoStride(graph::ConvTransposeOp op) {
    return llvm::all_of(op.getStrides(), [](int64_t stride) { return stride == 1; });
  }

  /// `op`, and the ops after it that take each element by itself, up to where elements are
  /// smallest.
  static SmallVector<Operation *> elementsBehind(Operation *op) {
    SmallVector<Operation *> ops;
    auto bits = [](Operation *op) {
      return graph::elementOf(op->getResult(0)).getIntOrFloatBitWidth();
    };
    size_t count = 1;
    for (; op; op = nextOfElements(op)) {
      ops.push_back(op);
      if (bits(op) <= bits(ops[count - 1]))
        count = ops.size();
    }
    ops.truncate(count);
    return ops;
  }

  /// The only reader of `op`, where it takes each element by itself.
  static Operation *nextOfElements(Operation *op) {
    Value value = op->getResult(0);
    Operation *next = value.hasOneUse() ? *value.user_begin() : nullptr;
    bool isNext = next && next->getBlock() == op->getBlock() &&
                  next->hasTrait<graph::Elementwise>() && next->getOperand(0) == value &&
                  llvm::all_of(next->getOperands().drop_front(), isOfChannels);
    return isNext ? next : nullptr;
  }

  /// Whether it is one number, or one per channel.
  static bool isOfChannels(Value value) {
    if (splatOf(value))
      return true;
    auto broadcast = value.getDefiningOp<graph::BroadcastOp>();
    if (!broadcast)
      return false;
    DimVector sizes = graph::dimsOf(broadcast.getX());
    return sizes.empty() || llvm::all_of(ArrayRef<Dim>(sizes).drop_back(),
                                         [](const Dim &size) { return size.isConstant(1); });
  }

  /// The op with the phases in place of its operand.
  static Value ofPhases(OpBuilder &builder, Operation *op, Value phases) {
    DimVector sizes = graph::dimsOf(phases);
    SmallVector<Value> operands{phases};
    for (Value beside : op->getOperands().drop_front()) {
      if (auto number = splatOf(beside)) {
        operands.push_back(Build(builder, op).full(sizes, graph::elementOf(beside), *number));
        continue;
      }
      Value one = beside.getDefiningOp<graph::BroadcastOp>().getX();
      one = Build(builder, one).withoutOnes(one);
      if (rankOf(one) == 1) {
        int64_t count = *sizes.back().constant() / *dimsOf(one)[0].constant();
        one = builder.create<graph::ConcatOp>(op->getLoc(), SmallVector<Value>(count, one), 0);
      }
      operands.push_back(Build(builder, one).along(one, sizes.size() - 1, sizes));
    }
    Type element = graph::elementOf(op->getResult(0));
    Type type = graph::tensorOf(builder.getContext(), sizes, element);
    return rebuild(builder, op, operands, type)->getResult(0);
  }

  /// [c, o, window...] -> [(phases..., o), c, taps...]. The place s t + r of the window, s being
  /// its stride, is tap t from the end of phase r: a convolution walks its window backwards.
  static Value phaseFilters(OpBuilder &builder, graph::ConvTransposeOp op, ArrayRef<int64_t> taps) {
    MLIRContext *context = builder.getContext();
    Location loc = op.getLoc();
    Type element = graph::elementOf(op.getW());
    DimVector w = dimsOf(op.getW());
    ArrayRef<int64_t> strides = op.getStrides();
    int64_t spatial = taps.size();
    DimVector none(w.size(), Dim(0)), beyond(none), apart{w[0], w[1]}, starts{Dim(0), Dim(0)}, made;
    SmallVector<int64_t> steps{1, 1}, phases, ofTaps;
    Dim filters = w[1];
    for (int64_t d = 0; d < spatial; ++d) {
      beyond[d + 2] = Dim(strides[d] * taps[d]) - w[d + 2];
      apart.append({Dim(taps[d]), Dim(strides[d])});
      starts.append({Dim(taps[d] - 1), Dim(0)});
      steps.append({-1, 1});
      ofTaps.push_back(2 + 2 * d);
      phases.push_back(3 + 2 * d);
      filters = filters * Dim(strides[d]);
    }
    SmallVector<int64_t> permutation(phases);
    permutation.append({1, 0});
    permutation.append(ofTaps);
    made.append({filters, w[0]});
    for (int64_t count : taps)
      made.push_back(Dim(count));
    Value value = op.getW();
    if (beyond != none)
      value = builder.create<graph::PadOp>(loc, value, Build(builder, loc).scalar(element, 0),
                                           graph::dimsAttr(context, none),
                                           graph::dimsAttr(context, beyond));
    value = Build(builder, loc).reshape(value, apart);
    value = builder.create<graph::SliceOp>(loc, graph::tensorOf(context, apart, element), value,
                                           graph::dimsAttr(context, starts),
                                           builder.getDenseI64ArrayAttr(steps));
    return Build(builder, loc).reshape(Build(builder, loc).transpose(value, permutation), made);
  }

  static Value convolve(OpBuilder &builder, graph::ConvTransposeOp op, ArrayRef<int64_t> taps,
                        Value filters) {
    DimVector x = graph::dimsOf(op.getX()), result(x);
    SmallVector<int64_t> border, ones(taps.size(), 1);
    for (size_t d = 0; d < taps.size(); ++d) {
      border.push_back(taps[d] - 1);
      result[d + 1] = x[d + 1] + Dim(taps[d] - 1);
    }
    result.back() = graph::dimsOf(filters)[0];
    return builder.create<graph::ConvOp>(
        op.getLoc(), graph::tensorOf(builder.getContext(), result, graph::elementOf(op.getX())),
        op.getX(), filters, builder.getDenseI64ArrayAttr(ones), builder.getDenseI64ArrayAttr(ones),
        builder.getDenseI64ArrayAttr(border), builder.getDenseI64ArrayAttr(border),
        builder.getI64IntegerAttr(1), builder.getBoolAttr(true));
  }

  /// n q... (s... o) -> n (q s)... o, cropped to the result.
  static Value interleave(OpBuilder &builder, graph::ConvTransposeOp op, Value phases) {
    MLIRContext *context = builder.getContext();
    Location loc = op.getLoc();
    Type element = graph::elementOf(phases);
    DimVector from = graph::dimsOf(phases), to = graph::dimsOf(op.getResult());
    ArrayRef<int64_t> strides = op.getStrides();
    int64_t spatial = strides.size();
    DimVector apart(from.begin(), from.end() - 1), together{from[0]};
    for (int64_t stride : strides)
      apart.push_back(Dim(stride));
    apart.push_back(to.back());
    SmallVector<int64_t> permutation{0};
    for (int64_t d = 0; d < spatial; ++d) {
      permutation.append({1 + d, 1 + spatial + d});
      together.push_back(from[1 + d] * Dim(strides[d]));
    }
    permutation.push_back(1 + 2 * spatial);
    together.push_back(to.back());
    Value value =
        builder.create<graph::ReshapeOp>(loc, graph::tensorOf(context, apart, element), phases);
    value =
        builder.create<graph::TransposeOp>(loc, value, builder.getDenseI64ArrayAttr(permutation));
    value =
        builder.create<graph::ReshapeOp>(loc, graph::tensorOf(context, together, element), value);
    DimVector starts{Dim(0)};
    for (int64_t low : op.getLow())
      starts.push_back(Dim(low));
    starts.push_back(Dim(0));
    if (together == to && llvm::all_of(op.getLow(), [](int64_t low) { return low == 0; }))
      return value;
    SmallVector<int64_t> steps(to.size(), 1);
    return builder.create<graph::SliceOp>(loc, graph::tensorOf(context, to, element), value,
                                          graph::dimsAttr(context, starts),
                                          builder.getDenseI64ArrayAttr(steps));
  }
};

} // namespace

} // namespace heddle::simplify
