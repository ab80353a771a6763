// WindowKernel: depthwise convolutions and pools over channels-last images, with their elementwise
// epilogue.
//
// Channels are in lanes, the window is unrolled, and a depthwise convolution keeps its weights in
// registers along a row of pixels (CODEGEN P3.4). Rows of the window that fall outside are left out
// by the loop's bounds; pixels near the left and right border test each tap, those between test
// none. Integers of 8 bits are summed as floats, where all sums fit 24 bits and so are exact.

#include "compiler/lower/Definitions.h"
#include "compiler/lower/Schedule.h"

using namespace mlir;

namespace heddle::lower {

namespace {
class WindowKernel {
public:
  WindowKernel(KernelBuilder &kernel, Block *group, const Schedule &schedule)
      : kernel(kernel), group(group), schedule(schedule) {}

  LogicalResult prepare();
  void emit();

private:
  bool areSumsExact();
  void packWeights();
  Value asFloats(Elements &e, Value lanes);
  void emitRow(Elements &e, Value image, Value row, Value channel);
  void emitPixels(Elements &e, Value image, Value row, Value channel, Value low, Value high,
                  bool checked, int64_t pixels, ArrayRef<Value> weights);
  Values accumulate(Elements &e, Value image, Value sourceRow, Value channel, Value column,
                    bool checked, ArrayRef<Value> weights, ValueRange sums);

  KernelBuilder &kernel;
  Block *group;
  const Schedule &schedule;
  Operation *root = nullptr;
  graph::ConvOp conv;
  graph::PoolOp pool;
  DimVector x, y;
  SmallVector<int64_t> window, strides, dilations, low, high;
  int64_t weightData = -1;
  Type element, sumType;             // of the image; of what is summed
  std::vector<float> integerWeights; // of integers
};
} // namespace

LogicalResult WindowKernel::prepare() {
  for (Operation &op : *group) {
    if (isa<graph::ConvOp, graph::PoolOp>(op)) {
      if (root)
        return failure();
      root = &op;
    } else if (!op.hasTrait<graph::Elementwise>() &&
               !isa<graph::BroadcastOp, graph::ConstantOp, graph::YieldOp>(op)) {
      return failure();
    }
  }
  if (!root)
    return failure();
  conv = dyn_cast<graph::ConvOp>(root);
  pool = dyn_cast<graph::PoolOp>(root);
  Value input = root->getOperand(0);
  Operation *producer = input.getDefiningOp();
  element = graph::elementOf(input);
  x = graph::dimsOf(input);
  y = graph::dimsOf(root->getResult(0));
  sumType = conv ? Type(Float32Type::get(element.getContext())) : element;
  bool isByte = element.isInteger(8) && !graph::isBits(element) &&
                (conv ? graph::elementOf(conv.getResult()).isInteger(32) : pool.getKind() == "max");
  bool isImage =
      x.size() == 4 && (element.isF32() || isByte) && !(producer && producer->getBlock() == group);
  if (!isImage)
    return failure();
  auto assign = [&](auto op) {
    strides.assign(op.getStrides().begin(), op.getStrides().end());
    dilations.assign(op.getDilations().begin(), op.getDilations().end());
    low.assign(op.getLow().begin(), op.getLow().end());
    high.assign(op.getHigh().begin(), op.getHigh().end());
    return op.getChannelsLast();
  };
  if (conv) {
    auto filters = graph::dimsOf(conv.getW());
    bool isDepthwise = filters[1].isConstant(1) && filters[0].isConstant(conv.getGroups()) &&
                       conv.getW().getDefiningOp<graph::ConstantOp>();
    if (!isDepthwise || !assign(conv))
      return failure();
    window = {*filters[2].constant(), *filters[3].constant()};
    if (isByte && !areSumsExact())
      return failure();
  } else {
    if (!assign(pool) || (pool.getCeilMode() && pool.getKind() != "max") || pool.getCountPadding())
      return failure();
    window.assign(pool.getWindow().begin(), pool.getWindow().end());
  }
  for (Value output : outputsOf(group))
    if (graph::dimsOf(output) != y)
      return failure();
  return window[0] * window[1] > 64 ? failure() : success();
}

/// Reads integer weights: whether no sum of products with 8 bits leaves the integers of an f32.
bool WindowKernel::areSumsExact() {
  constexpr int64_t kExact = 1 << 24, kMostOfImage = 255;
  auto numbers = graph::constantIntegers(conv.getW());
  if (!numbers)
    return false;
  int64_t largest = 0;
  for (int64_t number : *numbers)
    largest = std::max(largest, std::abs(number));
  integerWeights.assign(numbers->begin(), numbers->end());
  return largest * kMostOfImage * window[0] * window[1] <= kExact;
}

Value WindowKernel::asFloats(Elements &e, Value lanes) {
  if (element == sumType)
    return lanes;
  Code &code = kernel.code();
  Value wide = widen(e, lanes, code.b.getI32Type(), element.isUnsignedInteger());
  Type floats = Code::isVector(wide) ? Type(code.vectorOf(sumType)) : sumType;
  return code.b.create<arith::SIToFPOp>(code.loc, floats, wide);
}

/// [channels, 1, height, width] -> [height, width, channels], so that lanes read neighbours.
void WindowKernel::packWeights() {
  std::vector<char> storage;
  ArrayRef<char> bytes =
      graph::constantBytes(conv.getW().getDefiningOp<graph::ConstantOp>().getValue(), storage);
  if (element != sumType)
    bytes = {reinterpret_cast<const char *>(integerWeights.data()),
             integerWeights.size() * sizeof(float)};
  int64_t taps = window[0] * window[1], channels = conv.getGroups(), lanes = kernel.machine.lanes;
  // Whole vectors may be read past the last channel.
  std::vector<char> packed((taps * channels + lanes) * 4, 0);
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t channel = 0; channel < channels; ++channel)
      std::memcpy(packed.data() + (tap * channels + channel) * 4,
                  bytes.data() + (channel * taps + tap) * 4, 4);
  weightData = kernel.addData(std::move(packed));
}

/// One row of the window over the pixels of a tile; `weights` are those of this row.
Values WindowKernel::accumulate(Elements &e, Value image, Value sourceRow, Value channel,
                                Value column, bool checked, ArrayRef<Value> weights,
                                ValueRange sums) {
  Code &code = kernel.code();
  Value input = root->getOperand(0), width = kernel.dim(x[2]);
  Value rowStart = code.add(
      code.mul(code.add(code.mul(image, kernel.dim(x[1])), sourceRow), kernel.dim(x[2] * x[3])),
      channel);
  Values next(sums);
  int64_t pixels = conv ? sums.size() : sums.size() / (pool.getKind() == "max" ? 1 : 2);
  std::map<std::pair<int64_t, bool>, Value> loaded; // neighbouring pixels share taps
  for (int64_t p = 0; p < pixels; ++p)
    for (int64_t k = 0; k < window[1]; ++k) {
      int64_t shift = p * strides[1] + k * dilations[1] - low[1];
      Value at = code.add(code.mul(column, code.number(strides[1])), code.number(shift));
      auto visit = [&](Value old, Value oldCount) {
        Value &value = loaded[{shift, checked}];
        if (!value || checked)
          value = asFloats(e, code.loadLanes(element, kernel.pointer(input),
                                             code.add(rowStart, code.mul(at, kernel.dim(x[3]))),
                                             e.mask));
        Values result;
        if (conv)
          result.push_back(code.b.create<math::FmaOp>(code.loc, value, weights[k], old));
        else
          result.push_back(combine(code, root, old, value));
        if (oldCount)
          result.push_back(code.b.create<arith::AddFOp>(code.loc, oldCount,
                                                        code.spread(code.constantOf(sumType, 1))));
        return result;
      };
      bool counts = pool && pool.getKind() != "max";
      Value old = next[p], oldCount = counts ? next[pixels + p] : Value();
      Values result;
      if (checked) {
        SmallVector<Type> types(counts ? 2 : 1, old.getType());
        result = code.choose(
            inside(e, e.uniform(at), width), types, [&] { return visit(old, oldCount); },
            [&] { return counts ? Values{old, oldCount} : Values{old}; });
      } else {
        result = visit(old, oldCount);
      }
      next[p] = result[0];
      if (counts)
        next[pixels + p] = result[1];
    }
  return next;
}

void WindowKernel::emitPixels(Elements &e, Value image, Value row, Value channel, Value from,
                              Value to, bool checked, int64_t pixels, ArrayRef<Value> weights) {
  Code &code = kernel.code();
  bool counts = pool && pool.getKind() != "max";
  code.forEach(from, to, pixels, [&](Value column) {
    Elements::Scope scope(e);
    Value start = code.spread(neutral(code, root, sumType));
    Values sums(pixels, start);
    if (counts)
      sums.append(pixels, code.spread(code.constantOf(sumType, 0)));
    Value topRow = code.sub(code.mul(row, code.number(strides[0])), code.number(low[0]));
    for (int64_t tap = 0; tap < window[0]; ++tap) {
      Value sourceRow = code.add(topRow, code.number(tap * dilations[0]));
      Value isInside = low[0] == 0 && high[0] == 0 && !(pool && pool.getCeilMode())
                           ? code.integerOf(code.b.getI1Type(), 1)
                           : inside(e, e.uniform(sourceRow), kernel.dim(x[1]));
      SmallVector<Type> types;
      for (Value sum : sums)
        types.push_back(sum.getType());
      ArrayRef<Value> ofRow = conv ? weights.slice(tap * window[1], window[1]) : weights;
      sums = code.choose(
          isInside, types,
          [&] { return accumulate(e, image, sourceRow, channel, column, checked, ofRow, sums); },
          [&] { return sums; });
    }
    for (int64_t p = 0; p < pixels; ++p) {
      Elements::Scope scope(e);
      Value sum = sums[p];
      if (counts)
        sum = code.b.create<arith::DivFOp>(code.loc, sum, sums[pixels + p]);
      if (element != sumType)
        sum = code.b.create<arith::FPToSIOp>(code.loc, code.vectorOf(code.b.getI32Type()), sum);
      e.bind(root->getResult(0), [sum](ArrayRef<Index>) { return sum; });
      Indices place{e.uniform(image),
                    e.uniform(row),
                    e.uniform(code.add(column, code.number(p))),
                    {channel, 1, {}}};
      for (Value output : outputsOf(group))
        e.store(output, e.at(output, place), place);
      e.unbind(root->getResult(0));
    }
  });
}

void WindowKernel::emitRow(Elements &e, Value image, Value row, Value channel) {
  Code &code = kernel.code();
  Values weights;
  if (conv)
    for (int64_t tap = 0; tap < window[0] * window[1]; ++tap)
      weights.push_back(
          code.loadLanes(sumType, kernel.data(weightData),
                         code.add(code.mul(code.number(tap), kernel.dim(x[3])), channel), {}));
  int64_t pixels = schedule.knob("pixels", 4);
  // Columns whose whole window is inside: [left, right), rounded to whole tiles.
  int64_t left = (low[1] + strides[1] - 1) / strides[1];
  int64_t reach = (window[1] - 1) * dilations[1] - low[1];
  Dim insideEnd = Dim::max((x[2] - Dim(reach + 1)).floorDiv(Dim(strides[1])) + Dim(1), Dim(0));
  Value width = kernel.dim(y[2]);
  Value first = code.min(code.number(left), width);
  Value end = code.max(code.min(kernel.dim(insideEnd), width), first);
  Value tiled = code.add(
      first, code.mul(code.div(code.sub(end, first), code.number(pixels)), code.number(pixels)));
  emitPixels(e, image, row, channel, code.number(0), first, true, 1, weights);
  emitPixels(e, image, row, channel, first, tiled, false, pixels, weights);
  emitPixels(e, image, row, channel, tiled, width, true, 1, weights);
}

void WindowKernel::emit() {
  if (conv)
    packWeights();
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  Dim tasks = y[0] * y[1];
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value row = code.rem(task, kernel.dim(y[1])), image = code.div(task, kernel.dim(y[1]));
    forLanes(e, code.number(0), kernel.dim(x[3]),
             [&](Value channel) { emitRow(e, image, row, channel); });
  });
  Dim work = graph::elementCount(y) * Dim(window[0] * window[1]);
  kernel.endPhase(tasks, work.floorDiv(Dim(4)));
}

LogicalResult emitWindow(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<WindowKernel>(kernel, group, schedule);
}

} // namespace heddle::lower
