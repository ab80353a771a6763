// MatrixRule: see MatrixRule.h.

#include "compiler/plan/MatrixRule.h"

#include "compiler/estimate/Precision.h"
#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Typical.h"
#include "compiler/mechanism/Extents.h"
#include "compiler/mechanism/Product.h"
#include "compiler/program/Dialect.h"
#include "compiler/warehouse/Warehouse.h"

using namespace mlir;

namespace heddle::plan {

/// The share of its multiplications that a product takes as the choice says (Lavin and Gray, "Fast
/// Algorithms for Convolutional Neural Networks", section 4).
static double shareOf(const Choice &choice) {
  constexpr double kTaps = 9, kLeast = 0.5; // more is lost in transforms
  if (!choice.card || choice.card->mechanism != &mechanism::kWinograd)
    return 1;
  auto tile = static_cast<double>(choice.knobs.at("tile"));
  return std::max(kLeast, (tile + 2) * (tile + 2) / (kTaps * tile * tile));
}

/// Whether tiles read the rows of a left operand where they lie: whole steps of such registers,
/// that are neighbours in memory. Others are packed by each tile for each chunk of panels.
static bool readsRows(Operation *product, const mechanism::Extents &extents) {
  constexpr int64_t kStep = 2 * program::kMatrixSize;
  auto matmul = dyn_cast<graph::MatmulOp>(product);
  graph::TransposeOp left = matmul ? mechanism::transposedLeft(matmul) : graph::TransposeOp();
  return extents.depth.floorDiv(extents.taps).mod(graph::Dim(kStep)).isConstant(0) &&
         (!left || left.getPermutation().back() == int64_t(left.getPermutation().size()) - 1);
}

/// The panels that all rows meet before the next ones. One, where many weights meet few rows, which
/// the L2 keeps meanwhile: so they come from memory while others are multiplied
/// (bench/notes/2026-11-28-matrices.md). Else 0, as many as the L2 holds: so, too, where it holds
/// all weights but not the results, whose strips of one panel are as many pages as rows, and where
/// tiles pack rows, for each chunk anew (bench/notes/2026-11-28-bf16-elsewhere.md).
static int64_t panelsFor(Operation *product, const mechanism::Extents &extents,
                         graph::GroupOp group, const program::Machine &machine) {
  constexpr int64_t kMostRows = 1024, kWeightBytes = 128 << 10;
  auto typical = [&](const graph::Dim &size) { return graph::typicalSize(group, size); };
  int64_t rows = typical(extents.batches * extents.rows);
  bool staysNear = rows <= kMostRows && typical(extents.depth) * rows * 2 <= machine.l2Bytes / 2;
  if (!staysNear || !readsRows(product, extents))
    return 0;
  int64_t weightBytes = typical(extents.depth * extents.columns) * 2;
  bool areResultsFar = rows * typical(extents.columns) * 4 > machine.l2Bytes;
  bool areMany = weightBytes > (areResultsFar ? machine.l2Bytes : kWeightBytes);
  return areMany ? 1 : 0;
}

/// Whether keys and values of an attention cost more to be packed than to be multiplied by so many
/// queries.
static bool takesFew(graph::GroupOp group, std::optional<int64_t> queries) {
  return queries && *queries <= estimate::thresholdAt(group, estimate::kAttentionDirect) &&
         estimate::thresholdAt(group, estimate::kShortSaving) > 0;
}

/// The precision of an attention of open queries that usually are few: these read keys and values
/// where they lie in any case, so that it is for many that it is rounded.
static estimate::Precision precisionOfMany() {
  return {true, "few queries read keys and values of f32 where they lie, many are rounded"};
}

/// The most rows that meet weights in blocks as integers, which are read as they are. For more,
/// each task makes bf16 of its weights once, and sums need no scale for each block
/// (bench/notes/2026-11-28-llm.md).
static constexpr int64_t kFewRows = 48;

/// Whether the product rounds its rows in blocks.
static bool isRounded(Operation *product) {
  auto matmul = dyn_cast<graph::MatmulOp>(product);
  return matmul && matmul.getBlock();
}

bool chooseMatrices(Choice &choice, graph::GroupOp group, ArrayRef<warehouse::Offer> offers,
                    const program::Machine &machine) {
  SmallVector<Operation *> ops = mechanism::opsOf(group.getBody().front());
  auto product = llvm::find_if(ops, graph::isContraction);
  if (!machine.hasMatrices || product == ops.end())
    return false;
  mechanism::Extents extents = mechanism::extentsOfProduct(*product);
  bool isAttention = choice.mechanismFor(group) == &mechanism::kAttention;
  if (isAttention && takesFew(group, extents.rows.constant())) {
    choice.whyPrecision = "few queries read keys and values of f32 where they lie";
    return true;
  }
  int64_t m = program::matrixTile(extents.rows.constant()),
          n = program::matrixTile(extents.columns.constant());
  std::string why;
  auto read =
      mechanism::readProduct(ops, group.getBody().front().getTerminator()->getOperands(), why);
  if (int64_t parts = read ? read->parts : 1; parts > 2) { // a register of columns of each
    m = program::kMatrixSize;
    n = parts * program::kMatrixSize;
    if (!program::MultiplyMatricesOp::fits(m, n))
      return false;
  }
  auto serves = [&](const warehouse::Card *card) {
    const warehouse::Knob *rows = card->knob("m"), *columns = card->knob("n");
    return card->mechanism && card->mechanism->takesMatrices && rows && rows->allows(m) &&
           columns && columns->allows(n) &&
           estimate::whyNotShort(*card->mechanism, ops, machine).empty();
  };
  const warehouse::Card *card = choice.card;
  if (!card || !serves(card)) {
    auto other =
        llvm::find_if(offers, [&](auto &offer) { return offer.isOffered() && serves(offer.card); });
    if (other == offers.end())
      return false;
    card = other->card;
  }
  bool areOften = isAttention && takesFew(group, graph::typicalSize(group, extents.rows));
  if (isRounded(*product)) {
    graph::Dim rows = extents.batches * extents.rows;
    choice.whyPrecision = llvm::formatv("up to {0} rows are rounded to 8 bits in blocks", kFewRows);
    bool areFew = rows.constant().value_or(kFewRows + 1) <= kFewRows;
    if (areFew || card != choice.card || !card->knob("n")->allows(machine.lanes))
      return true;
    choice.knobs["n"] = machine.lanes; // as both versions pack the weights
    if (!rows.constant())
      choice.versions = {{{{rows.str(), kFewRows}}, choice.knobs, /*isShort=*/false}};
    choice.knobs["m"] = m;
    choice.knobs["n"] = n;
    choice.isShort = true;
    return true;
  }
  estimate::Precision precision =
      areOften ? precisionOfMany() : estimate::precisionOfMatrices(group, machine, shareOf(choice));
  choice.whyPrecision = precision.why;
  if (!precision.isShort)
    return true;
  if (card != choice.card) {
    choice.card = card;
    choice.knobs.clear();
    for (const warehouse::Knob &knob : card->knobs)
      choice.knobs[knob.name] = knob.initial;
  }
  choice.knobs["m"] = m;
  choice.knobs["n"] = n;
  if (const warehouse::Knob *panels = card->knob("panels"))
    choice.knobs["panels"] = panels->atMost(panelsFor(*product, extents, group, machine));
  choice.versions.clear();
  choice.isShort = true;
  return true;
}

} // namespace heddle::plan
