// Recurrent: LSTM, GRU and RNN as one product of all inputs, then a scan over time.
//
// The product of the inputs with W needs no state, so it is done for all steps at once; the body of
// the scan keeps only the product with R. A direction is read into Direction, run, and put beside
// the other.

#include "compiler/onnx/Agreement.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Activations.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/Quantization.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
using Activation = std::function<Value(Emitter &, Value)>;

struct Direction {
  Value inputs;        // [seq, batch, gates * hidden]: x * W + biases
  Value recurrence;    // [hidden, gates * hidden]
  Value scale, zero;   // quantisation of an integer recurrence
  Value recurrentBias; // [hidden] of GRU's hidden gate, where it is reset with the product
  Value peepholes;     // [3 * hidden], LSTM
  SmallVector<Value> states;
  bool isReverse = false;
  SmallVector<Activation> activations;
};

/// State shared by all directions of one node.
struct Layer {
  Node &n;
  int64_t gates, hidden;
  Value x; // [seq, batch, input]
  Value lengths;
  Dim sequence, batch;
  double clip;
  bool isQuantized = false; // W and R are integers, [directions, input or hidden, gates * hidden]
};
} // namespace

/// Activations take their alpha and beta in order from the two lists.
static Activation readActivation(StringRef name, ArrayRef<double> &alphas,
                                 ArrayRef<double> &betas) {
  auto take = [](ArrayRef<double> &list, double otherwise) {
    if (list.empty())
      return otherwise;
    double value = list.front();
    list = list.drop_front();
    return value;
  };
  std::string key = name.lower();
  if (key == "sigmoid")
    return sigmoid;
  if (key == "tanh")
    return tanhOf;
  if (key == "relu")
    return relu;
  if (key == "softsign")
    return softsign;
  if (key == "softplus")
    return softplus;
  if (key == "leakyrelu")
    return [a = take(alphas, 0.01)](Emitter &e, Value x) { return leakyRelu(e, x, a); };
  if (key == "elu")
    return [a = take(alphas, 1)](Emitter &e, Value x) { return elu(e, x, a); };
  if (key == "thresholdedrelu")
    return [a = take(alphas, 1)](Emitter &e, Value x) { return thresholdedRelu(e, x, a); };
  if (key == "hardsigmoid")
    return [a = take(alphas, 0.2), b = take(betas, 0.5)](Emitter &e, Value x) {
      return hardSigmoid(e, x, a, b);
    };
  if (key == "affine")
    return [a = take(alphas, 1), b = take(betas, 0)](Emitter &e, Value x) {
      return e.add(e.mul(x, a), b);
    };
  if (key == "scaledtanh")
    return [a = take(alphas, 1), b = take(betas, 1)](Emitter &e, Value x) {
      return e.mul(tanhOf(e, e.mul(x, b)), a);
    };
  refuse("activation '" + name + "' is not known");
}

/// Entry `d` of a tensor whose first dimension counts the directions.
static Value entry(Emitter &e, Value x, int64_t d) {
  return e.squeeze(e.sliceAlong(x, 0, Dim(d), Dim(1)), {0});
}

static Value gate(Emitter &e, Value x, int64_t number, int64_t hidden) {
  return e.sliceAlong(x, rankOf(x) - 1, Dim(number * hidden), Dim(hidden));
}

/// Biases of inputs and recurrence, added if that is allowed: [gates * hidden].
static Value readBias(Layer &layer, Direction &direction, Value bias, bool splitsHidden) {
  Node &n = layer.n;
  int64_t width = layer.gates * layer.hidden;
  Value ofInput = n.sliceAlong(bias, 0, Dim(0), Dim(width));
  Value ofState = n.sliceAlong(bias, 0, Dim(width), Dim(width));
  if (!splitsHidden)
    return n.add(ofInput, ofState);
  direction.recurrentBias = gate(n, ofState, 2, layer.hidden);
  Value zeros = n.full({Dim(layer.hidden)}, elementOf(bias), 0);
  Value others = n.sliceAlong(ofState, 0, Dim(0), Dim(2 * layer.hidden));
  return n.add(ofInput, n.concat({others, zeros}, 0));
}

/// States start from operand `i` (through the layout), or from zeros.
static Value readState(Layer &layer, size_t i, int64_t d, bool batchFirst) {
  Node &n = layer.n;
  DimVector dims = {layer.batch, Dim(layer.hidden)};
  if (!n.has(i))
    return n.full(dims, elementOf(layer.x), 0);
  Value all = batchFirst ? n.transpose(n.in(i), {1, 0, 2}) : n.in(i);
  return n.broadcast(entry(n, all, d), dims);
}

static Value zeroOf(Node &n, size_t i, int64_t d) {
  return n.has(i) ? entry(n, n.in(i), d) : Value();
}

static Direction readDirection(Layer &layer, int64_t d, bool isReverse, bool batchFirst,
                               int64_t stateCount, bool splitsHidden) {
  Node &n = layer.n;
  Direction direction;
  direction.isReverse = isReverse;
  DimVector dims = dimsOf(layer.x);
  Value flat = n.reshape(layer.x, {layer.sequence * layer.batch, dims[2]});
  Value product = layer.isQuantized ? dynamicProduct(n, flat, entry(n, n.in(1), d),
                                                     entry(n, n.in(8), d), zeroOf(n, 9, d))
                                    : n.matmul(flat, transposeMatrix(n, entry(n, n.in(1), d)));
  if (n.has(3))
    product = n.add(product, readBias(layer, direction, entry(n, n.in(3), d), splitsHidden));
  direction.inputs =
      n.reshape(product, {layer.sequence, layer.batch, Dim(layer.gates * layer.hidden)});
  Value recurrence = entry(n, n.in(2), d);
  direction.recurrence = layer.isQuantized ? recurrence : transposeMatrix(n, recurrence);
  if (layer.isQuantized) {
    direction.scale = entry(n, n.in(10), d);
    direction.zero = zeroOf(n, 11, d);
  }
  for (int64_t i = 0; i < stateCount; ++i)
    direction.states.push_back(readState(layer, 5 + i, d, batchFirst));
  if (stateCount == 2 && n.has(7))
    direction.peepholes = entry(n, n.in(7), d);
  return direction;
}

static Value clipped(Layer &layer, Value x) {
  return layer.clip > 0 ? layer.n.min(layer.n.max(x, -layer.clip), layer.clip) : x;
}

using Cell = SmallVector<Value> (*)(Layer &, Direction &, Value input, ArrayRef<Value> states);

static SmallVector<Value> rnnCell(Layer &layer, Direction &direction, Value input,
                                  ArrayRef<Value> states) {
  Node &n = layer.n;
  Value sum = n.add(input, n.matmul(states[0], direction.recurrence));
  return {direction.activations[0](n, clipped(layer, sum))};
}

static SmallVector<Value> lstmCell(Layer &layer, Direction &direction, Value input,
                                   ArrayRef<Value> states) {
  Node &n = layer.n;
  Activation &f = direction.activations[0], &g = direction.activations[1],
             &h = direction.activations[2];
  Value product = layer.isQuantized ? dynamicProduct(n, states[0], direction.recurrence,
                                                     direction.scale, direction.zero)
                                    : n.matmul(states[0], direction.recurrence);
  Value sum = n.add(input, product), cell = states[1];
  // Gates are i, o, f, c; peepholes i, o, f.
  auto peeped = [&](int64_t number, Value state) {
    Value x = gate(n, sum, number, layer.hidden);
    if (direction.peepholes)
      x = n.add(x, n.mul(state, gate(n, direction.peepholes, number, layer.hidden)));
    return clipped(layer, x);
  };
  Value inputGate = f(n, peeped(0, cell));
  Value forgetGate = n.getInt("input_forget", 0) ? n.sub(n.scalar(elementOf(input), 1), inputGate)
                                                 : f(n, peeped(2, cell));
  Value candidate = g(n, clipped(layer, gate(n, sum, 3, layer.hidden)));
  Value next = n.add(n.mul(forgetGate, cell), n.mul(inputGate, candidate));
  Value outputGate = f(n, peeped(1, next));
  return {n.mul(outputGate, h(n, next)), next};
}

static SmallVector<Value> gruCell(Layer &layer, Direction &direction, Value input,
                                  ArrayRef<Value> states) {
  Node &n = layer.n;
  Activation &f = direction.activations[0], &g = direction.activations[1];
  Value state = states[0];
  bool resetsProduct = n.getInt("linear_before_reset", 0);
  // Gates are z, r, h.
  Value both = n.sliceAlong(direction.recurrence, 1, Dim(0), Dim(2 * layer.hidden));
  Value ofHidden = gate(n, direction.recurrence, 2, layer.hidden);
  Value sum = n.add(n.sliceAlong(input, 1, Dim(0), Dim(2 * layer.hidden)), n.matmul(state, both));
  Value update = f(n, clipped(layer, gate(n, sum, 0, layer.hidden)));
  Value reset = f(n, clipped(layer, gate(n, sum, 1, layer.hidden)));
  Value product;
  if (resetsProduct) {
    product = n.matmul(state, ofHidden);
    if (direction.recurrentBias)
      product = n.add(product, direction.recurrentBias);
    product = n.mul(reset, product);
  } else {
    product = n.matmul(n.mul(reset, state), ofHidden);
  }
  Value hidden = g(n, clipped(layer, n.add(gate(n, input, 2, layer.hidden), product)));
  Value kept = n.mul(update, state);
  return {n.add(n.mul(n.sub(n.scalar(elementOf(state), 1), update), hidden), kept)};
}

/// Final states, then the outputs of all steps [seq, batch, hidden].
static SmallVector<Value> runDirection(Layer &layer, Direction &direction, Cell cell) {
  Node &n = layer.n;
  Type element = elementOf(layer.x);
  // Lengths make each sequence reverse within its own length, not the whole tensor.
  bool reversesEach = direction.isReverse && layer.lengths;
  auto reversed = [&](Value x) {
    return n.infer<ReverseSequenceOp>({x, layer.lengths},
                                      {n.integer("time_axis", 0), n.integer("batch_axis", 1)});
  };
  SmallVector<Value> operands = direction.states;
  operands.push_back(reversesEach ? reversed(direction.inputs) : direction.inputs);
  if (layer.lengths)
    operands.push_back(n.iota({layer.sequence}, 0, n.i64()));
  size_t count = direction.states.size();
  SmallVector<Type> results, arguments;
  for (Value state : direction.states)
    results.push_back(state.getType());
  arguments = results;
  results.push_back(n.tensor({layer.sequence, layer.batch, Dim(layer.hidden)}, element));
  arguments.push_back(n.tensor({layer.batch, Dim(layer.gates * layer.hidden)}, element));
  if (layer.lengths)
    arguments.push_back(n.tensor({}, n.i64()));
  Ints reversedInputs, reversedOutputs;
  if (direction.isReverse && !reversesEach) {
    reversedInputs = {0};
    reversedOutputs = {0};
  }
  OperationState state(n.location, ScanOp::getOperationName(), operands, results,
                       {n.integer("state_count", count), n.list("reverse_inputs", reversedInputs),
                        n.list("reverse_outputs", reversedOutputs)});
  state.addRegion();
  Operation *scan = n.builder.create(state);
  {
    OpBuilder::InsertionGuard guard(n.builder);
    SmallVector<Value> inside = n.beginRegion(scan, 0, arguments);
    ArrayRef<Value> states = ArrayRef<Value>(inside).take_front(count);
    SmallVector<Value> next = cell(layer, direction, inside[count], states);
    Value output = next[0];
    if (layer.lengths) {
      Value isInside =
          n.unsqueeze(n.compare<LessOp>(inside[count + 1], n.cast(layer.lengths, n.i64())), {1});
      output = n.select(isInside, output, n.scalar(element, 0));
      for (size_t i = 0; i < count; ++i)
        next[i] = n.select(isInside, next[i], states[i]);
    }
    for (size_t i = 0; i < count; ++i)
      next[i] = n.broadcast(next[i], dimsOf(states[i]));
    next.push_back(n.broadcast(output, {layer.batch, Dim(layer.hidden)}));
    n.yield(next);
  }
  n.check(scan);
  SmallVector<Value> values(scan->getResults());
  if (reversesEach)
    values.back() = reversed(values.back());
  return values;
}

static void readActivations(Node &n, std::vector<Direction> &directions,
                            ArrayRef<StringRef> defaults) {
  std::vector<std::string> names = n.getTexts("activations");
  if (names.empty())
    for (size_t d = 0; d < directions.size(); ++d)
      names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != directions.size() * defaults.size())
    refuse("'activations' has " + Twine(names.size()) + " entries, but needs " +
           Twine(directions.size() * defaults.size()));
  std::vector<double> alphaList = n.getFloats("activation_alpha"),
                      betaList = n.getFloats("activation_beta");
  ArrayRef<double> alphas(alphaList), betas(betaList);
  for (size_t i = 0; i < names.size(); ++i)
    directions[i / defaults.size()].activations.push_back(readActivation(names[i], alphas, betas));
}

static void importRecurrent(Node &n, int64_t gates, int64_t stateCount, Cell cell,
                            ArrayRef<StringRef> activations, bool isQuantized = false) {
  bool batchFirst = n.getInt("layout", 0);
  Value x = batchFirst ? n.transpose(n.in(0), {1, 0, 2}) : n.in(0);
  if (rankOf(x) != 3 || rankOf(n.in(1)) != 3 || rankOf(n.in(2)) != 3)
    refuse("X, W and R must have rank 3");
  DimVector dims = dimsOf(x), ofR = dimsOf(n.in(2));
  int64_t hidden = ofR[isQuantized ? 1 : 2].constant().value_or(n.getInt("hidden_size", 0));
  if (hidden < 1)
    refuse("'hidden_size' is missing, and the size of R, " + textOf(ofR) + ", is not constant");
  Layer layer{n, gates, hidden, x, Value(), dims[0], dims[1], n.getFloat("clip", 0), isQuantized};
  if (n.has(4))
    layer.lengths = n.broadcast(n.in(4), layer.batch);
  std::string text = n.getText("direction", "forward");
  if (text != "forward" && text != "reverse" && text != "bidirectional")
    refuse("'direction' is '" + text + "', but must be 'forward', 'reverse' or 'bidirectional'");
  int64_t count = text == "bidirectional" ? 2 : 1;
  bool splitsHidden = gates == 3 && n.getInt("linear_before_reset", 0);
  // Sizes that the model leaves open, but its attributes tell.
  Dim all(count), width(gates * hidden);
  Dim inputs = agreed(n, dims[2], dimsOf(n.in(1))[isQuantized ? 1 : 2],
                      "X has %lld features, but W takes %lld");
  dims[2] = inputs;
  layer.x = n.reshape(x, dims);
  auto weights = [&](const Dim &depth) {
    return isQuantized ? DimVector{all, depth, width} : DimVector{all, width, depth};
  };
  n.operands[1] = n.reshape(n.in(1), weights(inputs));
  n.operands[2] = n.reshape(n.in(2), weights(Dim(hidden)));
  if (n.has(3))
    n.operands[3] = n.reshape(n.in(3), {all, Dim(2 * gates * hidden)});
  if (n.has(7))
    n.operands[7] = n.reshape(n.in(7), {all, Dim(3 * hidden)});
  std::vector<Direction> directions;
  for (int64_t d = 0; d < count; ++d)
    directions.push_back(
        readDirection(layer, d, text == "reverse" || d == 1, batchFirst, stateCount, splitsHidden));
  readActivations(n, directions, activations);

  SmallVector<SmallVector<Value>> parts(stateCount + 1);
  for (Direction &direction : directions) {
    SmallVector<Value> values = runDirection(layer, direction, cell);
    parts[0].push_back(n.unsqueeze(values[stateCount], {1}));
    for (int64_t i = 0; i < stateCount; ++i)
      parts[i + 1].push_back(n.unsqueeze(values[i], {0}));
  }
  for (int64_t i = 0; i <= stateCount; ++i) {
    if (!n.wants(i))
      continue;
    Value whole = n.concat(parts[i], i == 0 ? 1 : 0);
    if (batchFirst) // [seq, dirs, batch, h] -> [batch, seq, dirs, h]; states likewise
      whole = i == 0 ? n.transpose(whole, {2, 0, 1, 3}) : n.transpose(whole, {1, 0, 2});
    n.set(i, whole);
  }
}

static void importRnn(Node &n) { importRecurrent(n, 1, 1, rnnCell, {"Tanh"}); }
static void importGru(Node &n) { importRecurrent(n, 3, 1, gruCell, {"Sigmoid", "Tanh"}); }
static void importLstm(Node &n) { importRecurrent(n, 4, 2, lstmCell, {"Sigmoid", "Tanh", "Tanh"}); }
static void importDynamicQuantizeLstm(Node &n) {
  importRecurrent(n, 4, 2, lstmCell, {"Sigmoid", "Tanh", "Tanh"}, /*isQuantized=*/true);
}

OpRows recurrentRows() {
  static const OpRow rows[] = {
      {"RNN", "", 1, 27, importRnn},
      {"GRU", "", 1, 27, importGru},
      {"LSTM", "", 1, 27, importLstm},
      {"DynamicQuantizeLSTM", kMicrosoft, 1, 1, importDynamicQuantizeLstm},
  };
  return rows;
}

} // namespace heddle::onnx
