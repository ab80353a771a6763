// products: matrix products, of arguments and of weights.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

static string sumOf(const string &type) { return type == "i8" || type == "ui8" ? "i32" : type; }

static void addProduct(Cases &cases, const string &type, const string &left, const string &right,
                       const string &result, std::vector<Sizes> runs = {}, bool isWeight = false) {
  Fill fill = type.find('f') == string::npos ? Fill::any() : Fill();
  cases.push_back({"product/" + type + left + " " + type + right + (isWeight ? " weight" : ""),
                   [=](Model &m) {
                     Value a = m.input(type + left, fill);
                     Value b =
                         isWeight ? m.constant(type + right, fill) : m.input(type + right, fill);
                     m.output(m.op("matmul", {a, b}, "", sumOf(type) + result),
                              Tolerance::close(m.element(type), 40));
                   },
                   std::move(runs)});
}

/// Versions of a product, at each bound and just above it.
static void addVersions(Cases &cases) {
  auto add = [&](const string &name, const string &versions, std::vector<Sizes> runs,
                 std::function<void(Model &)> build) {
    cases.push_back({"product/versions " + name, build, std::move(runs)});
    cases.back().card = "matmul";
    cases.back().versions = versions;
  };
  auto product = [](Model &m) {
    Value a = m.input("f32[3, n, 7]"), b = m.input("f32[3, 7, m]");
    m.output(m.op("matmul", {a, b}, "", "f32[3, n, m]"));
  };
  auto sizes = [](std::vector<std::pair<int64_t, int64_t>> pairs) {
    std::vector<Sizes> runs;
    for (auto [n, m] : pairs)
      runs.push_back({{"n", n}, {"m", m}});
    return runs;
  };
  add("by columns",
      R"([{"when": {"m": 16}, "knobs": {"m": 14, "n": 16}},
          {"when": {"m": 33}, "knobs": {"m": 2, "n": 32}},
          {"when": {"m": 60}, "knobs": {"m": 6, "n": 64}}])",
      sizes({{9, 0}, {0, 3}, {1, 1}, {9, 16}, {15, 17}, {15, 33}, {7, 34}, {6, 60}, {7, 61}}),
      product);
  add("by both sizes, and by their product",
      R"([{"when": {"n": 4, "m": 20}, "knobs": {"m": 4, "n": 24}},
          {"when": {"n*m": 200}, "knobs": {"m": 1, "n": 64}}])",
      sizes({{4, 20}, {5, 20}, {4, 21}, {10, 20}, {3, 67}, {12, 40}}), product);
  add("of a weight", R"([{"when": {"n": 5}, "knobs": {"m": 5}}])", {{{"n", 5}}, {{"n", 6}}},
      [](Model &m) {
        Value a = m.input("f32[n, 33]"), b = m.constant("f32[33, 72]");
        m.output(m.op("exp", {m.op("matmul", {a, b}, "", "f32[n, 72]")}));
      });
  add("of a right operand that is one panel",
      R"([{"when": {"n": 5}, "knobs": {"m": 5, "n": 32}},
          {"when": {"n": 9}, "knobs": {"m": 4, "n": 16}}])",
      sizes({{5, 7}, {6, 7}, {9, 0}, {10, 40}, {0, 3}}), [](Model &m) {
        Value a = m.input("f32[3, n, m]"), b = m.input("f32[3, m, 32]");
        m.output(m.op("exp", {m.op("matmul", {a, b}, "", "f32[3, n, 32]")}));
      });
  add("whose tasks pack for themselves, or all at once",
      R"([{"when": {"n": 7}, "knobs": {"m": 4, "n": 32, "panels": 1}},
          {"when": {"n": 20}, "knobs": {"m": 4, "n": 32, "tiles": 2}}])",
      sizes({{7, 70}, {8, 70}, {20, 33}, {21, 5}, {5, 0}, {0, 5}}), [](Model &m) {
        Value a = m.input("f32[64, n, 9]"), b = m.input("f32[64, m, 9]");
        Value c = m.op("transpose", {b}, "permutation = array<i64: 0, 2, 1>");
        m.output(m.op("matmul", {a, c}, "", "f32[64, n, m]"));
      });
  add("of a size that the run finds", R"([{"when": {"$found": 9}, "knobs": {"m": 2, "n": 16}}])",
      {{{"n", 3}}, {{"n", 18}}, {{"n", 100}}, {{"n", 0}}}, [](Model &m) {
        Value x = m.input("f32[n, 7]"), b = m.input("f32[7, 33]");
        Value places = m.op("nonzero", {m.input("i1[n]")}, "", "i64[1, $found]");
        Value rows = m.op("gather", {x, m.op("reshape", {places}, "", "i64[$found]")}, "axis = 0");
        m.output(m.op("matmul", {rows, b}, "", "f32[$found, 33]"));
      });
}

/// Products whose left operand is a transpose, of rows that are apart or side by side in memory.
static void addTransposed(Cases &cases) {
  std::vector<Sizes> runs;
  for (auto [n, m, k] : {std::tuple(3, 17, 7),
                         {33, 1, 49},
                         {1, 20, 5},
                         {0, 4, 2},
                         {2, 16, 0},
                         {5, 0, 3},
                         {49, 70, 33}})
    runs.push_back({{"n", n}, {"m", m}, {"k", k}});
  auto add = [&](const string &type, const string &x, const string &permutation,
                 const string &right, const string &result, bool hasRows = false) {
    string name = "product/transposed " + type + x + " " + permutation + " " + right;
    cases.push_back({name + (hasRows ? " and its rows" : ""),
                     [=](Model &m) {
                       Value a = m.op("transpose", {m.input(type + x)},
                                      "permutation = array<i64: " + permutation + ">");
                       Value b = m.input(type + right), p;
                       p = m.op("matmul", {a, b}, "", type + result);
                       if (hasRows) {
                         Value most =
                             m.op("reduce_max", {p}, "axes = array<i64: 1>, keep_dims = true");
                         p = m.op("sub", {p, m.broadcastTo(most, p)});
                       }
                       m.output(p, Tolerance::close(m.element(type), 40));
                     },
                     runs});
  };
  for (const char *type : {"f32", "f64", "f16", "i32"})
    add(type, "[k, n]", "1, 0", "[k, m]", "[n, m]");
  add("f32", "[3, k, n]", "0, 2, 1", "[3, k, m]", "[3, n, m]");
  add("f32", "[n, 3, k]", "1, 0, 2", "[3, k, m]", "[3, n, m]");
  add("f32", "[k, 3, n]", "1, 2, 0", "[1, k, m]", "[3, n, m]");
  add("f32", "[3, n, k]", "1, 0, 2", "[1, k, m]", "[n, 3, m]");
  add("f32", "[n, 3, k]", "2, 0, 1", "[1, 3, m]", "[k, n, m]");
  add("f32", "[2, k, 3, n]", "0, 2, 3, 1", "[2, 3, k, m]", "[2, 3, n, m]");
  add("f32", "[2, n, 3, k]", "0, 2, 1, 3", "[1, 3, k, m]", "[2, 3, n, m]");
  add("f32", "[k, 700]", "1, 0", "[k, 33]", "[700, 33]", true);
}

/// Products of one row with matrices known only at run time, which are read where they lie.
static void addOneRow(Cases &cases) {
  std::vector<Sizes> runs;
  for (auto [n, k, m] : {std::tuple(3, 7, 17),
                         {1, 8, 1},
                         {2, 0, 5},
                         {0, 4, 4},
                         {2, 9, 0},
                         {1, 16, 2051},
                         {2, 31, 1030},
                         {5, 1, 40}})
    runs.push_back({{"n", n}, {"k", k}, {"m", m}});
  for (const char *type : {"f32", "f64"}) {
    addProduct(cases, type, "[n, 1, k]", "[n, k, m]", "[n, 1, m]", runs);
    addProduct(cases, type, "[2, n, 1, k]", "[1, n, k, m]", "[2, n, 1, m]", runs);
    addProduct(cases, type, "[2, n, 1, k]", "[2, 1, k, m]", "[2, n, 1, m]", runs);
    addProduct(cases, type, "[n, 1, k]", "[1, k, m]", "[n, 1, m]", runs);
  }
  cases.push_back({"product/one row of a transpose, and what follows it",
                   [](Model &m) {
                     Value a = m.op("transpose", {m.input("f32[k, 1]")},
                                    "permutation = array<i64: 1, 0>");
                     Value p = m.op("matmul", {a, m.input("f32[k, m]")}, "", "f32[1, m]");
                     m.output(m.op("exp", {m.op("add", {p, m.input("f32[1, m]")})}),
                              Tolerance::close(m.element("f32"), 40));
                     m.output(p);
                   },
                   runs});
  cases.push_back(
      {"product/one row in two parts",
       [](Model &m) {
         Value p =
             m.op("matmul", {m.input("f32[1, k]"), m.input("f32[k, 1100]")}, "", "f32[1, 1100]");
         auto part = [&](const string &start) {
           return m.op("slice", {p},
                       "starts = #graph.dims<0, " + start + ">, steps = array<i64: 1, 1>",
                       "f32[1, 550]");
         };
         m.output(m.op("mul", {part("0"), m.op("tanh", {part("550")})}),
                  Tolerance::close(m.element("f32"), 40));
       },
       runs});
}

void addProducts(Cases &cases) {
  addTransposed(cases);
  addOneRow(cases);
  addVersions(cases);
  const int sizes[][3] = {{1, 1, 1},     {7, 15, 17},  {16, 16, 16}, {33, 48, 49}, {1, 100, 33},
                          {100, 1, 7},   {49, 33, 1},  {2, 0, 5},    {0, 3, 4},    {5, 7, 0},
                          {48, 300, 64}, {77, 20, 80}, {23, 9, 112}};
  auto text = [](int64_t rows, int64_t columns) {
    return "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
  };
  for (bool isWeight : {false, true})
    for (auto [rows, depth, columns] : sizes)
      addProduct(cases, "f32", text(rows, depth), text(depth, columns), text(rows, columns), {},
                 isWeight);
  std::vector<Sizes> runs = {{{"n", 3}, {"m", 17}, {"k", 7}},
                             {{"n", 33}, {"m", 1}, {"k", 49}},
                             {{"n", 0}, {"m", 4}, {"k", 2}},
                             {{"n", 2}, {"m", 16}, {"k", 0}}};
  for (const char *type : {"f32", "f64", "f16", "bf16", "i8", "ui8", "i32", "i64"}) {
    addProduct(cases, type, "[n, k]", "[k, m]", "[n, m]", runs);
    addProduct(cases, type, "[n, 7, k]", "[n, k, m]", "[n, 7, m]", runs);
    addProduct(cases, type, "[1, k]", "[k, m]", "[1, m]", runs);
    addProduct(cases, type, "[n, 33]", "[33, 48]", "[n, 48]", {{{"n", 1}}, {{"n", 17}}}, true);
    addProduct(cases, type, "[n, 33]", "[33, 72]", "[n, 72]", {{{"n", 4}}, {{"n", 21}}}, true);
    addProduct(cases, type, "[2, 1, 7, 33]", "[1, 3, 33, 17]", "[2, 3, 7, 17]");
    addProduct(cases, type, "[3, 2, 70]", "[3, 70, 90]", "[3, 2, 90]", {}, true);
    addProduct(cases, type, "[1, 96]", "[96, 300]", "[1, 300]", {}, true);
  }
  addProduct(cases, "f32", "[n, 2, 7, 16]", "[1, 1, 16, m]", "[n, 2, 7, m]", runs);
  addProduct(cases, "f32", "[1, 2, 7, 16]", "[n, 1, 16, m]", "[n, 2, 7, m]", runs);
  addProduct(cases, "f32", "[n, m, 33]", "[1, 33, 64]", "[n, m, 64]", runs, true);
  for (auto [left, right] : {std::pair("ui8", "i8"), std::pair("i8", "ui8")})
    cases.push_back({string("product/mixed ") + left + " " + right,
                     [left = left, right = right](Model &m) {
                       Value a = m.input(string(left) + "[n, 33]", Fill::range(-128, 255));
                       Value b = m.constant(string(right) + "[33, 17]", Fill::range(-128, 255));
                       m.output(m.op("matmul", {a, b}, "", "i32[n, 17]"));
                       Value x = m.input(string(left) + "[n, 5, 9]", Fill::range(-128, 255));
                       Value w = m.constant(string(right) + "[4, 5, 3]", Fill::range(-128, 255));
                       m.output(m.op("conv", {x, w},
                                     "strides = array<i64: 1>, dilations = array<i64: 1>, low = "
                                     "array<i64: 1>, high = array<i64: 1>",
                                     "i32[n, 4, 9]"));
                     },
                     {{{"n", 1}}, {{"n", 17}}}});
  for (const char *type : {"f32", "f64", "f16", "i8"})
    cases.push_back({string("product/transposed ") + type,
                     [=](Model &m) {
                       Value a = m.input(string(type) + "[n, 15, 33]");
                       Value b = m.input(string(type) + "[n, 17, 33]");
                       Value c = m.op("transpose", {b}, "permutation = array<i64: 0, 2, 1>");
                       m.output(m.op("matmul", {a, c}, "", sumOf(type) + "[n, 15, 17]"),
                                Tolerance::close(m.element(type), 40));
                       Value d = m.op("transpose", {a}, "permutation = array<i64: 0, 2, 1>");
                       Value e = m.op("transpose", {c}, "permutation = array<i64: 0, 2, 1>");
                       Value f = m.input(string(type) + "[n, 15, 2]");
                       m.output(m.op("matmul", {d, f}, "", sumOf(type) + "[n, 33, 2]"),
                                Tolerance::close(m.element(type), 40));
                       m.output(e);
                     },
                     {{{"n", 1}}, {{"n", 5}}, {{"n", 0}}}});
}

} // namespace heddle::ops
