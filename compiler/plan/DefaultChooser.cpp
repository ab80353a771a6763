// DefaultChooser: knobs by rule. The rules for register tiles were measured:
// bench/notes/2026-11-21-register-tiles.md.

#include "compiler/mechanism/Shapes.h"
#include "compiler/plan/Chooser.h"
#include "compiler/plan/FilterGradientRule.h"
#include "compiler/plan/NarrowRule.h"
#include "compiler/plan/WinogradRule.h"

using namespace mlir;

namespace heddle::plan {

using graph::Dim;
using warehouse::Card;
using warehouse::Knob;
using warehouse::KnobValues;

namespace {
/// Rows of the innermost tiled dimension and columns of a product; nullopt if known only at run
/// time.
struct ProductSize {
  ProductSize(const Dim &rows, const Dim &columns)
      : rows(rows.constant()), columns(columns.constant()), columnsText(columns.str()),
        leastRows(rows.evaluate([](StringRef) { return std::optional<int64_t>(1); }).value_or(1)) {}
  std::optional<int64_t> rows, columns;
  std::string columnsText;
  int64_t leastRows;       // where every symbol is 1
  int64_t parts = 1;       // that the columns are read in
  bool hasCodes = false;   // on the right: of 4 bits, two vectors share bytes
  int64_t columnBytes = 0; // of the right operand; 0: not known
};

struct Tile {
  int64_t m, n;
};
} // namespace

static ProductSize sizeOf(graph::MatmulOp op) {
  graph::DimVector b = graph::dimsOf(op.getB()), result = graph::dimsOf(op.getResult());
  Dim rows = result[result.size() - 2];
  // Batches that share one right operand are more rows of the same product.
  for (size_t i = result.size() - 2; i-- > 0 && b[i].isConstant(1);)
    rows = rows * result[i];
  ProductSize size(rows, result.back());
  auto right = op.getB().getDefiningOp<graph::ConstantOp>();
  auto stored = right ? dyn_cast<graph::StoredAttr>(right.getValue()) : nullptr;
  size.hasCodes = stored && isa<IntegerType>(stored.getCodes().getElementType());
  if (auto depth = b[b.size() - 2].constant(); depth && !stored)
    size.columnBytes = *depth * graph::bytesOf(graph::elementOf(op.getB()));
  return size;
}

/// How much longer a column takes in a panel that leaves the L2 from one tile of rows to the next
/// (bench/notes/2026-11-25-training.md).
static double missesOf(const ProductSize &size, int64_t columns, const program::Machine &machine) {
  constexpr double kRoom = 0.7, kCost = 1.5;
  if (size.rows && *size.rows <= machine.lanes)
    return 1; // which read each panel once or twice
  double panel = static_cast<double>(size.columnBytes) * static_cast<double>(columns);
  return 1 + kCost * std::max(0.0, panel / static_cast<double>(machine.l2Bytes) - kRoom);
}

static ProductSize sizeOf(graph::ConvOp op) {
  graph::DimVector w = graph::dimsOf(op.getW()), result = graph::dimsOf(op.getResult());
  ArrayRef<Dim> spatial = ArrayRef<Dim>(result).slice(1, w.size() - 2);
  bool isPointwise = true;
  for (size_t d = 0; d + 2 < w.size(); ++d)
    isPointwise &= w[d + 2].isConstant(1) && op.getStrides()[d] == 1 && op.getLow()[d] == 0 &&
                   op.getHigh()[d] == 0;
  // The innermost dimension that has rows at all is the one that is tiled.
  while (spatial.size() > 1 && spatial.back().isConstant(1))
    spatial = spatial.drop_back();
  Dim rows = isPointwise ? result[0] * graph::elementCount(spatial) : spatial.back();
  return {rows, w[0].floorDiv(Dim(op.getGroups()))};
}

/// The parts that slices of what follows the product read; other slices read memory.
static int64_t partsBehind(graph::GroupOp group, Operation *product) {
  graph::DimVector dims = graph::dimsOf(product->getResult(0));
  SmallVector<Operation *> slices;
  for (auto slice : group.getBody().front().getOps<graph::SliceOp>())
    if (graph::dimsOf(slice.getX()) == dims)
      slices.push_back(slice);
  auto parts = mechanism::partsOf(slices, dims);
  return parts ? parts->count : 1;
}

static std::optional<ProductSize> productOf(graph::GroupOp group) {
  for (Operation *op : warehouse::decidingOps(group)) {
    auto matmul = dyn_cast<graph::MatmulOp>(op);
    auto conv = dyn_cast<graph::ConvOp>(op);
    if (!matmul && !conv)
      continue;
    ProductSize size = matmul ? sizeOf(matmul) : sizeOf(conv);
    size.parts = partsBehind(group, op);
    return size;
  }
  return std::nullopt;
}

/// Accumulators, a row of B and one element of A must fit the registers.
static bool fits(Tile tile, const program::Machine &machine) {
  int64_t vectors = tile.n / machine.lanes;
  return vectors > 0 && tile.n % machine.lanes == 0 &&
         tile.m * vectors + vectors + 1 <= machine.registers;
}

/// One row takes as long as its weights need to be read, those that fill up the last panel included
/// (bench/notes/2026-11-25-plans.md).
static int64_t columnsOfOneRow(const ProductSize &size, const program::Machine &machine) {
  int64_t lanes = machine.lanes, most = 4 * lanes;
  if (size.columns && *size.columns <= most)
    return std::max<int64_t>(1, llvm::divideCeil(*size.columns, lanes)) * lanes;
  if (!size.columns || size.hasCodes || machine.registers < 32)
    return most;
  auto read = [&](int64_t columns) { return llvm::alignTo(*size.columns, columns); };
  return std::min({most, 5 * lanes, 7 * lanes},
                  [&](int64_t a, int64_t b) { return read(a) < read(b); });
}

static Tile tileOf(const ProductSize &size, const program::Machine &machine) {
  int64_t lanes = machine.lanes, columns = size.columns.value_or(INT64_MAX);
  bool isSmall = machine.registers < 32;
  if (size.rows == 1)
    return {1, columnsOfOneRow(size, machine)};
  if (columns <= lanes)
    return {14, lanes};
  if (isSmall)
    return {6, 2 * lanes};
  // Rows known only at run time end in a clamped tile: fewer rows waste less.
  bool isLong = size.leastRows > 64;
  if (columns <= 2 * lanes)
    return {size.rows || isLong ? 14 : 12, 2 * lanes};
  struct {
    Tile tile;
    double cost; // of a column
  } kinds[] = {{{8, 3 * lanes}, 1},
               {{6, 4 * lanes}, isLong ? 0.99 : 1.04},
               {{14, 2 * lanes}, 1.05},
               {{5, 5 * lanes}, 1.01},
               {{3, 7 * lanes}, 1.06}};
  constexpr double kHalfEmpty = 1.2; // bench/notes/2026-11-22-stored-weights.md
  auto total = [&](auto &kind) {
    bool isOdd = kind.tile.n / lanes % 2 == 1;
    return kind.cost * (size.hasCodes && isOdd ? kHalfEmpty : 1) *
           missesOf(size, kind.tile.n, machine) *
           static_cast<double>(llvm::alignTo(columns, kind.tile.n));
  };
  // Columns known only at run time: what is best for many, and next to best for most.
  return size.columns
             ? llvm::min_element(kinds, [&](auto &a, auto &b) { return total(a) < total(b); })->tile
             : Tile{12, 2 * lanes};
}

/// The largest value of the knob's domain that is at most `wanted`, else the smallest.
static int64_t nearestBelow(const Knob &knob, int64_t wanted) {
  int64_t best = *llvm::min_element(knob.domain);
  for (int64_t value : knob.domain)
    if (value <= wanted)
      best = std::max(best, value);
  return best;
}

static void chooseTile(const Card &card, const ProductSize &size, const program::Machine &machine,
                       KnobValues &knobs) {
  const Knob *m = card.knob("m"), *n = card.knob("n");
  if (!m || !n)
    return;
  Tile tile = tileOf(size, machine);
  if (size.parts > 1) // each vector of columns as often as there are parts
    tile.n = size.parts * std::max<int64_t>(1, 4 / size.parts) * machine.lanes;
  tile.n = nearestBelow(*n, tile.n);
  tile.m = nearestBelow(*m, tile.m);
  while (!fits(tile, machine) && tile.m > *llvm::min_element(m->domain))
    tile.m = nearestBelow(*m, tile.m - 1);
  knobs["m"] = tile.m;
  knobs["n"] = tile.n;
}

/// Up to three vectors of columns known only at run time have the tile of such products whose
/// columns are constant: a wider one computes more of what is no column than of what is
/// (bench/notes/2026-11-23-open-columns.md).
static void chooseVersions(const ProductSize &size, const program::Machine &machine,
                           Choice &choice) {
  if (size.columns || size.parts > 1 || size.rows == 1 || !choice.card->knob("m") ||
      !choice.card->knob("n"))
    return;
  ProductSize few = size;
  for (int64_t vectors = 1; vectors <= 3; ++vectors) {
    few.columns = vectors * machine.lanes;
    Version version{{{size.columnsText, *few.columns}}, choice.knobs};
    chooseTile(*choice.card, few, machine, version.knobs);
    choice.versions.push_back(std::move(version));
  }
  while (!choice.versions.empty() && choice.versions.back().knobs == choice.knobs)
    choice.versions.pop_back();
}

/// Both products of an attention share one tile (bench/notes/2026-11-21-attention.md).
static void chooseAttentionTile(const Card &card, const program::Machine &machine,
                                KnobValues &knobs) {
  int64_t vectors = machine.registers < 32 ? 2 : 4;
  if (card.knob("m"))
    knobs["m"] = nearestBelow(*card.knob("m"), 6);
  if (card.knob("n"))
    knobs["n"] = nearestBelow(*card.knob("n"), vectors * machine.lanes);
}

/// Where a cycle begins one multiply-add, so few sums hide how long each takes that a tile can be
/// as narrow as keys want it (bench/notes/2026-11-25-plans.md).
static void narrowAttentionTile(graph::GroupOp group, const Card &card,
                                const program::Machine &machine, KnobValues &knobs) {
  constexpr int64_t kMostVectors = 14; // more keys fill up wide panels
  auto products = group.getBody().front().getOps<graph::MatmulOp>();
  if (machine.fmas > 1 || products.empty() || !card.knob("m") || !card.knob("n"))
    return;
  auto keys = graph::dimsOf((*products.begin()).getResult()).back().constant();
  if (!keys || *keys > kMostVectors * machine.lanes || !card.knob("n")->allows(machine.lanes))
    return;
  knobs["m"] = nearestBelow(*card.knob("m"), 4);
  knobs["n"] = machine.lanes;
}

/// Keys known only at run time that are few have a tile of as many columns
/// (bench/notes/2026-11-23-open-columns.md); those of two panels have narrower ones where these do,
/// as keys that are known have (bench/notes/2026-11-24-dynamic-all-sizes.md).
static void chooseAttentionVersions(graph::GroupOp group, const program::Machine &machine,
                                    Choice &choice) {
  auto products = group.getBody().front().getOps<graph::MatmulOp>();
  const Knob *n = choice.card->knob("n");
  if (products.empty() || !n)
    return;
  Dim keys = graph::dimsOf((*products.begin()).getResult()).back();
  if (keys.constant())
    return;
  auto add = [&](int64_t mostKeys, int64_t columns) {
    Version version{{{keys.str(), mostKeys}}, choice.knobs};
    version.knobs["n"] = columns;
    if (n->allows(columns))
      choice.versions.push_back(std::move(version));
  };
  for (int64_t columns = machine.lanes; columns < choice.knobs["n"]; columns += machine.lanes)
    add(columns, columns);
  int64_t lanes = machine.lanes, most = choice.knobs["n"] / lanes;
  for (int64_t half = most / 2 + 1; half < most && n->allows(half * lanes); ++half) {
    if (half == most / 2 + 1)
      add(most * lanes, most * lanes);
    add(2 * half * lanes, half * lanes);
  }
}

/// What a rule says of the group's convolution; nothing where it has none.
template <typename Result>
static Result ofConv(Result (*rule)(graph::ConvOp, const program::Machine &), graph::GroupOp group,
                     const program::Machine &machine) {
  for (Operation *op : warehouse::decidingOps(group))
    if (auto conv = dyn_cast<graph::ConvOp>(op))
      return rule(conv, machine);
  return {};
}

/// Whether a card is worth taking where it may be. What is below 0 waits for a plan or a search: a
/// library that the artefact would need, say.
static bool pays(const Card &card, graph::GroupOp group, const program::Machine &machine) {
  if (card.mechanism == &mechanism::kWinograd)
    return card.priority >= 0 && ofConv(winogradForm, group, machine).tile > 0;
  if (card.mechanism == &mechanism::kNarrowConv)
    return card.priority >= 0 && ofConv(narrowPixels, group, machine) > 0;
  return card.priority >= 0;
}

llvm::Expected<Choice> DefaultChooser::choose(graph::GroupOp group,
                                              ArrayRef<warehouse::Offer> offers,
                                              const program::Machine &machine) {
  auto first = llvm::find_if(
      offers, [&](auto &offer) { return offer.isOffered() && pays(*offer.card, group, machine); });
  Choice choice;
  if (first == offers.end())
    return choice;
  choice.card = first->card;
  for (const Knob &knob : choice.card->knobs)
    choice.knobs[knob.name] = knob.initial;
  if (mechanism::of(group) == &mechanism::kAttention) {
    chooseAttentionTile(*choice.card, machine, choice.knobs);
    narrowAttentionTile(group, *choice.card, machine, choice.knobs);
    chooseAttentionVersions(group, machine, choice);
  } else if (mechanism::of(group) == &mechanism::kAttentionGradient) {
    chooseAttentionTile(*choice.card, machine, choice.knobs);
  } else if (auto size = productOf(group)) {
    chooseTile(*choice.card, *size, machine, choice.knobs);
    chooseVersions(*size, machine, choice);
  }
  if (choice.card->mechanism == &mechanism::kWinograd && choice.card->knob("tile")) {
    WinogradForm form = ofConv(winogradForm, group, machine);
    choice.knobs["tile"] = nearestBelow(*choice.card->knob("tile"), form.tile);
    if (choice.card->knob("late"))
      choice.knobs["late"] = form.isLate;
  }
  if (choice.card->mechanism == &mechanism::kFilterGradient)
    for (auto op : group.getBody().front().getOps<graph::ConvFilterGradientOp>())
      chooseFilterGradient(op, *choice.card, machine, choice.knobs);
  if (choice.card->mechanism == &mechanism::kNarrowConv && choice.card->knob("m"))
    choice.knobs["m"] = nearestBelow(*choice.card->knob("m"), ofConv(narrowPixels, group, machine));
  return choice;
}

} // namespace heddle::plan
