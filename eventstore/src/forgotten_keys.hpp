// Keeps events out that are sealed with a key that was destroyed.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/event_store.hpp>

#include <functional>
#include <set>
#include <string>

namespace stela {

/// Call it in the append's transaction, when nobody else can forget a key. SubjectForgotten if an
/// event is sealed with one that is; otherwise the newest of the keys is noted.
void check_keys(database::Connection& connection, const AppendRequest& request);

/// Types of events of which a field was sealed in this database.
using PersonalTypes = std::set<std::string, std::less<>>;
PersonalTypes read_personal_types(database::Connection& connection);
void add_personal_type(database::Connection& connection, std::string_view type);
/// UsageError: an appender that doesn't know the type could put a personal field there in clear.
[[noreturn]] void refuse_untyped(std::string_view type);

/// Compares a store that is being opened with its keys: KeysBehind if they are of an older key
/// store, or of another store's. Unless it is only read, completes what was interrupted, and what
/// a backup has undone.
void settle_keys(Store& store, bool read_only);

}  // namespace stela
