// Filters: packed as they are multiplied, or plain and transformed by the task that needs them.

#include "compiler/estimate/Thresholds.h"
#include "compiler/lower/stored/FilterLanes.h"
#include "compiler/lower/winograd/Winograd.h"

#include "mlir/IR/Threading.h"

using namespace mlir;

namespace heddle::lower {

/// [out, in, 3, 3] -> [panel][place][in][width], transformed, or as they are read,
/// [panel][in][vector][tap][lanes].
void Winograd::packFilters() {
  std::vector<char> storage;
  ArrayRef<char> bytes =
      graph::constantBytes(conv.getW().getDefiningOp<graph::ConstantOp>().getValue(), storage);
  int64_t width = panelWidth(), count = isLate ? kTaps : places();
  std::vector<char> packed(panelCount() * count * channels * width * sizeof(float), 0);
  auto *target = reinterpret_cast<float *>(packed.data());
  auto at = [&](int64_t column, int64_t channel, int64_t place) {
    if (!isLate)
      return (place * channels + channel) * width + column;
    int64_t lanes = kernel.machine.lanes;
    return ((channel * vectors + column / lanes) * count + place) * lanes + column % lanes;
  };
  parallelFor(conv.getContext(), 0, filters, [&](int64_t filter) {
    float *panel = target + filter / width * count * channels * width;
    for (int64_t channel = 0; channel < channels; ++channel) {
      float taps[kTaps];
      std::memcpy(taps, bytes.data() + (filter * channels + channel) * sizeof taps, sizeof taps);
      SmallVector<double> numbers(taps, taps + kTaps);
      if (!isLate)
        numbers = transform.filter(numbers);
      for (auto [i, number] : llvm::enumerate(numbers)) {
        auto place = static_cast<int64_t>(i);
        panel[at(filter % width, channel, place)] = static_cast<float>(number);
      }
    }
  });
  filterData = kernel.addData(std::move(packed));
}

/// Filters known only at run time, of so many channels from `channel` on, as packFilters lays out
/// late ones: in the scratch, where they stay in the cache until they are transformed.
void Winograd::copyFilters(Value panel, Value channel, Value length) {
  Code &code = kernel.code();
  Elements e(kernel, group);
  Value terms = code.number(channels * kTaps), skipped = code.mul(channel, code.number(kTaps));
  int64_t block = kTaps * code.lanes;
  code.forEach(code.number(0), code.number(vectors), 1, [&](Value vector) {
    Value number = code.add(code.mul(panel, code.number(vectors)), vector);
    Value first = code.mul(number, code.number(code.lanes));
    ColumnPlaces places{kernel.scratch(),
                        element,
                        code.add(code.number(copyAt), code.mul(vector, code.number(block))),
                        code.number(vectors * block),
                        code.number(kTaps),
                        code.number(code.lanes)};
    storeColumns(e, code.number(0), code.mul(length, code.number(kTaps)), places,
                 [&](int64_t row, Value k) {
                   Value filter = code.add(first, code.number(row));
                   return filterLanes(e, conv.getW(), filter, terms, code.add(skipped, k));
                 });
  });
}

/// The panel's filters of `length` channels from `channel` on, transformed: [place][channel][width]
/// in the scratch.
void Winograd::emitFilters(Value panel, Value channel, Value length) {
  Code &code = kernel.code();
  if (!areFiltersKnown())
    copyFilters(panel, channel, length);
  Value data = areFiltersKnown() ? kernel.data(filterData) : kernel.scratch();
  Value step = code.number(kTaps * code.lanes);
  Value first = code.add(code.mul(panel, code.number(channels)), channel);
  Value source =
      areFiltersKnown() ? code.mul(first, code.number(kTaps * panelWidth())) : code.number(copyAt);
  code.forEach(code.number(0), code.mul(length, code.number(vectors)), 1, [&](Value vector) {
    Value from = code.add(source, code.mul(vector, step));
    auto tap = [&](int64_t number) {
      Value at = code.add(from, code.number(number * code.lanes));
      if (areFiltersKnown())
        code.prefetch(
            data, element,
            code.add(at, code.number(estimate::thresholdAt(conv, estimate::kFetchWinograd) * kTaps *
                                     code.lanes)));
      return code.loadLanes(element, data, at, {});
    };
    SmallVector<Values> columns;
    for (int64_t j = 0; j < 3; ++j)
      columns.push_back(transform.filter(code, {tap(j), tap(3 + j), tap(6 + j)}));
    Value target = code.add(code.mul(vector, code.number(code.lanes)), code.number(filtersAt));
    for (int64_t row = 0; row < inputs(); ++row)
      for (Value number :
           transform.filter(code, {columns[0][row], columns[1][row], columns[2][row]})) {
        code.storeLanes(element, number, kernel.scratch(), target, {});
        target = code.add(target, code.number(filterStride));
      }
  });
}

/// The filters of a strip: in what, and where they begin.
std::pair<Value, Value> Winograd::filtersOf(const Strip &strip) {
  Code &code = kernel.code();
  if (isLate) {
    Value place = code.mul(strip.place, code.number(filterStride));
    return {kernel.scratch(), code.add(place, code.number(filtersAt))};
  }
  Value matrix = code.add(code.mul(strip.panel, code.number(places())), strip.place);
  Value row =
      code.add(code.mul(matrix, code.number(channels)), code.mul(strip.run, code.number(run)));
  return {kernel.data(filterData), code.mul(row, code.number(panelWidth()))};
}

/// While a run is multiplied, the plain filters of the next one come to the cache: each strip of
/// each place fetches its share.
void Winograd::fetchFilters(const Strip &strip, TileProduct &product) {
  Code &code = kernel.code();
  int64_t strips = tilesOfBlock / tileRows;
  int64_t step = kTaps * panelWidth() / (places() * strips);
  if (!isLate || step == 0 || !areFiltersKnown())
    return;
  Value next = code.add(code.mul(strip.panel, code.number(channels)),
                        code.mul(code.add(strip.run, code.number(1)), code.number(run)));
  Value number = code.add(code.mul(strip.place, code.number(strips)),
                          code.div(strip.first, code.number(tileRows)));
  Value at = code.add(code.mul(next, code.number(kTaps * panelWidth())),
                      code.mul(number, code.number(step * run)));
  product.fetched = code.at(kernel.data(filterData), element, at);
  product.fetchedStep = code.number(step);
}

} // namespace heddle::lower
