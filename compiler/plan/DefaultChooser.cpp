// DefaultChooser: knobs by rule. The rules for register tiles were measured:
// bench/notes/2026-11-21-register-tiles.md.

#include "compiler/mechanism/Extents.h"
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
/// Rows and columns of a product (mechanism/Extents.h); nullopt if known only at run time.
struct ProductSize {
  explicit ProductSize(const mechanism::Extents &extents)
      : rows(extents.rows.constant()), columns(extents.columns.constant()),
        columnsText(extents.columns.str()),
        leastRows(extents.rows.evaluate([](StringRef) { return std::optional<int64_t>(1); })
                      .value_or(1)) {}
  std::optional<int64_t> rows, columns;
  std::string columnsText;
  int64_t leastRows;       // where every symbol is 1
  int64_t parts = 1;       // that the columns are read in
  bool areBytes = false;   // of both operands, the right one signed
  bool hasCodes = false;   // on the right: of 4 bits, two vectors share bytes
  bool isRounded = false;  // rows are, in blocks: a tile has sums of integers and of floats
  int64_t columnBytes = 0; // of the right operand; 0: not known
};

struct Tile {
  int64_t m, n;
};
} // namespace

/// Factor by which a column takes longer in a panel that leaves the L2 from one tile of rows to the
/// next (bench/notes/2026-11-25-training.md).
static double missesOf(const ProductSize &size, int64_t columns, const program::Machine &machine) {
  constexpr double kRoom = 0.7, kCost = 1.5;
  if (size.rows && *size.rows <= machine.lanes)
    return 1; // which read each panel once or twice
  double panel = static_cast<double>(size.columnBytes) * static_cast<double>(columns);
  return 1 + kCost * std::max(0.0, panel / static_cast<double>(machine.l2Bytes) - kRoom);
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
    if (!graph::isContraction(op))
      continue;
    mechanism::Extents extents = mechanism::extentsOfProduct(op);
    ProductSize size(extents);
    size.parts = partsBehind(group, op);
    size.areBytes = graph::storageOf(op->getOperand(0)).isInteger(8) &&
                    graph::storageOf(op->getOperand(1)).isSignlessInteger(8);
    if (auto matmul = dyn_cast<graph::MatmulOp>(op)) {
      auto right = matmul.getB().getDefiningOp<graph::ConstantOp>();
      auto stored = right ? dyn_cast<graph::StoredAttr>(right.getValue()) : nullptr;
      size.isRounded = matmul.getBlock() != 0;
      size.hasCodes = stored && isa<IntegerType>(stored.getCodes().getElementType());
      if (auto depth = extents.depth.constant(); depth && !stored)
        size.columnBytes = *depth * graph::bytesOf(graph::elementOf(matmul.getB()));
    }
    return size;
  }
  return std::nullopt;
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

/// A tile of registers that hold matrices, which multiply integers five times as fast as vectors do
/// and fill up a tile with what is no row or term; columns fill up a vector in any case.
static std::optional<Tile> matrixTileOf(const Card &card, const ProductSize &size,
                                        const program::Machine &machine) {
  constexpr int64_t kLeast = 4; // a row takes as long as half of one in vectors
  bool isSmall = size.rows && *size.rows < kLeast;
  if (!machine.hasMatrices || !size.areBytes || size.parts > 1 || isSmall ||
      !card.mechanism->takesMatrices)
    return std::nullopt;
  return Tile{program::matrixTile(size.rows), program::matrixTile(size.columns)};
}

static Tile tileOf(const ProductSize &size, const program::Machine &machine) {
  int64_t lanes = machine.lanes, columns = size.columns.value_or(INT64_MAX);
  bool isSmall = machine.registers < 32;
  if (size.rows == 1)
    return {1, columnsOfOneRow(size, machine)};
  if (columns <= lanes)
    return {14, lanes};
  // Sums of integers and of floats stay in registers; with many, single vectors let elements of the
  // rows be operands in memory (bench/notes/2026-11-28-w4a8.md).
  // With registers that hold matrices a tile has the rows of one.
  if (size.isRounded)
    return isSmall ? Tile{4, 2 * lanes}
                   : Tile{machine.hasMatrices ? program::kMatrixSize : 12, lanes};
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

static void chooseTile(const Card &card, const ProductSize &size, const program::Machine &machine,
                       KnobValues &knobs) {
  const Knob *m = card.knob("m"), *n = card.knob("n");
  if (!m || !n)
    return;
  auto matrices = matrixTileOf(card, size, machine);
  if (matrices && m->allows(matrices->m) && n->allows(matrices->n)) {
    knobs["m"] = matrices->m;
    knobs["n"] = matrices->n;
    return;
  }
  Tile tile = tileOf(size, machine);
  if (size.parts > 1) // each vector of columns as often as there are parts
    tile.n =
        size.parts * std::max<int64_t>(1, (size.isRounded ? 2 : 4) / size.parts) * machine.lanes;
  if (size.isRounded && (!machine.hasMatrices || tile.n > machine.lanes))
    tile.m = std::max<int64_t>(1, std::min(tile.m, 12 * machine.lanes / tile.n));
  tile.n = n->atMost(tile.n);
  tile.m = m->atMost(tile.m);
  while (!machine.holdsTile(tile.m, tile.n) && tile.m > *llvm::min_element(m->domain))
    tile.m = m->atMost(tile.m - 1);
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
    knobs["m"] = card.knob("m")->atMost(6);
  if (card.knob("n"))
    knobs["n"] = card.knob("n")->atMost(vectors * machine.lanes);
}

/// Makes a tile as narrow as keys want it, which it can be if a cycle begins one multiply-add: so
/// few sums then hide how long each takes (bench/notes/2026-11-25-plans.md).
static void narrowAttentionTile(graph::GroupOp group, const Card &card,
                                const program::Machine &machine, KnobValues &knobs) {
  constexpr int64_t kMostVectors = 14; // more keys fill up wide panels
  auto products = group.getBody().front().getOps<graph::MatmulOp>();
  if (machine.fmas > 1 || products.empty() || !card.knob("m") || !card.knob("n"))
    return;
  auto keys = graph::dimsOf((*products.begin()).getResult()).back().constant();
  if (!keys || *keys > kMostVectors * machine.lanes || !card.knob("n")->allows(machine.lanes))
    return;
  knobs["m"] = card.knob("m")->atMost(4);
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

/// Applies a rule to the group's convolution; nothing if it has none.
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
    choice.knobs["tile"] = choice.card->knob("tile")->atMost(form.tile);
    if (choice.card->knob("late"))
      choice.knobs["late"] = form.isLate;
  }
  if (choice.card->mechanism == &mechanism::kFilterGradient)
    for (auto op : group.getBody().front().getOps<graph::ConvFilterGradientOp>())
      chooseFilterGradient(op, *choice.card, machine, choice.knobs);
  if (choice.card->mechanism == &mechanism::kNarrowConv && choice.card->knob("m"))
    choice.knobs["m"] = choice.card->knob("m")->atMost(ofConv(narrowPixels, group, machine));
  return choice;
}

} // namespace heddle::plan
