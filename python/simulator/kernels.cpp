// kernels: see kernels.h. SPDX-License-Identifier: Apache-2.0
#include "python/simulator/kernels.h"

#include "python/simulator/simulator.h"

#include <algorithm>

namespace heddle::simulator {

Kernels::Kernels(const Graph &graph)
    : flops(graph.nodes), traffic(graph.nodes), firstRead(graph.nodes + 1), graph(graph),
      fused(graph.nodes), copies(graph.nodes), members(graph.nodes), heavy(graph.nodes),
      owners(graph.nodes), firstMember(graph.nodes + 2), seen(graph.nodes) {}

void Kernels::build(const uint8_t *fuse) {
  assign(fuse);
  collectReads();
}

bool Kernels::mayFuse(int32_t node, int count) const {
  bool isHeavy = graph.traits[node] & HEDDLE_SIMULATOR_HEAVY;
  if (isHeavy && count > 1)
    return false;
  for (int i = 0; i < count; ++i) {
    int32_t root = owners[node][i];
    if (members[root] >= kMostMembers || (isHeavy && heavy[root]) ||
        (graph.traits[root] & HEDDLE_SIMULATOR_RESIDENT))
      return false;
  }
  return true;
}

/// Readers come first, so that the kernels of a node are the union of those of its readers.
void Kernels::assign(const uint8_t *fuse) {
  for (int32_t node = graph.nodes; node-- > 0;) {
    auto &own = owners[node];
    int count = 0;
    bool fits = fuse[node] && (graph.traits[node] & HEDDLE_SIMULATOR_FUSIBLE) &&
                graph.firstReader[node] < graph.firstReader[node + 1];
    for (int64_t i = graph.firstReader[node]; fits && i < graph.firstReader[node + 1]; ++i) {
      int32_t reader = graph.readers[i];
      for (int k = 0; fits && k < copies[reader]; ++k) {
        int32_t root = owners[reader][k];
        if (std::find(own.begin(), own.begin() + count, root) != own.begin() + count)
          continue;
        fits = count < kMostCopies;
        if (fits)
          own[count++] = root;
      }
    }
    bool isHeavy = graph.traits[node] & HEDDLE_SIMULATOR_HEAVY;
    fused[node] = fits && mayFuse(node, count);
    if (!fused[node]) {
      own[0] = node;
      count = 1;
      members[node] = heavy[node] = 0;
    }
    copies[node] = uint8_t(count);
    for (int k = 0; k < count; ++k) {
      members[own[k]] += 1;
      heavy[own[k]] += isHeavy;
    }
  }
}

void Kernels::collectReads() {
  std::fill(firstMember.begin(), firstMember.end(), 0);
  for (int32_t node = 0; node < graph.nodes; ++node)
    for (int k = 0; k < copies[node]; ++k)
      ++firstMember[owners[node][k] + 2];
  for (int32_t node = 0; node < graph.nodes; ++node)
    firstMember[node + 2] += firstMember[node + 1];
  memberList.resize(firstMember[graph.nodes + 1]);
  for (int32_t node = 0; node < graph.nodes; ++node)
    for (int k = 0; k < copies[node]; ++k)
      memberList[firstMember[owners[node][k] + 1]++] = node;

  std::fill(seen.begin(), seen.end(), -1);
  reads.clear();
  for (int32_t root = 0; root < graph.nodes; ++root) {
    firstRead[root] = int64_t(reads.size());
    flops[root] = 0;
    traffic[root] = graph.bytes[root];
    for (int64_t m = firstMember[root]; m < firstMember[root + 1]; ++m) {
      int32_t member = memberList[m];
      flops[root] += graph.flops[member];
      for (int64_t i = graph.firstInput[member]; i < graph.firstInput[member + 1]; ++i) {
        int32_t input = graph.inputs[i];
        if (fused[input] || seen[input] == root)
          continue;
        seen[input] = root;
        reads.push_back(input);
        traffic[root] += graph.bytes[input];
      }
    }
  }
  firstRead[graph.nodes] = int64_t(reads.size());
}

} // namespace heddle::simulator
