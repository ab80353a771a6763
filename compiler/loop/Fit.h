// Fit: how a subgraph, as it grows, stands to what a key or a mechanism wants.
#ifndef HEDDLE_LOOP_FIT_H
#define HEDDLE_LOOP_FIT_H

namespace heddle::loop {

/// Nothing, what may still grow into it, or the whole of it.
enum class Fit { No, Partial, Full };

} // namespace heddle::loop

#endif // HEDDLE_LOOP_FIT_H
