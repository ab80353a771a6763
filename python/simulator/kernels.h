// kernels: which nodes a plan's fusion bits put into which kernel. SPDX-License-Identifier:
// Apache-2.0
#ifndef HEDDLE_SIMULATOR_KERNELS_H
#define HEDDLE_SIMULATOR_KERNELS_H

#include <array>
#include <cstdint>
#include <vector>

namespace heddle::simulator {

struct Graph {
  int32_t nodes = 0;
  std::vector<double> flops, bytes, heldBytes;
  std::vector<uint8_t> traits;
  std::vector<int32_t> colocate;
  std::vector<int64_t> firstInput, firstReader;
  std::vector<int32_t> inputs, readers;
};

constexpr int kMostCopies = 4;   // kernels that may compute one node
constexpr int kMostMembers = 64; // nodes of a kernel

/// The kernels of a plan, each named after its root: the node whose result it stores.
///
/// A fused node is computed within the kernels of all of its readers, more than once if these
/// differ (the encoding per node of Phothilimthana et al., PACT'21). The rest is a subgraph of the
/// reachability of a DAG, so no choice of bits makes a cycle. A bit is ignored if the kind of the
/// node does not allow it, or if a kernel would become too large.
class Kernels {
public:
  explicit Kernels(const Graph &graph);

  void build(const uint8_t *fuse);

  bool isFused(int32_t node) const { return fused[node]; }
  int32_t ownerOf(int32_t node) const { return owners[node][0]; }

  std::vector<double> flops, traffic;
  std::vector<int64_t> firstRead; // per node; empty for those that are fused
  std::vector<int32_t> reads;     // roots

private:
  bool mayFuse(int32_t node, int copies) const;
  void assign(const uint8_t *fuse);
  void collectReads();

  const Graph &graph;
  std::vector<uint8_t> fused, copies, members, heavy;
  std::vector<std::array<int32_t, kMostCopies>> owners;
  std::vector<int64_t> firstMember;
  std::vector<int32_t> memberList, seen;
};

} // namespace heddle::simulator
#endif
