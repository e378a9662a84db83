// Resolves a word: to an event, a stream, a partition, a projector.
#pragma once

#include "console/api.hpp"

namespace stela::tool {

/// Answers "q=WORD" with `{"kind":…,"name":…}`. The kind is null if nothing has that name. Searches
/// only by index, and tags only for users who may see payloads.
HttpResponse find(const Api& api, const ServedStore& store, std::string_view query,
                  bool looks_for_tags);

}  // namespace stela::tool
