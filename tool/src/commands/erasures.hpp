// Reports on forgotten people.
#pragma once

#include "cli/command.hpp"
#include "description/privacy.hpp"
#include "store_session.hpp"

#include <stela/eventstore/keys.hpp>

#include <string_view>
#include <vector>

namespace stela::tool {

inline constexpr std::string_view part_of_privacy = "privacy";

/// Empty if the event forgets nobody.
std::optional<description::Erasure> erasure_of(Store& store, const StoredEvent& event);
std::vector<description::Erasure> erasures_of(Store& store, const StreamId& subject);
/// Adds the times at which the subject's keys were destroyed; and one more erasure of the keys that
/// no event names.
void find_tombstones(Keys& keys, const StreamId& subject,
                     std::vector<description::Erasure>& erasures);
/// Adds the projectors' progress, the publication, and the time since which it is certain.
void complete_erasure(description::Erasure& erasure, StoreSession& database, Keys& keys,
                      const StreamId& subject);
/// The store's projectors, and whether they have passed the fence.
std::vector<description::Follower> followers_of(Store& store, GlobalSequence fence);
/// True if the journal has an entry of this erasure.
bool is_noted(Store& store, const description::Erasure& erasure);
/// "erasure 4711".
std::string name_in_journal(GlobalSequence erasure);

/// The data that no forgetting reaches, for plans and reports.
Json not_reached_in_json();
void tell_not_reached(Output& out);

/// A warning for a key store on a server.
inline constexpr const char* kept_by_servers =
    "The key server's write-ahead log, its standbys and backups have the former keys, wrapped by "
    "the master key: until those are gone, or the master key is changed (--new-master) and the "
    "former one destroyed.";

}  // namespace stela::tool
