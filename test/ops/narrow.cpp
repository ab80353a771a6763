// narrow: convolutions of few filters that have to be computed with the reduction in lanes: any
// sizes, windows, strides and borders, and what may follow them.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

namespace {
struct Layer {
  int64_t in, out;
  std::array<int64_t, 2> window, strides, low, high, dilations = {1, 1};

  string attributes() const {
    auto list = [](std::array<int64_t, 2> numbers) {
      return "array<i64: " + std::to_string(numbers[0]) + ", " + std::to_string(numbers[1]) + ">";
    };
    return "strides = " + list(strides) + ", dilations = " + list(dilations) +
           ", low = " + list(low) + ", high = " + list(high);
  }
  string image() const { return "f32[n, " + std::to_string(in) + ", h, w]"; }
  string pixels(const string &size, int64_t d) const {
    int64_t reach = (window[d] - 1) * dilations[d] + 1, added = low[d] + high[d] - reach;
    return "(" + size + " + " + std::to_string(added) + ") floordiv " + std::to_string(strides[d]) +
           " + 1";
  }
  string result() const {
    return "f32[n, " + std::to_string(out) + ", " + pixels("h", 0) + ", " + pixels("w", 1) + "]";
  }
  string weights() const {
    return "f32[" + std::to_string(out) + ", " + std::to_string(in) + ", " +
           std::to_string(window[0]) + ", " + std::to_string(window[1]) + "]";
  }
};
} // namespace

static const std::vector<Sizes> kRuns = {{{"n", 1}, {"h", 7}, {"w", 9}},
                                         {{"n", 3}, {"h", 5}, {"w", 5}},
                                         {{"n", 2}, {"h", 13}, {"w", 30}},
                                         {{"n", 0}, {"h", 6}, {"w", 6}},
                                         {{"n", 1}, {"h", 5}, {"w", 47}}};

static Value conv(Model &m, const Layer &layer, Value x) {
  Value w = m.weight(layer.weights(), Fill::range(-0.5, 0.5));
  return m.op("conv", {x, w}, layer.attributes(), layer.result());
}

static Value with(Model &m, const char *op, Value x, Value y) {
  return m.op(op, {x, m.broadcastTo(y, x)});
}

static void add(Cases &cases, const string &name, std::vector<Sizes> runs, int64_t pixels,
                const std::function<void(Model &)> &build) {
  addBoth(cases,
          {"conv narrow/" + name, build, std::move(runs), {}, "conv_narrow", {{"m", pixels}}});
}

static void addSizes(Cases &cases) {
  struct {
    const char *name;
    Layer layer;
    int64_t pixels;
  } kinds[] = {{"1 of 1 channel", {1, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 14},
               {"2 of 5 channels", {5, 2, {5, 3}, {1, 1}, {2, 1}, {2, 1}}, 9},
               {"3 of 16 channels 9x9", {16, 3, {9, 9}, {1, 1}, {4, 4}, {4, 4}}, 9},
               {"3 of 3 channels, strides", {3, 3, {7, 7}, {2, 2}, {3, 3}, {2, 3}}, 7},
               {"4 of 33 channels 1x1", {33, 4, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, 6},
               {"5 of 20 channels, strides apart", {20, 5, {3, 4}, {3, 1}, {0, 2}, {1, 0}}, 5},
               {"6 of 7 channels, far pixels", {7, 6, {2, 3}, {1, 4}, {1, 0}, {0, 1}}, 4},
               {"7 of 19 channels", {19, 7, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 3},
               {"8 of 40 channels 1x5", {40, 8, {1, 5}, {1, 1}, {0, 0}, {0, 0}}, 2},
               {"3 of 12 channels, dilations", {12, 3, {3, 3}, {1, 1}, {2, 0}, {2, 3}, {2, 3}}, 8},
               {"21 of 6 channels", {6, 21, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, 2},
               {"7 of 9 channels, one pixel", {9, 7, {3, 3}, {1, 2}, {1, 1}, {1, 0}}, 1}};
  for (auto &kind : kinds)
    add(cases, kind.name, kRuns, kind.pixels, [layer = kind.layer](Model &m) {
      m.output(conv(m, layer, m.input(layer.image(), Fill::range(-1, 1))), {1e-4, 1e-5});
    });
  for (int64_t width : {1, 4, 19, 27}) {
    string size = std::to_string(width);
    add(cases, "known width " + size, {}, 9, [=](Model &m) {
      Value x = m.input("f32[2, 6, 5, " + size + "]", Fill::range(-1, 1));
      Value w = m.weight("f32[3, 6, 5, 5]", Fill::range(-0.5, 0.5));
      Layer layer{6, 3, {5, 5}, {1, 1}, {2, 2}, {2, 2}};
      Value y = m.op("conv", {x, w}, layer.attributes(), "f32[2, 3, 5, " + size + "]");
      m.output(y, {1e-4, 1e-5});
    });
  }
}

static void addEpilogues(Cases &cases) {
  Layer layer{10, 3, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  auto image = [=](Model &m) { return m.input(layer.image(), Fill::range(-1, 1)); };
  add(cases, "bias relu", kRuns, 9, [=](Model &m) {
    Value y = with(m, "add", conv(m, layer, image(m)), m.constant("f32[1, 3, 1, 1]"));
    m.output(with(m, "max", y, m.scalar("f32", 0)), {1e-4, 1e-5});
  });
  add(cases, "residual and sigmoid", kRuns, 8, [=](Model &m) {
    Value y = m.op("add", {conv(m, layer, image(m)), m.input(layer.result())});
    m.output(m.op("mul", {y, m.op("sigmoid", {y})}), {1e-4, 1e-5});
  });
  add(cases, "scale of an image and of a pixel", kRuns, 6, [=](Model &m) {
    Value y = conv(m, layer, image(m));
    y = with(m, "mul", y, m.input("f32[n, 3, 1, 1]", Fill::range(-1, 1)));
    m.output(with(m, "add", y, m.input("f32[n, 1, h, w]")), {1e-4, 1e-5});
  });
  add(cases, "two results", kRuns, 9, [=](Model &m) {
    Value y = conv(m, layer, image(m));
    m.output(y, {1e-4, 1e-5});
    m.output(with(m, "max", y, m.scalar("f32", 0)), {1e-4, 1e-5});
  });
}

/// Infinities, and NaN where two of them meet, are in the pixels whose windows have them, and in no
/// others.
static void addSpecials(Cases &cases) {
  for (Layer layer :
       {Layer{5, 3, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, Layer{3, 2, {1, 1}, {1, 1}, {0, 0}, {0, 0}}}) {
    string name = "specials of " + std::to_string(layer.in) + " channels";
    add(cases, name, kRuns, 4, [=](Model &m) {
      Value zeros = m.op("ceil", {m.input(layer.image(), Fill::range(-0.03, 1))});
      Value x = m.op("div", {m.input(layer.image(), Fill::range(-1, 1)), zeros});
      m.output(conv(m, layer, x), {1e-4, 1e-5});
    });
  }
}

void addNarrow(Cases &cases) {
  addSizes(cases);
  addEpilogues(cases);
  addSpecials(cases);
}

} // namespace heddle::ops
