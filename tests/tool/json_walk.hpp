// Runs every command that only reads, and holds its JSON to the one vocabulary.
#pragma once

#include <stela/eventstore/store.hpp>

#include <functional>
#include <string>

namespace stela::test {

/// Fills an empty store with at least one row of whatever a command lists. `sql` runs a statement
/// behind Stela's back, as a consumer would have left its rows.
void populate(Store& store, const std::string& db,
              const std::function<void(const std::string&)>& sql);

/// Fails for each key and value that isn't as docs/reference/json.md says.
void check_json_of_every_command(const std::string& db);

}  // namespace stela::test
