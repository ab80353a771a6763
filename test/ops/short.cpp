// short: products and convolutions whose factors are rounded to bf16. Inputs are numbers of bf16,
// whose products f32 holds exactly, so that results are as close as those of f32.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

/// The case, and the same where the model takes its weights.
static void add(Cases &cases, const string &name, std::function<void(Model &)> build,
                std::vector<Sizes> runs = {}) {
  Case one{"short/" + name, std::move(build), std::move(runs)};
  one.isShort = true;
  addBoth(cases, std::move(one));
}

static Tolerance closeTo(Model &m, int64_t depth) {
  return Tolerance::close(m.element("f32"), 8 + static_cast<double>(depth));
}

static void addMatmuls(Cases &cases) {
  auto product = [&](const string &left, const string &right, const string &result, Fill fill,
                     std::vector<Sizes> runs = {}) {
    string name = left + " " + right + (fill.kind == Fill::Any ? " any" : "");
    auto build = [=](Model &m) {
      Value a = m.input("f32" + left, fill), b = m.weight("f32" + right, fill);
      m.output(m.op("matmul", {a, b}, "", "f32" + result), closeTo(m, 40));
    };
    add(cases, name, build, std::move(runs));
  };
  for (Fill fill : {Fill::exact(), Fill::exactAny()}) {
    product("[1, 1]", "[1, 1]", "[1, 1]", fill);
    product("[3, 2]", "[2, 5]", "[3, 5]", fill);
    product("[7, 3]", "[3, 17]", "[7, 17]", fill);
    product("[13, 7]", "[7, 64]", "[13, 64]", fill);
    product("[33, 5]", "[5, 49]", "[33, 49]", fill);
    product("[50, 127]", "[127, 1]", "[50, 1]", fill);
    product("[2, 1, 7, 33]", "[1, 3, 33, 17]", "[2, 3, 7, 17]", fill);
    product("[n, 3, 18]", "[1, 18, 40]", "[n, 3, 40]", fill, {{{"n", 1}}, {{"n", 21}}, {{"n", 0}}});
  }
  // A matrix that is read once stays as it is, so that the weights are those of the model.
  Case one{"short/one row",
           [](Model &m) {
             Value a = m.input("f32[1, 64]", Fill::exactAny()),
                   b = m.weight("f32[64, 33]", Fill::exact());
             m.output(m.op("matmul", {a, b}, "", "f32[1, 33]"), closeTo(m, 40));
           },
           {}};
  one.isShort = true;
  cases.push_back(one);
  for (const char *rows : {"2", "16", "33", "100"}) // whole steps of matrices
    product(string("[") + rows + ", 64]", "[64, 40]", string("[") + rows + ", 40]",
            Fill::exactAny());
  product("[n, 96]", "[96, 70]", "[n, 70]", Fill::exactAny(),
          {{{"n", 1}}, {{"n", 70}}, {{"n", 0}}});
  product("[3, 2, 70]", "[3, 70, 90]", "[3, 2, 90]", Fill::exactAny());
  product("[2, 0]", "[0, 5]", "[2, 5]", Fill::exact());
  product("[0, 3]", "[3, 4]", "[0, 4]", Fill::exact());
  product("[48, 301]", "[301, 65]", "[48, 65]", Fill::exact());
}

/// Factors that are read along their columns, as gradients of weights are.
static void addTransposedLeft(Cases &cases) {
  struct {
    const char *name, *a, *b, *result, *permutation;
    std::vector<Sizes> runs;
  } factors[] = {
      {"even", "[36, 20]", "[36, 50]", "[20, 50]", "1, 0", {}},
      {"odd", "[35, 131]", "[35, 17]", "[131, 17]", "1, 0", {}},
      {"one step", "[1, 9]", "[1, 33]", "[9, 33]", "1, 0", {}},
      {"batches", "[3, 11, 300]", "[3, 11, 8]", "[3, 300, 8]", "0, 2, 1", {}},
      {"open",
       "[k, n]",
       "[k, m]",
       "[n, m]",
       "1, 0",
       {{{"n", 3}, {"m", 17}, {"k", 7}},
        {{"n", 33}, {"m", 1}, {"k", 50}},
        {{"n", 200}, {"m", 16}, {"k", 0}},
        {{"n", 0}, {"m", 4}, {"k", 2}},
        {{"n", 1}, {"m", 70}, {"k", 3}},
        {{"n", 260}, {"m", 64}, {"k", 33}}}},
  };
  for (auto &factor : factors)
    for (Fill fill : {Fill::exact(), Fill::exactAny()}) {
      string name = factor.name;
      auto build = [=](Model &m) {
        Value a = m.input(string("f32") + factor.a, fill),
              b = m.input(string("f32") + factor.b, fill);
        Value turned =
            m.op("transpose", {a}, string("permutation = array<i64: ") + factor.permutation + ">");
        m.output(m.op("matmul", {turned, b}, "", string("f32") + factor.result), closeTo(m, 80));
      };
      Case made{"short/transposed left " + name + (fill.kind == Fill::Any ? " any" : ""), build,
                factor.runs};
      made.isShort = true;
      cases.push_back(made);
    }
}

/// Products with what follows them, and matrices of which sizes are open.
static void addFused(Cases &cases) {
  std::vector<Sizes> runs;
  for (auto [n, m, k] :
       {std::tuple(3, 17, 7), {33, 1, 50}, {2, 16, 0}, {0, 4, 2}, {1, 70, 3}, {40, 64, 33}})
    runs.push_back({{"n", n}, {"m", m}, {"k", k}});
  Case open{"short/dynamic sizes",
            [](Model &m) {
              Value a = m.input("f32[n, k]", Fill::exact()),
                    b = m.input("f32[k, m]", Fill::exact());
              m.output(m.op("exp", {m.op("matmul", {a, b}, "", "f32[n, m]")}), {1e-4, 1e-4});
            },
            runs};
  open.isShort = true;
  cases.push_back(open);
  add(cases, "transposed right", [](Model &m) {
    Value a = m.input("f32[9, 35]", Fill::exact()), b = m.weight("f32[50, 35]", Fill::exact());
    Value c = m.op("transpose", {b}, "permutation = array<i64: 1, 0>");
    m.output(m.op("matmul", {a, c}, "", "f32[9, 50]"), closeTo(m, 40));
  });
  addTransposedLeft(cases);
  add(cases, "rows of a product", [](Model &m) {
    Value a = m.input("f32[700, 35]", Fill::exact()), b = m.weight("f32[35, 48]", Fill::exact());
    Value p = m.op("matmul", {a, b}, "", "f32[700, 48]");
    Value most = m.op("reduce_max", {p}, "axes = array<i64: 1>, keep_dims = true");
    m.output(m.op("sub", {p, m.broadcastTo(most, p)}), closeTo(m, 80));
  });
  for (int64_t parts : {2, 3, 4, 5})
    for (const char *rows : {"5", "37"})
      add(cases, std::to_string(parts) + " gates of " + rows, [=](Model &m) {
        string all = string(rows) + ", " + std::to_string(33 * parts);
        Value a = m.input(string("f32[") + rows + ", 20]", Fill::exactAny()),
              b = m.weight("f32[20, " + std::to_string(33 * parts) + "]", Fill::exact());
        Value p = m.op("matmul", {a, b}, "", "f32[" + all + "]"), product;
        for (int64_t i = 0; i < parts; ++i) {
          Value part = m.op("slice", {p},
                            "starts = #graph.dims<0, " + std::to_string(33 * i) +
                                ">, steps = array<i64: 1, 1>",
                            string("f32[") + rows + ", 33]");
          product = product ? m.op("mul", {product, m.op("sigmoid", {part})}) : part;
        }
        m.output(product, closeTo(m, 40));
      });
  // Sums beyond what bf16 holds, and weights of 16 bits.
  add(cases, "weights of 16 bits", [](Model &m) {
    Value a = m.input("f32[9, 35]", Fill::exact());
    Value b = m.op("cast", {m.weight("bf16[35, 50]")}, "", "f32[35, 50]");
    m.output(m.op("matmul", {a, b}, "", "f32[9, 50]"), closeTo(m, 40));
  });
}

static void addConvolutions(Cases &cases) {
  static const char plain[] = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = "
                              "array<i64: 0, 0>, high = array<i64: 0, 0>";
  static const char border[] = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = "
                               "array<i64: 1, 1>, high = array<i64: 1, 1>";
  static const char uneven[] = "strides = array<i64: 2, 1>, dilations = array<i64: 1, 2>, low = "
                               "array<i64: 0, 2>, high = array<i64: 2, 1>";
  struct {
    const char *name, *x, *w, *result, *attributes;
  } images[] = {
      {"1x1", "[2, 7, 5, 9]", "[17, 7, 1, 1]", "[2, 17, 5, 9]", plain},
      {"whole steps", "[2, 32, 5, 19]", "[40, 32, 3, 3]", "[2, 40, 5, 19]", border},
      {"3x3", "[1, 33, 7, 7]", "[49, 33, 3, 3]", "[1, 49, 7, 7]", border},
      {"uneven", "[1, 5, 10, 11]", "[7, 5, 3, 3]", "[1, 7, 5, 10]", uneven},
      {"groups", "[1, 12, 7, 9]", "[18, 4, 3, 3]", "[1, 18, 7, 9]", border},
      // Larger than the L2 holds beside other things.
      {"lines", "[1, 32, 170, 104]", "[3, 32, 3, 3]", "[1, 3, 170, 104]", border},
      {"uneven lines", "[1, 7, 420, 210]", "[5, 7, 3, 3]", "[1, 5, 210, 209]", uneven},
      {"open", "[n, 5, h, w]", "[17, 5, 3, 3]", "[n, 17, h, w]", border},
      {"empty batch", "[0, 3, 5, 5]", "[4, 3, 3, 3]", "[0, 4, 5, 5]", border},
  };
  for (auto &image : images) {
    bool isOpen = image.x[1] == 'n', isLarge = StringRef(image.name).ends_with("lines");
    for (Fill fill : {Fill::exact(), Fill::exactAny()}) {
      string name = image.name, attributes = image.attributes;
      if (name == "groups")
        attributes += ", groups = 3";
      auto build = [=](Model &m) {
        // A filter beyond the border counts for nothing, be it NaN.
        Value x = m.input(string("f32") + image.x, fill),
              w = m.weight(string("f32") + image.w, Fill::exact());
        m.output(m.op("conv", {x, w}, attributes, string("f32") + image.result), closeTo(m, 300));
      };
      std::vector<Sizes> runs;
      if (isOpen)
        runs = {{{"n", 1}, {"h", 7}, {"w", 9}}, {{"n", 3}, {"h", 16}, {"w", 1}}};
      for (int64_t rows : {6, 16, 32}) { // those from 16 on in registers that hold matrices
        if (isLarge && (rows < 32 || fill.kind == Fill::Any))
          continue;
        Case one{"short/conv " + name + (fill.kind == Fill::Any ? " any" : "") + " m " +
                     std::to_string(rows),
                 build, runs};
        one.isShort = true;
        one.card = "conv";
        one.knobs = {{"m", rows}, {"n", rows == 16 ? 16 : 32}};
        addBoth(cases, one);
      }
    }
  }
}

/// Cases of attention. Rounded weights make its results those of numbers of bf16.
static void addAttentions(Cases &cases) {
  Cases all;
  addAttention(all);
  addMasks(all);
  for (Case &one : all) {
    if (!one.groups.count("attention") || StringRef(one.name).ends_with("f64"))
      continue;
    one.name = "short/" + one.name;
    one.isShort = true;
    one.build = [build = one.build](Model &m) {
      build(m);
      for (Fill &fill : m.fills)
        fill.isShort = true;
      for (Tolerance &tolerance : m.tolerances)
        tolerance = {std::max(tolerance.relative, 1e-2), std::max(tolerance.absolute, 1e-2)};
    };
    cases.push_back(std::move(one));
  }
}

void addShort(Cases &cases) {
  addMatmuls(cases);
  addFused(cases);
  addConvolutions(cases);
  addAttentions(cases);
}

} // namespace heddle::ops
