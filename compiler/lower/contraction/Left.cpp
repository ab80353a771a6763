// Left: left operands whose rows are side by side in memory, and the steps of the reduction apart.
//
// A tile would read its rows from another page in each step. So they are copied first, those of a
// tile one step after the other: [tile][step][row]. Reading some lines of a page at once and
// writing in order, it takes less time than a transpose of the operand
// (bench/notes/2026-11-25-training-speed.md).

#include "compiler/lower/contraction/Contraction.h"

using namespace mlir;

namespace heddle::lower {

/// Rows that are copied at once, at least those of a tile.
static constexpr int64_t kRows = 128;

/// Vectors are stored whole, so that each tile has some elements more.
Dim Contraction::copiedTileSize() {
  return shape.reduction * Dim(tiling().mostRows()) + Dim(kernel.machine.lanes);
}

/// Where the rows of a tile begin.
Value Contraction::copiedTile(Value outer, Value tile) {
  Code &code = kernel.code();
  Value number = code.add(code.mul(outer, kernel.dim(tiling().count)), tile);
  return code.mul(number, kernel.dim(copiedTileSize()));
}

/// Copies all tiles, some of one run of rows per task.
void Contraction::emitLeftCopy() {
  Tiling tiles = tiling();
  int64_t rows = std::max<int64_t>(1, tiles.mostRows()),
          atOnce = std::max<int64_t>(1, kRows / rows);
  Dim blocks = tiles.count.ceilDiv(Dim(atOnce)), all = tiles.outer * tiles.count;
  int64_t copies = kernel.addTemporary(all * copiedTileSize() * Dim(graph::bytesOf(element)));
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value outer = code.div(task, kernel.dim(blocks)), zero = code.number(0);
    Value first = code.mul(code.rem(task, kernel.dim(blocks)), code.number(atOnce));
    Value count = code.min(code.number(atOnce), code.sub(kernel.dim(tiles.count), first));
    Indices outside(shape.rows.size() + 1, e.uniform(zero));
    Value base = placeOutside(e, outer, outside).second, extent = kernel.dim(tiles.rows);
    Value source = aPointer(), target = kernel.temporary(copies);
    Value depth = kernel.dim(shape.reduction), step = kernel.dim(shape.aStep);
    auto copyTile = [&](Value row, Value to, Value k, bool isMasked) {
      Value from = code.add(code.add(base, row), code.mul(k, step));
      to = code.add(to, code.mul(k, code.number(rows)));
      for (int64_t at = 0; at < rows; at += code.lanes) {
        Value shift = code.number(at), mask;
        if (isMasked)
          mask = code.maskOf(code.max(code.sub(extent, code.add(row, shift)), zero));
        Value value = code.loadLanes(element, source, code.add(from, shift), mask);
        code.storeLanes(element, value, target, code.add(to, shift), {});
      }
    };
    auto copyAll = [&] {
      Values firstRows, places;
      for (int64_t i = 0; i < atOnce; ++i) {
        Value tile = code.add(first, code.number(i));
        firstRows.push_back(firstRowOf(tiles, tile));
        places.push_back(copiedTile(outer, tile));
      }
      code.forEach(zero, depth, 1, [&](Value k) {
        for (auto [row, place] : llvm::zip(firstRows, places))
          copyTile(row, place, k, false);
      });
      return Values();
    };
    auto copySome = [&] {
      code.forEach(zero, depth, 1, [&](Value k) {
        code.forEach(zero, count, 1, [&](Value i) {
          Value tile = code.add(first, i);
          copyTile(firstRowOf(tiles, tile), copiedTile(outer, tile), k, true);
        });
      });
      return Values();
    };
    // Whole vectors after the first row of the last tile are rows, too.
    Value end = code.add(firstRowOf(tiles, code.add(first, code.number(atOnce - 1))),
                         code.number(llvm::alignTo(rows, code.lanes)));
    Value areWhole = code.both(code.less(code.number(atOnce - 1), count),
                               code.less(end, code.add(extent, code.number(1))));
    code.choose(areWhole, TypeRange(), copyAll, copySome);
  });
  kernel.endPhase(tiles.outer * blocks, all * copiedTileSize());
  leftTemporary = copies;
}

} // namespace heddle::lower
