// What somebody means by a word: an event, a stream, a partition, a projector.
#pragma once

#include "console/api.hpp"

namespace stela::tool {

/// `{"kind":…,"name":…}` of "q=WORD"; the kind is null if nothing has that name. Only what an index
/// serves is looked for.
/// Tags are, for whoever may see payloads.
HttpResponse find(const Api& api, const ServedStore& store, std::string_view query,
                  bool looks_for_tags);

}  // namespace stela::tool
