// Random: a counter-based generator spelt with integer ops: element i of a tensor is a hash of i
// and the seed. One step of the hash is "lowbias32" (Chris Wellons, hash-prospector); two steps are
// taken, with the seed mixed in before each.
//
// The seed is the node's, which its attribute or the name of its result decides, and the run's: two
// nodes differ, and so do two runs, unless they are given one seed.

#include "compiler/onnx/ops/training/Random.h"

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static Type u32(Emitter &e) { return IntegerType::get(e.context(), 32, IntegerType::Unsigned); }
static Value word(Emitter &e, uint32_t value) { return e.integerScalar(u32(e), value); }

static Value scramble(Emitter &e, Value x) {
  auto fold = [&](Value x, uint32_t bits) {
    return e.binary<BitXorOp>(x, e.binary<ShiftRightOp>(x, word(e, bits)));
  };
  x = e.mul(fold(x, 16), word(e, 0x7feb352du));
  x = e.mul(fold(x, 15), word(e, 0x846ca68bu));
  return fold(x, 16);
}

static uint32_t seedOfNode(Node &n) {
  uint32_t seed = 2166136261u; // FNV-1a
  if (n.hasAttribute("seed")) {
    float given = static_cast<float>(n.attribute("seed")->has_i() ? n.getInt("seed", 0)
                                                                  : n.getFloat("seed", 0));
    std::memcpy(&seed, &given, sizeof(seed));
    return seed;
  }
  for (unsigned char c : n.message.output(0))
    seed = (seed ^ c) * 16777619u;
  return seed;
}

/// The hash of the run's seed is 0 for 0.
Value seedOf(Node &n) {
  Value run = n.runSeed();
  Value high = n.binary<ShiftRightOp>(run, n.integerScalar(elementOf(run), 32));
  Value ofRun = scramble(n, n.add(scramble(n, n.cast(high, u32(n))), n.cast(run, u32(n))));
  return n.binary<BitXorOp>(word(n, seedOfNode(n)), ofRun);
}

static Value bitsOf(Emitter &e, ArrayRef<Dim> dims, Value seed, uint32_t stream) {
  Value index = e.cast(e.reshape(countUp(e, elementCount(dims), e.i64()), dims), u32(e));
  Value first = scramble(e, e.binary<BitXorOp>(index, seed));
  Value second = e.mul(e.add(seed, word(e, stream)), word(e, 0x9e3779b9u));
  return scramble(e, e.add(first, e.add(second, word(e, stream))));
}

Value uniform(Emitter &e, ArrayRef<Dim> dims, Type element, Value seed, uint32_t stream) {
  auto top = [&](uint32_t number, uint32_t dropped) {
    Value bits = bitsOf(e, dims, seed, 2 * stream + number);
    return e.cast(e.binary<ShiftRightOp>(bits, word(e, dropped)), element);
  };
  if (element.isF64()) // 27 + 26 bits
    return e.mul(e.add(e.mul(top(0, 5), 67108864.0), top(1, 6)), std::ldexp(1.0, -53));
  return e.mul(top(0, 8), std::ldexp(1.0, -24));
}

Value normal(Emitter &e, ArrayRef<Dim> dims, Type element, Value seed) {
  Value radius = e.sub(e.scalar(element, 1), uniform(e, dims, element, seed, 0)); // (0, 1]
  radius = e.unary<SqrtOp>(e.mul(e.unary<LogOp>(radius), -2));
  return e.mul(radius, e.unary<CosOp>(e.mul(uniform(e, dims, element, seed, 1), 2 * M_PI)));
}

static Type drawType(Emitter &e, Type element) { return element.isF64() ? element : e.f32(); }

static void setUniform(Node &n, ArrayRef<Dim> dims, Type element) {
  double low = n.getFloat("low", 0), high = n.getFloat("high", 1);
  Value draw = uniform(n, dims, drawType(n, element), seedOf(n), 0);
  n.set(n.cast(n.add(n.mul(draw, high - low), low), element));
}

static void setNormal(Node &n, ArrayRef<Dim> dims, Type element) {
  Value draw = normal(n, dims, drawType(n, element), seedOf(n));
  n.set(n.cast(n.add(n.mul(draw, n.getFloat("scale", 1)), n.getFloat("mean", 0)), element));
}

static DimVector shapeOf(Node &n) {
  Ints shape = n.getInts("shape", {});
  for (int64_t size : shape)
    if (size < 0)
      refuse("'shape' has the entry " + Twine(size) + ", but sizes cannot be negative");
  return DimVector(shape.begin(), shape.end());
}

using Draw = void (*)(Node &, ArrayRef<Dim>, Type);
template <Draw draw> static void ofShape(Node &n) {
  draw(n, shapeOf(n), n.getElement("dtype", n.f32()));
}
template <Draw draw> static void likeInput(Node &n) {
  draw(n, dimsOf(n.in(0)), n.getElement("dtype", elementOf(n.in(0))));
}

static void importBernoulli(Node &n) {
  Type draw = drawType(n, elementOf(n.in(0)));
  Value probability = n.cast(n.in(0), draw);
  Value isOne = n.compare<LessOp>(uniform(n, dimsOf(probability), draw, seedOf(n), 0), probability);
  n.set(n.cast(isOne, n.getElement("dtype", elementOf(n.in(0)))));
}

/// The class at which the running sum of probabilities passes a uniform number.
static void importMultinomial(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  int64_t samples = n.getInt("sample_size", 1);
  if (dims.size() != 2 || samples < 0)
    refuse("the input must have rank 2, and 'sample_size' cannot be negative");
  Type draw = drawType(n, elementOf(x));
  Value shares = n.softmax(n.cast(x, draw), {1});
  Value sums = n.infer<CumsumOp>(
      shares, {n.integer("axis", 1), n.flag("exclusive", false), n.flag("reverse", false)});
  Value place = uniform(n, {dims[0], Dim(samples)}, draw, seedOf(n), 0);
  Value isPassed = n.compare<LessEqualOp>(n.unsqueeze(sums, {1}), n.unsqueeze(place, {2}));
  Value index = n.reduce<ReduceSumOp>(n.cast(isPassed, n.i64()), {2}, false);
  index = n.binary<MinOp>(index, sizeNumber(n, dims[1] - Dim(1), n.i64()));
  n.set(n.cast(index, n.getElement("dtype", n.i32())));
}

/// Outside of training nothing is dropped. Whether the run trains, it may be told by operand 2,
/// unless the import decides it.
static void importDropout(Node &n) {
  Value x = n.in(0);
  Type element = elementOf(x), draw = drawType(n, element);
  Value training = n.reader.options.drops ? n.integerScalar(n.i1(), 1)
                   : n.has(2)             ? n.reshape(n.in(2), {})
                                          : Value();
  auto known = training ? shapeValue(training) : std::nullopt;
  if (!training || (known && (*known)[0].isConstant(0))) {
    n.set(x);
    if (n.wants(1))
      n.set(1, n.full(dimsOf(x), n.opset < 10 ? element : n.i1(), 1));
    return;
  }
  Value one = n.scalar(draw, 1), zero = n.scalar(draw, 0);
  Value ratio =
      n.has(1) ? n.cast(n.reshape(n.in(1), {}), draw) : n.scalar(draw, n.getFloat("ratio", 0.5));
  ratio = n.select(training, ratio, zero);
  Value keeps = n.compare<GreaterEqualOp>(uniform(n, dimsOf(x), draw, seedOf(n), 0), ratio);
  Value scaled = n.mul(n.cast(x, draw), n.div(one, n.sub(one, ratio)));
  Value isWhole = n.compare<EqualOp>(ratio, zero);
  Value kept = n.select(keeps, scaled, zero);
  n.set(n.select(isWhole, x, n.cast(kept, element)));
  if (n.wants(1))
    n.set(1, keeps);
}

OpRows randomRows() {
  static constexpr const char *kRemark =
      "equal seeds of node and session give equal numbers on every machine; each run draws anew";
  static const OpRow rows[] = {
      {"RandomUniform", "", 1, 27, ofShape<setUniform>, false, kRemark},
      {"RandomNormal", "", 1, 27, ofShape<setNormal>, false, kRemark},
      {"RandomUniformLike", "", 1, 27, likeInput<setUniform>, false, kRemark},
      {"RandomNormalLike", "", 1, 27, likeInput<setNormal>, false, kRemark},
      {"Bernoulli", "", 15, 27, importBernoulli, false, kRemark},
      {"Multinomial", "", 7, 27, importMultinomial, false, kRemark},
      {"Dropout", "", 1, 27, importDropout, false, kRemark},
  };
  return rows;
}

} // namespace heddle::onnx
