// cut: products parts of whose operands are 0, on one side of a diagonal or beyond sizes that each
// matrix of a batch has of its own, and choices by a diagonal element by element.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

/// Tolerance of sums in which large numbers cancel each other, but for one that should not be in
/// it.
static const Tolerance kOfExtremes = {1e-4, 0.05};

static const std::vector<Sizes> kRuns = {
    {{"m", 1}, {"k", 1}, {"n", 1}},     {{"m", 33}, {"k", 33}, {"n", 17}},
    {{"m", 50}, {"k", 150}, {"n", 40}}, {{"m", 150}, {"k", 50}, {"n", 100}},
    {{"m", 0}, {"k", 5}, {"n", 3}},     {{"m", 5}, {"k", 0}, {"n", 3}},
    {{"m", 64}, {"k", 64}, {"n", 0}}};

/// Mask in the shape of x of the elements below (`comparison` less_equal, of columns with rows) or
/// above.
static Value side(Model &m, Value x, const string &type, const string &comparison, int64_t shift) {
  Value row = m.op("iota", {}, "axis = 0", type), column = m.op("iota", {}, "axis = 1", type);
  row = m.op("add", {row, m.broadcastTo(m.scalar("i64", static_cast<double>(shift)), row)});
  return m.broadcastTo(m.op(comparison, {column, row}), x);
}

static Value keep(Model &m, Value mask, Value x, double other) {
  const char *element = graph::elementOf(x).isF64() ? "f64" : "f32";
  return m.op("select", {mask, x, m.broadcastTo(m.scalar(element, other), x)});
}

static void addTriangles(Cases &cases) {
  for (const char *comparison : {"less_equal", "less", "greater_equal", "greater"})
    for (int64_t shift : {0, 9, -9}) {
      string name = string(comparison) + " " + std::to_string(shift);
      cases.push_back({"cut/triangle " + name,
                       [=](Model &m) {
                         Value a = m.input("f32[2, m, k]", Fill::any()), b = m.input("f32[k, n]");
                         a = keep(m, side(m, a, "i64[m, k]", comparison, shift), a, 0);
                         Value wide = m.op("broadcast", {b}, "", "f32[2, k, n]");
                         m.output(m.op("matmul", {a, wide}, "", "f32[2, m, n]"), kOfExtremes);
                       },
                       kRuns});
      cases.push_back({"cut/elementwise " + name,
                       [=](Model &m) {
                         Value a = m.input("f32[3, m, k]"), b = m.input("f32[3, m, k]");
                         Value mask = side(m, a, "i64[m, k]", comparison, shift);
                         Value sum = m.op("add", {keep(m, mask, a, 0), keep(m, mask, b, -1)});
                         m.output(keep(m, m.op("not", {mask}), sum, 2), Tolerance::exact());
                       },
                       {{{"m", 3}, {"k", 300}},
                        {{"m", 300}, {"k", 290}},
                        {{"m", 5}, {"k", 129}},
                        {{"m", 0}, {"k", 9}}}});
    }
  for (const char *type : {"f32", "f64", "i32"})
    cases.push_back({string("cut/triangle of ") + type,
                     [=](Model &m) {
                       string element = type;
                       Fill fill = element == "i32" ? Fill::any() : Fill();
                       Value a = m.input(element + "[77, 60]", fill);
                       Value b = m.input(element + "[60, 50]", Fill::any());
                       Value mask = side(m, a, "i64[77, 60]", "less_equal", 0);
                       Value zero = m.broadcastTo(m.scalar(element, 0), a);
                       a = m.op("select", {mask, a, zero});
                       m.output(m.op("matmul", {a, b}, "", element + "[77, 50]"),
                                Tolerance::close(m.element(type), 40));
                     },
                     {}});
}

/// The matrices x with 0 from their own limits on.
static Value within(Model &m, Value x, const string &dims, Value rows, Value columns) {
  auto below = [&](Value limit, const char *axis) {
    Value number = m.op("iota", {}, axis, "i64" + dims);
    return m.op("less", {number, m.broadcastTo(limit, number)});
  };
  Value mask = below(columns, "axis = 2");
  if (rows)
    mask = m.op("and", {below(rows, "axis = 1"), mask});
  return keep(m, mask, x, 0);
}

/// Sizes of their own for each matrix of a batch. What is multiplied may only be left out where
/// both operands are cut at one depth, and the result at the rows of the left one.
static void addLimits(Cases &cases) {
  struct Form {
    const char *name;
    bool hasRows = true, isCut = true, isOneDepth = true, areOneRows = true;
  };
  for (Form form :
       {Form{"all"}, Form{"depth alone", false}, Form{"a result that is whole", true, false},
        Form{"two depths", true, true, false}, Form{"other rows", true, true, true, false}})
    for (const char *type : {"f32", "f64"})
      cases.push_back(
          {string("cut/limits, ") + form.name + " " + type,
           [=](Model &m) {
             auto limit = [&](const string &size) {
               Value each = m.input("i64[b]", Fill::length(size));
               return m.op("reshape", {each}, "", "i64[b, 1, 1]");
             };
             string element = type;
             Value rows = limit("m"), depth = limit("k"), columns = limit("n");
             Value a = m.input(element + "[b, m, k]", form.isOneDepth ? Fill::any() : Fill());
             Value b = m.input(element + "[b, k, n]", form.isOneDepth ? Fill::any() : Fill());
             a = within(m, a, "[b, m, k]", form.hasRows ? rows : Value(), depth);
             b = within(m, b, "[b, k, n]", form.isOneDepth ? depth : limit("k"), columns);
             Value product = m.op("matmul", {a, b}, "", element + "[b, m, n]");
             if (form.isCut)
               product =
                   within(m, product, "[b, m, n]", form.areOneRows ? rows : limit("m"), columns);
             m.output(m.op("abs", {product}), kOfExtremes);
           },
           {{{"b", 3}, {"m", 33}, {"k", 40}, {"n", 70}},
            {{"b", 2}, {"m", 100}, {"k", 7}, {"n", 17}},
            {{"b", 1}, {"m", 1}, {"k", 1}, {"n", 1}},
            {{"b", 4}, {"m", 16}, {"k", 0}, {"n", 16}},
            {{"b", 0}, {"m", 3}, {"k", 3}, {"n", 3}},
            {{"b", 5}, {"m", 12}, {"k", 90}, {"n", 130}}}});
}

void addCut(Cases &cases) {
  addTriangles(cases);
  addLimits(cases);
}

} // namespace heddle::ops
