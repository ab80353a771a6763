// Sharing: see Sharing.h.

#include "compiler/estimate/Sharing.h"

#include "compiler/estimate/Thresholds.h"

namespace heddle::estimate {

using graph::Dim;

static Dim between1And(const Dim &most, const Dim &dim) {
  return Dim::max(Dim(1), Dim::min(most, dim));
}

Sharer::Sharer(mlir::Operation *at, const std::map<std::string, int64_t> &knobs,
               const program::Machine &machine)
    : workers(std::max<int64_t>(1, machine.workers)), l2Bytes(machine.l2Bytes),
      enough(thresholdAt(at, kProductTasks) * workers), mostTiles(thresholdAt(at, kProductTiles)) {
  if (auto knob = knobs.find("panels"); knob != knobs.end())
    panelsKnob = knob->second;
  if (auto knob = knobs.find("tiles"); knob != knobs.end())
    tilesKnob = knob->second;
}

int64_t Sharer::fittingPanels(int64_t panelBytes) const {
  return std::max<int64_t>(1, l2Bytes * 3 / 8 / std::max<int64_t>(1, panelBytes));
}

/// At most so many, in chunks of one size.
static int64_t evenly(int64_t most, const Dim &panels) {
  auto count = panels.constant();
  if (!count)
    return most;
  most = std::max<int64_t>(1, std::min(most, *count));
  return llvm::divideCeil(*count, llvm::divideCeil(*count, most));
}

int64_t Sharer::mostPanels(int64_t panelBytes, const Dim &panels) const {
  return evenly(panelsKnob > 0 ? panelsKnob : fittingPanels(panelBytes), panels);
}

Dim Sharer::mostPanels(int64_t panelBytes, const Dim &panels, const Dim &rowBytes) const {
  int64_t near = mostPanels(panelBytes, panels), far = evenly(fittingPanels(panelBytes), panels);
  if (near >= far)
    return Dim(near);
  Dim areFar = Dim::min(Dim(1), rowBytes.floorDiv(Dim(l2Bytes / 2 + 1)));
  return Dim(near) + areFar * Dim(far - near);
}

Dim Sharer::chunkOf(const Dim &apart, const Dim &panels, const Dim &most) const {
  Dim few(workers > 1 ? enough : 0);
  return between1And(most, (apart * panels.ceilDiv(most) - few) * most);
}

Sharing Sharer::share(const Dim &tiles, const Dim &panels, const Dim &most) const {
  Sharing made;
  made.chunk = chunkOf(tiles, panels, most);
  made.chunks = panels.ceilDiv(made.chunk);
  made.block = tilesKnob > 0
                   ? Dim(tilesKnob)
                   : between1And(Dim(mostTiles), (tiles * made.chunks).floorDiv(Dim(2 * enough)));
  made.blocks = tiles.ceilDiv(made.block);
  return made;
}

} // namespace heddle::estimate
