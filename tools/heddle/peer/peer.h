// Peer: ONNX Runtime in a child process, through a pipe to onnxruntime_peer.py.
#ifndef HEDDLE_TOOLS_HEDDLE_PEER_PEER_H
#define HEDDLE_TOOLS_HEDDLE_PEER_PEER_H

#include "tools/heddle/model.h"

#include <cstdio>
#include <map>
#include <sys/types.h>

namespace heddle::cli {

extern const char *const kPeerScript;

class Peer {
public:
  /// Starts Python: $HEDDLE_PYTHON, else build/python/bin/python of this checkout, else python3.
  /// Fails with HEDDLE_USAGE where it has no onnxruntime.
  Peer(const std::string &model, const Module &module, const Feeds &feeds, int threads);
  ~Peer();
  Peer(const Peer &) = delete;

  std::map<std::string, Tensor> run();
  std::vector<double> time(int count); // seconds of `count` runs
  /// {node: how many outputs it has}, of the nodes that are in the model's own graph.
  std::map<std::string, size_t> nodes();
  /// The outputs of one of these nodes in their order, without those that are no tensors.
  std::vector<Tensor> node(const std::string &name);

  std::string version;
  std::string calledHow; // words for a timed run
  /// How much one step of an output is worth, for outputs of a DequantizeLinear.
  std::map<std::string, double> steps;

private:
  void start();
  void stop();
  void send(const Json &message, const std::vector<Tensor> &tensors = {});
  Json receive();
  std::vector<std::pair<std::string, Tensor>> receiveTensors();
  [[noreturn]] void failEnded();

  std::string python;
  pid_t child = -1;
  FILE *to = nullptr, *from = nullptr;
};

} // namespace heddle::cli

#endif
