// Calls: products and convolutions of a library, and the ops after them that it takes in.

#include "compiler/mechanism/foreign/Calls.h"

#include "compiler/graph/Constants.h"
#include "compiler/mechanism/Checks.h"
#include "compiler/mechanism/Product.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::Dim;
using graph::DimVector;
using Post = LibraryCall::Post;

static constexpr size_t kMostPosts = 8;

static bool isF32(Value value) { return graph::elementOf(value).isF32(); }

/// The tensor that memory has: what a broadcast or a reshape of the group repeats. Null when the
/// group computes it.
static Value readFrom(Value value, ArrayRef<Operation *> ops, size_t rank) {
  for (Operation *op = value.getDefiningOp(); op && llvm::is_contained(ops, op);
       op = value.getDefiningOp()) {
    if (isa<graph::ConstantOp>(op))
      return value;
    if (!isa<graph::BroadcastOp>(op))
      return {};
    value = op->getOperand(0);
  }
  return (size_t)graph::rankOf(value) <= rank ? value : Value();
}

/// Every size is 1 or that of the result, in types, so that only one of them has to be checked.
static bool repeatsInto(Value value, Value result) {
  DimVector from = graph::dimsOf(value), to = graph::dimsOf(result);
  for (size_t i = 0; i < from.size(); ++i)
    if (!from[i].isConstant(1) && from[i] != to[to.size() - from.size() + i])
      return false;
  return true;
}

static bool isAbout(Value value, double number) {
  auto splat = graph::splatOf(value);
  return splat && std::abs(*splat - number) <= 1e-6 * std::abs(number);
}

/// The other operand of a commutative op, when one of them is `one`.
template <typename Op> static Value otherOf(Operation *op, Value one) {
  if (!isa_and_nonnull<Op>(op))
    return {};
  return op->getOperand(0) == one   ? op->getOperand(1)
         : op->getOperand(1) == one ? op->getOperand(0)
                                    : Value();
}

/// x / 2 (1 + erf(x / sqrt 2)), multiplied in any order: its last value.
static Value geluOf(Value x) {
  Value inner, half;
  for (Operation *user : x.getUsers()) {
    if (isa<graph::ErfOp>(user))
      return {};
    Value scaled = otherOf<graph::MulOp>(user, x);
    auto division = dyn_cast<graph::DivOp>(user);
    if (division && division->getOperand(0) == x && isAbout(division->getOperand(1), M_SQRT2))
      inner = user->getResult(0);
    else if (scaled && isAbout(scaled, M_SQRT1_2))
      inner = user->getResult(0);
    else if (scaled && isAbout(scaled, 0.5))
      half = user->getResult(0);
  }
  auto onlyUser = [](Value value) -> Operation * {
    return value && value.hasOneUse() ? *value.getUsers().begin() : nullptr;
  };
  Operation *erf = onlyUser(inner), *plus = nullptr;
  if (isa_and_nonnull<graph::ErfOp>(erf))
    plus = onlyUser(erf->getResult(0));
  Value one = plus ? otherOf<graph::AddOp>(plus, erf->getResult(0)) : Value();
  if (!one || !isAbout(one, 1) || std::distance(x.user_begin(), x.user_end()) != 2)
    return {};
  Value bracket = plus->getResult(0);
  Operation *product = onlyUser(bracket);
  if (half) // (x / 2) * bracket
    return half.hasOneUse() && otherOf<graph::MulOp>(product, bracket) == half
               ? product->getResult(0)
               : Value();
  Value other = product ? otherOf<graph::MulOp>(product, bracket) : Value();
  if (other == x) { // (x * bracket) / 2
    Operation *last = onlyUser(product->getResult(0));
    Value factor = last ? otherOf<graph::MulOp>(last, product->getResult(0)) : Value();
    return factor && isAbout(factor, 0.5) ? last->getResult(0) : Value();
  }
  if (other && isAbout(other, 0.5)) { // x * (bracket / 2)
    Operation *last = onlyUser(product->getResult(0));
    return last && otherOf<graph::MulOp>(last, product->getResult(0)) == x ? last->getResult(0)
                                                                           : Value();
  }
  return {};
}

/// The library's name of the op; nullopt if it has no such op.
static std::optional<Post::Kind> postKindOf(Operation *op) {
  using Kind = std::optional<Post::Kind>;
  return TypeSwitch<Operation *, Kind>(op)
      .Case([](graph::AddOp) { return Kind(Post::Kind::Add); })
      .Case([](graph::SubOp) { return Kind(Post::Kind::Sub); })
      .Case([](graph::MulOp) { return Kind(Post::Kind::Mul); })
      .Case([](graph::DivOp) { return Kind(Post::Kind::Div); })
      .Default([](Operation *) { return Kind(); });
}

/// Follows the result through ops that the library does before it stores. A maximum is none of
/// them: the library's loses NaNs.
static void takePosts(ArrayRef<Operation *> ops, LibraryCall &call) {
  while (call.posts.size() < kMostPosts) {
    Value x = call.result;
    if (Value gelu = geluOf(x); gelu && llvm::is_contained(ops, gelu.getDefiningOp())) {
      call.posts.push_back({Post::Kind::Gelu, {}});
      call.result = gelu;
      continue;
    }
    Operation *op = x.hasOneUse() ? *x.getUsers().begin() : nullptr;
    auto kind = op ? postKindOf(op) : std::nullopt;
    if (!kind || !llvm::is_contained(ops, op) ||
        graph::dimsOf(op->getResult(0)) != graph::dimsOf(x))
      return;
    bool isLeft = op->getOperand(0) == x;
    if (!isLeft && isa<graph::SubOp, graph::DivOp>(op))
      return;
    Value operand = readFrom(op->getOperand(isLeft ? 1 : 0), ops, graph::rankOf(x));
    if (!operand || !isF32(operand) || !repeatsInto(operand, x))
      return;
    call.posts.push_back({*kind, operand});
    call.result = op->getResult(0);
  }
}

static bool readMatmul(graph::MatmulOp op, ArrayRef<Operation *> ops, LibraryCall &call,
                       std::string &why) {
  Value b = op.getB();
  if (auto transpose = b.getDefiningOp<graph::TransposeOp>();
      transpose && llvm::is_contained(ops, transpose)) {
    b = transpose.getX();
    call.order.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
  }
  size_t rank = graph::rankOf(op.getResult());
  if (rank < 2 || rank > 6 || graph::dimsOf(op.getA()).back().isConstant(0)) {
    why = rank < 2 || rank > 6 ? "oneDNN multiplies tensors of rank 2 to 6" : "it sums nothing";
    return false;
  }
  call.reads = {op.getA(), b};
  return true;
}

static bool readConvolution(graph::ConvOp op, LibraryCall &call, std::string &why) {
  int64_t space = graph::rankOf(op.getX()) - 2;
  auto isEmpty = [](const Dim &dim) { return !dim.constant() || dim.isConstant(0); };
  if (!op.getChannelsLast() || space < 1 || space > 3)
    why = "its image must be channels last, of 1 to 3 dimensions of space";
  else if (!isWeight(op.getW()) || llvm::any_of(graph::dimsOf(op.getW()), isEmpty))
    why = "its filters must be constant, and not empty";
  else if (llvm::any_of(llvm::concat<const int64_t>(op.getLow(), op.getHigh()),
                        [](int64_t border) { return border < 0; }))
    why = "its borders must not be negative";
  call.reads = {op.getX(), op.getW()};
  return why.empty();
}

std::optional<LibraryCall> readCall(const Mechanism &mechanism, Ops ops, Fit &fit,
                                    std::string &why) {
  LibraryCall call;
  fit = Fit::No;
  if (&mechanism == &kOnednnLayerNorm) {
    if (!readNormalization(ops, call, why))
      return std::nullopt;
  } else {
    for (Operation *op : ops)
      if (&mechanism == &kOnednnMatmul ? isa<graph::MatmulOp>(op) : isa<graph::ConvOp>(op))
        call.root = call.root ? nullptr : op;
    if (!call.root) {
      why = ("it is for one " + mechanism.name.split('.').second).str();
      return std::nullopt;
    }
    call.result = call.root->getResult(0);
    auto matmul = dyn_cast<graph::MatmulOp>(call.root);
    if (matmul ? !readMatmul(matmul, ops, call, why)
               : !readConvolution(cast<graph::ConvOp>(call.root), call, why))
      return std::nullopt;
  }
  for (Value read : call.reads) {
    if (read && !isF32(read)) {
      why = "oneDNN is called for f32 alone";
      return std::nullopt;
    }
    Operation *producer = read ? read.getDefiningOp() : nullptr;
    if (producer && !isa<graph::ConstantOp>(producer) && llvm::is_contained(ops, producer)) {
      why = "the group itself computes what the function reads";
      return std::nullopt;
    }
  }
  if (call.root) // oneDNN's normalisation takes no posts
    takePosts(ops, call);
  fit = Fit::Full;
  return call;
}

/// A function of a library, and what it leaves behind its result.
static Fit fitsCall(const Mechanism &mechanism, Ops ops, std::string &why) {
  if (&mechanism != &kOnednnLayerNorm)
    if (Fit fit = checkPlainProduct(ops, why); fit != Fit::Full)
      return fit;
  Fit fit = Fit::No;
  if (readCall(mechanism, ops, fit, why) && resultsOf(ops).size() != 1)
    return refuse(why, "the group has several results");
  return fit;
}

static constexpr StringLiteral kOnednn = "libdnnl.so.2";
const Mechanism kOnednnMatmul = {
    .name = "onednn.matmul", .check = fitsCall, .type = CardType::Call, .library = kOnednn};
const Mechanism kOnednnConvolution = {
    .name = "onednn.convolution", .check = fitsCall, .type = CardType::Call, .library = kOnednn};
const Mechanism kOnednnLayerNorm = {
    .name = "onednn.layer_norm", .check = fitsCall, .type = CardType::Call, .library = kOnednn};

} // namespace heddle::mechanism
