// Joint: see Joint.h.

#include "compiler/tuner/joint/Joint.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace heddle::tuner {

using warehouse::Knob;
using warehouse::KnobValues;

static constexpr int kDraws = 64; // attempts at a new mutation

static int64_t valueOf(const KnobValues &knobs, const char *name, int64_t otherwise) {
  auto found = knobs.find(name);
  return found == knobs.end() ? otherwise : std::max<int64_t>(1, found->second);
}

/// Rows of all tiles: what is left after whole ones has a tile of one row, of half of them, or a
/// whole one.
static int64_t computedRows(int64_t rows, int64_t m) {
  int64_t left = rows % m, half = llvm::divideCeil(m, int64_t(2));
  return rows - left + (left == 0 ? 0 : left == 1 ? 1 : left <= half ? half : m);
}

double penaltyOf(const Shape &shape, const KnobValues &knobs, int64_t workers) {
  int64_t rows = std::max<int64_t>(1, shape.rows), columns = std::max<int64_t>(1, shape.columns);
  int64_t m = valueOf(knobs, "m", 1), n = valueOf(knobs, "n", 1);
  double padding = static_cast<double>(rows) / static_cast<double>(computedRows(rows, m)) *
                   static_cast<double>(columns) / static_cast<double>(llvm::alignTo(columns, n));
  int64_t tiles = std::max<int64_t>(1, shape.batches) * llvm::divideCeil(rows, m) *
                  llvm::divideCeil(columns, n);
  double occupancy = static_cast<double>(tiles) /
                     static_cast<double>(llvm::alignTo(tiles, std::max<int64_t>(1, workers)));
  return padding * occupancy;
}

Joint::Joint(const warehouse::Card &card, std::vector<JointPoint> points,
             const program::Machine &machine, uint64_t seed)
    : card(card), points(std::move(points)), lanes(machine.lanes), registers(machine.registers),
      workers(machine.workers), draws(seed) {}

/// A tile's accumulators, a row of the right operand and an element of the left one fit the
/// registers.
bool Joint::isPossible(const KnobValues &knobs) const {
  int64_t vectors = llvm::divideCeil(valueOf(knobs, "n", 1), std::max<int64_t>(1, lanes));
  return !knobs.count("m") || !knobs.count("n") ||
         valueOf(knobs, "m", 1) * vectors + vectors + 1 <= registers;
}

size_t Joint::bestShapeOf(const KnobValues &knobs) const {
  size_t best = 0;
  for (size_t i = 1; i < points.size(); ++i)
    if (std::pair(penaltyOf(points[i].shape, knobs, workers), points[i].shape.flops) >
        std::pair(penaltyOf(points[best].shape, knobs, workers), points[best].shape.flops))
      best = i;
  return best;
}

double Joint::speedOf(size_t shape, const KnobValues &knobs) const {
  auto known = speeds.find(knobs);
  return known == speeds.end() ? 0 : known->second * penaltyOf(points[shape].shape, knobs, workers);
}

double Joint::bestSpeedOf(size_t shape) const {
  double best = 0;
  for (auto &[knobs, speed] : speeds)
    best = std::max(best, speedOf(shape, knobs));
  return best;
}

void Joint::tell(const JointTrial &trial, double seconds) {
  const Shape &shape = points[trial.shape].shape;
  double speed = seconds > 0 ? shape.flops / (penaltyOf(shape, trial.knobs, workers) * seconds) : 0;
  double &known = speeds[trial.knobs];
  known = std::max(known, speed);
}

/// One knob or two, to a value beside its own or the one after, or to any: what is worth trying may
/// be far, as where 0 stands for a rule.
KnobValues Joint::mutated(KnobValues knobs) {
  for (uint64_t changes = 1 + draws() % 2; changes > 0; --changes) {
    const Knob &knob = card.knobs[draws() % card.knobs.size()];
    std::vector<int64_t> domain(knob.domain.begin(), knob.domain.end());
    llvm::sort(domain);
    int64_t here = llvm::find(domain, knobs[knob.name]) - domain.begin();
    if (draws() % 2) {
      knobs[knob.name] = domain[draws() % domain.size()];
      continue;
    }
    int64_t step = 1 + int64_t(draws() % 2), there = draws() % 2 ? here + step : here - step;
    knobs[knob.name] = domain[std::clamp<int64_t>(there, 0, int64_t(domain.size()) - 1)];
  }
  return knobs;
}

/// The rules' choices, those of the shapes with the most to compute first.
std::optional<JointTrial> Joint::first() const {
  for (const JointPoint &point : points)
    if (!speeds.count(point.byDefault))
      return JointTrial{point.byDefault, bestShapeOf(point.byDefault)};
  std::optional<size_t> most;
  for (size_t i = 0; i < points.size(); ++i)
    if (!speeds.count(points[i].alone) && isPossible(points[i].alone) &&
        (!most || points[i].shape.flops * points[i].shape.weight >
                      points[*most].shape.flops * points[*most].shape.weight))
      most = i;
  return most ? std::optional(JointTrial{points[*most].alone, bestShapeOf(points[*most].alone)})
              : std::nullopt;
}

std::optional<JointTrial> Joint::next() {
  if (auto trial = first())
    return trial;
  if (card.knobs.empty())
    return std::nullopt;
  // The shape that takes most of the time now is searched for most.
  std::vector<double> shares;
  for (size_t i = 0; i < points.size(); ++i) {
    double speed = bestSpeedOf(i);
    shares.push_back(speed > 0 ? points[i].shape.flops * points[i].shape.weight / speed : 0);
  }
  for (int draw = 0; draw < kDraws; ++draw) {
    double place = std::uniform_real_distribution<>(
        0, std::accumulate(shares.begin(), shares.end(), 0.0))(draws);
    size_t shape = 0;
    while (shape + 1 < shares.size() && (place -= shares[shape]) > 0)
      ++shape;
    // A tournament of two known micro-kernels: the better one for the shape goes on.
    auto drawn = [&] { return std::next(speeds.begin(), draws() % speeds.size())->first; };
    KnobValues one = drawn(), other = drawn();
    KnobValues child = mutated(speedOf(shape, one) >= speedOf(shape, other) ? one : other);
    if (!speeds.count(child) && isPossible(child))
      return JointTrial{child, bestShapeOf(child)};
  }
  return std::nullopt;
}

std::vector<KnobValues> Joint::decide(size_t most) const {
  std::vector<KnobValues> states;
  for (auto &[knobs, speed] : speeds)
    if (speed > 0)
      states.push_back(knobs);
  if (states.empty()) {
    std::vector<KnobValues> defaults;
    for (const JointPoint &point : points)
      defaults.push_back(point.byDefault);
    return defaults;
  }
  auto cover = [&](size_t k) {
    std::vector<std::vector<size_t>> ranked(points.size());
    for (size_t i = 0; i < points.size(); ++i) {
      for (size_t s = 0; s < states.size(); ++s)
        ranked[i].push_back(s);
      llvm::sort(ranked[i], [&](size_t a, size_t b) {
        return std::pair(-speedOf(i, states[a]), a) < std::pair(-speedOf(i, states[b]), b);
      });
      ranked[i].resize(std::min(k, states.size()));
    }
    std::vector<size_t> chosen;
    std::vector<bool> isCovered(points.size());
    while (llvm::is_contained(isCovered, false)) {
      std::vector<double> sums(states.size());
      for (size_t i = 0; i < points.size(); ++i)
        for (size_t s : ranked[i])
          sums[s] +=
              isCovered[i] ? 0 : points[i].shape.weight * speedOf(i, states[s]) / bestSpeedOf(i);
      chosen.push_back(llvm::max_element(sums) - sums.begin());
      for (size_t i = 0; i < points.size(); ++i)
        if (llvm::is_contained(ranked[i], chosen.back()))
          isCovered[i] = true;
    }
    return chosen;
  };
  std::vector<size_t> chosen;
  for (size_t k = 1; k <= states.size(); ++k)
    if (chosen = cover(k); chosen.size() <= most)
      break;
  std::vector<KnobValues> result;
  for (size_t i = 0; i < points.size(); ++i)
    result.push_back(states[*llvm::max_element(chosen, [&](size_t a, size_t b) {
      return speedOf(i, states[a]) < speedOf(i, states[b]);
    })]);
  return result;
}

std::vector<KnobValues> Joint::wanted(size_t most, const KnobValues &base, double factor) const {
  std::vector<KnobValues> wanted = decide(most);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] == base || speedOf(i, wanted[i]) < factor * speedOf(i, points[i].byDefault))
      wanted[i] = points[i].byDefault;
  return wanted;
}

std::vector<KnobValues> Joint::candidatesAt(size_t shape, const KnobValues &knobs,
                                            size_t count) const {
  std::vector<KnobValues> candidates;
  auto add = [&](const KnobValues &each) {
    if (each != points[shape].byDefault && candidates.size() < count && isPossible(each) &&
        !llvm::is_contained(candidates, each))
      candidates.push_back(each);
  };
  add(knobs);
  add(points[shape].alone);
  if (const Knob *m = card.knob("m")) {
    KnobValues half = knobs;
    for (int64_t value : m->domain)
      if (2 * value <= knobs.at("m") && (half == knobs || value > half["m"]))
        half["m"] = value;
    add(half);
  }
  std::vector<std::pair<double, KnobValues>> ranked;
  for (auto &[each, speed] : speeds)
    ranked.push_back({-speedOf(shape, each), each});
  llvm::sort(ranked);
  for (auto &[speed, each] : ranked)
    if (speed < 0)
      add(each);
  return candidates;
}

std::vector<size_t> Joint::heaviestFirst(std::vector<size_t> some) const {
  auto work = [&](size_t i) {
    return std::pair(-points[i].shape.flops * points[i].shape.weight, i);
  };
  llvm::sort(some, [&](size_t a, size_t b) { return work(a) < work(b); });
  return some;
}

double Joint::gainOf(llvm::ArrayRef<KnobValues> knobs) const {
  double logarithms = 0;
  for (size_t i = 0; i < knobs.size(); ++i)
    if (double base = speedOf(i, points[i].byDefault), other = speedOf(i, knobs[i]);
        base > 0 && other > 0)
      logarithms += std::log(other / base);
  return std::exp(logarithms / static_cast<double>(std::max<size_t>(1, knobs.size())));
}

} // namespace heddle::tuner
