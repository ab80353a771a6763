// Machine: what this machine can do at most, measured once and kept in a file: the two lines of a
// roofline.
#ifndef HEDDLE_TOOLS_HEDDLE_REPORT_MACHINE_H
#define HEDDLE_TOOLS_HEDDLE_REPORT_MACHINE_H

#include <string>

namespace heddle::cli {

/// Figures of one thread, and of all that this process may use.
struct Machine {
  std::string cpu, file; // `file` keeps the figures
  int threads = 0;
  double oneFlops = 0, allFlops = 0; // float32 multiply-add, as two operations, per second
  double oneBytes = 0, allBytes = 0; // read from memory, per second

  bool isKnown() const { return oneFlops > 0; }
  double flops(int usedThreads) const { return usedThreads == 1 ? oneFlops : allFlops; }
  double bytes(int usedThreads) const { return usedThreads == 1 ? oneBytes : allBytes; }
};

/// $XDG_CACHE_HOME/heddle/machine-<cpu>.json, else ~/.cache/heddle/machine-<cpu>.json. One that was
/// measured with another number of threads is not known.
Machine knownMachine();

/// Takes about three seconds, and writes the file.
Machine measureMachine();

} // namespace heddle::cli

#endif
