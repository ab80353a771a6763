// Product: the types, shapes and neighbours of a product that register tiles serve.

#include "compiler/mechanism/Product.h"

#include "compiler/graph/Constants.h"
#include "compiler/mechanism/Checks.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/mechanism/Stitch.h"
#include "compiler/mechanism/attention/Attention.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::Dim;
using graph::DimVector;

/// Sums of f32, f64 or i32 of their own type, and of 8-bit integers with those or words as i32.
static bool hasTypes(Operation *product) {
  Type a = graph::elementOf(product->getOperand(0)), b = graph::elementOf(product->getOperand(1)),
       sum = graph::elementOf(product->getResult(0));
  if (a.isF32() || a.isF64() || a.isSignlessInteger(32))
    return a == b && a == sum;
  return a.isInteger(8) && (b.isInteger(8) || b.isSignlessInteger(16)) && sum.isSignlessInteger(32);
}

/// Whether it is known which operand a batch dimension repeats.
static bool knowsBatches(graph::MatmulOp op) {
  DimVector a = graph::dimsOf(op.getA()), b = graph::dimsOf(op.getB()),
            c = graph::dimsOf(op.getResult());
  for (size_t i = 0; i + 2 < c.size(); ++i) {
    bool aHas = !a[i].isConstant(1) || c[i].isConstant(1);
    bool bHas = !b[i].isConstant(1) || c[i].isConstant(1);
    if ((aHas && a[i] != c[i]) || (bHas && b[i] != c[i]))
      return false;
  }
  return true;
}

std::optional<Triangle> triangleOf(graph::MatmulOp product) {
  auto select = product.getA().getDefiningOp<graph::SelectOp>();
  auto weights = product.getB().getDefiningOp<graph::ConstantOp>();
  DimVector left = graph::dimsOf(product.getA());
  if (!select || !select->hasOneUse() || left[left.size() - 2].isConstant(1) ||
      (weights && isa<graph::StoredAttr>(weights.getValue())))
    return std::nullopt;
  Type element = graph::elementOf(select);
  auto band = graph::bandOf(select.getCondition());
  if (!band || !(element.isF32() || element.isF64()))
    return std::nullopt;
  if (graph::splatOf(select.getY()) == 0.0)
    return Triangle{select.getX(), *band};
  if (graph::splatOf(select.getX()) == 0.0)
    return Triangle{select.getY(), band->complement()};
  return std::nullopt;
}

/// The number of a row or column is less than one of each matrix.
static bool readLimit(graph::LessOp op, Value &row, Value &column) {
  auto numbers = op.getX().getDefiningOp<graph::IotaOp>();
  auto bound = op.getY().getDefiningOp<graph::BroadcastOp>();
  if (!numbers || !bound)
    return false;
  DimVector dims = graph::dimsOf(bound.getX());
  int64_t rank = graph::rankOf(op.getResult()), axis = numbers.getAxis();
  bool isOfMatrix = (int64_t)dims.size() == rank && dims[rank - 2].isConstant(1) &&
                    dims[rank - 1].isConstant(1) && axis + 2 >= rank;
  Value &limit = axis + 1 == rank ? column : row;
  if (!isOfMatrix || limit)
    return false;
  limit = bound.getX();
  return true;
}

/// Reads a mask that is these two alone, or one of them.
static bool readLimits(Value mask, Value &row, Value &column) {
  Operation *op = mask.getDefiningOp();
  if (auto both = dyn_cast_if_present<graph::AndOp>(op)) {
    auto x = both.getX().getDefiningOp<graph::LessOp>(),
         y = both.getY().getDefiningOp<graph::LessOp>();
    return x && y && graph::rankOf(mask) >= 2 && readLimit(x, row, column) &&
           readLimit(y, row, column);
  }
  auto less = dyn_cast_if_present<graph::LessOp>(op);
  return less && graph::rankOf(mask) >= 2 && readLimit(less, row, column);
}

/// Compares the tensors that two values view: each reader may have a view of its own.
static bool areSame(Value x, Value y) {
  auto source = [](Value value) {
    while (auto view = value.getDefiningOp<graph::ReshapeOp>())
      value = view.getX();
    return value;
  };
  return x.getType() == y.getType() && source(x) == source(y);
}

std::optional<Limits> limitsOf(graph::MatmulOp product) {
  auto left = product.getA().getDefiningOp<graph::SelectOp>(),
       right = product.getB().getDefiningOp<graph::SelectOp>();
  auto read =
      product->hasOneUse() ? dyn_cast<graph::SelectOp>(*product->user_begin()) : graph::SelectOp();
  DimVector dims = graph::dimsOf(product.getA());
  if (!left || !right || !read || read.getX() != product.getResult() || !left->hasOneUse() ||
      dims[dims.size() - 2].isConstant(1) || // tiles may then be of matrices
      graph::splatOf(left.getY()) != 0.0 || graph::splatOf(right.getY()) != 0.0 ||
      !isa<FloatType>(graph::elementOf(left)))
    return std::nullopt;
  Limits limits;
  limits.kept = left.getX();
  Value rows, depth, columns;
  if (!readLimits(left.getCondition(), rows, limits.depth) ||
      !readLimits(right.getCondition(), depth, columns) ||
      !readLimits(read.getCondition(), limits.rows, limits.columns))
    return std::nullopt;
  bool isCut = limits.depth && depth && areSame(limits.depth, depth) &&
               (!rows || (limits.rows && areSame(rows, limits.rows)));
  return isCut ? std::optional(limits) : std::nullopt;
}

bool leavesOut(graph::MatmulOp product) { return triangleOf(product) || limitsOf(product); }

bool readsThrough(graph::MatmulOp product, graph::TransposeOp left) {
  auto weights = product.getB().getDefiningOp<graph::ConstantOp>();
  Type element = graph::elementOf(product.getA());
  bool isCopied = !element.isF32() && !element.isF64(); // copied to another form, before all tiles
  if (isCopied || (weights && isa<graph::StoredAttr>(weights.getValue())))
    return false;
  ArrayRef<int64_t> permutation = left.getPermutation();
  int64_t last = permutation.size() - 1;
  return permutation[last] == last || permutation[last - 1] == last;
}

graph::TransposeOp transposedLeft(graph::MatmulOp product) {
  auto transpose = product.getA().getDefiningOp<graph::TransposeOp>();
  bool isRead = transpose && transpose->hasOneUse() && readsThrough(product, transpose);
  return isRead ? transpose : graph::TransposeOp();
}

Value storedLeft(Value left) {
  auto cast = left.getDefiningOp<graph::CastOp>();
  auto group = cast ? dyn_cast<graph::GroupOp>(cast->getParentOp()) : graph::GroupOp();
  if (!group)
    return left;
  Type element = graph::elementOf(cast.getX());
  bool isKept = group.isShort() ? element.isBF16()
                                : group.deviceNumber() && isa<Float16Type, BFloat16Type>(element);
  return isKept ? cast.getX() : left;
}

namespace {
class Reader {
public:
  Reader(Ops ops, std::string &why) : ops(ops), inside(ops.begin(), ops.end()), why(why) {}

  bool read(ValueRange results) {
    if (!collect(results) || !checkRoot() || !readParts())
      return false;
    DimVector dims = graph::dimsOf(product.root->getResult(0));
    dims.back() = product.slices.empty() ? dims.back() : product.partColumns;
    for (Value result : results)
      if (graph::dimsOf(result) != dims)
        return no("a result has another shape than the product");
    return checkRoles(results);
  }

  Product product;

private:
  bool no(const Twine &text) {
    refuse(why, text);
    return false;
  }

  bool isComputed(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && inside.contains(op) && !isa<graph::ConstantOp>(op);
  }

  /// Whether the left operand is made in the group from one in memory, with parts left out or in
  /// another order.
  bool readLeft() {
    if (isa<graph::ConvOp>(product.root))
      return !isComputed(storedLeft(product.root->getOperand(0)));
    auto matmul = cast<graph::MatmulOp>(product.root);
    if (!isComputed(matmul.getA()))
      return false;
    product.triangle = triangleOf(matmul);
    if (!product.triangle)
      product.limits = limitsOf(matmul);
    product.transposed = transposedLeft(matmul);
    Value kept = product.triangle     ? product.triangle->kept
                 : product.limits     ? product.limits->kept
                 : product.transposed ? product.transposed.getX()
                                      : matmul.getA();
    return !isComputed(storedLeft(kept));
  }

  bool collect(ValueRange results) {
    SmallVector<Value> open(results.begin(), results.end());
    while (!open.empty()) {
      Value value = open.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!isComputed(value) || !product.members.insert(op))
        continue;
      if (graph::isContraction(op)) {
        if (product.root)
          return no(named(op) + " is a second product");
        product.root = op;
      }
      bool isCut = product.root == op && readLeft();
      llvm::append_range(open, op->getOperands().drop_front(isCut ? 1 : 0));
    }
    return product.root || no("no result follows from a product");
  }

  bool checkRoot() {
    Operation *root = product.root;
    if (!hasTypes(root))
      return no("no register tile multiplies the element types of " + named(root));
    if (isComputed(root->getOperand(0)) && !readLeft())
      return no("the left operand of " + named(root) +
                " is computed in the group, and is read often");
    auto matmul = dyn_cast<graph::MatmulOp>(root);
    return matmul ? checkMatmul(matmul) : checkConv(cast<graph::ConvOp>(root));
  }

  /// Whether the right operand is integers with a scale for the blocks in which rows are rounded.
  static bool areCodesOf(graph::MatmulOp op) {
    auto weights = op.getB().getDefiningOp<graph::ConstantOp>();
    auto stored = weights ? dyn_cast<graph::StoredAttr>(weights.getValue()) : nullptr;
    return stored && stored.getScales() && isa<IntegerType>(stored.getCodes().getElementType()) &&
           stored.getBlock() == static_cast<int64_t>(op.getBlock());
  }

  bool checkMatmul(graph::MatmulOp op) {
    DimVector b = graph::dimsOf(op.getB()), c = graph::dimsOf(op.getResult());
    if (!knowsBatches(op))
      return no("which operand of " + named(op) + " repeats is only known at run time");
    if (c.back().isConstant(0))
      return no(named(op) + " has no columns");
    if (op.getBlock() && !areCodesOf(op))
      return no(named(op) + " rounds its rows in blocks that its weights do not have");
    // Packing a right operand whose elements are used once would only cost a second pass.
    bool readsOnce = c[c.size() - 2].isConstant(1);
    for (size_t i = 0; i + 2 < c.size(); ++i)
      readsOnce &= c[i].isConstant(1) || !b[i].isConstant(1);
    product.isOneRow = readsOnce && isa<FloatType>(graph::elementOf(op.getA())) &&
                       !isComputed(op.getB()) && !isWeight(op.getB()) && !c.back().isConstant(1) &&
                       !product.triangle && !product.limits;
    return true;
  }

  bool checkConv(graph::ConvOp op) {
    if (!op.getChannelsLast() || graph::rankOf(op.getX()) > 5)
      return no(named(op) + " is not channels last, of 1 to 3 dimensions of space");
    if (isComputed(op.getW()))
      return no("the filters of " + named(op) + " are computed in the group, and are read often");
    auto isKnown = [](const Dim &size) { return size.constant().has_value(); };
    DimVector w = graph::dimsOf(op.getW());
    if (!llvm::all_of(ArrayRef(w).drop_front(2), isKnown) ||
        (op.getGroups() != 1 && !isKnown(w[0])))
      return no("the sizes of the window of " + named(op) + ", or of its groups, are not known");
    if (graph::dimsOf(op.getW())[0].floorDiv(Dim(op.getGroups())).isConstant(0))
      return no(named(op) + " has no filters");
    return true;
  }

  /// Finds slices after the product. None of them follows from another one.
  bool readParts() {
    Operation *root = product.root;
    product.partColumns = graph::dimsOf(root->getResult(0)).back();
    auto conv = dyn_cast<graph::ConvOp>(root);
    if (conv)
      product.partColumns = graph::dimsOf(conv.getW())[0].floorDiv(Dim(conv.getGroups()));
    SmallVector<Operation *> found;
    llvm::DenseSet<Operation *> follows{root}, followsSlice;
    for (Operation *op : ops) {
      if (!product.members.contains(op) || op == root)
        continue;
      auto readsOne = [&](const llvm::DenseSet<Operation *> &some) {
        return llvm::any_of(op->getOperands(),
                            [&](Value in) { return some.contains(in.getDefiningOp()); });
      };
      auto slice = dyn_cast<graph::SliceOp>(op);
      if (slice && readsOne(followsSlice))
        return no(named(op) + " slices what a slice of the product gives");
      if (readsOne(followsSlice) || (slice && readsOne(follows)))
        followsSlice.insert(op);
      if (readsOne(follows))
        follows.insert(op);
      if (slice && follows.contains(op)) {
        found.push_back(op);
        product.slices.push_back(slice);
      }
    }
    if (found.empty())
      return true;
    auto parts = partsOf(found, graph::dimsOf(root->getResult(0)));
    if (!parts || (conv && conv.getGroups() != 1))
      return no("slices of the product are not equal parts of its columns");
    product.parts = parts->count;
    product.partColumns = Dim(parts->columns);
    return true;
  }

  /// Checks that only elementwise ops meet the product in the registers; a slice that is no part of
  /// the product, or a reshape, reads memory. The right operand alone may follow from any op.
  bool checkRoles(ValueRange results) {
    SmallVector<Value> open(results.begin(), results.end());
    llvm::DenseSet<Operation *> seen{product.root};
    while (!open.empty()) {
      Value value = open.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!isComputed(value) || !seen.insert(op).second)
        continue;
      bool isEpilogue = graph::isElementwise(op) ||
                        isa<graph::BroadcastOp, graph::SliceOp, graph::IotaOp>(op) ||
                        (isa<graph::ReshapeOp>(op) && !isComputed(op->getOperand(0)));
      if (!isEpilogue)
        return no(named(op) + " is not computed element by element");
      llvm::append_range(open, op->getOperands());
    }
    return true;
  }

  Ops ops;
  llvm::SmallPtrSet<Operation *, 32> inside;
  std::string &why;
};
} // namespace

std::optional<Product> readProduct(Ops ops, ValueRange results, std::string &why) {
  Reader reader(ops, why);
  if (!reader.read(results))
    return std::nullopt;
  return std::move(reader.product);
}

Type factorsInThreads(Operation *product, bool isShort) {
  if (isShort)
    return BFloat16Type::get(product->getContext());
  Type left = graph::storageOf(product->getOperand(0)),
       right = graph::storageOf(product->getOperand(1));
  if (auto known = product->getAttrOfType<TypeAttr>(graph::kFactors))
    return left.isF32() && right.isF32() ? known.getValue() : Type();
  return left == right && (left.isF16() || left.isBF16()) ? left : Type();
}

bool roundsBlocks(Ops ops) {
  return llvm::any_of(ops, [](Operation *op) {
    auto product = dyn_cast<graph::MatmulOp>(op);
    return product && product.getBlock() != 0;
  });
}

static std::string whyNotShort(const Product &product) {
  for (Value factor : product.root->getOperands().take_front(2))
    if (Type element = graph::elementOf(factor); !element.isF32()) {
      std::string text;
      llvm::raw_string_ostream(text) << "a factor of its product is of " << element << ", not f32";
      return text;
    }
  auto right = product.root->getOperand(1).getDefiningOp<graph::ConstantOp>();
  auto stored = right ? dyn_cast<graph::StoredAttr>(right.getValue()) : nullptr;
  auto matmul = dyn_cast<graph::MatmulOp>(product.root);
  bool isRounded = matmul && matmul.getBlock(); // to 8 bits, which has less accuracy
  if (stored && stored.getCodes().getElementType().isInteger() && !isRounded)
    return "the weights of its product are integers already";
  if (isRounded && product.parts > 1)
    return "its product rounds rows in blocks, and has parts";
  if (product.triangle || product.limits)
    return "its product leaves out zeros";
  if (product.isOneRow)
    return "its product reads a matrix for a single row";
  return "";
}

std::string whyNotShort(const Mechanism &mechanism, Ops ops) {
  if (!mechanism.takesShort)
    return ("the mechanism '" + mechanism.name + "' has no such products").str();
  if (llvm::none_of(ops, graph::isContraction))
    return "it has no product";
  std::string why;
  if (&mechanism == &kAttention) {
    auto parts = readAttention(ops, why);
    if (parts && graph::elementOf(parts->scores.getResult()).isF64())
      why = "its numbers are f64";
    return why;
  }
  SmallVector<Value> results = resultsOf(ops);
  if (&mechanism == &kStitch)
    results.assign(1, betweenOf(ops));
  auto product = readProduct(ops, results, why);
  return product ? whyNotShort(*product) : why;
}

/// One product; after it elementwise ops of its shape, before it a transpose of its right operand.
Fit checkPlainProduct(Ops ops, std::string &why) {
  Operation *product = nullptr;
  for (Operation *op : ops)
    if (graph::isContraction(op)) {
      if (product)
        return refuse(why, named(op) + " is a second product");
      product = op;
    }
  for (Operation *op : ops) {
    if (op == product || isa<graph::BroadcastOp, graph::ConstantOp>(op))
      continue;
    bool isTransposedRight = isa<graph::TransposeOp>(op) &&
                             isa_and_nonnull<graph::MatmulOp>(product) &&
                             llvm::all_of(op->getUses(), [&](OpOperand &use) {
                               return use.getOwner() == product && use.getOperandNumber() == 1;
                             });
    if (isTransposedRight)
      continue;
    if (!graph::isElementwise(op))
      return refuse(why, named(op) + " is not computed element by element");
    if (product && graph::dimsOf(op->getResult(0)) != graph::dimsOf(product->getResult(0)))
      return refuse(why, named(op) + " has another shape than the product");
    if (product && llvm::is_contained(product->getOperands(), op->getResult(0)))
      return refuse(why, named(op) + " makes an operand of the product, which reads it often");
  }
  return product ? Fit::Full : Fit::Partial;
}

} // namespace heddle::mechanism
