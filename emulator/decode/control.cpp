// Control: branches, calls, barriers, fences, and what does nothing here.
#include "emulator/decode/decoder.h"
#include "emulator/machine/block.h"

#include <bit>

namespace heddle::emulator {
namespace {

void nothing(Block &, Warp &, const Instruction &, uint32_t) {}

void bra(Decoder &d) {
  d.take("uni");
  d.expect(1, 1);
  d.branch(d.arguments()[0].name);
}

void brx(Decoder &d) {
  if (!d.take("idx"))
    d.fail("only brx.idx is known");
  d.take("uni");
  d.expect(2, 2);
  d.use(d.source(d.arguments()[0], Type::U32));
  d.table(d.arguments()[1].name);
}

void ret(Decoder &d) {
  d.take("uni");
  d.expect(0, 0);
  d.finish();
}

void exitOf(Decoder &d) {
  d.expect(0, 0);
  d.control(Flow::Exit, Class::Branch);
}

void trapped(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  b.fail(w, i, std::countr_zero(mask), kLaunchFailed, "the kernel asked for it");
}
void trap(Decoder &d) { d.emit(trapped, Class::Other); }

/// bar.sync, bar.arrive, barrier.sync, barrier.cta.sync, and their .aligned forms.
void bar(Decoder &d) {
  if (d.take("warp")) {
    d.take("sync");
    d.expect(1, 1);
    d.emit(nothing, Class::Barrier);
    return;
  }
  d.take("cta");
  bool isArrive = d.take("arrive");
  if (!isArrive && !d.take("sync"))
    d.fail("it is .sync, .arrive or .warp.sync");
  bool isAligned = d.take("aligned") || d.isOld("bar");
  d.expect(isArrive ? 2 : 1, 2);
  for (const Argument &each : d.arguments())
    d.use(d.source(each, Type::U32));
  d.now.option = isAligned;
  d.control(isArrive ? Flow::Arrive : Flow::Barrier, Class::Barrier);
}

void fenced(Block &, Warp &w, const Instruction &, uint32_t) { w.isFenced = true; }

void fence(Decoder &d) {
  for (auto word : {"sc", "acq_rel", "acquire", "release", "proxy", "async", "alias", "generic",
                    "global", "shared::cta"})
    d.take(word);
  bool isBlock = d.take("cta");
  d.take("gl") || d.take("sys") || d.take("gpu") || d.take("cluster");
  d.emit(isBlock ? nothing : fenced, Class::Other);
}

void ignored(Decoder &d) {
  for (auto word : {"u32", "global", "local", "L1", "L2"})
    d.take(word);
  d.emit(nothing, Class::Other);
}

} // namespace

void addControl(Opcodes &all) {
  all["bra"] = bra;
  all["brx"] = brx;
  all["call"] = [](Decoder &d) { d.call(); };
  all["ret"] = ret;
  all["exit"] = exitOf;
  all["trap"] = trap;
  all["brkpt"] = trap;
  all["bar"] = bar;
  all["barrier"] = bar;
  all["membar"] = fence;
  all["fence"] = fence;
  all["nanosleep"] = ignored;
  all["prefetch"] = ignored;
  all["prefetchu"] = ignored;
}

} // namespace heddle::emulator
