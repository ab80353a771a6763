// Apart: a kernel that somebody writes may do anything, so it runs in a process that may die of it.
//
// The child is a fork, so that it has the program as it is loaded here. It has one thread then,
// starts those of its session itself, and does nothing else that a lock of this process could hold
// up. What it found comes through a pipe: a byte that is 1 for an error, whose text follows, else
// for each result its rank, its sizes and its bytes.

#include "compiler/cards/Program.h"
#include "compiler/support/Error.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

namespace heddle::cards {

using reference::Tensor;

static void append(std::string &text, const void *bytes, size_t size) {
  text.append(static_cast<const char *>(bytes), size);
}

static std::string written(llvm::Expected<reference::Tensors> results) {
  if (!results)
    return '\1' + llvm::toString(results.takeError());
  std::string text(1, '\0');
  for (const Tensor &tensor : *results) {
    int64_t rank = tensor.rank();
    append(text, &rank, sizeof rank);
    append(text, tensor.shape.data(), rank * sizeof(int64_t));
    append(text, tensor.bytes().data(), tensor.bytes().size());
  }
  return text;
}

/// Takes `size` bytes from the front; false where there are fewer.
static bool take(llvm::StringRef &text, void *bytes, size_t size) {
  if (text.size() < size)
    return false;
  std::memcpy(bytes, text.data(), size);
  text = text.drop_front(size);
  return true;
}

static std::optional<reference::Tensors> read(llvm::StringRef text, ArrayRef<Type> elements) {
  reference::Tensors results;
  for (Type element : elements) {
    int64_t rank;
    if (!take(text, &rank, sizeof rank) || rank < 0 || rank > HEDDLE_MAX_RANK)
      return std::nullopt;
    SmallVector<int64_t> shape(rank);
    if (!take(text, shape.data(), rank * sizeof(int64_t)))
      return std::nullopt;
    results.push_back(Tensor::zeros(element, shape));
    if (!take(text, results.back().data(), results.back().bytes().size()))
      return std::nullopt;
  }
  return results;
}

static void writeAll(int file, llvm::StringRef text) {
  while (!text.empty()) {
    ssize_t done = ::write(file, text.data(), text.size());
    if (done < 0 && errno != EINTR)
      return;
    text = text.drop_front(std::max<ssize_t>(done, 0));
  }
}

static std::string readAll(int file) {
  std::string text;
  char buffer[65536];
  for (ssize_t got; (got = ::read(file, buffer, sizeof buffer)) != 0;)
    if (got > 0)
      text.append(buffer, got);
    else if (errno != EINTR)
      break;
  return text;
}

llvm::Expected<reference::Tensors> Program::runApart(ArrayRef<Tensor> inputs,
                                                     ArrayRef<Type> elements, int64_t seconds) {
  int ends[2];
  if (pipe(ends))
    return makeError(ErrorCode::Limit, Twine("error: cannot make a pipe: ") + strerror(errno));
  pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(seconds);
    writeAll(ends[1], written(run(inputs, elements)));
    _exit(0);
  }
  close(ends[1]);
  std::string text = child < 0 ? "" : readAll(ends[0]);
  close(ends[0]);
  if (child < 0)
    return makeError(ErrorCode::Limit, Twine("error: cannot start a process: ") + strerror(errno));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return makeError(ErrorCode::NumbersDiffer,
                     "the kernel did not end within " + Twine(seconds) + " s");
  if (WIFSIGNALED(status))
    return makeError(ErrorCode::NumbersDiffer,
                     Twine("the kernel crashed: ") + strsignal(WTERMSIG(status)));
  if (!text.empty() && text.front() == '\1')
    return makeError(ErrorCode::Usage, llvm::StringRef(text).drop_front());
  if (auto results = read(llvm::StringRef(text).drop_front(!text.empty()), elements))
    return std::move(*results);
  return makeError(ErrorCode::NumbersDiffer, "the kernel ended its process");
}

} // namespace heddle::cards
