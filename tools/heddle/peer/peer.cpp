// Peer: see peer.h; the messages are described in onnxruntime_peer.py.

#include "tools/heddle/peer/peer.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/python/interpreter.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace heddle::cli {

/// Starts the child with pipes at its standard input and output.
void Peer::start() {
  python = findPython();
  int input[2], output[2];
  if (pipe2(input, O_CLOEXEC) != 0)
    failUsage(std::string("cannot make a pipe: ") + std::strerror(errno));
  if (pipe2(output, O_CLOEXEC) != 0) {
    int reason = errno;
    close(input[0]);
    close(input[1]);
    failUsage(std::string("cannot make a pipe: ") + std::strerror(reason));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  std::string script = kPeerScript, option = "-c";
  char *arguments[] = {python.data(), option.data(), script.data(), nullptr};
  int error = posix_spawnp(&child, python.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  to = fdopen(input[1], "wb");
  from = fdopen(output[0], "rb");
  if (error) {
    child = -1;
    failUsage("cannot run '" + python + "': " + std::strerror(error) +
              "\nnote: HEDDLE_PYTHON names a Python that has onnxruntime");
  }
}

static Json describeLabels(const heddle_value_t &value) {
  Json labels = Json::array();
  for (int32_t i = 0; i < value.label_count; ++i)
    labels.push_back(value.labels[i]);
  return labels;
}

Peer::Peer(const std::string &model, const Module &module, const Feeds &feeds, int threads) {
  Json message = {{"command", "load"}, {"model", model}, {"threads", threads}};
  std::vector<const heddle_value_t *> inputs = inputsOf(module);
  message["inputs"] = Json::array();
  for (size_t i = 0; i < inputs.size(); ++i) {
    Json about = describe(inputs[i]->name, feeds.inputs[i]);
    about["bytes"] = feeds.inputs[i].bytes.size();
    if (inputs[i]->dtype == HEDDLE_STRING)
      about["strings"] = feeds.inputs[i].strings;
    message["inputs"].push_back(about);
  }
  message["outputs"] = Json::array();
  for (const heddle_value_t *output : outputsOf(module)) {
    if (output->encoding == HEDDLE_DENSE)
      continue;
    bool isIntMap = output->encoding == HEDDLE_INT_MAP;
    message["outputs"].push_back({{"name", output->name},
                                  {"labels", describeLabels(*output)},
                                  {"encoding", isIntMap ? "int_map" : "map"}});
  }
  try {
    start();
    send(message, feeds.inputs);
    Json answer = receive();
    version = answer.at("version");
    calledHow = answer.at("called");
    steps = answer.at("steps").get<std::map<std::string, double>>();
  } catch (...) {
    stop();
    throw;
  }
}

void Peer::stop() {
  if (to)
    fclose(to); // the end of its input ends the child
  if (from)
    fclose(from);
  if (child > 0)
    waitpid(child, nullptr, 0);
  to = from = nullptr;
  child = -1;
}

Peer::~Peer() { stop(); }

void Peer::failEnded() {
  throw Failure(HEDDLE_INTERNAL,
                "'" + python + "' ended while it ran ONNX Runtime; its messages are above");
}

void Peer::send(const Json &message, const std::vector<Tensor> &tensors) {
  std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  bool isSent = fwrite(line.data(), 1, line.size(), to) == line.size();
  for (const Tensor &tensor : tensors)
    isSent &= fwrite(tensor.bytes.data(), 1, tensor.bytes.size(), to) == tensor.bytes.size();
  if (!isSent || fflush(to) != 0)
    failEnded();
}

Json Peer::receive() {
  std::string line;
  for (int c; (c = fgetc(from)) != '\n';) {
    if (c == EOF)
      failEnded();
    line += static_cast<char>(c);
  }
  Json answer = parseJson(line);
  if (answer.contains("error"))
    throw Failure(static_cast<heddle_code_t>(answer.at("code").get<int>()), answer.at("error"));
  return answer;
}

std::vector<std::pair<std::string, Tensor>> Peer::receiveTensors() {
  std::vector<std::pair<std::string, Tensor>> tensors;
  Json answer = receive();
  for (const Json &about : answer.at("values")) {
    std::string name = about.at("name"), dtype = about.at("dtype");
    Tensor tensor = makeTensor(dtypeOf(dtype), about.at("shape"), "'" + name + "'");
    if (tensor.dtype == HEDDLE_STRING)
      tensor.strings = about.at("strings").get<std::vector<std::string>>();
    if (tensor.bytes.size() != about.at("bytes").get<size_t>())
      throw Failure(HEDDLE_INTERNAL, "internal error: ONNX Runtime's '" + name + "' has dtype " +
                                         dtype + ", whose size is not known");
    if (fread(tensor.bytes.data(), 1, tensor.bytes.size(), from) != tensor.bytes.size())
      failEnded();
    tensors.emplace_back(name, std::move(tensor));
  }
  return tensors;
}

std::map<std::string, Tensor> Peer::run() {
  send({{"command", "run"}});
  auto tensors = receiveTensors();
  return {std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end())};
}

std::vector<double> Peer::time(int count) {
  send({{"command", "time"}, {"count", count}});
  return receive().at("seconds");
}

std::map<std::string, size_t> Peer::nodes() {
  send({{"command", "nodes"}});
  return receive().at("nodes").get<std::map<std::string, size_t>>();
}

std::vector<Tensor> Peer::node(const std::string &name) {
  send({{"command", "node"}, {"node", name}});
  std::vector<Tensor> outputs;
  for (auto &[output, tensor] : receiveTensors())
    outputs.push_back(std::move(tensor));
  return outputs;
}

} // namespace heddle::cli
