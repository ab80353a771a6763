// Streams: streams, events, capture and graphs.
#include "emulator/driver/state.h"

#include <algorithm>
#include <chrono>

using namespace heddle::emulator;

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Event &eventOf(void *handle) {
  Event *found = State::get().events.find(handle);
  if (!found)
    throw Refusal{InvalidHandle};
  return *found;
}

/// Ends a capture: its streams do not capture any longer.
void endCapture(State &state, const std::shared_ptr<Capture> &capture) {
  for (auto each = state.captures.begin(); each != state.captures.end();)
    if ((*each)->capture == capture) {
      (*each)->capture = nullptr;
      (*each)->tails.clear();
      each = state.captures.erase(each);
    } else {
      ++each;
    }
}

/// Whether all nodes come before those where the origin stands.
bool isJoined(const Capture &capture) {
  const auto &nodes = capture.graph.nodes;
  std::vector<bool> isBefore(nodes.size());
  for (size_t tail : capture.origin->tails)
    isBefore[tail] = true;
  for (size_t i = nodes.size(); i-- > 0;)
    if (isBefore[i])
      for (size_t each : nodes[i].after)
        isBefore[each] = true;
  return std::all_of(isBefore.begin(), isBefore.end(), [](bool is) { return is; });
}

} // namespace

EMULATED int cuStreamCreate(void **stream, unsigned flags) {
  return guarded("cuStreamCreate", Needs::Context, [&]() -> int {
    if (!stream || flags > 1)
      return InvalidValue;
    auto made = std::make_unique<Stream>();
    made->device = &current();
    made->isBlocking = !flags;
    *stream = State::get().streams.add(std::move(made));
    return Success;
  });
}

EMULATED int cuStreamDestroy_v2(void *handle) {
  return guarded("cuStreamDestroy_v2", Needs::Context, [&]() -> int {
    State &state = State::get();
    Stream &stream = state.stream(handle, current());
    if (&stream == &current().legacy)
      return InvalidHandle;
    if (stream.capture)
      endCapture(state, std::shared_ptr<Capture>(stream.capture));
    state.finishStream(stream);
    state.streams.drop(&stream);
    return Success;
  });
}

static void forbidOn(Stream &stream) {
  if (!stream.capture)
    return;
  stream.capture->isInvalid = true;
  throw Refusal{CaptureUnsupported};
}

EMULATED int cuStreamSynchronize(void *handle) {
  return guarded("cuStreamSynchronize", Needs::Context, [&]() -> int {
    State &state = State::get();
    Stream &stream = state.stream(handle, current());
    forbidOn(stream);
    state.forbidInCapture();
    state.finishStream(stream);
    if (&stream == &current().legacy)
      for (const auto &each : state.streams.all)
        if (each.first->isBlocking && each.first->device == &current())
          state.finishStream(*each.first);
    return Success;
  });
}

EMULATED int cuStreamQuery(void *handle) {
  return guarded("cuStreamQuery", Needs::Context, [&]() -> int {
    Stream &stream = State::get().stream(handle, current());
    forbidOn(stream);
    return State::get().isPending(stream.last) ? NotReady : Success;
  });
}

EMULATED int cuStreamWaitEvent(void *handle, void *eventHandle, unsigned) {
  return guarded("cuStreamWaitEvent", Needs::Context, [&]() -> int {
    State &state = State::get();
    Stream &stream = state.stream(handle, current());
    Event &event = eventOf(eventHandle);
    if (event.capture || stream.capture)
      state.waitInCapture(stream, event);
    else if (event.id)
      state.enqueue(stream, {"wait", nullptr, [] {}, {}}, {event.id});
    return Success;
  });
}

EMULATED int cuEventCreate(void **event, unsigned flags) {
  return guarded("cuEventCreate", Needs::Context, [&]() -> int {
    if (!event || flags > 7)
      return InvalidValue;
    auto made = std::make_unique<Event>();
    made->hasTime = !(flags & 2);
    *event = State::get().events.add(std::move(made));
    return Success;
  });
}

EMULATED int cuEventDestroy_v2(void *handle) {
  return guarded("cuEventDestroy_v2", Needs::Context, [&]() -> int {
    Event &event = eventOf(handle);
    State &state = State::get();
    if (event.id)
      state.finish(event.id);
    state.events.drop(&event);
    return Success;
  });
}

EMULATED int cuEventRecord(void *handle, void *streamHandle) {
  return guarded("cuEventRecord", Needs::Context, [&]() -> int {
    State &state = State::get();
    Event &event = eventOf(handle);
    Stream &stream = state.stream(streamHandle, current());
    event.capture = stream.capture;
    event.nodes = stream.tails;
    if (stream.capture)
      return stream.capture->isInvalid ? CaptureInvalidated : Success;
    event.id = state.enqueue(stream, {"event",
                                      nullptr,
                                      [&state, handle] {
                                        if (Event *found = state.events.find(handle))
                                          found->seconds = seconds();
                                      },
                                      {}});
    return Success;
  });
}

EMULATED int cuEventSynchronize(void *handle) {
  return guarded("cuEventSynchronize", Needs::Context, [&]() -> int {
    State &state = State::get();
    Event &event = eventOf(handle);
    if (event.capture) {
      event.capture->isInvalid = true;
      return CapturedEvent;
    }
    state.forbidInCapture();
    state.finish(event.id);
    return Success;
  });
}

EMULATED int cuEventQuery(void *handle) {
  return guarded("cuEventQuery", Needs::Context, [&]() -> int {
    Event &event = eventOf(handle);
    if (event.capture)
      return CapturedEvent;
    return State::get().isPending(event.id) ? NotReady : Success;
  });
}

EMULATED int cuEventElapsedTime(float *milliseconds, void *beginHandle, void *endHandle) {
  return guarded("cuEventElapsedTime", Needs::Context, [&]() -> int {
    State &state = State::get();
    Event &begin = eventOf(beginHandle), &end = eventOf(endHandle);
    if (!milliseconds)
      return InvalidValue;
    if (!begin.id || !end.id || !begin.hasTime || !end.hasTime)
      return InvalidHandle;
    if (state.isPending(begin.id) || state.isPending(end.id))
      return NotReady;
    *milliseconds = static_cast<float>((end.seconds - begin.seconds) * 1e3);
    return Success;
  });
}

EMULATED int cuStreamBeginCapture_v2(void *handle, int mode) {
  return guarded("cuStreamBeginCapture_v2", Needs::Context, [&]() -> int {
    State &state = State::get();
    if (mode < 0 || mode > 2)
      return InvalidValue;
    Stream &stream = state.stream(handle, current());
    if (&stream == &current().legacy || stream.capture)
      return stream.capture ? InvalidValue : CaptureUnsupported;
    stream.capture = std::make_shared<Capture>();
    stream.capture->origin = &stream;
    stream.capture->mode = mode;
    stream.capture->thread = std::this_thread::get_id();
    state.captures.insert(&stream);
    return Success;
  });
}

EMULATED int cuStreamEndCapture(void *handle, void **graph) {
  return guarded("cuStreamEndCapture", Needs::Context, [&]() -> int {
    State &state = State::get();
    Stream *stream = state.streams.find(handle);
    if (!stream || !graph)
      return stream ? InvalidValue : InvalidHandle;
    *graph = nullptr;
    if (!stream->capture)
      return InvalidValue;
    std::shared_ptr<Capture> capture = stream->capture;
    if (capture->origin != stream)
      return CaptureUnmatched;
    if (capture->mode != 2 && capture->thread != std::this_thread::get_id())
      return CaptureWrongThread;
    bool isWhole = isJoined(*capture);
    endCapture(state, capture);
    if (capture->isInvalid)
      return CaptureInvalidated;
    if (!isWhole)
      return CaptureUnjoined;
    *graph = state.graphs.add(std::make_unique<Graph>(std::move(capture->graph)));
    return Success;
  });
}

EMULATED int cuStreamIsCapturing(void *handle, int *status) {
  return guarded("cuStreamIsCapturing", Needs::Context, [&]() -> int {
    Stream &stream = State::get().stream(handle, current());
    if (!status)
      return InvalidValue;
    *status = !stream.capture ? 0 : stream.capture->isInvalid ? 2 : 1;
    return Success;
  });
}

EMULATED int cuGraphInstantiateWithFlags(void **made, void *handle, unsigned long long) {
  return guarded("cuGraphInstantiateWithFlags", Needs::Context, [&]() -> int {
    State &state = State::get();
    Graph *graph = state.graphs.find(handle);
    if (!graph || !made)
      return InvalidValue;
    *made = state.executables.add(std::make_unique<Executable>(Executable{graph->nodes}));
    return Success;
  });
}

EMULATED int cuGraphUpload(void *handle, void *stream) {
  return guarded("cuGraphUpload", Needs::Context, [&]() -> int {
    State &state = State::get();
    state.stream(stream, current());
    return state.executables.find(handle) ? Success : InvalidValue;
  });
}

EMULATED int cuGraphLaunch(void *handle, void *streamHandle) {
  return guarded("cuGraphLaunch", Needs::Context, [&]() -> int {
    State &state = State::get();
    Executable *found = state.executables.find(handle);
    if (!found)
      return InvalidValue;
    Stream &stream = state.stream(streamHandle, current());
    ++state.counts["graph_launches"];
    Node node{"graph", found, [nodes = found->nodes, &state] { runNodes(nodes, state); }, {}};
    state.enqueue(stream, std::move(node));
    return Success;
  });
}

/// `info` begins with the reason: 2 other topology, 3 other kind of node, 4 other function.
EMULATED int cuGraphExecUpdate_v2(void *handle, void *graphHandle, void *info) {
  return guarded("cuGraphExecUpdate_v2", Needs::Context, [&]() -> int {
    State &state = State::get();
    Executable *found = state.executables.find(handle);
    Graph *graph = state.graphs.find(graphHandle);
    if (!found || !graph)
      return InvalidValue;
    int reason = found->nodes.size() == graph->nodes.size() ? 0 : 2;
    for (size_t i = 0; !reason && i < found->nodes.size(); ++i) {
      const Node &old = found->nodes[i], &other = graph->nodes[i];
      reason = old.after != other.after ? 2 : old.kind != other.kind ? 3 : 0;
      if (!reason && old.kind == "kernel" && old.what != other.what)
        reason = 4;
    }
    if (info)
      *static_cast<int *>(info) = reason;
    if (reason)
      return GraphUpdateFailure;
    found->nodes = graph->nodes;
    return Success;
  });
}

EMULATED int cuGraphExecDestroy(void *handle) {
  return guarded("cuGraphExecDestroy", Needs::Context, [&]() -> int {
    State &state = State::get();
    Executable *found = state.executables.find(handle);
    if (!found)
      return InvalidValue;
    state.executables.drop(found);
    return Success;
  });
}

EMULATED int cuGraphDestroy(void *handle) {
  return guarded("cuGraphDestroy", Needs::Context, [&]() -> int {
    State &state = State::get();
    Graph *found = state.graphs.find(handle);
    if (!found)
      return InvalidValue;
    state.graphs.drop(found);
    return Success;
  });
}
