// winograd: 3x3 convolutions that have to be computed in transformed tiles: any sizes, any
// borders, any channels, and what may follow them.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

namespace {
/// A convolution of `in` channels to `out`; `low` and `high` are its borders, `apart` its
/// dilations.
struct Layer {
  int64_t in, out;
  std::array<int64_t, 2> low, high;
  std::array<int64_t, 2> apart = {1, 1};

  string channels(int64_t count) const { return std::to_string(count); }
  string attributes() const {
    auto list = [](std::array<int64_t, 2> numbers) {
      return "array<i64: " + std::to_string(numbers[0]) + ", " + std::to_string(numbers[1]) + ">";
    };
    return "strides = array<i64: 1, 1>, dilations = " + list(apart) + ", low = " + list(low) +
           ", high = " + list(high);
  }
  /// The sizes of the result for an image of these sizes.
  string dims(const string &images, const string &height, const string &width) const {
    auto size = [&](const string &from, int64_t d) {
      return from + " + " + std::to_string(low[d] + high[d] - 2 * apart[d]);
    };
    return "[" + images + ", " + channels(out) + ", " + size(height, 0) + ", " + size(width, 1) +
           "]";
  }
};
} // namespace

static Value with(Model &m, const char *op, Value x, Value y) {
  return m.op(op, {x, m.broadcastTo(y, x)});
}

/// As close as whole models have to come.
static constexpr Tolerance kClose{1e-4, 1e-4};

static const std::vector<Sizes> kRuns = {
    {{"n", 1}, {"h", 7}, {"w", 9}},   {{"n", 3}, {"h", 1}, {"w", 1}},
    {{"n", 2}, {"h", 13}, {"w", 30}}, {{"n", 0}, {"h", 5}, {"w", 5}},
    {{"n", 5}, {"h", 4}, {"w", 2}},   {{"n", 1}, {"h", 33}, {"w", 18}}};

static Value conv(Model &m, const Layer &layer, Value x, const string &dims, double most = 0.5) {
  string w = "f32[" + layer.channels(layer.out) + ", " + layer.channels(layer.in) + ", 3, 3]";
  return m.op("conv", {x, m.weight(w, Fill::range(-most, most))}, layer.attributes(), "f32" + dims);
}

static void add(Cases &cases, const string &name, std::vector<Sizes> runs,
                const std::function<void(Model &)> &build, std::map<string, int64_t> knobs = {}) {
  for (int64_t tile : {2, 4})
    for (int64_t late : {0, 1}) {
      knobs["tile"] = tile;
      knobs["late"] = late;
      string form = std::to_string(tile) + "x" + std::to_string(tile) + (late ? " late" : "");
      Case one{"winograd/" + name + " " + form, build, runs, {}, "conv_winograd", knobs};
      late ? addBoth(cases, one) : cases.push_back(one);
    }
}

static void addSizes(Cases &cases) {
  struct {
    const char *name;
    Layer layer;
    std::map<string, int64_t> knobs;
  } kinds[] = {{"one channel", {1, 1, {1, 1}, {1, 1}}, {}},
               {"odd channels", {5, 37, {1, 1}, {1, 1}}, {{"m", 6}, {"n", 64}}},
               {"wide borders", {19, 16, {2, 2}, {2, 2}}, {{"n", 32}}},
               {"borders apart", {16, 70, {2, 1}, {0, 3}}, {{"m", 14}, {"n", 16}}},
               {"far borders", {3, 8, {6, 2}, {3, 7}}, {{"m", 2}, {"n", 8}}},
               {"many channels", {130, 33, {1, 1}, {1, 1}}, {{"n", 64}, {"tiles", 8}}},
               {"small blocks", {33, 50, {1, 1}, {1, 1}}, {{"m", 1}, {"tiles", 8}}},
               {"dilations", {19, 24, {2, 2}, {2, 2}, {2, 2}}, {{"n", 32}}},
               {"dilations apart", {16, 33, {4, 1}, {3, 1}, {3, 1}}, {{"m", 6}}},
               {"far dilations", {8, 16, {8, 5}, {8, 6}, {8, 5}}, {{"m", 2}, {"tiles", 8}}}};
  for (auto &kind : kinds) {
    auto build = [layer = kind.layer](Model &m) {
      Value x = m.input("f32[n, " + layer.channels(layer.in) + ", h, w]", Fill::range(-1, 1));
      m.output(conv(m, layer, x, layer.dims("n", "h", "w")), kClose);
    };
    add(cases, kind.name, kRuns, build, kind.knobs);
  }
  for (auto [images, height, width] :
       {std::array{1, 8, 8}, std::array{2, 7, 14}, std::array{1, 3, 3}, std::array{3, 29, 31}}) {
    string n = std::to_string(images), h = std::to_string(height), w = std::to_string(width);
    for (int64_t border : {0, 1}) {
      Layer layer{24, 40, {border, border}, {border, border}};
      auto size = [&](int64_t from) { return std::to_string(from + 2 * border - 2); };
      string dims = "[" + n + ", 40, " + size(height) + ", " + size(width) + "]";
      string image = "f32[" + n + ", 24, " + h + ", " + w + "]";
      add(cases, "known " + n + "x" + h + "x" + w + " border " + std::to_string(border), {},
          [=](Model &m) {
            Value x = m.input(image, Fill::range(-1, 1));
            m.output(conv(m, layer, x, dims), kClose);
          });
    }
  }
}

static void addDilations(Cases &cases) {
  for (auto [height, width, apart] : {std::array{36, 40, 8}, std::array{28, 28, 4},
                                      std::array{25, 33, 3}, std::array{32, 16, 2}}) {
    int64_t step = apart;
    Layer layer{24, 40, {step, step}, {step, step}, {step, step}};
    string sizes = std::to_string(height) + ", " + std::to_string(width) + "]";
    add(cases, "dilation of " + std::to_string(step), {}, [=](Model &m) {
      Value x = m.input("f32[2, 24, " + sizes, Fill::range(-1, 1));
      Value y = conv(m, layer, x, "[2, 40, " + sizes);
      m.output(with(m, "add", y, m.input("f32[2, 1, " + sizes)), kClose);
    });
  }
}

static void addEpilogues(Cases &cases) {
  Layer layer{20, 35, {1, 1}, {1, 1}};
  string dims = "[n, 35, h, w]";
  auto image = [](Model &m) { return m.input("f32[n, 20, h, w]", Fill::range(-1, 1)); };
  add(cases, "bias relu", kRuns, [=](Model &m) {
    Value y = with(m, "add", conv(m, layer, image(m), dims), m.constant("f32[1, 35, 1, 1]"));
    m.output(with(m, "max", y, m.scalar("f32", 0)), kClose);
  });
  add(cases, "residual and clamp", kRuns, [=](Model &m) {
    Value y = with(m, "add", conv(m, layer, image(m), dims), m.constant("f32[1, 35, 1, 1]"));
    y = m.op("add", {y, m.input("f32" + dims)});
    y = with(m, "max", y, m.scalar("f32", -3));
    m.output(with(m, "min", y, m.scalar("f32", 3)), kClose);
  });
  add(cases, "scale of an image", kRuns, [=](Model &m) {
    Value y = conv(m, layer, image(m), dims);
    y = with(m, "mul", y, m.input("f32[n, 35, 1, 1]", Fill::range(-1, 1)));
    m.output(with(m, "add", y, m.input("f32[n, 1, h, w]")), kClose);
  });
  add(cases, "sigmoid", kRuns, [=](Model &m) {
    Value y = conv(m, layer, image(m), dims);
    m.output(m.op("mul", {y, m.op("sigmoid", {y})}), kClose);
  });
  add(cases, "two in a row", kRuns, [=](Model &m) {
    Layer second{35, 20, {1, 1}, {1, 1}};
    Value y = with(m, "max", conv(m, layer, image(m), dims), m.scalar("f32", 0));
    m.output(conv(m, second, y, "[n, 20, h, w]"), {1e-4, 2e-3});
  });
}

/// Errors grow with the number of terms.
static void addSums(Cases &cases) {
  for (int64_t channels : {64, 128, 256, 512}) {
    Layer layer{channels, 32, {1, 1}, {1, 1}};
    string dims = ", 12, 15]";
    add(cases, "sums of " + std::to_string(channels) + " channels", {}, [=](Model &m) {
      Value x = m.input("f32[1, " + std::to_string(channels) + dims, Fill::range(-1, 1));
      m.output(conv(m, layer, x, "[1, 32" + dims, 1), kClose);
    });
  }
}

void addWinograd(Cases &cases) {
  addSums(cases);
  addSizes(cases);
  addDilations(cases);
  addEpilogues(cases);
}

} // namespace heddle::ops
