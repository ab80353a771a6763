// Environment: symbols are bound where a size first shows, and checked wherever it shows again.

#include "compiler/reference/Environment.h"

#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;
using heddle::graph::Dim;

namespace heddle::reference {

llvm::Error opError(Operation *op, const llvm::Twine &message, ErrorCode code) {
  return makeError(code, "node '" + graph::sourceName(op->getLoc()) + "' (" +
                             op->getName().getStringRef() + "): error: " + message);
}

std::string textOf(ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }),
                    ", ") +
         "]";
}

std::optional<int64_t> Environment::lookup(StringRef symbol) const {
  if (auto place = symbols.find(symbol); place != symbols.end())
    return place->second;
  auto summed = graph::summedBy(symbol);
  for (const Rows &each : rows) {
    if (!summed || graph::rowsOf(*summed) != each.of)
      continue;
    int64_t sum = 0;
    for (int64_t length : each.lengths) {
      auto value = summed->evaluate(
          [&](StringRef name) { return name == each.symbol ? length : lookup(name); });
      if (!value || __builtin_add_overflow(sum, *value, &sum))
        return std::nullopt;
    }
    return sum;
  }
  return std::nullopt;
}

void Environment::setRows(StringRef of, StringRef size, std::vector<int64_t> lengths) {
  rows.push_back({of.str(), *graph::rowSize(size, of).symbolName(), std::move(lengths)});
}

Environment::Row::Row(Environment &environment, StringRef of, int64_t row)
    : environment(environment), before(environment.symbols) {
  environment.symbols[of] = 1;
  for (const Rows &each : environment.rows)
    if (each.of == of)
      environment.symbols[each.symbol] = each.lengths[row];
}

Environment::Row::~Row() { environment.symbols = std::move(before); }

std::optional<int64_t> Environment::evaluate(const Dim &dim) const {
  return dim.evaluate([&](StringRef symbol) { return lookup(symbol); });
}

Environment::Scope::~Scope() {
  while (environment.bound.size() > size) {
    environment.symbols.erase(environment.bound.back());
    environment.bound.pop_back();
  }
}

llvm::Error Environment::bind(Operation *op, Type type, ArrayRef<int64_t> shape) {
  graph::DimVector dims = graph::dimsOf(type);
  if (dims.size() != shape.size())
    return opError(op, "a tensor has shape " + textOf(shape) + ", but its type has rank " +
                           Twine(dims.size()));
  for (auto [dim, size] : llvm::zip(dims, shape)) {
    auto name = dim.symbolName();
    if (name && !lookup(*name)) {
      symbols[*name] = size;
      bound.push_back(*name);
    }
  }
  for (auto [i, dim] : llvm::enumerate(dims))
    if (auto size = evaluate(dim); size && *size != shape[i])
      return opError(op, "size " + Twine(i) + " of a tensor is " + Twine(shape[i]) +
                             ", but its type says '" + dim.str() + "', which is " + Twine(*size) +
                             " here");
  return llvm::Error::success();
}

llvm::Expected<SmallVector<int64_t>> Environment::shapeOf(Operation *op, Type type) const {
  SmallVector<int64_t> shape;
  for (const Dim &dim : graph::dimsOf(type)) {
    auto size = evaluate(dim);
    if (!size)
      return opError(op, "size '" + dim.str() + "' of the result is not known here");
    if (*size < 0)
      return opError(op, "size '" + dim.str() + "' of the result is " + Twine(*size) +
                             ", but must be at least 0");
    shape.push_back(*size);
  }
  return shape;
}

int64_t Environment::addList(Tensors list) {
  lists.push_back(std::make_unique<Tensors>(std::move(list)));
  return lists.size();
}

const Tensors *Environment::list(int64_t handle) const {
  bool isKnown = handle > 0 && handle <= static_cast<int64_t>(lists.size());
  return isKnown ? lists[handle - 1].get() : nullptr;
}

void Environment::loadStrings(ModuleOp module) {
  if (auto table = module->getAttrOfType<ArrayAttr>(graph::kStrings))
    for (Attribute text : table)
      numberOf(cast<StringAttr>(text).getValue());
}

int64_t Environment::numberOf(StringRef text) {
  auto [place, isNew] = numbers.try_emplace(text, strings.size());
  if (isNew)
    strings.push_back(text.str());
  return place->second;
}

llvm::Expected<std::string> Environment::stringOf(Operation *op, int64_t number) const {
  if (number < 0 || number >= static_cast<int64_t>(strings.size()))
    return opError(op, "there is no string number " + Twine(number));
  return strings[number];
}

llvm::Expected<Tensor> Environment::allocate(Operation *op, Type element, ArrayRef<int64_t> shape) {
  int64_t bytes = graph::bytesOf(element);
  bool isTooLarge = false;
  for (int64_t size : shape) {
    if (size < 0)
      return opError(op, "a result of shape " + textOf(shape) + " cannot be");
    isTooLarge |= __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  }
  if (isTooLarge || bytes > limits.bytes - *liveBytes)
    return opError(op,
                   "a tensor of shape " + textOf(shape) + " does not fit: " + Twine(*liveBytes) +
                       " bytes are in use, the limit is " + Twine(limits.bytes),
                   ErrorCode::Limit);
  Tensor tensor{element, SmallVector<int64_t>(shape), nullptr, {}};
  int64_t size = tensor.count() * tensor.width();
  *liveBytes += size;
  tensor.owned = std::shared_ptr<std::vector<char>>(
      new std::vector<char>(size), [live = liveBytes, size](std::vector<char> *bytes) {
        *live -= size;
        delete bytes;
      });
  return tensor;
}

} // namespace heddle::reference
