// Refuses events that are sealed with a destroyed key.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/event_store.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>

namespace stela {

/// Call it in the append's transaction, when nobody else can forget a key. SubjectForgotten if an
/// event is sealed with a forgotten key; otherwise records the newest of the keys.
void check_keys(database::Connection& connection, const AppendRequest& request);

/// Event types with a field that was ever sealed in this database.
using PersonalTypes = std::set<std::string, std::less<>>;
PersonalTypes read_personal_types(database::Connection& connection);
void add_personal_type(database::Connection& connection, std::string_view type);
/// UsageError: an appender that doesn't know the type could write a personal field in clear.
[[noreturn]] void refuse_untyped(std::string_view type);

/// Compares a store that is being opened with its keys: KeysBehind if they belong to an older copy
/// of the key store, or to another store. Unless the store is read-only, completes interrupted
/// work, and repeats erasures that a restored backup undid.
void settle_keys(Store& store, bool read_only);

/// The key store that it was first opened with.
std::optional<Uuid> key_store_of(const Store& store);

}  // namespace stela
