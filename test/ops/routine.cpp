// routine: what routines of the runtime compute: selections, running sums, places, different
// rows, suppressed boxes, trees, transforms, and an op that this process has registered.

#include "test/ops/case.h"

#include <heddle/custom_op.h>

namespace heddle::ops {

using std::string;

/// Rows of `width` with few different numbers, and rows of any.
static void addUnique(Cases &cases, const string &type) {
  for (const char *sorted : {"true", "false"})
    cases.push_back({"routine/unique " + type + " " + sorted,
                     [=](Model &m) {
                       for (auto [width, fill] :
                            {std::pair("1", Fill::range(-30, 30)),
                             std::pair("3", Fill::range(-1, 1)), std::pair("1", Fill::any())}) {
                         Value x = m.input(type + "[n, " + width + "]", fill);
                         if (type[0] == 'f' && fill.kind != Fill::Any)
                           x = m.op("round", {x});
                         string found = "$u" + std::to_string(m.fills.size());
                         for (Value result :
                              m.ops("unique", {x}, string("sorted = ") + sorted,
                                    {"i64[" + found + "]", "i64[n]", "i64[" + found + "]"}))
                           m.output(result);
                       }
                     },
                     {{{"n", 1}}, {{"n", 47}}, {{"n", 500}}, {{"n", 0}}}});
}

static void addTopk(Cases &cases, const string &type) {
  for (const char *rest : {"", ", largest = false"})
    for (const Fill &fill : {Fill::any(), Fill::range(-9, 9)})
      cases.push_back({"routine/topk " + type + rest + (fill.kind == Fill::Any ? " any" : ""),
                       [=](Model &m) {
                         Value x = m.input(type + "[2, 2000, n]", fill);
                         for (int count : {1, 5, 100, 900, 2000}) {
                           string shape = "[2, " + std::to_string(count) + ", n]";
                           for (Value result : m.ops("topk", {x}, string("axis = 1") + rest,
                                                     {type + shape, "i64" + shape}))
                             m.output(result, Tolerance::exact());
                         }
                       },
                       {{{"n", 1}}, {{"n", 3}}, {{"n", 0}}}});
}

static void addFourier(Cases &cases, const string &type) {
  // Lengths: one, primes small and large, powers, products; of x and of the transform.
  static const int kLengths[] = {1, 2, 3, 5, 8, 12, 29, 30, 53, 64, 77, 100};
  for (const char *inverse : {"false", "true"})
    for (int parts : {1, 2})
      cases.push_back(
          {"routine/fourier " + type + " " + inverse + " " + std::to_string(parts),
           [=](Model &m) {
             Tolerance tolerance = type == "f64" ? Tolerance{1e-11, 1e-11} : Tolerance{1e-5, 1e-4};
             for (int length : kLengths)
               for (const char *size : {"60", "n"}) {
                 Value x = m.input(type + "[2, " + size + ", 3, " + std::to_string(parts) + "]");
                 string text = "axis = 1, inverse = " + string(inverse) +
                               ", length = #graph.dims<" + std::to_string(length) + ">";
                 m.output(
                     m.op("fourier", {x}, text, type + "[2, " + std::to_string(length) + ", 3, 2]"),
                     tolerance);
                 bool isBack = inverse == string("true");
                 int frequencies = isBack ? length : length / 2 + 1;
                 m.output(m.op("fourier", {x}, text + ", onesided = true",
                               type + "[2, " + std::to_string(frequencies) + ", 3, " +
                                   (isBack ? "1]" : "2]")),
                          tolerance);
               }
           },
           {{{"n", 1}}, {{"n", 31}}, {{"n", 0}}}});
}

/// Complete trees of a height, every second one higher by 1, over limits among the numbers of x.
static void addForest(Cases &cases, const string &type) {
  static const int kFeatures = 5;
  for (int trees : {1, 11, 70})
    for (int height : {0, 3, 5, 6})
      for (int combine : {0, 1, 2})
        cases.push_back(
            {"routine/forest " + type + " " + std::to_string(trees) + "x" + std::to_string(height) +
                 " " + std::to_string(combine),
             [=](Model &m) {
               std::vector<int64_t> nodes, roots;
               int64_t most = type == "f64" ? 0x3fe0 : 0x3f00;
               for (int tree = 0; tree < trees; ++tree) {
                 int64_t root = nodes.size() / 2, own = height + tree % 2;
                 int64_t size = (int64_t(2) << own) - 1;
                 roots.insert(roots.end(), {root, own});
                 for (int64_t i = 0; i < size; ++i) {
                   bool isLeaf = i >= size / 2;
                   int64_t limit =
                       int64_t(m.random() % 5) * (most << (type == "f64" ? 48 : 16)) / 4;
                   limit = m.random() % 2 ? limit : ~limit;
                   int64_t child = root + (isLeaf ? i : 2 * i + 1);
                   int64_t feature = isLeaf ? 0 : m.random() % (2 * kFeatures);
                   nodes.insert(nodes.end(), {isLeaf ? INT64_MAX : limit, feature | child << 32});
                 }
               }
               auto pairs = [&](const std::vector<int64_t> &numbers) {
                 auto shape = mlir::RankedTensorType::get({int64_t(numbers.size() / 2), 2},
                                                          m.element("i64"));
                 ArrayRef<char> bytes(reinterpret_cast<const char *>(numbers.data()),
                                      numbers.size() * 8);
                 return m.constant(graph::constantAttr(shape, bytes));
               };
               string count = std::to_string(nodes.size() / 2);
               Value weights = m.constant(type + "[" + count + ", 2]");
               Value x = m.input(type + "[n, " + std::to_string(kFeatures) + "]", Fill::any());
               m.output(m.op("forest", {x, pairs(nodes), pairs(roots), weights},
                             "mirrored = true, combine = " + std::to_string(combine),
                             type + "[n, 2]"),
                        Tolerance{1e-5, 1e-5});
             },
             {{{"n", 1}}, {{"n", 4}}, {{"n", 33}}, {{"n", 150}}, {{"n", 0}}}});
}

static void addSuppression(Cases &cases) {
  for (const char *rest : {"", ", bounded = true", ", center = true"})
    for (int most : {0, 3, 1000})
      cases.push_back(
          {"routine/suppress " + std::to_string(most) + rest,
           [=](Model &m) {
             Value boxes = m.input("f32[b, n, 4]", Fill::range(0, 3));
             Value scores = m.input("f32[b, 3, n]", Fill::range(0, 4));
             // Some scores are equal, some boxes too.
             Value limit = m.scalar("f32", 0.4), least = m.scalar("f32", 1);
             m.output(m.op("suppress",
                           {boxes, m.op("round", {scores}), m.scalar("i64", most), limit, least},
                           string(rest).substr(*rest ? 2 : 0), "i64[$found, 3]"));
           },
           {{{"b", 2}, {"n", 40}},
            {{"b", 1}, {"n", 1}},
            {{"b", 1}, {"n", 0}},
            {{"b", 0}, {"n", 4}},
            {{"b", 1}, {"n", 400}}}});
}

/// x in the order of falling places, and its number of elements.
static int32_t backwardsShape(heddle_custom_call_t *call) {
  call->outputs[0] = call->outputs[1] = call->inputs[0];
  call->outputs[1].dtype = HEDDLE_INT64;
  call->outputs[1].rank = 0;
  return 0;
}

static int32_t backwards(heddle_custom_call_t *call) {
  int64_t count = call->inputs[0].dims[0];
  for (int64_t i = 0; i < count; ++i)
    static_cast<float *>(call->outputs[0].data)[i] =
        static_cast<const float *>(call->inputs[0].data)[count - 1 - i];
  *static_cast<int64_t *>(call->outputs[1].data) = count;
  return 0;
}

static void addCustom(Cases &cases) {
  static const heddle_custom_op_t op = {HEDDLE_CUSTOM_OP_VERSION, "org.test", "Backwards",
                                        backwardsShape,           backwards,  nullptr};
  heddle_status_destroy(heddle_custom_op_register(&op));
  cases.push_back({"routine/custom",
                   [](Model &m) {
                     constexpr StringRef about("\0org.test\0Backwards\0\0", 21);
                     auto type =
                         mlir::RankedTensorType::get({(int64_t)about.size()}, m.element("ui8"));
                     Value text = m.constant(mlir::DenseElementsAttr::getFromRawBuffer(
                         type, ArrayRef<char>(about.data(), about.size())));
                     Value x = m.op("neg", {m.input("f32[n]")});
                     Values results = m.ops("custom", {text, x}, "", {"f32[$there]", "i64[]"});
                     m.output(m.op("exp", {results[0]}));
                     m.output(results[1]);
                   },
                   {{{"n", 5}}, {{"n", 0}}, {{"n", 1000}}}});
}

void addRoutines(Cases &cases) {
  addCustom(cases);
  for (const char *type :
       {"f32", "f64", "f16", "bf16", "i32", "i64", "i8", "ui8", "ui16", "ui32", "ui64", "i16"}) {
    addTopk(cases, type);
    addUnique(cases, type);
  }
  for (const char *shape : {"[n]", "[n, 3]", "[2, n, 70]", "[3, n, 1, 5]"})
    cases.push_back({string("routine/nonzero ") + shape,
                     [=](Model &m) {
                       Value x = m.input(string("i1") + shape);
                       int64_t rank = graph::rankOf(x);
                       m.output(
                           m.op("nonzero", {x}, "", "i64[" + std::to_string(rank) + ", $found]"));
                     },
                     {{{"n", 1}}, {{"n", 100}}, {{"n", 517}}, {{"n", 0}}}});
  cases.push_back(
      {"routine/nonzero scalar",
       [](Model &m) { m.output(m.op("nonzero", {m.input("i1[]")}, "", "i64[0, $found]")); },
       {}});
  for (const char *type : {"f32", "f64"}) {
    addFourier(cases, type);
    addForest(cases, type);
  }
  addSuppression(cases);
}

} // namespace heddle::ops
