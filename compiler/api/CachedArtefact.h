// CachedArtefact: artefacts of earlier compilations, for models that are compiled again as they
// are.
//
// The key is all that decides an artefact: the model's bytes, the options, the machine, the
// findings of tuning, the compiler itself. So a hit needs no import: it costs to read the model
// once and to write the artefact. External data is named by the entry's note, with its digests.
#ifndef HEDDLE_API_CACHEDARTEFACT_H
#define HEDDLE_API_CACHEDARTEFACT_H

#include "compiler/pipeline/Pipeline.h"

namespace heddle {

/// The key of a model's file, and which state of the file it was made of.
struct ModelKey {
  cache::Digest digest;
  std::string path, state;
  int64_t begun; // seconds; external data that is newer may have changed meanwhile
};

/// Nothing if there is no cache or the artefact depends on more than a key can hold: on cards of
/// the user's own, with the sources beside them.
std::optional<ModelKey> keyOfModel(const std::string &path, const CompileOptions &options);

/// A found artefact, with all that is said of it.
struct CachedArtefact {
  cache::Entry entry;
  std::string planJson, reportJson, header;
  std::vector<std::string> files; // external data
};

std::optional<CachedArtefact> findCached(const ModelKey &key, const CompileOptions &options);

/// Keeps the artefact that was written to `artefact`, unless the model's file has changed since.
void keep(const ModelKey &key, const Compiled &compiled, const CompileOptions &options,
          const std::string &artefact);

} // namespace heddle

#endif // HEDDLE_API_CACHEDARTEFACT_H
