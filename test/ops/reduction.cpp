// reduction: reductions over whole dimensions, running sums, sorting, and sampling on grids.

#include "test/ops/case.h"

#include <cmath>

namespace heddle::ops {

using std::string;

static const std::vector<Sizes> kRuns = {
    {{"n", 3}, {"m", 17}}, {{"n", 16}, {"m", 1}}, {{"n", 100}, {"m", 49}}, {{"n", 0}, {"m", 5}}};

static void addFold(Cases &cases, const string &type, const string &op, Fill fill) {
  auto result = [=](Model &m, Value value) {
    bool isChosen = op == "reduce_max" || op == "reduce_min";
    isChosen ? m.output(value, Tolerance::exact())
             : m.output(value, Tolerance::close(m.element(type), 30));
  };
  cases.push_back({"reduction/" + op + " " + type,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, m, 6]", fill);
                     for (const char *axes : {"2", "1, 2", "0", "1", "0, 2", "0, 1, 2"}) {
                       string attribute = string("axes = array<i64: ") + axes + ">";
                       result(m, m.op(op, {x}, attribute));
                       result(m, m.op(op, {x}, attribute + ", keep_dims = true"));
                     }
                   },
                   kRuns});
  cases.push_back({"reduction/" + op + " static " + type,
                   [=](Model &m) {
                     for (const char *dims :
                          {"[7, 100]", "[48, 33]", "[1, 16]", "[15, 1]", "[5, 0]"}) {
                       Value x = m.input(type + dims, fill);
                       result(m, m.op(op, {x}, "axes = array<i64: 1>"));
                       result(m, m.op(op, {x}, "axes = array<i64: 0>"));
                     }
                   },
                   {}});
  // Several vectors side by side, whole and in part, and more than one task.
  cases.push_back({"reduction/" + op + " down rows " + type,
                   [=](Model &m) {
                     for (const char *dims : {"[33, 128]", "[3, 1100]", "[2, 9, 250]", "[0, 256]",
                                              "[40, n]", "[n, 130]", "[2, n, 5, 517]"}) {
                       Value x = m.input(type + dims, fill);
                       result(m, m.op(op, {x}, "axes = array<i64: 0>"));
                       if (string(dims).find(", 5,") != string::npos)
                         result(m, m.op(op, {x}, "axes = array<i64: 1, 2>"));
                     }
                   },
                   {{{"n", 0}}, {{"n", 37}}, {{"n", 300}}}});
  // Rows that are shorter than a vector, with whole vectors of neighbours and without.
  cases.push_back({"reduction/" + op + " short rows " + type,
                   [=](Model &m) {
                     for (const char *dims : {"[n, 2]", "[n, 7]", "[3, n, 10]", "[n, 16]",
                                              "[2, 0, n, 3]", "[n, 40, 5]", "[1, n, 17]"}) {
                       Value x = m.input(type + dims, fill);
                       bool isDeep = string(dims).find(", 5]") != string::npos;
                       auto last = isDeep ? "2" : std::to_string(llvm::StringRef(dims).count(','));
                       result(m, m.op(op, {x}, "axes = array<i64: " + last + ">"));
                     }
                   },
                   {{{"n", 0}}, {{"n", 1}}, {{"n", 37}}, {{"n", 1300}}}});
}

static void addFolds(Cases &cases, const string &type, bool isFloat) {
  addFold(cases, type, "reduce_sum", Fill());
  addFold(cases, type, "reduce_prod", isFloat ? Fill::range(0.8, 1.2) : Fill());
  addFold(cases, type, "reduce_max", Fill::any());
  addFold(cases, type, "reduce_min", Fill::any());
  cases.push_back({"reduction/arg " + type,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, m, 6]", Fill::range(-3, 3));
                     Value whole = isFloat ? m.op("round", {x}) : x; // equal elements
                     for (const char *op : {"argmax", "argmin"})
                       for (const char *rest : {"", ", keep_dims = true", ", last = true"}) {
                         m.output(m.op(op, {whole}, string("axis = 1") + rest));
                         m.output(m.op(op, {whole}, string("axis = 2") + rest));
                       }
                   },
                   {{{"n", 3}, {"m", 17}}, {{"n", 16}, {"m", 1}}, {{"n", 0}, {"m", 1}}}});
  cases.push_back({"reduction/arg down rows " + type,
                   [=](Model &m) {
                     for (const char *dims : {"[33, 128]", "[3, 1100]", "[40, n]"}) {
                       Value x = m.input(type + dims, Fill::range(-3, 3));
                       Value whole = isFloat ? m.op("round", {x}) : x; // equal elements
                       for (const char *op : {"argmax", "argmin"})
                         for (const char *rest : {"", ", last = true"})
                           m.output(m.op(op, {whole}, string("axis = 0") + rest));
                     }
                   },
                   {{{"n", 0}}, {{"n", 37}}, {{"n", 300}}}});
  cases.push_back({"reduction/cumsum " + type,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, m, 6]");
                     Tolerance tolerance = Tolerance::close(m.element(type), 30);
                     for (const char *rest : {"", ", exclusive = true", ", reverse = true",
                                              ", exclusive = true, reverse = true"})
                       for (const char *axis : {"0", "1", "2"})
                         m.output(m.op("cumsum", {x}, string("axis = ") + axis + rest), tolerance);
                   },
                   kRuns});
  cases.push_back({"reduction/topk " + type,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, 33]", Fill::range(-3, 3));
                     Value whole = isFloat ? m.op("round", {x}) : x;
                     Value y = m.input(type + "[20, n]");
                     for (const char *rest : {"", ", largest = false"}) {
                       for (Value result : m.ops("topk", {whole}, string("axis = 1") + rest,
                                                 {type + "[n, 7]", "i64[n, 7]"}))
                         m.output(result, Tolerance::exact());
                       for (Value result : m.ops("topk", {y}, string("axis = 0") + rest,
                                                 {type + "[20, n]", "i64[20, n]"}))
                         m.output(result, Tolerance::exact());
                       for (Value result : m.ops("topk", {whole}, string("axis = 0") + rest,
                                                 {type + "[n, 33]", "i64[n, 33]"}))
                         m.output(result, Tolerance::exact());
                     }
                   },
                   {{{"n", 3}}, {{"n", 17}}, {{"n", 0}}}});
}

/// Fewer rows than workers, each shared out in pieces: along lanes, and along rows of them.
static void addLongRows(Cases &cases, const string &type) {
  for (const char *dims : {"[1, 300007]", "[700, 401]", "[1, 3, 400, 300]"}) {
    cases.push_back(
        {string("reduction/long rows ") + dims + " " + type,
         [=](Model &m) {
           Value x = m.input(type + dims);
           string axes = string(dims) == "[1, 300007]" ? "1" : "0, 1";
           axes = string(dims) == "[1, 3, 400, 300]" ? "1, 2, 3" : axes;
           auto reduced = [&](const char *op, Value from) {
             return m.op(op, {from}, "axes = array<i64: " + axes + ">, keep_dims = true");
           };
           Value wide = m.op("cast", {x}, "", string("f64") + dims);
           Value most = reduced("reduce_max", x), least = reduced("reduce_min", x);
           m.output(m.op("sub", {most, least}));
           Value moved = m.op("sub", {x, m.broadcastTo(most, x)}), power = m.op("exp", {moved});
           Value sum = m.broadcastTo(reduced("reduce_sum", power), x);
           m.output(m.op("div", {power, sum}), Tolerance::close(m.element(type), 4));
           m.output(reduced("reduce_sum", wide), Tolerance{1e-6, 1e-3});
         },
         {}});
  }
}

/// Softmax, its logarithm and normalisations of rows that are shorter than a vector.
static void addShortRows(Cases &cases, const string &type) {
  for (const char *length : {"2", "5", "10", "16", "17"}) {
    string full = type + "[2, n, " + length + "]";
    cases.push_back(
        {string("reduction/short rows of ") + length + " " + type,
         [=](Model &m) {
           auto reduced = [&](const char *op, Value x) {
             return m.broadcastTo(m.op(op, {x}, "axes = array<i64: 2>, keep_dims = true"), x);
           };
           Tolerance tolerance = Tolerance::close(m.element(type), 4);
           Value x = m.input(full), row = m.input(type + "[" + length + "]");
           Value each = m.input(type + "[2, n, 1]"), first = m.input(type + "[n, " + length + "]");
           Value moved = m.op("sub", {x, reduced("reduce_max", x)}), power = m.op("exp", {moved});
           m.output(m.op("div", {power, reduced("reduce_sum", power)}), tolerance);
           m.output(m.op("sub", {moved, m.op("log", {reduced("reduce_sum", power)})}), tolerance);
           Value sum =
               m.op("add", {m.op("mul", {x, m.broadcastTo(row, x)}),
                            m.op("add", {m.broadcastTo(each, x), m.broadcastTo(first, x)})});
           Value square = m.op("mul", {sum, sum}), mean = reduced("reduce_sum", square);
           m.output(m.op("sub", {sum, mean}), Tolerance::close(m.element(type), 60));
           Value turned = m.input(type + "[" + length + ", n, 2]");
           turned = m.op("transpose", {turned}, "permutation = array<i64: 2, 1, 0>");
           m.output(m.op("sub", {m.op("max", {x, turned}), reduced("reduce_max", turned)}),
                    tolerance);
         },
         {{{"n", 0}}, {{"n", 1}}, {{"n", 16}}, {{"n", 419}}}});
  }
}

/// Reductions of many rows, whose columns and rows are shared among tasks.
static void addColumns(Cases &cases, const string &type, const string &columns) {
  cases.push_back(
      {"reduction/columns of " + columns + " " + type,
       [=](Model &m) {
         string shape = "[n, 300, " + columns + "]";
         Value x = m.input(type + shape, Fill::range(-1, 1)),
               y = m.input(type + shape, Fill::range(-1, 1));
         Value product = m.op("mul", {x, y});
         auto reduced = [&](const char *op, Value value, const char *keeps) {
           return m.op(op, {value}, string("axes = array<i64: 0, 1>, keep_dims = ") + keeps);
         };
         Tolerance sums = Tolerance::close(m.element(type), 2000);
         m.output(reduced("reduce_sum", product, "true"), sums);
         m.output(m.op("neg", {reduced("reduce_sum", y, "true")}), sums);
         m.output(reduced("reduce_max", x, "false"));
         Value flat = m.input(type + "[1200, " + columns + "]", Fill::range(-1, 1));
         m.output(m.op("reduce_sum", {m.op("mul", {flat, flat})}, "axes = array<i64: 0>"), sums);
       },
       {{{"n", 1}, {"k", 11}}, {{"n", 5}, {"k", 97}}, {{"n", 0}, {"k", 1}}}});
}

void addReductions(Cases &cases) {
  for (const char *columns : {"1", "3", "8", "33", "130", "768"})
    for (const char *type : {"f32", "f64", "i32"})
      addColumns(cases, type, columns);
  addColumns(cases, "f32", "k");
  for (const char *type : {"f32", "f64", "f16"})
    addShortRows(cases, type);
  for (const char *type : {"f32", "f64"})
    addLongRows(cases, type);
  for (const char *type : {"f32", "f64", "f16", "bf16"})
    addFolds(cases, type, true);
  for (const char *type : {"i32", "i64", "i8", "ui8", "ui64"})
    addFolds(cases, type, false);
  cases.push_back({"reduction/truth i1",
                   [](Model &m) {
                     Value x = m.input("i1[n, 17]");
                     for (const char *axes : {"0", "1"})
                       for (const char *op : {"reduce_max", "reduce_min"})
                         m.output(m.op(op, {x}, string("axes = array<i64: ") + axes + ">"));
                   },
                   {{{"n", 5}}, {{"n", 0}}}});
  cases.push_back({"reduction/arg nan f32",
                   [](Model &m) {
                     Value x = m.input("f32[40, 5]", Fill::any());
                     for (const char *op : {"argmax", "argmin"})
                       for (const char *rest : {"", ", last = true"})
                         m.output(m.op(op, {x}, string("axis = 1") + rest));
                   },
                   {}});
  cases.push_back({"reduction/topk nan f32",
                   [](Model &m) {
                     Value x = m.input("f32[9, 12]", Fill::any());
                     for (const char *rest : {"", ", largest = false"})
                       for (Value result : m.ops("topk", {x}, string("axis = 1") + rest,
                                                 {"f32[9, 12]", "i64[9, 12]"}))
                         m.output(result, Tolerance::exact());
                   },
                   {}});
}

/// Places and weights are f32, whatever the elements are.
static Tolerance sampled(Model &m, const string &type) {
  Tolerance tolerance = Tolerance::close(m.element(type));
  if (type[0] != 'f')
    return tolerance;
  return {std::max(tolerance.relative, 1e-5), std::max(tolerance.absolute, 1e-5)};
}

void addResize(Cases &cases) {
  static const char *const kCoordinates[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                             "asymmetric", "half_pixel_symmetric"};
  for (const char *type : {"f32", "f64", "f16", "ui8"}) {
    bool isFloat = type[0] == 'f';
    for (const char *mode : {"nearest", "linear", "cubic"}) {
      if (!isFloat && string(mode) != "nearest")
        continue;
      cases.push_back(
          {string("resize/") + mode + " " + type,
           [=](Model &m) {
             Value x = m.input(string(type) + "[2, 3, n, 7]");
             for (const char *coordinates : kCoordinates) {
               string attributes = string("scales = array<f64: 1.0, 1.0, 2.0, 0.0>, mode = \"") +
                                   mode + "\", coordinates = \"" + coordinates + "\"";
               m.output(m.op("resize", {x}, attributes, string(type) + "[2, 3, 2*n, 4]"),
                        sampled(m, type));
             }
           },
           {{{"n", 5}}, {{"n", 16}}, {{"n", 1}}}});
    }
    cases.push_back(
        {string("resize/roundings ") + type,
         [=](Model &m) {
           Value x = m.input(string(type) + "[1, 9, 8, 3]");
           for (const char *nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
             m.output(m.op("resize", {x},
                           string("scales = array<f64: 1.0, 0.0, 0.0, 1.0>, mode = \"nearest\", "
                                  "coordinates = \"half_pixel\", nearest = \"") +
                               nearest + "\"",
                           string(type) + "[1, 20, 4, 3]"));
         },
         {}});
  }
  // Enlarged along lanes: by whole factors, by others, by next to nothing, and of sizes that only
  // the run knows; what is resized is read or computed.
  for (const char *type : {"f32", "f16", "ui8", "f64"})
    for (const char *mode : {"nearest", "linear", "cubic"}) {
      if (type[0] != 'f' && string(mode) != "nearest")
        continue;
      cases.push_back(
          {string("resize/enlarged ") + mode + " " + type,
           [=](Model &m) {
             bool isCopy = string(mode) == "nearest"; // else weights of about 0 meet infinities
             Value x = m.input(string(type) + "[2, n, m]", isCopy ? Fill::any() : Fill());
             auto enlarge = [&](Value from, const char *scale, const char *size,
                                const char *coordinates) {
               m.output(m.op("resize", {from},
                             string("scales = array<f64: 1.0, 2.0, ") + scale + ">, mode = \"" +
                                 mode + "\", coordinates = \"" + coordinates + "\"",
                             string(type) + "[2, 2*n, " + size + "]"),
                        sampled(m, type));
             };
             enlarge(x, "3.0", "3*m", "half_pixel");
             enlarge(x, "1.0", "m", "align_corners");
             enlarge(x, "0.0", "m + 1", "pytorch_half_pixel");
             enlarge(x, "2.5", "(5*m) floordiv 2", "asymmetric");
             enlarge(type[0] == 'f' ? m.op("neg", {x}) : x, "2.0", "2*m", "half_pixel");
           },
           {{{"n", 1}, {"m", 1}}, {{"n", 4}, {"m", 9}}, {{"n", 3}, {"m", 101}}}});
    }
  // Whole factors, along leading axes and along lanes.
  cases.push_back(
      {"resize/repeats f32",
       [](Model &m) {
         Value x = m.input("f32[2, n, 5, n]");
         for (const char *how : {"\"asymmetric\", nearest = \"floor\"",
                                 "\"half_pixel\", nearest = \"round_prefer_floor\"",
                                 "\"half_pixel\", nearest = \"round_prefer_ceil\"",
                                 "\"asymmetric\", nearest = \"round_prefer_floor\"",
                                 "\"half_pixel\", nearest = \"floor\""})
           m.output(m.op("resize", {x},
                         string("scales = array<f64: 1.0, 3.0, 0.0, 2.0>, mode = \"nearest\", "
                                "coordinates = ") +
                             how,
                         "f32[2, 3*n, 20, 2*n]"));
       },
       {{{"n", 1}}, {{"n", 17}}, {{"n", 40}}}});
  cases.push_back(
      {"resize/excluded f32",
       [](Model &m) {
         Value x = m.input("f32[1, 1, 9, 7]");
         m.output(m.op("resize", {x},
                       "scales = array<f64: 1.0, 1.0, 0.0, 0.0>, mode = \"cubic\", coordinates = "
                       "\"half_pixel\", exclude_outside = true, cubic_coefficient = -0.5",
                       "f32[1, 1, 17, 15]"));
       },
       {}});
}

} // namespace heddle::ops
