// integers: products and convolutions of 8-bit integers, bare and as quantised models spell
// them. All sums are exact.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

namespace {
struct Pair {
  const char *left, *right;
};
constexpr Pair kPairs[] = {{"ui8", "i8"}, {"i8", "i8"}, {"ui8", "ui8"}, {"i8", "ui8"}};

Fill allOf(const string &type, bool isLow) {
  double number = type == "i8" ? (isLow ? -128 : 127) : (isLow ? 0 : 255);
  return Fill::range(number, number);
}

string text(std::initializer_list<int64_t> sizes) {
  string result;
  for (int64_t size : sizes)
    result += (result.empty() ? "[" : ", ") + std::to_string(size);
  return result + "]";
}
} // namespace

static void addMatmul(Cases &cases, Pair types, const string &left, const string &right,
                      const string &result, bool isWeight, std::vector<Sizes> runs = {}) {
  string name = string(types.left) + left + " " + types.right + right;
  cases.push_back({"integers/" + name + (isWeight ? " weight" : ""),
                   [=](Model &m) {
                     Fill fill = Fill::range(-128, 255);
                     Value a = m.input(types.left + left, fill);
                     Value b = isWeight ? m.constant(types.right + right, fill)
                                        : m.input(types.right + right, fill);
                     m.output(m.op("matmul", {a, b}, "", "i32" + result));
                   },
                   std::move(runs)});
}

static void addMatmuls(Cases &cases) {
  const int64_t sizes[][3] = {{1, 1, 1},   {3, 2, 5},   {7, 3, 17},   {16, 4, 16},  {33, 5, 49},
                              {13, 7, 64}, {1, 64, 33}, {5, 66, 70},  {50, 127, 1}, {2, 0, 5},
                              {0, 3, 4},   {5, 7, 0},   {48, 300, 65}};
  for (Pair types : kPairs)
    for (bool isWeight : {false, true}) {
      for (auto [rows, depth, columns] : sizes)
        addMatmul(cases, types, text({rows, depth}), text({depth, columns}), text({rows, columns}),
                  isWeight);
      addMatmul(cases, types, "[2, 1, 7, 33]", "[1, 3, 33, 17]", "[2, 3, 7, 17]", isWeight);
      addMatmul(cases, types, "[n, 3, 18]", "[1, 18, 40]", "[n, 3, 40]", isWeight,
                {{{"n", 1}}, {{"n", 21}}, {{"n", 0}}});
      for (bool isLow : {false, true})
        cases.push_back({string("integers/extremes ") + types.left + " " + types.right +
                             (isWeight ? " weight" : "") + (isLow ? " low" : " high"),
                         [=](Model &m) {
                           string right = types.right + string("[130, 48]");
                           Fill fill = allOf(types.right, isLow);
                           Value a =
                               m.input(types.left + string("[9, 130]"), allOf(types.left, isLow));
                           Value c =
                               m.input(types.left + string("[9, 130]"), allOf(types.left, !isLow));
                           Value b = isWeight ? m.constant(right, fill) : m.input(right, fill);
                           m.output(m.op("matmul", {a, b}, "", "i32[9, 48]"));
                           m.output(m.op("matmul", {c, b}, "", "i32[9, 48]"));
                         },
                         {}});
    }
  for (Pair types : kPairs)
    addMatmul(cases, types, "[n, k]", "[k, m]", "[n, m]", false,
              {{{"n", 3}, {"m", 17}, {"k", 7}},
               {{"n", 33}, {"m", 1}, {"k", 50}},
               {{"n", 2}, {"m", 16}, {"k", 0}},
               {{"n", 0}, {"m", 4}, {"k", 2}},
               {{"n", 1}, {"m", 70}, {"k", 3}}});
}

namespace {
struct Image {
  const char *name, *x, *w, *result, *attributes;
};
} // namespace

static const char kPlain[] = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = "
                             "array<i64: 0, 0>, high = array<i64: 0, 0>";
static const char kBorder[] = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = "
                              "array<i64: 1, 1>, high = array<i64: 1, 1>";
static const char kUneven[] = "strides = array<i64: 2, 1>, dilations = array<i64: 1, 2>, low = "
                              "array<i64: 0, 2>, high = array<i64: 2, 1>";
static const Image kImages[] = {
    {"1x1", "[2, 7, 5, 9]", "[17, 7, 1, 1]", "[2, 17, 5, 9]", kPlain},
    {"1x1 wide", "[1, 64, 7, 7]", "[80, 64, 1, 1]", "[1, 80, 7, 7]", kPlain},
    {"3x3", "[1, 3, 15, 17]", "[16, 3, 3, 3]", "[1, 16, 15, 17]", kBorder},
    {"3x3 wide", "[2, 33, 7, 7]", "[49, 33, 3, 3]", "[2, 49, 7, 7]", kBorder},
    {"3x3 inside", "[1, 6, 7, 9]", "[5, 6, 3, 3]", "[1, 5, 5, 7]", kPlain},
    {"uneven", "[1, 5, 10, 11]", "[7, 5, 3, 3]", "[1, 7, 5, 10]", kUneven},
    {"groups", "[1, 12, 7, 9]", "[18, 4, 3, 3]", "[1, 18, 7, 9]", "groups = 3"},
    {"odd groups", "[1, 9, 7, 9]", "[6, 3, 3, 3]", "[1, 6, 7, 9]", "groups = 3"},
    {"depthwise", "[2, 33, 7, 9]", "[33, 1, 3, 3]", "[2, 33, 7, 9]", "groups = 33"},
    {"dynamic", "[n, 5, h, w]", "[17, 5, 3, 3]", "[n, 17, h, w]", kBorder},
    {"dynamic depthwise", "[n, 20, h, w]", "[20, 1, 3, 3]", "[n, 20, h, w]", "groups = 20"},
    {"empty batch", "[0, 3, 5, 5]", "[4, 3, 3, 3]", "[0, 4, 5, 5]", kBorder},
};
static const std::vector<Sizes> kImageRuns = {{{"n", 1}, {"h", 7}, {"w", 9}},
                                              {{"n", 3}, {"h", 16}, {"w", 1}}};

static string attributesOf(const Image &image) {
  string attributes = image.attributes;
  return attributes[0] == 'g' ? string(kBorder) + ", " + attributes : attributes;
}

static std::vector<Sizes> runsOf(const Image &image) {
  return string(image.name).starts_with("dynamic") ? kImageRuns : std::vector<Sizes>();
}

static void addConvolutions(Cases &cases) {
  for (const Image &image : kImages)
    for (Pair types : kPairs)
      addBoth(cases,
              {string("integers/conv ") + image.name + " " + types.left + " " + types.right,
               [=](Model &m) {
                 Fill fill = Fill::range(-128, 255);
                 Value x = m.input(string(types.left) + image.x, fill);
                 Value w = m.weight(string(types.right) + image.w, fill);
                 m.output(m.op("conv", {x, w}, attributesOf(image), string("i32") + image.result));
               },
               runsOf(image)});
}

static Value castTo(Model &m, const string &element, Value x) {
  auto type = graph::tensorOf(&m.context, graph::dimsOf(x), m.element(element));
  mlir::OpBuilder builder(&m.context);
  builder.setInsertionPointAfterValue(x);
  return builder.create<graph::CastOp>(x.getLoc(), type, x).getResult();
}

/// cast<i32>(x) - zero, as importers write it.
static Value centred(Model &m, Value x, Value zero) {
  Value y = castTo(m, "i32", x);
  return m.op("sub", {y, m.broadcastTo(castTo(m, "i32", zero), y)});
}

static Value dequantised(Model &m, Value x, Value zero, Value scale) {
  Value y = castTo(m, "f32", centred(m, x, zero));
  return m.op("mul", {y, m.broadcastTo(scale, y)});
}

/// round(x / scale) + zero within the bounds of the type, as importers write it.
static Value requantised(Model &m, Value x, double scale, double zero, const string &element) {
  bool isSigned = element == "i8";
  auto with = [&](const char *op, Value y, double number) {
    return m.op(op, {y, m.broadcastTo(m.scalar("f32", number), y)});
  };
  Value y = with("add", m.op("round", {with("div", x, scale)}), zero);
  y = with("min", with("max", y, isSigned ? -128 : 0), isSigned ? 127 : 255);
  return castTo(m, element, y);
}

static void addQuantised(Cases &cases) {
  for (Pair types : kPairs)
    for (bool isWeight : {false, true})
      for (bool isKnown : {false, true})
        cases.push_back(
            {string("integers/zero points ") + types.left + " " + types.right +
                 (isWeight ? " weight" : "") + (isKnown ? " known" : ""),
             [=](Model &m) {
               Fill fill = Fill::range(-128, 255);
               auto make = [&](bool known, const string &type) {
                 return known ? m.constant(type, fill) : m.input(type, fill);
               };
               string left = types.left, right = types.right;
               Value a = centred(m, m.input(left + "[n, 19]", fill), make(isKnown, left + "[]"));
               Value b = make(isWeight, right + "[19, 37]");
               for (string sizes : {"[]", "[37]"})
                 m.output(m.op("matmul", {a, centred(m, b, make(isKnown, right + sizes))}, "",
                               "i32[n, 37]"));
             },
             {{{"n", 1}}, {{"n", 17}}}});
  for (const Image &image : kImages)
    for (Pair types : kPairs)
      cases.push_back(
          {string("integers/conv zero points ") + image.name + " " + types.left + " " + types.right,
           [=](Model &m) {
             Fill fill = Fill::range(-128, 255);
             string left = types.left, right = types.right;
             Value known = m.constant(left + "[]", fill), w;
             w = centred(m, m.constant(right + image.w, fill), m.constant(right + "[]", fill));
             for (Value zero : {known, m.input(left + "[]", fill)})
               m.output(m.op("conv", {centred(m, m.input(left + image.x, fill), zero), w},
                             attributesOf(image), string("i32") + image.result));
           },
           runsOf(image)});
}

/// Requantised products that are read in parts.
static void addParts(Cases &cases) {
  for (Pair types : kPairs)
    for (bool isImage : {false, true})
      cases.push_back(
          {string("integers/parts ") + types.left + " " + types.right + (isImage ? " conv" : ""),
           [=](Model &m) {
             Fill fill = Fill::range(-128, 255);
             string left = types.left, right = types.right;
             string rest = isImage ? ", 5, 7]" : "]", zeros = isImage ? ", 0, 0>" : ">";
             Value x = m.input(left + "[n, 19" + rest, fill);
             Value w = m.constant(right + (isImage ? "[80, 19, 1, 1]" : "[19, 80]"), fill);
             Value sum = isImage ? m.op("conv", {x, w}, kPlain, "i32[n, 80, 5, 7]")
                                 : m.op("matmul", {x, w}, "", "i32[n, 80]");
             Value y = requantised(m, castTo(m, "f32", sum), 1024, 100, "ui8");
             auto part = [&](const char *start) {
               string attributes = string("starts = #graph.dims<0, ") + start + zeros +
                                   ", steps = array<i64: 1, 1" + (isImage ? ", 1, 1>" : ">");
               return m.op("slice", {y}, attributes, "ui8[n, 40" + rest);
             };
             Value first = part("0"), second = part("40");
             m.output(first);
             m.output(m.op("mul", {castTo(m, "f32", second), castTo(m, "f32", second)}));
           },
           {{{"n", 1}}, {{"n", 17}}, {{"n", 0}}}});
}

/// The pairs of a model between float products. The scales are powers of two, so that sums of
/// floats are exact, too.
static void addPairs(Cases &cases) {
  for (Pair types : kPairs)
    for (bool isTurned : {false, true}) {
      string left = types.left, right = types.right;
      cases.push_back(
          {"integers/pairs " + left + " " + right + (isTurned ? " turned" : ""),
           [=](Model &m) {
             Fill fill = Fill::range(-128, 255);
             Value a = dequantised(m, m.input(left + "[n, 19]", fill),
                                   m.constant(left + "[]", fill), m.scalar("f32", 0.25));
             Value b = m.constant(right + (isTurned ? "[37, 19]" : "[19, 37]"), fill);
             b = dequantised(m, b, m.constant(right + "[]", fill), m.scalar("f32", 0.5));
             if (isTurned)
               b = m.op("transpose", {b}, "permutation = array<i64: 1, 0>");
             Value y = m.op("matmul", {a, b}, "", "f32[n, 37]");
             y = m.op("add", {y, m.broadcastTo(m.input("f32[37]"), y)});
             m.output(y, Tolerance::close(m.element("f32")));
             // Sums that are exact do not round to two sides.
             m.output(requantised(m, m.op("matmul", {a, b}, "", "f32[n, 37]"), 64, 3, left));
           },
           {{{"n", 1}}, {{"n", 17}}}});
    }
  for (const Image &image : kImages)
    for (Pair types : kPairs)
      cases.push_back(
          {string("integers/conv pairs ") + image.name + " " + types.left + " " + types.right,
           [=](Model &m) {
             Fill fill = Fill::range(-128, 255);
             string left = types.left, right = types.right;
             Value x = dequantised(m, m.input(left + image.x, fill), m.constant(left + "[]", fill),
                                   m.scalar("f32", 0.25));
             Value w = dequantised(m, m.constant(right + image.w, fill),
                                   m.constant(right + "[]", fill), m.scalar("f32", 2));
             string sizes = image.result;
             Value y = m.op("conv", {x, w}, attributesOf(image), "f32" + sizes);
             m.output(requantised(m, y, 32, 5, left));
           },
           runsOf(image)});
}

/// 8 bits between ops of one group, which need not become integers.
static void addBetween(Cases &cases) {
  for (string type : {"i8", "ui8"})
    for (double range : {200.0, 1e9})
      cases.push_back({"integers/between " + type + (range > 1000 ? " far" : ""),
                       [=](Model &m) {
                         Value x = m.input("f32[n, 37]", Fill::range(-range, range));
                         Value zero = m.constant(type + "[]", Fill::range(0, 100));
                         Value y = requantised(m, x, 0.5, 3, type);
                         y = dequantised(m, y, zero, m.scalar("f32", 0.25));
                         m.output(m.op("add", {y, m.broadcastTo(m.input("f32[37]"), y)}));
                       },
                       {{{"n", 1}}, {{"n", 17}}}});
}

/// A matrix that is stored as integers of so many bits, in blocks of rows.
static Value storedMatrix(Model &m, int64_t depth, int64_t columns, int64_t block,
                          const string &codes, Fill fill, Fill zeros) {
  auto constant = [&](const string &type, int64_t rows, Fill fill) {
    string sizes = "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
    Value made = m.constant(type + sizes, fill);
    return made.getDefiningOp<graph::ConstantOp>().getValue();
  };
  auto type = mlir::RankedTensorType::get({depth, columns}, m.element("f32"));
  mlir::ElementsAttr none;
  return m.constant(graph::StoredAttr::get(
      &m.context, type, constant(codes, depth, fill),
      constant("f32", depth / block, Fill::range(0.01, 0.1)),
      zeros.high < zeros.low ? none : constant("f32", depth / block, zeros)));
}

/// Rows that are rounded in blocks, and products by what is stored in the same blocks.
static void addBlocks(Cases &cases) {
  std::vector<Sizes> runs;
  for (int64_t rows : {0, 1, 2, 7, 16, 33})
    runs.push_back({{"n", rows}});
  Fill none = Fill::range(1, 0), half = Fill::range(8, 8), any = Fill::range(0.5, 14);
  struct {
    string name, codes;
    int64_t depth, columns, block;
    Fill fill, zeros;
  } kinds[] = {{"u4", "ui8", 96, 50, 16, Fill::range(0, 15), half},
               {"u4 with zeros", "ui8", 128, 33, 32, Fill::range(0, 15), any},
               {"u4 less 7", "ui8", 64, 20, 32, Fill::range(0, 15), Fill::range(7, 7)},
               {"i4", "i8", 128, 16, 64, Fill::range(-8, 7), none},
               {"u8", "ui8", 64, 40, 32, Fill::range(0, 255), Fill::range(128, 128)},
               {"u8 with zeros", "ui8", 256, 17, 128, Fill::range(0, 255), Fill::range(3, 250)},
               {"i8", "i8", 512, 31, 256, Fill::range(-128, 127), none}};
  // A host sums a block's products as integers, a device all of them as f32: each addition rounds.
  for (auto &kind : kinds)
    for (bool isAny : {false, true})
      cases.push_back({"integers/blocks " + kind.name + (isAny ? " any" : ""),
                       [=](Model &m) {
                         string depth = std::to_string(kind.depth);
                         Value x = m.input("f32[n, " + depth + "]", isAny ? Fill::any() : Fill());
                         Value w = storedMatrix(m, kind.depth, kind.columns, kind.block, kind.codes,
                                                kind.fill, kind.zeros);
                         string result = "f32[n, " + std::to_string(kind.columns) + "]";
                         Value y = m.op("matmul", {x, w}, "block = " + std::to_string(kind.block),
                                        result);
                         double scale = isForDevice() ? 2.0 * kind.depth : 100;
                         m.output(m.op("neg", {y}), Tolerance::close(m.element("f32"), scale));
                       },
                       runs});
  // Many rows of bf16 meet weights that are made bf16. Rows of -1, 0 and 1 are the same in 8 bits.
  for (auto &kind : kinds) {
    double largest = 0.1 * std::max(std::abs(kind.fill.low), kind.fill.high);
    Case one{"integers/blocks of bf16 " + kind.name,
             [=](Model &m) {
               string depth = std::to_string(kind.depth);
               Value codes = m.input("i8[n, " + depth + "]", Fill::range(-1, 1));
               Value x = m.op("cast", {codes}, "", "f32[n, " + depth + "]");
               Value w = storedMatrix(m, kind.depth, kind.columns, kind.block, kind.codes,
                                      kind.fill, kind.zeros);
               string result = "f32[n, " + std::to_string(kind.columns) + "]";
               Value y = m.op("matmul", {x, w}, "block = " + std::to_string(kind.block), result);
               m.output(m.op("neg", {y}),
                        {0.01, largest * std::sqrt(static_cast<double>(kind.depth)) / 128});
             },
             {{{"n", 0}}, {{"n", 1}}, {{"n", 48}}, {{"n", 49}}, {{"n", 64}}, {{"n", 250}}}};
    one.isShort = one.needsMatrices = true;
    cases.push_back(one);
  }
  // Weights that are not stored so are multiplied element by element.
  for (bool isGiven : {false, true})
    cases.push_back({string("integers/blocks of ") + (isGiven ? "an input" : "other weights"),
                     [=](Model &m) {
                       Value x = m.input("f32[2, n, 48]", Fill::any());
                       Value w = isGiven ? m.input("f32[1, 48, 19]") : m.constant("f32[1, 48, 19]");
                       m.output(m.op("matmul", {x, w}, "block = 16", "f32[2, n, 19]"),
                                Tolerance::close(m.element("f32"), 40));
                     },
                     {{{"n", 0}}, {{"n", 1}}, {{"n", 5}}}});
}

void addIntegers(Cases &cases) {
  addBlocks(cases);
  addBetween(cases);
  addMatmuls(cases);
  addConvolutions(cases);
  addQuantised(cases);
  addParts(cases);
  addPairs(cases);
}

} // namespace heddle::ops
