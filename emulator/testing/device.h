// Device: the driver's functions as tests call them: a context that each test makes anew.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

extern "C" {
int cuInit(unsigned);
int cuDeviceGetAttribute(int *, int, int);
int cuDevicePrimaryCtxRetain(void **, int);
int cuDevicePrimaryCtxRelease_v2(int);
int cuCtxPushCurrent_v2(void *);
int cuCtxPopCurrent_v2(void **);
int cuCtxSynchronize();
int cuModuleLoadDataEx(void **, const void *, unsigned, int *, void **);
int cuModuleUnload(void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuFuncSetAttribute(void *, int, int);
int cuFuncGetAttribute(int *, int, void *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **);
int cuMemAlloc_v2(uint64_t *, size_t);
int cuMemFree_v2(uint64_t);
int cuMemAllocAsync(uint64_t *, size_t, void *);
int cuMemFreeAsync(uint64_t, void *);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemFreeHost(void *);
int cuMemcpyHtoD_v2(uint64_t, const void *, size_t);
int cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuMemcpyHtoDAsync_v2(uint64_t, const void *, size_t, void *);
int cuMemcpyDtoHAsync_v2(void *, uint64_t, size_t, void *);
int cuMemsetD8Async(uint64_t, unsigned char, size_t, void *);
int cuStreamCreate(void **, unsigned);
int cuStreamDestroy_v2(void *);
int cuStreamSynchronize(void *);
int cuStreamWaitEvent(void *, void *, unsigned);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cuEventCreate(void **, unsigned);
int cuEventRecord(void *, void *);
int cuEventSynchronize(void *);
int cuEventElapsedTime(float *, void *, void *);
int cuEventDestroy_v2(void *);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cuGraphLaunch(void *, void *);
int cuGraphExecUpdate_v2(void *, void *, void *);
int cuGraphExecDestroy(void *);
int cuGraphDestroy(void *);
size_t heddleEmulatedCudaReport(char *, size_t);
}

namespace heddle::emulator {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

/// A context of a test, with the last fault as text.
class Device : public testing::Test {
protected:
  void SetUp() override { open(); }
  void TearDown() override { close(); }

  static void open() {
    void *context;
    ASSERT_EQ(cuInit(0), 0);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
    ASSERT_EQ(cuCtxPushCurrent_v2(context), 0);
  }
  static void close() {
    cuCtxPopCurrent_v2(nullptr);
    cuDevicePrimaryCtxRelease_v2(0);
  }
  static std::string report() {
    std::string text(heddleEmulatedCudaReport(nullptr, 0) + 1, 0);
    heddleEmulatedCudaReport(text.data(), text.size());
    return text;
  }
  static std::string fault() {
    std::string text = report();
    return text.substr(text.find("\"last_fault\""));
  }
  static std::string file(const std::string &name) {
    std::ifstream in(std::string(PTX_FOLDER) + "/" + name);
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    return text.str();
  }
  static void *function(const std::string &ptx, const char *name) {
    char why[512] = "";
    int options[] = {5, 6};
    void *values[] = {why, reinterpret_cast<void *>(sizeof why)}, *module, *made = nullptr;
    EXPECT_EQ(cuModuleLoadDataEx(&module, ptx.c_str(), 2, options, values), 0) << why;
    if (!*why)
      EXPECT_EQ(cuModuleGetFunction(&made, module, name), 0);
    return made;
  }
  template <class T> static uint64_t put(const std::vector<T> &values) {
    uint64_t made = 0;
    EXPECT_EQ(cuMemAlloc_v2(&made, values.size() * sizeof(T)), 0);
    EXPECT_EQ(cuMemcpyHtoD_v2(made, values.data(), values.size() * sizeof(T)), 0);
    return made;
  }
  template <class T> static std::vector<T> get(uint64_t from, size_t count) {
    std::vector<T> made(count);
    EXPECT_EQ(cuMemcpyDtoH_v2(made.data(), from, count * sizeof(T)), 0);
    return made;
  }
  /// Launches and waits; gives what the wait says.
  template <class... A>
  static int launch(void *function, Dim grid, Dim block, unsigned dynamic, A... arguments) {
    void *places[] = {&arguments..., nullptr};
    int result = cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                dynamic, nullptr, places, nullptr);
    return result ? result : cuCtxSynchronize();
  }
  /// Text with one occurrence changed; the text has it.
  static std::string changed(std::string text, const std::string &from, const std::string &to,
                             bool isLast = false) {
    size_t at = isLast ? text.rfind(from) : text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return at == text.npos ? text : text.replace(at, from.size(), to);
  }
  /// Kernel `k` with the parameters p0 to p3, in %d0 to %d3, and its thread in %r0.
  static std::string kernel(const std::string &body, const std::string &before = "") {
    std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n" + before +
                       "\n.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, "
                       ".param .u64 p3)\n{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n"
                       ".reg .b32 %r<40>;\n.reg .b64 %d<40>;\n";
    for (int i = 0; i < 4; ++i)
      text += "ld.param.u64 %d" + std::to_string(i) + ", [p" + std::to_string(i) + "];\n";
    return text + "mov.u32 %r0, %tid.x;\n" + body + "\nret;\n}\n";
  }
};

} // namespace heddle::emulator
