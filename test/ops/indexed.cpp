// indexed: ops whose places are data: gather, scatter, reverse_sequence.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

static const std::vector<Sizes> kRuns = {
    {{"n", 3}, {"m", 17}}, {{"n", 16}, {"m", 1}}, {{"n", 33}, {"m", 5}}};

static void addGathers(Cases &cases, const string &type, const string &index) {
  string label = " " + type + " " + index;
  auto exact = [](Model &m, Value value) { m.output(value, Tolerance::exact()); };
  cases.push_back({"indexed/gather" + label,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, m, 7]");
                     Value i = m.input(index + "[4, 5]", Fill::index("n"));
                     Value j = m.input(index + "[19]", Fill::index("m"));
                     Value k = m.input(index + "[]", Fill::index("7"));
                     Value none = m.input(index + "[0]", Fill::index("n"));
                     exact(m, m.op("gather", {x, i}, "axis = 0"));
                     exact(m, m.op("gather", {x, j}, "axis = 1"));
                     exact(m, m.op("gather", {x, k}, "axis = 2"));
                     exact(m, m.op("gather", {x, none}, "axis = 0"));
                   },
                   kRuns});
  cases.push_back({"indexed/gather elements" + label,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, m]");
                     Value i = m.input(index + "[9, m]", Fill::index("n"));
                     Value j = m.input(index + "[n, 20]", Fill::index("m"));
                     exact(m, m.op("gather_elements", {x, i}, "axis = 0"));
                     exact(m, m.op("gather_elements", {x, j}, "axis = 1"));
                     Value row = m.op("broadcast", {m.input(type + "[m]")}, "", type + "[n, m]");
                     exact(m, m.op("gather_elements", {row, j}, "axis = 1"));
                   },
                   kRuns});
  cases.push_back({"indexed/gather nd" + label,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, m, 7]"), y = m.input(type + "[9, 9, 9]");
                     Value i = m.input(index + "[4, 1]", Fill::index("n"));
                     Value pair = m.input(index + "[3, 5, 2]", Fill::index("9"));
                     Value all = m.input(index + "[17, 3]", Fill::index("9"));
                     Value batched = m.input(index + "[9, 6, 1]", Fill::index("9"));
                     exact(m, m.op("gather_nd", {x, i}, "batch_dims = 0"));
                     exact(m, m.op("gather_nd", {y, pair}, "batch_dims = 0"));
                     exact(m, m.op("gather_nd", {y, all}, "batch_dims = 0"));
                     exact(m, m.op("gather_nd", {y, batched}, "batch_dims = 1"));
                   },
                   kRuns});
}

static void addScatters(Cases &cases, const string &type, const string &reduction) {
  string attribute = ", reduction = \"" + reduction + "\"";
  string label = " " + type + " " + reduction;
  cases.push_back({"indexed/scatter elements" + label,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, m]");
                     Value i = m.input("i64[2, m]", Fill::index("n"));
                     Value j = m.input("i32[n, 4]", Fill::index("m"));
                     Value u = m.input(type + "[2, m]"), v = m.input(type + "[n, 4]");
                     m.output(m.op("scatter_elements", {x, i, u}, "axis = 0" + attribute));
                     m.output(m.op("scatter_elements", {x, j, v}, "axis = 1" + attribute));
                   },
                   kRuns});
  cases.push_back({"indexed/scatter nd" + label,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, m, 5]"), y = m.input(type + "[9, 9]");
                     Value i = m.input("i64[4, 1]", Fill::index("n"));
                     Value all = m.input("i64[3, 7, 2]", Fill::index("9"));
                     Value u = m.input(type + "[4, m, 5]"), v = m.input(type + "[3, 7]");
                     Value none = m.input("i64[0, 1]", Fill::index("n")),
                           w = m.input(type + "[0, m, 5]");
                     m.output(m.op("scatter_nd", {x, i, u}, attribute.substr(2)));
                     m.output(m.op("scatter_nd", {y, all, v}, attribute.substr(2)));
                     m.output(m.op("scatter_nd", {x, none, w}, attribute.substr(2)));
                   },
                   kRuns});
  // Rows that tasks share by columns, and many short ones that they share; updates that meet, onto
  // what a kernel need not read.
  cases.push_back({"indexed/scatter rows" + label,
                   [=](Model &m) {
                     Value i = m.input("i64[40, 1]", Fill::index("n"));
                     Value u = m.input(type + "[40, 1100]"), v = m.input(type + "[40, 3]");
                     Value one = m.scalar(type, 1);
                     Value x = m.op("broadcast", {one}, "", type + "[n, 1100]");
                     Value y = m.op("broadcast", {one}, "", type + "[n, 3]");
                     Value z = m.input(type + "[n, 1100]");
                     // A place may have the sum of 40 updates.
                     Tolerance sums = Tolerance::close(m.element(type), 40);
                     m.output(m.op("scatter_nd", {x, i, u}, attribute.substr(2)), sums);
                     m.output(m.op("scatter_nd", {y, i, v}, attribute.substr(2)), sums);
                     m.output(m.op("scatter_nd", {z, i, u}, attribute.substr(2)), sums);
                   },
                   {{{"n", 3}}, {{"n", 17}}, {{"n", 1}}, {{"n", 300}}}});
}

void addIndexed(Cases &cases) {
  for (const char *type : {"f32", "f16", "i8", "i64", "i1"})
    addGathers(cases, type, "i64");
  addGathers(cases, "f32", "i32");
  addGathers(cases, "f64", "i32");
  for (const char *type : {"f32", "f64", "f16", "i8", "i64", "ui8"})
    for (const char *reduction : {"none", "add", "mul", "max", "min"})
      addScatters(cases, type, reduction);
  addScatters(cases, "i1", "none");
  for (const char *type : {"f32", "i8", "i64"})
    cases.push_back(
        {string("indexed/reverse sequence ") + type,
         [=](Model &m) {
           Value x = m.input(string(type) + "[m, n, 3]"), y = m.input(string(type) + "[n, m]");
           Value lengths = m.op("reduce_min", {m.input("i64[2, n]", Fill::range(0, 1))},
                                "axes = array<i64: 0>");
           Value all =
               m.op("broadcast", {m.op("sizes", {}, "values = #graph.dims<\"m\">", "i64[]")}, "",
                    "i64[n]");
           Value some = m.op("max", {lengths, m.op("sub", {all, lengths})});
           m.output(m.op("reverse_sequence", {x, some}, "time_axis = 0, batch_axis = 1"));
           m.output(m.op("reverse_sequence", {y, all}, "time_axis = 1, batch_axis = 0"));
         },
         kRuns});
}

} // namespace heddle::ops
