// Visible: masks of the scores, bounds of them, and the panels that these leave.

#include "compiler/lower/attention/Visible.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Constants.h"

using namespace mlir;

namespace heddle::lower {

/// Reads from the logits back to the scores: masks, then factors. nullopt if something else
/// is between them.
static std::optional<ScoreMasks> masksBetween(Value value, Value scores, int depth = 8) {
  if (value == scores)
    return ScoreMasks();
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op); reshape && reshape.getX() == scores)
    return ScoreMasks();
  auto through = [&](unsigned operand) {
    return masksBetween(op->getOperand(operand), scores, depth - 1);
  };
  if (isa<graph::MulOp, graph::DivOp>(op)) {
    auto factor = graph::splatOf(op->getOperand(1));
    bool isLeft = !factor && isa<graph::MulOp>(op);
    if (isLeft)
      factor = graph::splatOf(op->getOperand(0));
    auto masks = factor ? through(isLeft ? 1 : 0) : std::nullopt;
    if (!masks || !masks->steps.empty())
      return std::nullopt;
    masks->scale *= std::abs(isa<graph::MulOp>(op) ? *factor : 1 / *factor);
    return masks;
  }
  SmallVector<unsigned> operands;
  if (isa<graph::AddOp>(op))
    operands = {0, 1};
  else if (isa<graph::SelectOp>(op))
    operands = {1, 2};
  for (unsigned operand : operands)
    if (auto masks = through(operand)) {
      masks->steps.push_back({op, operand});
      return masks;
    }
  return std::nullopt;
}

/// Whether weights of exponentials 0 are 0.
static bool staysZero(Value weights, Value powers) {
  if (weights == powers)
    return true;
  if (auto div = weights.getDefiningOp<graph::DivOp>())
    return staysZero(div.getX(), powers);
  if (auto reshape = weights.getDefiningOp<graph::ReshapeOp>())
    return staysZero(reshape.getX(), powers);
  if (auto select = weights.getDefiningOp<graph::SelectOp>()) // NaN, of rows without keys, as 0
    return graph::splatOf(select.getX()) == 0.0 && staysZero(select.getY(), powers);
  return false;
}

void Visibility::findMasks() {
  bool areFloats = number.isF32() && graph::storageOf(layout.parts.scores.getResult()).isF32() &&
                   graph::storageOf(layout.parts.logits).isF32() &&
                   graph::storageOf(layout.parts.weights).isF32();
  if (!areFloats || layout.queries.isConstant(1) ||
      !staysZero(layout.parts.weights, layout.parts.powers))
    return;
  // Rows may have other numbers after all masks, as those of heads that share keys do.
  masked = layout.parts.logits;
  auto reshape = masked.getDefiningOp<graph::ReshapeOp>();
  if (reshape && graph::dimsOf(reshape.getX()) == graph::dimsOf(layout.parts.scores.getResult()))
    masked = reshape.getX();
  auto found = masksBetween(masked, layout.parts.scores.getResult());
  if (found && !found->steps.empty() && std::isfinite(found->scale))
    masks = *found;
  if (masks && masks->steps.size() == 1)
    findSide();
  if (masks && masks->steps.size() == 1 && !side)
    findEdge();
}

/// A choice by a band between the score and a number, or between two numbers that are added, in the
/// shape of the scores.
void Visibility::findSide() {
  const ScoreMasks::Step &step = masks->steps.front();
  DimVector dims = graph::dimsOf(step.op->getResult(0));
  Value mask =
      isa<graph::AddOp>(step.op) ? step.op->getOperand(1 - step.scores) : step.op->getResult(0);
  while (auto broadcast = mask.getDefiningOp<graph::BroadcastOp>())
    mask = broadcast.getX();
  auto choice = mask.getDefiningOp<graph::SelectOp>();
  DimVector ofMask = graph::dimsOf(mask);
  auto band = choice ? graph::bandOf(choice.getCondition()) : std::nullopt;
  if (!band || dims[dims.size() - 2] != layout.queries || dims.back() != layout.keys ||
      ArrayRef(ofMask).take_back(2) != ArrayRef(dims).take_back(2))
    return;
  // The score counts as 0.
  auto numberAt = [&](unsigned operand) {
    bool isScore = choice == step.op && operand == step.scores;
    return isScore ? std::optional(0.0) : graph::splatOf(choice->getOperand(operand));
  };
  auto within = numberAt(1), beyond = numberAt(2);
  if (within == 0.0 && beyond)
    side = SideMask{*band, *beyond, choice};
  else if (beyond == 0.0 && within)
    side = SideMask{band->complement(), *within, choice};
}

/// A choice between the score and a number, by a place that each query has.
void Visibility::findEdge() {
  auto choice = dyn_cast<graph::SelectOp>(masks->steps.front().op);
  auto hidden = choice ? graph::splatOf(choice.getY()) : std::nullopt;
  if (!hidden || masks->steps.front().scores != 1 ||
      graph::dimsOf(choice.getResult()).back() != layout.keys)
    return;
  if (auto ends = graph::rowEndsOf(choice.getCondition()))
    edge = EdgeMask{*ends, *hidden, choice.getCondition()};
}

/// How many keys the row sees that has this place in the comparison.
Value Visibility::seenBefore(Elements &e, ArrayRef<Index> place) {
  Code &code = kernel.code();
  Indices row(place);
  row.back() = e.uniform(code.number(0));
  Value end = e.at(edge->ends.compares->getOperand(edge->ends.places), row),
        all = kernel.dim(layout.keys);
  if (end.getType() != code.b.getI64Type())
    end = code.b.create<arith::ExtSIOp>(code.loc, code.b.getI64Type(), end);
  if (edge->ends.isIncluded)
    end = code.add(code.min(end, code.sub(all, code.number(1))), code.number(1));
  return code.max(code.min(end, all), code.number(0));
}

void Visibility::bindSide(Elements &e) {
  if (edge)
    e.bind(edge->ends.compares->getResult(0), [this, &e](ArrayRef<Index> place) {
      Code &code = kernel.code();
      return code.maskOf(
          code.max(code.sub(seenBefore(e, place), place.back().base), code.number(0)));
    });
  if (!side)
    return;
  graph::Band band = *graph::bandOf(side->choice.getCondition());
  e.bind(side->choice, [this, &e, band](ArrayRef<Index> place) -> Value {
    Code &code = kernel.code();
    graph::SelectOp choice = side->choice;
    Value edge = code.add(place[place.size() - 2].base, kernel.dim(band.shift));
    edge = band.isLower ? code.add(edge, code.number(1)) : edge;
    Value isBefore = code.maskOf(code.max(code.sub(edge, place.back().base), code.number(0)));
    Value x = code.spread(e.at(choice.getX(), place)), y = code.spread(e.at(choice.getY(), place));
    return code.b.create<arith::SelectOp>(code.loc, isBefore, band.isLower ? x : y,
                                          band.isLower ? y : x);
  });
}

void Visibility::unbindSide(Elements &e) {
  if (edge)
    e.unbind(edge->ends.compares->getResult(0));
  if (side)
    e.unbind(side->choice);
}

/// Whether all queries of a batch have the same masks.
bool Visibility::areMasksOfKeys() const {
  auto isOfKeys = [&](Value value) {
    if (auto broadcast = value.getDefiningOp<graph::BroadcastOp>()) {
      DimVector from = graph::dimsOf(broadcast.getX());
      return from.size() < 2 || from[from.size() - 2].isConstant(1);
    }
    return graph::splatOf(value).has_value();
  };
  return llvm::all_of(masks->steps, [&](const ScoreMasks::Step &step) {
    for (auto [i, operand] : llvm::enumerate(step.op->getOperands()))
      if (i != step.scores && !isOfKeys(operand))
        return false;
    return true;
  });
}

/// The mask of a score of 0.
Value Visibility::maskOfScore(Elements &e, ArrayRef<Index> place) {
  Code &code = kernel.code();
  Value mask = code.spread(code.constantOf(number, 0));
  auto at = [&](Value tensor) { return code.spread(e.at(tensor, place)); };
  for (const ScoreMasks::Step &step : masks->steps) {
    if (isa<graph::AddOp>(step.op)) {
      mask = code.b.create<arith::AddFOp>(code.loc, mask, at(step.op->getOperand(1 - step.scores)));
      continue;
    }
    Value x = step.scores == 1 ? mask : at(step.op->getOperand(1));
    Value y = step.scores == 2 ? mask : at(step.op->getOperand(2));
    mask = code.b.create<arith::SelectOp>(code.loc, at(step.op->getOperand(0)), x, y);
  }
  return mask;
}

/// Without their signs numbers are ordered as their bits are, infinity and NaN last; of two numbers
/// of bf16 in a lane the larger one counts.
Value Visibility::magnitudesAt(Value pointer, Value index, Value mask) {
  Code &code = kernel.code();
  Type integer = code.b.getI32Type();
  Value bits = code.loadLanes(integer, pointer, index, mask);
  auto kept = [&](Value bits, int64_t which) -> Value {
    return code.b.create<arith::AndIOp>(code.loc, bits,
                                        code.spread(code.integerOf(integer, which)));
  };
  if (layout.together == 1)
    return kept(bits, 0x7fffffff);
  Value low =
      code.b.create<arith::ShLIOp>(code.loc, bits, code.spread(code.integerOf(integer, 16)));
  return code.b.create<arith::MaxUIOp>(code.loc, kept(low, 0x7fff0000), kept(bits, 0x7fff0000));
}

Value Visibility::largestOfLanes(Value magnitudes) {
  Code &code = kernel.code();
  Value best =
      code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::MAXUI, magnitudes);
  return code.b.create<arith::BitcastOp>(code.loc, number, best);
}

/// The largest magnitude of packed columns; more than all finite numbers where one is none.
Value Visibility::largestMagnitude(Elements &e, const Panels &panels, const Dim &offset) {
  Code &code = kernel.code();
  auto visit = [&](Value panel, ValueRange carried) {
    Value start = code.mul(panel, kernel.dim(panels.stride()));
    Values masks;
    for (int64_t j = 0; j < panels.vectors; ++j) {
      Value column =
          code.add(code.mul(panel, code.number(panels.width)), code.number(j * code.lanes));
      masks.push_back(maskOfColumns(e, panels.columns, panels.width, column));
    }
    return foldScoped(e, code.number(0), kernel.dim(panels.rows.ceilDiv(panels.depth)), carried,
                      [&](Value k, ValueRange in) {
                        Values best(in);
                        Value at = code.add(start, code.mul(k, code.number(panels.width)));
                        for (int64_t j = 0; j < panels.vectors; ++j) {
                          Value bits =
                              magnitudesAt(layout.scratchAt(offset),
                                           code.add(at, code.number(j * code.lanes)), masks[j]);
                          best[j] = code.b.create<arith::MaxUIOp>(code.loc, best[j], bits);
                        }
                        return best;
                      });
  };
  Values none(panels.vectors, code.spread(code.integerOf(code.b.getI32Type(), 0)));
  Values best = foldScoped(e, code.number(0), kernel.dim(panels.count()), none, visit);
  for (int64_t j = 1; j < panels.vectors; ++j)
    best[0] = code.b.create<arith::MaxUIOp>(code.loc, best[0], best[j]);
  return largestOfLanes(best[0]);
}

Visibility::Bounds Visibility::boundsOfTask(Elements &e, Value firstRow) {
  if (!masks)
    return {};
  Code &code = kernel.code();
  // Below, keys are looked at longer than computed with (bench/notes/2026-11-21-attention.md).
  int64_t least = estimate::thresholdAt(layout.parts.values, estimate::kAttentionBounds);
  Value none = code.constantOf(number, std::numeric_limits<double>::quiet_NaN());
  Values bounds = code.choose(
      code.less(kernel.dim(layout.queries), code.number(least)), {number, number},
      [&] { return Values{none, none}; },
      [&] {
        Value keyBound = largestMagnitude(e, layout.keyPanels, Dim(0));
        Value valueBound = largestMagnitude(e, layout.valuePanels, layout.valuesAt);
        Value infinity = code.constantOf(number, std::numeric_limits<double>::infinity());
        Value isFinite =
            code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OLT, valueBound, infinity);
        keyBound = code.b.create<arith::SelectOp>(code.loc, isFinite, keyBound, none);
        return Values{keyBound, !side && !edge && areMasksOfKeys()
                                    ? readMasks(e, firstRow, code.number(1))
                                    : none};
      });
  return {bounds[0], bounds[1]};
}

/// The largest magnitude of the slab's queries; more than all finite numbers where one is none.
Value Visibility::boundOfQueries(Elements &e, const Slab &slab) {
  Code &code = kernel.code();
  auto visit = [&](Value place, ValueRange carried) {
    Value row = code.mul(place, kernel.dim(layout.queryStride));
    Value lanes = kernel.dim(layout.depth.ceilDiv(layout.together));
    return foldLanes(e, code.number(0), lanes, carried, [&](Value k, ValueRange in) {
      Value bits = magnitudesAt(layout.scratchAt(layout.queriesAt), code.add(row, k), e.mask);
      return Values{code.b.create<arith::MaxUIOp>(code.loc, in[0], bits)};
    });
  };
  Value none = code.spread(code.integerOf(code.b.getI32Type(), 0));
  return largestOfLanes(foldScoped(e, code.number(0), layout.rowsOfSlab(slab), none, visit)[0]);
}

/// Reads the masks of these rows: the largest of each panel goes to the scratch, the least of the
/// rows' largest ones comes back.
Value Visibility::readMasks(Elements &e, Value firstRow, Value rows) {
  Code &code = kernel.code();
  Value zero = code.number(0), panels = kernel.dim(layout.keyPanels.count());
  Value infinity = code.constantOf(number, std::numeric_limits<double>::infinity());
  Value lowest = code.spread(code.constantOf(number, -std::numeric_limits<double>::infinity()));
  auto maximum = [&](Value x, Value y) -> Value { // NaN of either
    return code.b.create<arith::MaximumFOp>(code.loc, x, y);
  };
  Value memory = layout.scratchAt(layout.masksAt), lanes = code.number(code.lanes);
  foldScoped(e, zero, panels, {}, [&](Value panel, ValueRange) {
    code.storeLanes(number, lowest, memory, code.mul(panel, lanes), {});
    return Values();
  });
  auto visitRow = [&](Value row, ValueRange least) {
    Indices place = layout.placeOfRow(e, masked, layout.rowNumber(code.add(firstRow, row)));
    place.emplace_back();
    auto visitPanel = [&](Value panel, ValueRange best) {
      Value ofPanel = lowest;
      for (int64_t j = 0; j < layout.keyPanels.vectors; ++j) {
        Elements::Scope scope(e);
        Value column = code.add(code.mul(panel, code.number(layout.keyPanels.width)),
                                code.number(j * code.lanes));
        e.mask = maskOfColumns(e, layout.keys, layout.keyPanels.width, column);
        place.back() = {column, 1, {}};
        Value mask = maskOfScore(e, place);
        if (e.mask)
          mask = code.b.create<arith::SelectOp>(code.loc, e.mask, mask, lowest);
        ofPanel = maximum(ofPanel, mask);
        e.mask = {};
      }
      Value at = code.mul(panel, lanes);
      Value known = code.loadLanes(number, memory, at, {});
      code.storeLanes(number, maximum(known, ofPanel), memory, at, {});
      return Values{maximum(best[0], ofPanel)};
    };
    Value best = foldScoped(e, zero, panels, lowest, visitPanel)[0];
    best = code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::MAXIMUMF, best);
    return Values{code.b.create<arith::MinimumFOp>(code.loc, least[0], best)};
  };
  Value least = foldScoped(e, zero, rows, infinity, visitRow)[0];
  foldScoped(e, zero, panels, {}, [&](Value panel, ValueRange) {
    Value at = code.mul(panel, lanes), best = code.loadLanes(number, memory, at, {});
    best = code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::MAXIMUMF, best);
    code.store(number, best, memory, at);
    return Values();
  });
  return least;
}

/// The panels that have the keys [low, high), in them exactly these, and those that share a step of
/// the products with the first.
Keys Visibility::panelsOf(Value low, Value high) {
  Code &code = kernel.code();
  low = code.sub(low, code.rem(low, code.number(layout.step)));
  int64_t width = layout.keyPanels.width;
  return {code.div(low, code.number(width)), code.ceilDiv(high, width), low, high};
}

bool Visibility::areFirstSeen() const { return edge || (side && side->seen.isLower); }

/// The least and the most keys that a row of the slab sees, where these are the first ones.
std::pair<Value, Value> Visibility::seenBy(Elements &e, const Slab &slab) {
  Code &code = kernel.code();
  Value zero = code.number(0), one = code.number(1), all = kernel.dim(layout.keys);
  if (!edge) {
    Value shift = kernel.dim(side->seen.shift);
    Value last = code.sub(code.add(slab.first, layout.rowsOfSlab(slab)), one);
    auto seenBefore = [&](Value row) {
      Value end = code.add(code.add(row, shift), one);
      return code.min(code.max(end, zero), all);
    };
    return {seenBefore(slab.first), seenBefore(layout.rowNumber(last))};
  }
  Values ends =
      foldScoped(e, zero, layout.rowsOfSlab(slab), {all, zero}, [&](Value row, ValueRange in) {
        Indices place = layout.placeOfRow(e, masked, layout.rowNumber(code.add(slab.first, row)));
        place.push_back(e.uniform(zero));
        for (Value value = edge->condition; value != edge->ends.compares->getResult(0);
             value = value.getDefiningOp()->getOperand(0))
          place = broadcastPlace(e, value.getDefiningOp(), place);
        Value end = seenBefore(e, place);
        return Values{code.min(in[0], end), code.max(in[1], end)};
      });
  return {ends[0], ends[1]};
}

/// Keys from the first one on that some row of the slab sees, if these are not the first ones. None
/// if a row sees no key at all, since it takes the mean of all values.
Keys Visibility::lastKeys(const Slab &slab) {
  Code &code = kernel.code();
  Value all = kernel.dim(layout.keys), shift = kernel.dim(side->seen.shift);
  Value lastRow = code.sub(code.add(slab.first, layout.rowsOfSlab(slab)), code.number(1));
  Value first = code.add(slab.first, shift), last = code.add(layout.rowNumber(lastRow), shift);
  Value none = code.less(code.sub(all, code.number(1)), last);
  first = code.min(code.max(first, code.number(0)), all);
  return panelsOf(code.b.createOrFold<arith::SelectOp>(code.loc, none, all, first), all);
}

void Visibility::bindSeen(Elements &e) {
  unbindSide(e); // which may be the same choice
  const ScoreMasks::Step &step = masks->steps.front();
  Value scores = step.op->getOperand(step.scores);
  e.bind(step.op->getResult(0),
         [&e, scores](ArrayRef<Index> place) { return e.at(scores, place); });
}

void Visibility::unbindSeen(Elements &e) {
  e.unbind(masks->steps.front().op->getResult(0));
  bindSide(e);
}

Keys Visibility::visibleKeys(Elements &e, const Slab &slab, const Bounds &bounds) {
  Code &code = kernel.code();
  Value zero = code.number(0), panels = kernel.dim(layout.keyPanels.count()),
        last = kernel.dim(layout.keys);
  if (!masks)
    return {zero, panels, zero, last};
  auto floats = [&](double value) { return code.constantOf(number, value); };
  auto less = [&](Value x, Value y) -> Value {
    return code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OLT, x, y);
  };
  /// The distance below the largest mask of a row at which one leaves no weight.
  auto reachOf = [&] {
    auto times = [&](Value x, Value y) -> Value {
      return code.b.create<arith::MulFOp>(code.loc, x, y);
    };
    // Sums of products round: a percent is more than they lose.
    Value terms = code.b.create<arith::SIToFPOp>(code.loc, number, kernel.dim(layout.depth));
    Value reach = times(times(boundOfQueries(e, slab), bounds.keys), terms);
    return Value(code.b.create<arith::AddFOp>(code.loc, times(reach, floats(2.02 * masks->scale)),
                                              floats(88)));
  };
  Value isBounded =
      code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::ORD, bounds.keys, bounds.keys);
  Type i64 = code.b.getI64Type();
  if (side || edge) {
    auto [least, most] = areFirstSeen() ? seenBy(e, slab) : std::pair(zero, zero);
    Values range = code.choose(
        isBounded, {i64, i64},
        [&] {
          // None if a row sees no key at all, since it takes the mean of all values.
          Value none = code.less(least, code.number(1));
          Keys seen =
              areFirstSeen()
                  ? panelsOf(zero, code.b.createOrFold<arith::SelectOp>(code.loc, none, zero, most))
                  : lastKeys(slab);
          Value isHidden = less(floats(side ? side->hidden : edge->hidden),
                                code.b.create<arith::SubFOp>(code.loc, floats(0), reachOf()));
          isHidden = code.both(isHidden, code.less(seen.low, seen.high));
          return Values{code.b.create<arith::SelectOp>(code.loc, isHidden, seen.low, zero),
                        code.b.create<arith::SelectOp>(code.loc, isHidden, seen.high, last)};
        },
        [&] { return Values{zero, last}; });
    Keys seen = panelsOf(range[0], range[1]);
    seen.clear = code.div(least, code.number(layout.keyPanels.width));
    return seen;
  }
  auto scan = [&] {
    Value reach = reachOf();
    Value best =
        areMasksOfKeys() ? bounds.masks : readMasks(e, slab.first, layout.rowsOfSlab(slab));
    Value least = code.b.create<arith::SubFOp>(code.loc, best, reach);
    return foldScoped(e, zero, panels, {panels, zero}, [&](Value panel, ValueRange in) {
      Value mask = code.load(number, layout.scratchAt(layout.masksAt),
                             code.mul(panel, code.number(code.lanes)));
      Value isSeen = code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::UGE, mask, least);
      Value end = code.add(panel, code.number(1));
      return Values{code.b.create<arith::SelectOp>(code.loc, isSeen, code.min(in[0], panel), in[0]),
                    code.b.create<arith::SelectOp>(code.loc, isSeen, end, in[1])};
    });
  };
  Values range = code.choose(isBounded, {i64, i64}, scan, [&] { return Values{zero, panels}; });
  Value width = code.number(layout.keyPanels.width);
  return {range[0], range[1], code.mul(range[0], width), code.min(code.mul(range[1], width), last)};
}

} // namespace heddle::lower
