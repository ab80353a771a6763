// Checks: each fault of a kernel is found and told, and right kernels pass. Mutations take one
// barrier or bound from kernels as LLVM writes them; those of our own, with copies and matrices,
// are test/targets/mutations_test.py's.
#include "emulator/testing/device.h"

#include <cmath>

namespace heddle::emulator {
namespace {

class Checks : public Device {
protected:
  /// Runs a body on 64 threads and 256 bytes at %d0, all written; gives the result.
  int run(const std::string &body, const std::string &before = "", unsigned threads = 64,
          unsigned dynamic = 0, unsigned blocks = 1) {
    uint64_t out = put(std::vector<uint8_t>(256)), raw = 0;
    EXPECT_EQ(cuMemAlloc_v2(&raw, 256), 0);
    void *made = function(kernel(body, before), "k");
    return launch(made, {blocks}, {threads}, dynamic, out, raw, out + 1, out);
  }
  void finds(int result, const char *words, const std::string &body, const std::string &before = "",
             unsigned threads = 64, unsigned dynamic = 0, unsigned blocks = 1) {
    EXPECT_EQ(run(body, before, threads, dynamic, blocks), result) << body;
    EXPECT_NE(fault().find(words), std::string::npos) << fault();
    EXPECT_NE(fault().find("kernel 'k', block (0, 0, 0), thread ("), std::string::npos) << fault();
    EXPECT_EQ(cuCtxSynchronize(), result); // the context is lost
    close();
    open();
  }
};

const std::string kShared = ".shared .align 4 .b8 s[256];\n.shared .align 4 .b8 other[8];\n";
const std::string kMine = "mul.lo.u32 %r1, %r0, 4;\nmov.u32 %r2, s;\nadd.u32 %r1, %r1, %r2;\n";

TEST_F(Checks, bounds) {
  finds(700, "4 bytes after", "ld.global.u32 %r1, [%d0+260];");
  finds(700, "out of bounds", "ld.global.v2.u32 {%r1, %r2}, [%d0+256];");
  finds(700, "of 's' of 256 bytes", "st.shared.u32 [s+256], %r0;", kShared);
  finds(700, "dynamic memory of 64 bytes", "st.shared.u32 [s+64], %r0;",
        ".extern .shared .align 16 .b8 s[];\n", 64, 64);
  finds(700, "of local memory", ".local .b32 v[4];\nst.local.u32 [v+16], %r0;");
  finds(700, "read-only", "mov.b64 %d5, p0;\ncvta.param.u64 %d5, %d5;\nst.u32 [%d5], %r0;");
  finds(700, "read-only", "st.global.u32 [c], %r0;", ".const .align 4 .u32 c = 5;\n");
  finds(700, "of parameter memory", "ld.param.u64 %d5, [p3+8];");
}

TEST_F(Checks, alignment) {
  finds(716, "misaligned", "ld.global.u16 %h1, [%d2];");
  finds(716, "misaligned", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+8];");
  finds(716, "misaligned", "st.shared.u32 [s+2], %r0;", kShared);
}

TEST_F(Checks, uninitialised_memory) {
  finds(719, "uninitialised", "ld.global.u32 %r1, [%d1];");
  finds(719, "uninitialised", "ld.shared.u32 %r1, [s];", kShared);
  finds(719, "uninitialised", ".local .b32 v[4];\nld.local.u32 %r1, [v];");
  EXPECT_EQ(run("st.global.u32 [%d1], 1;\nld.global.u32 %r1, [%d1];", "", 1), 0);
}

TEST_F(Checks, use_after_free) {
  uint64_t freed = put(std::vector<uint32_t>(16));
  void *made = function(kernel("ld.global.u32 %r1, [%d0];"), "k");
  ASSERT_EQ(cuMemFree_v2(freed), 0);
  EXPECT_EQ(launch(made, {1}, {32}, 0, freed, freed, freed, freed), 700);
  EXPECT_NE(fault().find("which was freed"), std::string::npos) << fault();
}

TEST_F(Checks, races) {
  std::string exchange = kMine + "st.shared.u32 [%r1], %r0;\nbar.sync 0;\nxor.b32 %r3, %r0, 32;\n"
                                 "mul.lo.u32 %r3, %r3, 4;\nadd.u32 %r3, %r3, %r2;\n"
                                 "ld.shared.u32 %r4, [%r3];\n";
  EXPECT_EQ(run(exchange, kShared), 0);
  std::string bare = changed(exchange, "bar.sync 0;\n", "");
  int result = run(bare, kShared); // a race, or what was not written yet
  EXPECT_EQ(result, 719);
  close();
  open();
  finds(719, "race", "st.shared.u32 [s], %r0;", kShared);
  finds(719, "race", "st.global.u32 [%d0], %r0;");
  EXPECT_EQ(run("red.global.add.u32 [%d0], 1;", "", 64, 0, 4), 0);
  EXPECT_EQ(run("st.global.u32 [%d0], %r0;", "", 32, 0, 4), 719);
  EXPECT_NE(fault().find("of block"), std::string::npos) << fault();
}

TEST_F(Checks, named_barriers_order_their_warps) {
  std::string before = kMine + "setp.ge.u32 %p1, %r0, 64;\n@%p1 bra END;\n"
                               "st.shared.u32 [%r1], %r0;\nbar.sync 1, 64;\nxor.b32 %r3, %r0, 32;\n"
                               "mul.lo.u32 %r3, %r3, 4;\nadd.u32 %r3, %r3, %r2;\n"
                               "ld.shared.u32 %r4, [%r3];\nEND:\n";
  EXPECT_EQ(run(before, kShared, 96), 0);
}

TEST_F(Checks, readers_before_a_barrier_are_done) {
  std::string body = kMine + "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra A;\nst.shared.u32 [s], 1;\nA:\n"
                             "bar.sync 0;\nld.shared.u32 %r3, [s];\nbar.sync 0;\n"
                             "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra B;\nld.shared.u32 %r3, [s];\n"
                             "st.shared.u32 [s], %r3;\nB:\n";
  EXPECT_EQ(run(body, kShared), 0);
}

TEST_F(Checks, barriers) {
  finds(719, "deadlock",
        "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nbra B;\nA:\n"
        "bar.sync 2, 64;\nB:\n");
  finds(719, "a part of a warp",
        "setp.lt.u32 %p1, %r0, 7;\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA:\nbar.sync 0;\nB:\n");
  EXPECT_EQ(run("setp.lt.u32 %p1, %r0, 7;\n@%p1 bra A;\nbar.sync 0;\nA:\n", "", 32), 0);
}

TEST_F(Checks, lanes_meet_again_before_barriers) {
  std::string early =
      "mov.u32 %r1, 0;\nsetp.lt.u32 %p1, %r0, 7;\nbra.uni HEAD;\nLATCH:\n"
      "bar.sync 0;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 3;\n@%p2 bra HEAD;\n"
      "bra.uni END;\nHEAD:\n@%p1 bra LATCH;\nmov.u32 %r2, 1;\nbra.uni LATCH;\nEND:\n";
  EXPECT_EQ(run(early), 0) << fault();
  std::string waysBack = "mov.u32 %r1, 0;\nsetp.lt.u32 %p1, %r0, 7;\nHEAD:\nbar.sync 0;\n"
                         "add.u32 %r1, %r1, 1;\nsetp.ge.u32 %p2, %r1, 3;\n@%p2 bra END;\n"
                         "@%p1 bra HEAD;\nmov.u32 %r2, 1;\nbra.uni HEAD;\nEND:\nbar.sync 0;\n";
  EXPECT_EQ(run(waysBack), 0) << fault();
  std::string some = "mov.u32 %r1, %r0;\nHEAD:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 40;\n"
                     "@%p1 bra HEAD;\nbar.sync 0;\n"; // by turns of different numbers
  EXPECT_EQ(run(some), 0) << fault();
  finds(719, "a part of a warp", changed(waysBack, "@%p2 bra END", "@%p1 bra END"));
}

TEST_F(Checks, warps) {
  finds(719, "is not there",
        "setp.lt.u32 %p1, %r0, 7;\n@%p1 bra A;\nshfl.sync.down.b32 %r1, %r0, 1, 31, -1;\nbra B;\n"
        "A:\nshfl.sync.up.b32 %r1, %r0, 1, 0, -1;\nB:\n");
  // Lanes of a longer way are waited for, wherever it lies.
  EXPECT_EQ(run("setp.lt.u32 %p1, %r0, 7;\n@%p1 bra A;\nB:\n"
                "shfl.sync.down.b32 %r1, %r0, 1, 31, -1;\nbra C;\nA:\nbra B;\nC:\n",
                "", 32),
            0);
  finds(719, "which is not active",
        "setp.ge.u32 %p1, %r0, 7;\n@%p1 bra A;\nshfl.sync.down.b32 %r1, %r0, 1, 31, 127;\nA:\n");
  finds(719, "a part of a warp: 7 of 32",
        "setp.ge.u32 %p1, %r0, 7;\nmov.u32 %r1, 0;\nmov.u32 %r2, 0;\n@%p1 bra A;\n"
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2}, {%r1}, "
        "{%r1, %r2};\nA:\n");
}

TEST_F(Checks, copies_that_were_not_waited_for) {
  std::string copy = "mov.u32 %r2, s;\ncp.async.ca.shared.global [%r2], [%d0], 4;\n"
                     "cp.async.commit_group;\n";
  std::string read = "ld.shared.u32 %r1, [s];\n", write = "st.shared.u32 [s], %r0;\n";
  finds(719, "was not waited for", copy + read, kShared, 1);
  finds(719, "was not waited for", copy + write, kShared, 1);
  finds(719, "was not waited for", copy + "cp.async.wait_group 1;\n" + read, kShared, 1);
  EXPECT_EQ(run(copy + "cp.async.wait_group 0;\n" + read, kShared, 1), 0);
}

TEST_F(Checks, traps) { finds(719, "asked for it", "trap;"); }

/// A kernel as LLVM writes it, whole and with one thing changed.
class Mutations : public Device {
protected:
  int softmax(const std::string &text, double *error = nullptr) {
    const unsigned rows = 3, n = 1300;
    std::vector<float> x(rows * n);
    std::mt19937 random(3);
    for (float &each : x)
      each = float(random() % 1000) / 100;
    uint64_t in = put(x), out = put(std::vector<float>(rows * n));
    if (int result = launch(function(text, "softmax"), {rows}, {256}, 0, in, out, n))
      return result;
    auto y = get<float>(out, rows * n);
    for (unsigned row = 0; error && row < rows; ++row) {
      double sum = 0;
      for (unsigned i = 0; i < n; ++i)
        sum += std::exp(double(x[row * n + i]) - 10);
      for (unsigned i = 0; i < n; ++i)
        *error = std::max(*error, std::fabs(y[row * n + i] - std::exp(x[row * n + i] - 10.) / sum));
    }
    return 0;
  }
  int transpose(const std::string &text, bool *isRight = nullptr) {
    const unsigned n = 45;
    std::vector<float> x(n * n);
    for (unsigned i = 0; i < n * n; ++i)
      x[i] = float(i);
    uint64_t in = put(x), out = put(std::vector<float>(n * n));
    if (int result = launch(function(text, "transpose"), {2, 2}, {32, 32}, 0, in, out, n))
      return result;
    auto y = get<float>(out, n * n);
    for (unsigned i = 0; isRight && i < n * n; ++i)
      *isRight = *isRight && y[i] == x[i % n * n + i / n];
    return 0;
  }
};

TEST_F(Mutations, whole_kernels_pass) {
  double error = 0;
  EXPECT_EQ(softmax(file("softmax.ptx"), &error), 0) << fault();
  EXPECT_LT(error, 1e-6);
  bool isRight = true;
  EXPECT_EQ(transpose(file("transpose.ptx"), &isRight), 0) << fault();
  EXPECT_TRUE(isRight);
}

TEST_F(Mutations, transpose_without_its_barrier) {
  EXPECT_EQ(transpose(changed(file("transpose.ptx"), "bar.sync", "// bar.sync")), 719);
}
TEST_F(Mutations, transpose_with_a_tail_that_is_off_by_one) {
  EXPECT_EQ(transpose(changed(file("transpose.ptx"), "setp.ge.s32 \t%p1", "setp.gt.s32 \t%p1")),
            700);
}
TEST_F(Mutations, softmax_without_its_barrier) {
  EXPECT_EQ(softmax(changed(file("softmax.ptx"), "bar.sync", "// bar.sync")), 719);
}
TEST_F(Mutations, damaged_text_is_refused_or_runs_but_harms_nothing) {
  std::mt19937 random(11);
  for (const char *name : {"softmax.ptx", "transpose.ptx"}) {
    const std::string whole = file(name);
    for (int round = 0; round < 60; ++round) {
      std::string text = whole;
      for (unsigned changes = 1 + random() % 3; changes; --changes) {
        size_t at = random() % text.size(), length = 1 + random() % 12;
        if (random() % 2)
          text.erase(at, length);
        else
          std::swap_ranges(text.begin() + long(at),
                           text.begin() + long(std::min(at + length, text.size())),
                           text.begin() + long(random() % (text.size() - length)));
      }
      void *module = nullptr;
      int result = cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr);
      EXPECT_TRUE(result == 0 || result == 218 || result == 209 || result == 222 || result == 2)
          << result;
      if (!result)
        EXPECT_EQ(cuModuleUnload(module), 0);
    }
  }
}

TEST_F(Mutations, unknown_instructions_are_named) {
  char why[256] = "";
  int options[] = {5, 6};
  void *values[] = {why, reinterpret_cast<void *>(sizeof why)}, *module;
  std::string text = kernel("wgmma.fence.sync.aligned;");
  EXPECT_EQ(cuModuleLoadDataEx(&module, text.c_str(), 2, options, values), 218);
  EXPECT_STREQ(why, "ptx, line 16: 'wgmma.fence.sync.aligned': this instruction is not known");
}

} // namespace
} // namespace heddle::emulator
