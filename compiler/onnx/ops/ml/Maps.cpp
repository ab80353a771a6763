// Maps: ops of ai.onnx.ml that take a map. An input of the graph that is a map is two tensors, its
// keys in ascending order and their values.

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static const MapInput &mapOf(Node &n) {
  auto found = n.reader.maps.find(n.in(0));
  if (found == n.reader.maps.end())
    refuse("the input must be a map, and an input of the model");
  return found->second;
}

/// The value for a key that the map lacks: 0 or "".
static Value nothing(Node &n, Type element) {
  if (isString(element))
    return n.reshape(n.stringConstant({""}), {});
  return isa<FloatType>(element) ? n.scalar(element, 0) : n.integerScalar(element, 0);
}

/// The value of each of `wanted` keys, [1, wanted].
static Value valuesAt(Node &n, Value keys, Value values, Value wanted) {
  Value isFound = n.compare<EqualOp>(n.unsqueeze(wanted, {1}), keys); // [wanted, keys]
  // One entry after the last stands for a key that is not there.
  Value padded = n.concat({values, n.reshape(nothing(n, elementOf(values)), {Dim(1)})}, 0);
  Value number = n.iota({dimsOf(keys)[0]}, 0, n.i64()), count = n.size(dimsOf(keys)[0]);
  Value place = n.reduce<ReduceMinOp>(n.select(isFound, number, count), {1}, false);
  return n.unsqueeze(n.gather(padded, n.binary<MinOp>(place, count), 0), {0});
}

static void importDictVectorizer(Node &n) {
  const MapInput &map = mapOf(n);
  Value wanted = isString(elementOf(map.keys)) ? n.constantFrom("string_vocabulary")
                                               : n.constantFrom("int64_vocabulary");
  if (!wanted)
    refuse("the vocabulary for keys of " + nameOf(elementOf(map.keys)) + " is missing");
  n.set(valuesAt(n, map.keys, map.values, wanted));
}

static void importCastMap(Node &n) {
  const MapInput &map = mapOf(n);
  std::string to = n.getText("cast_to", "TO_FLOAT"), form = n.getText("map_form", "DENSE");
  Type from = elementOf(map.values);
  Type element = to == "TO_FLOAT" ? n.f32() : to == "TO_INT64" ? n.i64() : Type();
  if (to == "TO_STRING") // ONNX leaves open how many digits numbers have
    element = isString(from) ? from : Type();
  if (!element)
    refuse("'cast_to' is '" + to + "' for values of " + nameOf(from) +
           ", but must be 'TO_FLOAT', 'TO_INT64', or for strings 'TO_STRING'");
  Value values = element == from ? map.values : n.cast(map.values, element);
  if (form == "DENSE")
    return n.set(n.unsqueeze(values, {0}));
  if (form != "SPARSE")
    refuse("'map_form' is '" + form + "', but must be 'DENSE' or 'SPARSE'");
  int64_t count = n.getInt("max_map", 1);
  if (count < 1)
    refuse("'max_map' is " + Twine(count) + ", but must be at least 1");
  n.set(valuesAt(n, map.keys, values, countUp(n, Dim(count), n.i64())));
}

OpRows mapRows() {
  static const OpRow rows[] = {
      {"DictVectorizer", kMl, 1, 5, importDictVectorizer, false,
       "its map is an input of the model: two tensors, `NAME.keys` and `NAME.values`", true},
      {"CastMap", kMl, 1, 5, importCastMap, false,
       "numbers become no strings; its map is an input of the model, as DictVectorizer's", true},
  };
  return rows;
}

} // namespace heddle::onnx
