// Experts: mixtures of experts (MoE, QMoE). A step an expert: the tokens that chose it are
// gathered, go through its layers, and are added where they came from. So the work grows with the
// tokens and what each chooses, not with the experts, and of quantised weights only one expert's
// are floats.

#include "compiler/onnx/Agreement.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Activations.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Places.h"
#include "compiler/onnx/ops/Quantization.h"
#include "compiler/onnx/ops/Walk.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
/// A linear layer of all experts, as places among what is walked along; `scales` are beside
/// integers of `bits` bits.
struct Layer {
  std::optional<size_t> weights, scales, zeros, bias;
  int64_t bits = 0;
};

/// Places of a layer's operands among those of the node; 0 for what the op has not.
struct Operands {
  size_t weights, scales, bias, zeros;
};

class Experts {
public:
  explicit Experts(Node &n) : n(n) {
    activation = n.getText("activation_type", "relu");
    if (!llvm::is_contained({"relu", "gelu", "silu", "swiglu", "identity"}, activation))
      refuse("'activation_type' is '" + activation +
             "', but must be 'relu', 'gelu', 'silu', 'swiglu' or 'identity'");
    fusion = activation == "swiglu" ? n.getInt("swiglu_fusion", 0) : 0;
    if (fusion < 0 || fusion > 2)
      refuse("'swiglu_fusion' is " + Twine(fusion) + ", but must be 0, 1 or 2");
    for (StringRef name : {"use_sparse_mixer", "swiglu_limit_after_activation"})
      if (n.getInt(name, 0))
        refuse("'" + name + "' is not supported", "set it to 0");
    if (n.getText("quant_type", "int") != "int")
      refuse("'quant_type' is '" + n.getText("quant_type", "int") + "', but must be 'int'");
    if (n.getInt("weights_prepacked", 0) > 0)
      refuse("'weights_prepacked' is " + Twine(n.getInt("weights_prepacked", 0)) +
                 ", a layout of one device",
             "export the weights as [experts, rows, columns], and set it to 0");
    wide = wideType(n, elementOf(n.in(0)));
  }

  void addLayer(const Operands &at, StringRef ownBits) {
    Layer layer;
    auto take = [&](size_t i, int64_t rank) -> std::optional<size_t> {
      if (i == 0 || !n.has(i))
        return std::nullopt;
      if (rankOf(n.in(i)) != rank)
        refuse("input " + Twine(i) + " must have rank " + Twine(rank) + ", but has " +
               Twine(rankOf(n.in(i))));
      return add(n.in(i));
    };
    if (layers.size() < 2)
      n.in(at.weights); // refused when missing
    layer.weights = take(at.weights, 3);
    layer.bias = take(at.bias, 2);
    if (layer.weights && at.scales) {
      int64_t rank = n.getInt("block_size", 0) > 0 ? 3 : 2;
      layer.scales = take(at.scales, rank);
      layer.zeros = take(at.zeros, rank);
      layer.bits = n.getInt(ownBits, n.getInt("expert_weight_bits", 4));
      if (!layer.scales || (layer.bits != 2 && layer.bits != 4 && layer.bits != 8))
        refuse("the weights need scales, and 2, 4 or 8 bits each, but have " + Twine(layer.bits));
    }
    layers.push_back(layer);
  }

  /// The experts' joint result for x [tokens, hidden], whose logits are [tokens, experts].
  Value apply(Value x, Value logits, Value mixing) {
    Value chosen = choose(logits), one = n.cast(chosen, wide);
    Value shares = n.mul(mixing ? n.cast(mixing, wide) : n.softmax(logits, {1}), one);
    // ONNX Runtime's CPU kernel normalises what it makes of the logits of QMoE in any case.
    if (n.getInt("normalize_routing_weights", 0) == 1 || (layers[0].scales && !mixing))
      shares = n.div(shares, n.reduce<ReduceSumOp>(shares, {1}));
    size_t choices = add(n.transpose(chosen, {1, 0})), portions = add(n.transpose(shares, {1, 0}));
    auto step = [&](ArrayRef<Value> states, ArrayRef<Value> slices) -> SmallVector<Value> {
      Value rows = placesOf(n, slices[choices]), own = n.gather(x, rows, 0);
      Value linear = layers[2].weights ? product(own, layers[2], slices) : Value();
      Value y = product(activate(product(own, layers[0], slices), linear), layers[1], slices);
      y = n.mul(y, n.unsqueeze(n.gather(slices[portions], rows, 0), {1}));
      return {n.infer<ScatterNdOp>({states[0], n.unsqueeze(rows, {1}), y},
                                   {n.text("reduction", "add")})};
    };
    return walk(n, n.full(dimsOf(x), wide, 0), walked, step)[0];
  }

private:
  size_t add(Value x) {
    walked.push_back(x);
    return walked.size() - 1;
  }

  /// i1 [tokens, experts]: the k largest of each row.
  Value choose(Value logits) {
    DimVector dims = dimsOf(logits);
    int64_t k = n.getInt("k", 1);
    if (k < 1 || k > dims[1].constant().value_or(k))
      refuse("'k' is " + Twine(k) + ", but there are " + dims[1].str() + " experts");
    if (!dims[1].constant())
      requireAtMost(n, Dim(k), dims[1], "'k' is %lld, but there are %lld experts");
    Value places = topK(n, logits, 1, Dim(k), /*largest=*/true).second;
    Value isPlace = n.compare<EqualOp>(n.unsqueeze(places, {2}), n.iota({dims[1]}, 0, n.i64()));
    Value count = n.reduce<ReduceSumOp>(n.cast(isPlace, n.i32()), {1}, false);
    return n.compare<GreaterOp>(count, n.integerScalar(n.i32(), 0));
  }

  Value unpacked(Value codes, int64_t bits) {
    return n.cast(bits == 8 ? codes : unpackBits(n, codes, bits), wide);
  }

  /// [rows, columns] of one expert.
  Value matrixOf(const Layer &layer, ArrayRef<Value> slices) {
    if (!layer.scales)
      return n.cast(slices[*layer.weights], wide);
    Value codes = unpacked(slices[*layer.weights], layer.bits), scale = slices[*layer.scales];
    Value zero = n.scalar(wide, static_cast<double>(int64_t(1) << (layer.bits - 1)));
    // Scales and zero points: one per row, or one per block of a row.
    int64_t last = rankOf(scale) - 1, block = n.getInt("block_size", 0);
    auto spread = [&](Value x) {
      return last ? repeatBlocks(n, x, block, 1, dimsOf(codes)[1]) : n.unsqueeze(x, {1});
    };
    if (layer.zeros) {
      Value all = unpacked(slices[*layer.zeros], layer.bits);
      zero = spread(n.sliceAlong(all, last, Dim(0), dimsOf(scale)[last]));
    }
    return n.mul(n.sub(codes, zero), spread(n.cast(scale, wide)));
  }

  Value product(Value x, const Layer &layer, ArrayRef<Value> slices) {
    Value y = n.matmul(x, n.transpose(matrixOf(layer, slices), {1, 0}));
    return layer.bias ? n.add(y, n.cast(slices[*layer.bias], wide)) : y;
  }

  /// `linear`: the product of the third layer, or null.
  Value activate(Value x, Value linear) {
    if (activation == "swiglu")
      return gated(x, linear);
    Value y = activation == "relu"   ? relu(n, x)
              : activation == "gelu" ? gelu(n, x, /*approximate=*/true)
              : activation == "silu" ? n.mul(x, sigmoid(n, x))
                                     : x;
    return linear ? n.mul(y, linear) : y;
  }

  Value gated(Value gate, Value linear) {
    DimVector dims = dimsOf(gate);
    Dim half = dims[1].floorDiv(Dim(2));
    if ((fusion == 0) != (linear != nullptr))
      refuse("'swiglu' needs a third layer if and only if 'swiglu_fusion' is 0");
    if (fusion == 1) { // side by side
      Value pairs = n.reshape(gate, {dims[0], half, Dim(2)});
      auto side = [&](int64_t i) {
        return n.reshape(n.sliceAlong(pairs, 2, Dim(i), Dim(1)), {dims[0], half});
      };
      linear = side(1);
      gate = side(0);
    } else if (fusion == 2) {
      linear = n.sliceAlong(gate, 1, half, half);
      gate = n.sliceAlong(gate, 1, Dim(0), half);
    }
    if (n.hasAttribute("swiglu_limit")) {
      double limit = n.getFloat("swiglu_limit", 0);
      gate = n.min(gate, limit);
      linear = n.min(n.max(linear, -limit), limit);
    }
    Value share = sigmoid(n, n.mul(gate, n.getFloat("activation_alpha", 1)));
    return n.mul(n.mul(gate, share), n.add(linear, n.getFloat("activation_beta", 0)));
  }

  Node &n;
  Type wide;
  std::string activation;
  int64_t fusion;
  SmallVector<Value> walked; // an entry an expert
  SmallVector<Layer, 3> layers;
};
} // namespace

static void importExperts(Node &n, ArrayRef<Operands> layers, size_t mixing) {
  Experts experts(n);
  constexpr const char *kBits[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                   "fc3_expert_weight_bits"};
  for (auto [i, operands] : llvm::enumerate(layers))
    experts.addLayer(operands, kBits[i]);
  Value x = n.in(0), logits = n.in(1);
  DimVector dims = dimsOf(x);
  if ((dims.size() != 2 && dims.size() != 3) || rankOf(logits) != 2)
    refuse("the input must have rank 2 or 3, and 'router_probs' rank 2, but they have " +
           Twine(dims.size()) + " and " + Twine(rankOf(logits)));
  Type wide = wideType(n, elementOf(x));
  Value tokens = n.reshape(n.cast(x, wide), {dimsOf(logits)[0], dims.back()});
  Value y = experts.apply(tokens, n.cast(logits, wide), mixing ? n.optional(mixing) : Value());
  n.set(n.cast(n.reshape(y, dims), elementOf(x)));
}

static void importMoE(Node &n) { importExperts(n, {{2, 0, 3, 0}, {4, 0, 5, 0}, {6, 0, 7, 0}}, 0); }

static void importQMoE(Node &n) {
  for (size_t i = 15; i < n.inputs(); ++i)
    if (n.has(i))
      refuse("input " + Twine(i) + " belongs to floats of 4 or 8 bits, which are not supported");
  importExperts(n, {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}}, 14);
}

OpRows contribExpertRows() {
  static const OpRow rows[] = {
      {"MoE", kMicrosoft, 1, 1, importMoE, false, "no sparse mixer"},
      {"QMoE", kMicrosoft, 1, 1, importQMoE, false, "integers of 2, 4 and 8 bits"},
  };
  return rows;
}

} // namespace heddle::onnx
