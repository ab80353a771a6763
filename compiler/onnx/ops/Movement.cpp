// Movement: constants, shapes, and ops that rearrange elements without indices.

#include "compiler/onnx/Agreement.h"
#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/RunTimeAxes.h"
#include "compiler/onnx/ops/attention/Past.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static Value constantOf(Node &n, const proto::TensorProto &tensor) {
  return n.constant(n.reader.readTensor(tensor));
}

static void importConstant(Node &n) {
  if (n.message.attribute_size() != 1)
    refuse("a constant must have exactly one attribute, but has " +
           Twine(n.message.attribute_size()));
  std::string name = n.message.attribute(0).name();
  const auto *value = n.attribute(name);
  if (!value)
    refuse("attribute '" + name + "' is not given");
  auto floats = [&](ArrayRef<float> values, RankedTensorType type) {
    return n.constant(DenseElementsAttr::get(type, values));
  };
  if (name == "value" && value->has_t())
    return n.set(constantOf(n, value->t()));
  if (name == "value_int")
    return n.set(n.integerScalar(n.i64(), value->i()));
  if (name == "value_float")
    return n.set(floats(value->f(), RankedTensorType::get({}, n.f32())));
  if (name == "value_ints")
    return n.set(n.integers(Ints(value->ints().begin(), value->ints().end())));
  if (name == "value_floats")
    return n.set(floats(SmallVector<float>(value->floats().begin(), value->floats().end()),
                        RankedTensorType::get({(int64_t)value->floats_size()}, n.f32())));
  if (name == "value_string" || name == "value_strings") {
    proto::TensorProto tensor;
    tensor.set_data_type(proto::TensorProto::STRING);
    if (name == "value_string")
      tensor.add_string_data(value->s());
    for (const std::string &text : value->strings())
      tensor.add_string_data(text);
    if (name == "value_strings")
      tensor.add_dims(value->strings_size());
    return n.set(constantOf(n, tensor));
  }
  refuse("constants of the form '" + name + "' are not supported");
}

static void importShape(Node &n) {
  DimVector dims = dimsOf(n.in(0));
  int64_t rank = dims.size();
  auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  int64_t start = place(n.getInt("start", 0)), end = place(n.getInt("end", rank));
  n.set(n.sizes(ArrayRef<Dim>(dims).slice(start, std::max<int64_t>(0, end - start))));
}

static void importSize(Node &n) { n.set(n.size(elementCount(dimsOf(n.in(0))))); }

/// The sizes that a request for a shape means: 0 copies, one -1 is what is left.
static DimVector resolveShape(ArrayRef<Dim> from, DimVector to, bool allowZero) {
  int64_t unknown = -1;
  Dim others(1);
  for (auto [i, dim] : llvm::enumerate(to)) {
    if (dim.isConstant(0) && !allowZero) {
      if (i >= from.size())
        refuse("the shape copies dimension " + Twine(i) + " of " + textOf(from));
      dim = from[i];
    }
    if (dim.isConstant(-1)) {
      if (unknown >= 0)
        refuse("the shape " + textOf(to) + " has more than one -1");
      unknown = i;
    } else if (dim.constant().value_or(0) < 0) {
      refuse("the shape " + textOf(to) + " has a negative size");
    } else {
      others = others * dim;
    }
  }
  if (unknown >= 0) {
    if (others.isConstant(0))
      refuse("the shape " + textOf(to) + " leaves -1 undetermined");
    to[unknown] = elementCount(from).floorDiv(others);
  }
  auto before = elementCount(from).constant(), after = elementCount(to).constant();
  if (before && after && *before != *after)
    refuse("input of shape " + textOf(from) + " cannot be reshaped to " + textOf(to));
  return to;
}

static void refuseManyDimensions(int64_t rank) {
  if (rank > kMostRank)
    refuse("the result has rank " + Twine(rank) + ", but at most " + Twine(kMostRank) +
           " is supported");
}

/// A shape known only at run time, with as many entries as the result has dimensions.
static Value withKnownRank(Node &n, Value shape) {
  auto known = rankOf(shape) == 1 ? dimsOf(shape)[0].constant() : std::nullopt;
  auto rank = known ? known : n.declaredRank(0);
  if (rank)
    refuseManyDimensions(*rank);
  if (known)
    return shape;
  if (!rank)
    refuse("the rank of the result is not known when the model is compiled",
           "give the shape a constant length, or declare the rank of the result in value_info");
  return n.reshape(shape, {Dim(*rank)});
}

static Value reshapeAtRunTime(Node &n, Value x, Value shape, bool allowZero) {
  DimVector dims;
  for (int64_t i = 0, rank = *dimsOf(shape)[0].constant(); i < rank; ++i)
    dims.push_back(n.freshSymbol("reshape"));
  return n.typed<DynamicReshapeOp>(n.tensor(dims, elementOf(x)), {x, shape},
                                   {n.flag("allow_zero", allowZero)});
}

static void importReshape(Node &n) {
  Value x = n.in(0);
  bool allowZero = n.getInt("allowzero", 0);
  if (n.opset < 5) {
    Ints asked = n.getInts("shape", {});
    return n.set(n.reshape(x, resolveShape(dimsOf(x), {asked.begin(), asked.end()}, false)));
  }
  if (auto sizes = n.sizesFrom(1))
    return n.set(n.reshape(x, resolveShape(dimsOf(x), *sizes, allowZero)));
  n.set(reshapeAtRunTime(n, x, withKnownRank(n, n.in(1)), allowZero));
}

static void importFlatten(Node &n) {
  DimVector dims = dimsOf(n.in(0));
  int64_t rank = dims.size(), axis = n.getInt("axis", 1);
  axis = axis == rank ? rank : n.axis(axis, rank);
  n.set(n.reshape(n.in(0), {elementCount(ArrayRef<Dim>(dims).take_front(axis)),
                            elementCount(ArrayRef<Dim>(dims).drop_front(axis))}));
}

static void importSqueeze(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  if (n.isLate(1)) {
    auto count = elementCount(dimsOf(n.in(1))).constant();
    int64_t rank = count ? rankOf(x) - *count : n.declaredRank(0).value_or(-1);
    if (rank < 0 || rank > rankOf(x))
      refuse("the rank of the result is not known when the model is compiled",
             "give 'axes' a constant length, or declare the rank of the result in value_info");
    RunTimeAxes axes(n, n.in(1), rankOf(x));
    Value sizes = n.sliceAlong(axes.sortedSizes(x), 0, Dim(0), Dim(rank));
    return n.set(reshapeAtRunTime(n, x, sizes, /*allowZero=*/true));
  }
  if (auto asked = n.intsFrom(1, "axes"))
    return n.set(n.squeeze(x, n.axes(*asked, rankOf(x))));
  Ints axes;
  for (auto [i, dim] : llvm::enumerate(dims))
    if (n.reader.ask(n, isOne(dim), false))
      axes.push_back(i);
  n.set(n.squeeze(x, axes));
}

static void importUnsqueeze(Node &n) {
  Value x = n.in(0);
  if (!n.isLate(1)) {
    auto asked = n.intsFrom(1, "axes");
    if (!asked)
      refuse("'axes' is missing");
    return n.set(n.unsqueeze(x, n.axes(*asked, rankOf(x) + asked->size())));
  }
  auto count = elementCount(dimsOf(n.in(1))).constant();
  int64_t rank = count ? rankOf(x) + *count : n.declaredRank(0).value_or(-1);
  if (rank < rankOf(x))
    refuse("the rank of the result is not known when the model is compiled",
           "give 'axes' a constant length, or declare the rank of the result in value_info");
  refuseManyDimensions(rank);
  // The dimensions that are not new have the sizes of x in order: as many as are before each.
  RunTimeAxes axes(n, n.in(1), rank);
  Value one = n.integerScalar(n.i64(), 1), isOld = n.sub(one, axes.mask());
  Value before = n.infer<CumsumOp>(
      isOld, {n.integer("axis", 0), n.flag("exclusive", true), n.flag("reverse", false)});
  DimVector padded = dimsOf(x);
  padded.push_back(Dim(1)); // looked up by a new dimension after the last one
  Value sizes = n.gather(n.sizes(padded), n.min(before, rankOf(x)), 0);
  Value shape = n.select(n.cast(isOld, n.i1()), sizes, one);
  n.set(reshapeAtRunTime(n, x, shape, /*allowZero=*/true));
}

static void importTranspose(Node &n) {
  Ints reversed = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rankOf(n.in(0)))));
  n.set(n.transpose(n.in(0), n.getInts("perm", reversed)));
}

static void importExpand(Node &n) {
  Value x = n.in(0);
  if (auto sizes = n.sizesFrom(1))
    return n.set(n.broadcast(x, n.broadcastDims(dimsOf(x), *sizes)));
  Value shape = n.in(1);
  if (auto declared = n.declaredRank(0);
      declared && rankOf(shape) == 1 && !dimsOf(shape)[0].constant()) {
    Dim missing = Dim(*declared) - dimsOf(shape)[0]; // leading sizes are 1
    shape = n.pad(shape, n.scalar(elementOf(shape), 1), {missing}, {Dim(0)});
  }
  shape = withKnownRank(n, shape);
  DimVector dims;
  for (int64_t i = 0, rank = std::max(*dimsOf(shape)[0].constant(), rankOf(x)); i < rank; ++i)
    dims.push_back(n.freshSymbol("expand"));
  n.set(n.typed<DynamicBroadcastOp>(n.tensor(dims, elementOf(x)), {x, shape}));
}

static void importTile(Node &n) {
  Value x = n.in(0);
  DimVector from = dimsOf(x), spread, wide, to;
  DimVector repeats;
  if (n.opset < 6) {
    auto tiles = n.sizesFrom(1), axis = n.sizesFrom(2);
    if (!tiles || !axis || tiles->size() != 1 || axis->size() != 1 || !(*axis)[0].constant())
      refuse("'tiles' and 'axis' must be known when the model is compiled");
    repeats.assign(from.size(), Dim(1));
    repeats[n.axis(*(*axis)[0].constant(), from.size())] = (*tiles)[0];
  } else {
    Value asked = n.vector(1, "repeats");
    if (!dimsOf(asked)[0].constant())
      asked = n.reshape(asked, {Dim(from.size())});
    repeats = n.bindSizes(asked, "repeats");
  }
  if (repeats.size() != from.size())
    refuse("'repeats' has " + Twine(repeats.size()) + " entries for rank " + Twine(from.size()));
  // [a, b] -> [1, a, 1, b] -> [r, a, s, b] -> [r a, s b], where a repetition is not 1.
  for (auto [dim, times] : llvm::zip(from, repeats)) {
    if (!times.isConstant(1)) {
      spread.push_back(Dim(1));
      wide.push_back(times);
    }
    spread.push_back(dim);
    wide.push_back(dim);
    to.push_back(dim * times);
  }
  n.set(n.reshape(n.broadcast(n.reshape(x, spread), wide), to));
}

static void importConcat(Node &n) {
  if (n.inputs() == 0)
    refuse("it has no inputs");
  if (n.opset >= 4 && !n.hasAttribute("axis"))
    refuse("'axis' is missing");
  for (size_t i = 1; i < n.inputs(); ++i)
    if (elementOf(n.in(i)) != elementOf(n.in(0)))
      refuse("inputs have element types " + nameOf(elementOf(n.in(0))) + " and " +
             nameOf(elementOf(n.in(i))));
  int64_t axis = n.axis(n.getInt("axis", 1), rankOf(n.in(0)));
  if (n.inputs() == 1)
    return n.set(n.in(0));
  n.set(n.inputs() == 2 ? appendToPast(n, n.in(0), n.in(1), axis) : n.concat(n.operands, axis));
}

static void importSplit(Node &n) {
  Value x = n.in(0);
  int64_t axis = n.axis(n.getInt("axis", 0), rankOf(x));
  Dim total = dimsOf(x)[axis];
  DimVector sizes;
  if (n.has(1)) {
    Value asked = n.vector(1, "split");
    if (!dimsOf(asked)[0].constant())
      asked = n.reshape(asked, {Dim(n.outputs())});
    sizes = n.bindSizes(asked, "split");
  } else if (auto asked = n.getInts("split")) {
    sizes.assign(asked->begin(), asked->end());
  } else {
    // Equal parts, the last one smaller where the size does not divide.
    int64_t count = n.getInt("num_outputs", n.outputs());
    if (count < 1 || count > 65536)
      refuse("the number of outputs is " + Twine(count) + ", but must be from 1 to 65536");
    Dim each = total.ceilDiv(Dim(count));
    sizes.assign(count - 1, each);
    sizes.push_back(total - each * Dim(count - 1));
  }
  if (sizes.size() < n.outputs())
    refuse("it has " + Twine(n.outputs()) + " outputs, but 'split' has " + Twine(sizes.size()) +
           " entries");
  Dim start(0), sum(0);
  for (const Dim &size : sizes)
    sum = sum + size;
  agreed(n, sum, total, "'split' adds up to %lld, but the size is %lld");
  for (size_t i = 0; i < n.outputs(); ++i) {
    n.set(i, n.sliceAlong(x, axis, start, sizes[i]));
    start = start + sizes[i];
  }
}

static void importConstantOfShape(Node &n) {
  Value value = n.scalar(n.f32(), 0);
  if (const auto *given = n.attribute("value")) {
    value = constantOf(n, given->t());
    if (elementCount(dimsOf(value)) != Dim(1))
      refuse("'value' must have one element");
    value = n.reshape(value, {});
  }
  if (auto sizes = n.sizesFrom(0)) {
    for (const Dim &size : *sizes)
      if (size.constant().value_or(0) < 0)
        refuse("the shape " + textOf(*sizes) + " has a negative size");
    return n.set(n.broadcast(value, *sizes));
  }
  n.set(n.broadcast(value, n.bindSizes(withKnownRank(n, n.in(0)), "shape")));
}

static void importRange(Node &n) {
  Value start = n.in(0), limit = n.in(1), delta = n.in(2);
  for (Value *value : {&start, &limit, &delta})
    *value = n.reshape(*value, {});
  auto first = shapeValue(start), last = shapeValue(limit), step = shapeValue(delta);
  Type element = elementOf(start);
  int64_t width = step ? (*step)[0].constant().value_or(0) : 0;
  if (first && last && width != 0 && width != INT64_MIN) {
    Dim distance = width > 0 ? (*last)[0] - (*first)[0] : (*first)[0] - (*last)[0];
    Dim count = distance.ceilDiv(Dim(std::abs(width)));
    if (!count.isNeverNegative())
      count = Dim::max(count, Dim(0));
    Value places = n.iota(count, 0, element);
    Value scaled = width == 1 ? places : n.mul(places, delta);
    return n.set((*first)[0].isConstant(0) ? scaled : n.add(scaled, start));
  }
  n.set(n.typed<RangeOp>(n.tensor(n.freshSymbol("range"), element), {start, limit, delta}));
}

static void importDepthToSpace(Node &n) {
  DimVector d = dimsOf(n.in(0));
  Dim b(n.getInt("blocksize", 0));
  if (d.size() != 4 || b.constant().value_or(0) < 1)
    refuse("the input must have rank 4 and 'blocksize' be at least 1");
  Dim c = d[1].floorDiv(b * b);
  DimVector to = {d[0], c, d[2] * b, d[3] * b};
  std::string mode = n.getText("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    refuse("'mode' is '" + mode + "', but must be 'DCR' or 'CRD'");
  if (mode == "CRD") {
    Value x = n.reshape(n.in(0), {d[0], c, b, b, d[2], d[3]});
    return n.set(n.reshape(n.transpose(x, {0, 1, 4, 2, 5, 3}), to));
  }
  Value x = n.reshape(n.in(0), {d[0], b, b, c, d[2], d[3]});
  n.set(n.reshape(n.transpose(x, {0, 3, 4, 1, 5, 2}), to));
}

static void importSpaceToDepth(Node &n) {
  DimVector d = dimsOf(n.in(0));
  Dim b(n.getInt("blocksize", 0));
  if (d.size() != 4 || b.constant().value_or(0) < 1)
    refuse("the input must have rank 4 and 'blocksize' be at least 1");
  Dim h = d[2].floorDiv(b), w = d[3].floorDiv(b);
  Value x = n.reshape(n.in(0), {d[0], d[1], h, b, w, b});
  n.set(n.reshape(n.transpose(x, {0, 3, 5, 1, 2, 4}), {d[0], d[1] * b * b, h, w}));
}

OpRows movementRows() {
  static const OpRow rows[] = {
      {"Constant", "", 1, 27, importConstant, false, "not sparse"},
      {"Shape", "", 1, 27, importShape},
      {"Size", "", 1, 27, importSize},
      {"Reshape", "", 1, 27, importReshape, true,
       "a size that is 0 in one run only is 0, and not the input's"},
      {"Flatten", "", 1, 27, importFlatten, true},
      {"Squeeze", "", 1, 27, importSqueeze, true},
      {"Unsqueeze", "", 1, 27, importUnsqueeze, true},
      {"Transpose", "", 1, 27, importTranspose, true},
      {"Expand", "", 8, 27, importExpand, true},
      {"Tile", "", 1, 27, importTile, true},
      {"Concat", "", 1, 27, importConcat},
      {"Split", "", 1, 27, importSplit},
      {"ConstantOfShape", "", 9, 27, importConstantOfShape},
      {"Range", "", 11, 27, importRange},
      {"DepthToSpace", "", 1, 27, importDepthToSpace},
      {"SpaceToDepth", "", 1, 27, importSpaceToDepth},
  };
  return rows;
}

} // namespace heddle::onnx
