// Vectors: ops of vector, whose values are lanes in row-major order.

#include "compiler/target/testing/interpreter/Interpreter.h"
#include "compiler/target/testing/interpreter/Numbers.h"

using namespace mlir;

namespace heddle::interpreter {

/// One lane, or as many as the result has.
static void broadcast(Run &run, Activation &activation, const Step &step) {
  const Bits &x = activation.values[step.operands[0]];
  if (x.size() != 1 && x.size() != step.lanes)
    return run.stop(step, "lanes of several rows are not interpreted");
  activation.values[step.results[0]] = x.size() == 1 ? Bits(step.lanes, x[0]) : Bits(x);
}

/// Values of the operands, and where the lanes begin that a position names; 1 dimension.
template <typename Op>
static std::optional<size_t> positionOf(Activation &activation, const Step &step, Op op,
                                        unsigned dynamic) {
  if (op.getNumIndices() != 1)
    return std::nullopt;
  return op.hasDynamicPosition() ? activation.values[step.operands[dynamic]][0]
                                 : op.getStaticPosition()[0];
}

static void extract(Run &run, Activation &activation, const Step &step) {
  auto op = cast<vector::ExtractOp>(step.op);
  const Bits &x = activation.values[step.operands[0]];
  auto place = positionOf(activation, step, op, 1);
  if (!place || op.getSourceVectorType().getRank() != 1 || *place >= x.size())
    return run.stop(step, "only a lane of a vector of one dimension is interpreted");
  activation.values[step.results[0]] = Bits{x[*place]};
}

static void insert(Run &run, Activation &activation, const Step &step) {
  auto op = cast<vector::InsertOp>(step.op);
  const Bits &lane = activation.values[step.operands[0]];
  Bits whole = activation.values[step.operands[1]];
  auto place = positionOf(activation, step, op, 2);
  if (!place || op.getDestVectorType().getRank() != 1 || *place >= whole.size())
    return run.stop(step, "only a lane of a vector of one dimension is interpreted");
  whole[*place] = lane[0];
  activation.values[step.results[0]] = whole;
}

static size_t offsetOf(ArrayAttr offsets) { return cast<IntegerAttr>(offsets[0]).getInt(); }

static void extractSlice(Run &run, Activation &activation, const Step &step) {
  auto op = cast<vector::ExtractStridedSliceOp>(step.op);
  if (op.getSourceVectorType().getRank() != 1)
    return run.stop(step, "only a part of a vector of one dimension is interpreted");
  const Bits &x = activation.values[step.operands[0]];
  auto part = ArrayRef(x).slice(offsetOf(op.getOffsets()), step.lanes);
  activation.values[step.results[0]] = Bits(part);
}

static void insertSlice(Run &run, Activation &activation, const Step &step) {
  auto op = cast<vector::InsertStridedSliceOp>(step.op);
  if (op.getDestVectorType().getRank() != 1)
    return run.stop(step, "only a part of a vector of one dimension is interpreted");
  const Bits &part = activation.values[step.operands[0]];
  Bits whole = activation.values[step.operands[1]];
  llvm::copy(part, whole.begin() + offsetOf(op.getOffsets()));
  activation.values[step.results[0]] = whole;
}

static void shuffle(Run &, Activation &activation, const Step &step) {
  const Bits &x = activation.values[step.operands[0]], &y = activation.values[step.operands[1]];
  Bits &result = activation.values[step.results[0]];
  result.clear();
  for (Attribute each : cast<vector::ShuffleOp>(step.op).getMask()) {
    size_t place = cast<IntegerAttr>(each).getInt();
    result.push_back(place < x.size() ? x[place] : y[place - x.size()]);
  }
}

/// Shows the bits in lanes of another width, the lowest first.
static void bitcast(Run &run, Activation &activation, const Step &step) {
  const Bits &x = activation.values[step.operands[0]];
  if (step.width % 8 || step.resultWidth % 8)
    return run.stop(step, "only lanes of whole bytes are interpreted");
  std::vector<uint8_t> bytes;
  for (uint64_t lane : x)
    for (unsigned at = 0; at < step.width; at += 8)
      bytes.push_back(lane >> at);
  Bits &result = activation.values[step.results[0]];
  result.assign(step.lanes, 0);
  for (size_t i = 0; i < bytes.size(); ++i)
    result[i / (step.resultWidth / 8)] |= uint64_t(bytes[i]) << (i % (step.resultWidth / 8) * 8);
}

static uint64_t combined(vector::CombiningKind kind, uint64_t x, uint64_t y, Type element) {
  using Kind = vector::CombiningKind;
  unsigned width = widthOf(element);
  bool isReal = isa<FloatType>(element);
  int64_t a = withSign(x, width), b = withSign(y, width);
  auto real = [&](auto function) {
    return bitsOf(function(realOf(x, element), realOf(y, element)), element);
  };
  switch (kind) {
  case Kind::ADD:
    return isReal ? real([](double x, double y) { return x + y; }) : narrowed(x + y, width);
  case Kind::MUL:
    return isReal ? real([](double x, double y) { return x * y; }) : narrowed(x * y, width);
  case Kind::AND:
    return x & y;
  case Kind::OR:
    return x | y;
  case Kind::XOR:
    return x ^ y;
  case Kind::MINUI:
    return std::min(x, y);
  case Kind::MAXUI:
    return std::max(x, y);
  case Kind::MINSI:
    return a < b ? x : y;
  case Kind::MAXSI:
    return a > b ? x : y;
  case Kind::MINNUMF:
    return real([](double x, double y) { return std::fmin(x, y); });
  case Kind::MAXNUMF:
    return real([](double x, double y) { return std::fmax(x, y); });
  case Kind::MINIMUMF:
    return real([](double x, double y) { return std::isnan(x) || x < y ? x : y; });
  case Kind::MAXIMUMF:
    return real([](double x, double y) { return std::isnan(x) || x > y ? x : y; });
  }
  llvm_unreachable("all kinds are above");
}

static void reduce(Run &, Activation &activation, const Step &step) {
  auto op = cast<vector::ReductionOp>(step.op);
  ArrayRef<uint64_t> lanes = activation.values[step.operands[0]];
  uint64_t result = op.getAcc() ? activation.values[step.operands[1]][0] : lanes[0];
  for (uint64_t lane : op.getAcc() ? lanes : lanes.drop_front())
    result = combined(op.getKind(), result, lane, step.element);
  activation.values[step.results[0]] = Bits{result};
}

void addVectors(Actions &actions) {
  actions["vector.broadcast"] = actions["vector.splat"] = broadcast;
  actions["vector.extract"] = extract;
  actions["vector.insert"] = insert;
  actions["vector.extract_strided_slice"] = extractSlice;
  actions["vector.insert_strided_slice"] = insertSlice;
  actions["vector.shuffle"] = shuffle;
  actions["vector.bitcast"] = bitcast;
  actions["vector.shape_cast"] = pass;
  actions["vector.reduction"] = reduce;
}

} // namespace heddle::interpreter
