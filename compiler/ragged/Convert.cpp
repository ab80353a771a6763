// Convert: walks a simplified model once, op by op, and makes of each that has rows the same op on
// ragged tensors. A value is ragged in one form or both (Forms.h), a view of each other; what has
// no rows of its own, such as positions, stays padded and is cut where it is read.

#include "compiler/graph/Constants.h"
#include "compiler/graph/edit/Band.h"
#include "compiler/graph/edit/Sizes.h"
#include "compiler/ragged/Converter.h"
#include "compiler/ragged/Ragged.h"

using namespace mlir;

namespace heddle::ragged {

llvm::Error Converter::run() {
  auto block = lengths->getBlock();
  lengths->moveBefore(&block->front());
  for (BlockArgument input : block->getArguments())
    if (names.hasBoth(dimsOf(input)))
      ragged.insert(input);
  for (Operation &op : llvm::make_early_inc_range(block->without_terminator())) {
    if (&op == lengths || isa<graph::ConstantOp>(op))
      continue;
    builder.setInsertionPointAfter(&op);
    convert(&op);
    if (!problem.empty())
      break;
  }
  auto results = cast<func::ReturnOp>(block->getTerminator());
  builder.setInsertionPoint(results);
  for (OpOperand &result : results->getOpOperands())
    if (problem.empty())
      setResult(result);
  if (problem.empty() && lengths.getPacks())
    addOffsets(results);
  if (!problem.empty())
    return makeError(ErrorCode::Refused, problem);
  eraseDead(block);
  return llvm::Error::success();
}

void Converter::refuse(Operation *op, const Twine &why) {
  if (!problem.empty())
    return;
  std::string node = graph::sourceName(op->getLoc());
  problem =
      ("node '" + node + "' (" + op->getName().getStringRef() + "): error: --ragged " + names.of +
       ":" + names.size + ": " + why + "; without --ragged the model is computed with its padding")
          .str();
}

Value Converter::refused(Operation *op, const Twine &why) {
  refuse(op, why);
  return {};
}

bool Converter::keepsPrefix(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isRagged(value) || replaced.contains(value))
    return true;
  auto [known, isNew] = prefixes.try_emplace(value, true);
  if (isNew) {
    bool keeps = ragged::keepsPrefix(op, names) &&
                 llvm::all_of(op->getOperands(), [&](Value x) { return keepsPrefix(x); });
    prefixes[value] = keeps;
    return keeps;
  }
  return known->second;
}

void Converter::convert(Operation *op) {
  bool readsRagged = llvm::any_of(op->getOperands(), [&](Value x) { return isRagged(x); });
  bool isOfWhole = llvm::any_of(op->getResults(), [&](Value result) {
    return !keepsPrefix(result) && names.hasOf(dimsOf(result));
  });
  if (!readsRagged && !isOfWhole) {
    if (!keepsRowsApart(op, names))
      refuse(op, "it computes of several rows at once");
    return;
  }
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (const auto &symbol : graph::symbolsOf(types))
      if (!known.contains(symbol.getKey()))
        return refuse(op, "a size that it reads or makes is known only in the middle of the run");
  if (auto scan = dyn_cast<graph::ScanOp>(op))
    return convertScan(scan);
  if (op->getNumRegions() > 0)
    return refuse(op, "control flow cannot be separated by rows");
  if (isOfWhole && isa<graph::IotaOp>(op))
    return refuse(op, "the index of a row is known only in the whole batch");
  if (isa<graph::BroadcastOp>(op) && !readsRagged)
    return broadcastOfRows(cast<graph::BroadcastOp>(op));
  if (readsRagged && isOfTokens(op, names) && keepsOrder(op))
    return clone(op, /*isOfTokens=*/true);
  if (isOfRows(op, names))
    return clone(op, /*isOfTokens=*/false);
  if (movesWhole(op))
    return cloneWhole(op);
  if (auto transpose = dyn_cast<graph::TransposeOp>(op))
    return exchange(transpose);
  refuse(op, "what it computes of a row depends on other rows, or on padding, in a way that "
             "cannot be separated");
}

bool Converter::keepsOrder(Operation *op) {
  if (!isa<graph::ReshapeOp>(op))
    return true;
  Tokens to = *tokensOf(dimsOf(op->getResult(0)), names);
  return to.isFused() || to.isTimeMajor() == isTimeMajor(op->getOperand(0));
}

bool Converter::isTimeMajor(Value value) {
  auto tokens = tokensOf(dimsOf(value), names);
  return tokens->isFused() ? fusedTimeMajor.contains(value) : tokens->isTimeMajor();
}

void Converter::clone(Operation *op, bool isOfTokens) {
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value taken = isOfTokens ? asTokens(operand, op) : asRows(operand, op);
    if (!taken)
      return;
    mapping.map(operand, taken);
  }
  Operation *copy = builder.clone(*op, mapping);
  superseded.insert(op);
  auto dims = [&](ArrayRef<Dim> of) {
    return isOfTokens ? tokenDims(of, names) : rowDims(of, names);
  };
  for (NamedAttribute attribute : op->getAttrs())
    if (auto sizes = dyn_cast<graph::DimsAttr>(attribute.getValue()))
      copy->setAttr(attribute.getName(),
                    graph::dimsAttr(op->getContext(), dims(graph::dimsOf(sizes))));
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults())) {
    to.setType(graph::tensorOf(op->getContext(), dims(dimsOf(from)), graph::elementOf(from)));
    if (!names.hasSize(dimsOf(from))) {
      from.replaceAllUsesWith(to);
      replaced.insert(to);
      continue;
    }
    note(from, to, isOfTokens);
    if (auto tokens = tokensOf(dimsOf(from), names);
        isOfTokens && tokens->isFused() && isTimeMajor(firstRagged(op)))
      fusedTimeMajor.insert(from);
  }
}

Value Converter::firstRagged(Operation *op) {
  return *llvm::find_if(op->getOperands(), [&](Value x) { return isRagged(x); });
}

void Converter::note(Value padded, Value made, bool isOfTokens) {
  ragged.insert(padded);
  (isOfTokens ? tokens : rows)[padded] = made;
}

Value Converter::asTokens(Value value, Operation *reader) {
  DimVector dims = dimsOf(value);
  if (!names.hasBoth(dims))
    return plain(value, reader);
  if (Value known = tokens.lookup(value))
    return known;
  auto place = tokensOf(dims, names);
  if (!place)
    return refused(reader, "its operand has the two sizes apart from each other");
  Build build(builder, reader);
  DimVector wanted = tokenDims(dims, names);
  if (Value spread = ofPlain(value, wanted, build))
    return tokens[value] = spread;
  Value made;
  if (place->isTimeMajor()) { // an input, or positions
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, dims.size()));
    std::swap(order[place->of], order[place->size]);
    if (dims[place->of] != Dim::symbol(names.of) || rows.count(value))
      return refused(reader, "its operand has several elements of each row and time together");
    made = cut(build.transpose(wholeOf(value), order), reader);
  } else {
    made = asRows(value, reader);
  }
  return made ? tokens[value] = build.reshape(made, wanted) : Value();
}

Value Converter::asRows(Value value, Operation *reader) {
  DimVector dims = dimsOf(value);
  if (!names.hasSize(dims))
    return plain(value, reader);
  if (Value known = rows.lookup(value))
    return known;
  Build build(builder, reader);
  if (!names.hasOf(dims)) { // positions: the same of all rows
    if (dims.empty() || !dims[0].isConstant(1) || !isa<graph::MatmulOp>(reader))
      return refused(reader, "it reads '" + names.size + "' elements that no row has of its own");
    dims[0] = Dim::symbol(names.of);
    return cut(build.broadcast(value, dims), reader);
  }
  if (!graph::hasRows(dims, names.of))
    return refused(reader, "rows of its operand do not lie one after the other");
  DimVector wanted = rowDims(dims, names);
  if (Value spread = ofPlain(value, wanted, build))
    return rows[value] = spread;
  if (Value made = ofPositions(value, wanted, build))
    return rows[value] = made;
  if (Value long_ = tokens.lookup(value)) {
    if (isTimeMajor(value))
      return refused(reader, "rows of its operand do not lie one after the other");
    return rows[value] = build.reshape(long_, wanted);
  }
  Value made = cut(value, reader);
  return made ? rows[value] = made : Value();
}

Value Converter::cut(Value value, Operation *reader) {
  if (!plain(value, reader))
    return {};
  DimVector dims = dimsOf(value);
  return Build(builder, reader)
      .slice(wholeOf(value), DimVector(dims.size(), Dim(0)), rowDims(dims, names),
             SmallVector<int64_t>(dims.size(), 1));
}

std::string Converter::nameOf(Value value) {
  return value.getDefiningOp() ? graph::sourceName(value.getLoc()) : "an input";
}

Value Converter::plain(Value value, Operation *reader) {
  if (keepsPrefix(value))
    return value;
  return refused(reader, "its operand, made by '" + nameOf(value) +
                             "', depends on the size of the padded batch");
}

Value Converter::ofPlain(Value value, ArrayRef<Dim> wanted, Build &build) {
  auto broadcast = value.getDefiningOp<graph::BroadcastOp>();
  if (!broadcast || isRagged(value))
    return {};
  DimVector dims = dimsOf(broadcast.getX());
  bool isPlain = !names.hasOf(dims) && !names.hasSize(dims) && keepsPrefix(broadcast.getX());
  return isPlain ? build.broadcast(broadcast.getX(), wanted) : Value();
}

Value Converter::ofPositions(Value value, ArrayRef<Dim> wanted, Build &build, int depth) {
  if (isRagged(value) || depth == 0 || graph::rankOf(value) < 2)
    return {};
  if (auto number = graph::splatOf(value))
    return build.full(wanted, graph::elementOf(value), *number);
  bool isMask = graph::elementOf(value).isInteger(1);
  if (auto band = isMask ? graph::bandOf(value) : std::nullopt; band && band->shift.constant())
    return graph::maskOf(build, wanted, *band);
  Operation *op = value.getDefiningOp();
  if (auto broadcast = dyn_cast_if_present<graph::BroadcastOp>(op)) {
    DimVector from = dimsOf(broadcast.getX()), to = dimsOf(value);
    bool keepsMatrix = from.size() >= 2 && ArrayRef(from).take_back(2) == ArrayRef(to).take_back(2);
    return keepsMatrix ? ofPositions(broadcast.getX(), wanted, build, depth - 1) : Value();
  }
  auto choice = dyn_cast_if_present<graph::SelectOp>(op);
  if (!choice)
    return {};
  Value parts[3];
  for (auto [part, operand] : llvm::zip(parts, choice->getOperands()))
    if (part = ofPositions(operand, wanted, build, depth - 1); !part)
      return {};
  return build.select(parts[0], parts[1], parts[2]);
}

void Converter::broadcastOfRows(graph::BroadcastOp op) {
  Value source = ofLength(op.getX(), op);
  if (!source)
    return;
  Build build(builder, op);
  DimVector from = dimsOf(source), to = rowDims(dimsOf(op.getResult()), names);
  if (to.size() < from.size() || !graph::hasRows(to, names.of))
    return refuse(op, "what depends on the length of a row is spread along other dimensions");
  from.insert(from.begin() + 1, to.size() - from.size(), Dim(1));
  Value made = build.broadcast(build.reshape(source, from), to);
  if (names.hasSize(dimsOf(op.getResult()))) {
    note(op.getResult(), made, /*isOfTokens=*/false);
  } else {
    op.getResult().replaceAllUsesWith(made);
    replaced.insert(made);
  }
}

Value Converter::ofLength(Value x, Operation *reader) {
  Build build(builder, reader);
  DimVector dims = dimsOf(x);
  dims.insert(dims.begin(), Dim::symbol(names.of));
  if (keepsPrefix(x))
    return build.broadcast(x, dims);
  Operation *op = x.getDefiningOp();
  if (auto sizes = dyn_cast<graph::SizesOp>(op); sizes && dims.size() <= 2) {
    SmallVector<Value> parts;
    for (const Dim &value : graph::dimsOf(sizes.getValues()))
      if (Value part = ofLength(value, build))
        parts.push_back(build.reshape(part, {Dim::symbol(names.of), Dim(1)}));
    if (parts.size() == graph::dimsOf(sizes.getValues()).size()) {
      Value all = parts.size() == 1 ? parts[0] : build.make<graph::ConcatOp>(parts, 1);
      return build.cast(build.reshape(all, dims), graph::elementOf(x));
    }
  }
  bool isSpread = isa<graph::ReshapeOp>(op) || graph::isElementwise(op);
  if (!isSpread || names.hasOf(dimsOf(x)) || names.hasSize(dimsOf(x)))
    return refused(reader, "its operand, made by '" + nameOf(x) +
                               "', depends on the size of the padded batch");
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value each = ofLength(operand, reader);
    if (!each)
      return {};
    mapping.map(operand, each);
  }
  if (isa<graph::ReshapeOp>(op))
    return build.reshape(mapping.lookup(op->getOperand(0)), dims);
  Operation *copy = builder.clone(*op, mapping);
  copy->getResult(0).setType(graph::tensorOf(op->getContext(), dims, graph::elementOf(x)));
  return copy->getResult(0);
}

Value Converter::ofLength(const Dim &dim, Build &build) {
  DimVector all = {Dim::symbol(names.of)};
  Type i64 = builder.getI64Type();
  Value sum = build.full(all, i64, 0);
  Dim ofRow = graph::inRow(dim, names.of);
  for (const auto &[product, coefficient] : ofRow.sum()) {
    Value term = build.full(all, i64, static_cast<double>(coefficient));
    for (const Dim::Atom &atom : product) {
      if (atom.kind != Dim::Kind::Symbol)
        return {};
      Value factor = lengths.getLengths();
      if (atom.text != names.size)
        factor = build.broadcast(
            build.typed<graph::SizesOp>(
                {}, i64, graph::dimsAttr(builder.getContext(), {Dim::symbol(atom.text)})),
            all);
      term = build.mul(term, factor);
    }
    sum = build.add(sum, term);
  }
  return sum;
}

void Converter::exchange(graph::TransposeOp op) {
  Value x = op.getX();
  DimVector from = dimsOf(x), to = dimsOf(op.getResult());
  auto tokensOfX = tokensOf(from, names), tokensOfResult = tokensOf(to, names);
  bool isFused =
      (tokensOfX && tokensOfX->isFused()) || (tokensOfResult && tokensOfResult->isFused());
  bool fits = (tokensOfX || graph::hasRows(from, names.of)) &&
              (tokensOfResult || graph::hasRows(to, names.of)) && !isFused;
  if (!fits)
    return refuse(op, "it moves rows into one another");
  Build build(builder, op);
  bool isOfTokens = !graph::hasRows(from, names.of) || tokens.count(x);
  Value source = isOfTokens ? asTokens(x, op) : asRows(x, op);
  if (!source)
    return;
  // Dimensions of x as parts: `of` and its factor apart, each with its name.
  enum { kOf = -1, kFactor = -2 };
  auto partsOf = [&](ArrayRef<Dim> dims, llvm::function_ref<int64_t(size_t)> axisOf) {
    SmallVector<std::pair<int64_t, Dim>> parts;
    for (auto [i, dim] : llvm::enumerate(dims)) {
      if (!names.isOf(dim)) {
        parts.push_back({axisOf(i), rowDims({dim}, names)[0]});
        continue;
      }
      parts.push_back({kOf, Dim::symbol(names.of)});
      parts.push_back({kFactor, graph::inRow(dim, names.of)});
    }
    return parts;
  };
  auto parts = partsOf(from, [](size_t i) { return i; });
  auto wanted = partsOf(to, [&](size_t i) { return op.getPermutation()[i]; });
  auto first = [&](auto &all, bool isTokens) { // as they lie: rows, and in tokens then time
    auto rank = [&](const std::pair<int64_t, Dim> &part) {
      if (part.first == kOf)
        return 0;
      return isTokens && part.first >= 0 && names.isSize(from[part.first]) ? 1 : 2;
    };
    auto sorted = all;
    sorted.clear();
    for (int each : {0, 1, 2})
      llvm::copy_if(all, std::back_inserter(sorted),
                    [&](auto &part) { return rank(part) == each; });
    all = sorted;
  };
  first(parts, isOfTokens);
  bool makesTokens = !graph::hasRows(to, names.of);
  first(wanted, makesTokens);
  SmallVector<int64_t> order;
  for (auto &part : wanted)
    order.push_back(llvm::find_if(parts, [&](auto &each) { return each.first == part.first; }) -
                    parts.begin());
  DimVector split;
  for (auto &[axis, dim] : parts)
    split.push_back(dim);
  Value moved = build.transpose(build.reshape(source, split), order);
  note(op.getResult(),
       build.reshape(moved, makesTokens ? tokenDims(to, names) : rowDims(to, names)), makesTokens);
}

void Converter::eraseDead(Block *block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isOpTriviallyDead(&op) || (superseded.contains(&op) && op.use_empty()))
      op.erase();
}

llvm::Error convert(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  for (auto lengths : llvm::make_early_inc_range(main.getOps<graph::RowLengthsOp>()))
    if (llvm::Error error = Converter(lengths).run())
      return error;
    else
      main->setAttr(graph::kRowsApart, UnitAttr::get(module.getContext()));
  return llvm::Error::success();
}

} // namespace heddle::ragged
