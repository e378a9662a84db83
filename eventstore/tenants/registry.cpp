#include "tenants/registry.hpp"

#include "database/database.hpp"
#include "tenants/places.hpp"

#include <stela/framework/context.hpp>
#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/unit_of_work.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

namespace stela::tenants {
namespace {

using std::chrono::steady_clock;

/// Where the registry is: stores that are schemas of its own database, also in a copy of that.
constexpr const char* here = "";

/// How old the known state of a tenant may be.
constexpr std::chrono::milliseconds recent{100};

struct Made {
  static constexpr EventType event_type{"tenants.made", 1, local};
  std::string at = {};
  std::string keys = {};
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(at), CEREAL_NVP(keys));
  }
};

struct Created {
  static constexpr EventType event_type{"tenant.created", 1, local};
  Uuid store = {};
  Uuid keys = {};
  bool own_master = false;
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(store), CEREAL_NVP(keys), CEREAL_NVP(own_master));
  }
};

struct Suspended {
  static constexpr EventType event_type{"tenant.suspended", 1, local};
  std::string reason = {};
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(reason));
  }
};

struct Resumed {
  static constexpr EventType event_type{"tenant.resumed", 1, local};
  template <class Archive>
  void serialize(Archive&) {}
};

struct Dropped {
  static constexpr EventType event_type{"tenant.dropped", 1, local};
  std::string reason = {};
  Timestamp erase_from = {};
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(reason), CEREAL_NVP(erase_from));
  }
};

struct Erasing {
  static constexpr EventType event_type{"tenant.erasing", 1, local};
  template <class Archive>
  void serialize(Archive&) {}
};

struct Erased {
  static constexpr EventType event_type{"tenant.erased", 1, local};
  template <class Archive>
  void serialize(Archive&) {}
};

using Events = EventSet<Made, Created, Suspended, Resumed, Dropped, Erasing, Erased>;

void apply(Registered& one, const Created& e) {
  one.tenant.store = e.store;
  one.tenant.created_at = one.tenant.since;
  one.keys = {.id = e.keys, .has_own_master = e.own_master};
}
void apply(Registered& one, const Suspended& e) {
  one.tenant.state = TenantState::suspended;
  one.tenant.reason = e.reason;
}
void apply(Registered& one, const Resumed&) {
  one.tenant.state = TenantState::active;
  one.tenant.reason.clear();
  one.tenant.erase_from = {};
}
void apply(Registered& one, const Dropped& e) {
  one.tenant.state = TenantState::dropped;
  one.tenant.reason = e.reason;
  one.tenant.erase_from = e.erase_from;
}
void apply(Registered& one, const Erasing&) {
  one.tenant.state = TenantState::erasing;
}
void apply(Registered& one, const Erased&) {
  one.tenant.state = TenantState::erased;
}

StreamId facts_stream() {
  return StreamId::of("tenants", "registry");
}
StreamId stream_of(std::string_view name) {
  return StreamId::of("tenant", name);
}

std::string path_of(const std::string& location) {
  constexpr std::string_view prefix = "sqlite:";
  return location.starts_with(prefix) ? location.substr(prefix.size()) : location;
}

/// Several roles may use one registry.
std::string without_role(const std::string& server) {
  return server.substr(server.find('@') + 1);
}

Store open_registry(const std::string& location, const TenantsOptions& options) {
  if (is_on_server(location)) {
    postgres::Options of_server = options.servers;
    of_server.schema = "stela_tenants";
    of_server.sql_schema = "";
    of_server.create = options.create;
    of_server.keys = nullptr;
    return postgres::open(location, of_server);
  }
  sqlite::Options of_file = options.files;
  of_file.create = options.create;
  of_file.keys = nullptr;
  constexpr std::string_view prefix = "sqlite:";
  return sqlite::open(location.starts_with(prefix) ? location.substr(prefix.size()) : location,
                      of_file);
}

/// UsageError if a tenant's key store and its store, or files beside them, could have one path.
void check_keys_apart(const Pattern& stores, const Pattern& keys, bool is_registry_on_server) {
  if (keys.is_on_server()) {
    throw UsageError{"tenants' key stores are files, one for each: a server has one key store"};
  }
  if (is_registry_on_server && !keys.text().starts_with('/')) {
    throw UsageError{"'" + keys.text() +
                     "' must begin with '/': the registry is on a server, and has no folder where "
                     "paths begin"};
  }
  if (stores.is_on_server()) return;
  const std::string store = stores.place_of("x");
  const std::string key_store = keys.place_of("x");
  const auto is_beside = [](const std::string& file, const std::string& other) {
    if (!file.starts_with(other)) return false;
    const std::string_view rest = std::string_view{file}.substr(other.size());
    constexpr std::string_view endings[] = {"",         "-wal",    "-shm",     "-lock",
                                            "-journal", ".master", ".erasures"};
    return rest.starts_with('/') ||
           std::find(std::begin(endings), std::end(endings), rest) != std::end(endings);
  };
  if (is_beside(store, key_store) || is_beside(key_store, store)) {
    throw UsageError{"stores at '" + stores.text() + "' and key stores at '" + keys.text() +
                     "' would take each other's paths; keep them in two folders"};
  }
}

}  // namespace

Registry::Registry(const std::string& location, const TenantsOptions& options)
    : options_{options},
      is_on_server_{is_on_server(location)},
      folder_{is_on_server_ ? std::filesystem::current_path()
                            : std::filesystem::weakly_canonical(path_of(location)).parent_path()},
      where_{is_on_server_ ? without_role(postgres::describe(location))
                           : std::filesystem::weakly_canonical(path_of(location)).string()},
      store_{open_registry(location, options)} {
  read(Freshness::now);
  const bool only_reads = is_on_server_ ? options.servers.read_only : options.files.read_only;
  if (!only_reads) store_.database().attach_mark(mark_);
  settle_facts(location);
}

Registry::~Registry() {
  store_.database().detach_mark(mark_);
}

void Registry::settle_facts(const std::string& location) {
  if (!facts_) {
    if (!options_.at) {
      throw UsageError{
          "a new registry of tenants must be told where their stores are: data/{tenant}.db, for "
          "example"};
    }
    // Checked before they are recorded.
    const Pattern stores{*options_.at, folder_};
    if (!options_.keys.value_or("").empty()) {
      check_keys_apart(stores, {*options_.keys, folder_}, is_on_server_);
    }
    const bool is_a_file = !stores.is_on_server() && !is_on_server_;
    if (is_a_file && !stores.name_in(sqlite::path(store_)).empty()) {
      throw UsageError{"the registry '" + location +
                       "' would be a tenant's store itself; keep the stores in another folder"};
    }
    UnitOfWork unit{store_};
    unit.append(facts_stream(), ExpectedVersion::none(),
                Made{*options_.at == location ? here : *options_.at, options_.keys.value_or("")});
    try {
      unit.commit();
    } catch (const ConcurrencyConflict&) {
      // Another process made it at the same time; its facts count.
    }
    read(Freshness::now);
  }
  const auto check = [](const std::optional<std::string>& wanted, const std::string& actual,
                        const char* what) {
    if (!wanted || *wanted == actual) return;
    throw UsageError{"the tenants' " + std::string{what} + " are at '" + actual + "', and '" +
                     *wanted + "' was asked for; leave it out to take what the registry has"};
  };
  if (facts_->first == here) facts_->first = location;
  check(options_.at, facts_->first, "stores");
  check(options_.keys, facts_->second, "key stores");
  stores_.emplace(facts_->first, folder_);
  if (!facts_->second.empty()) keys_.emplace(facts_->second, folder_);
}

std::string Registry::served_as(std::string_view tenant) {
  const std::string at = is_on_server_ ? where_ + ", server " + name_of_server(store_) : where_;
  return std::string{tenant} + ", of the registry " + store_.id().to_string() + " at " + at;
}

template <class E>
void Registry::take(const StoredEvent& event, const E& happened) {
  if constexpr (std::is_same_v<E, Made>) {
    facts_.emplace(happened.at, happened.keys);
  } else {
    Registered& entry = entries_[std::string{event.stream.key()}];
    entry.tenant.name = event.stream.key();
    entry.tenant.registry = store_.id();
    entry.tenant.since = event.recorded_at;
    entry.version = event.version;
    apply(entry, happened);
  }
}

void Registry::read(Freshness freshness) {
  const auto now = steady_clock::now();
  if (freshness == Freshness::recent && now < read_at_ + recent) return;
  const GlobalSequence last = store_.last_sequence();
  if (last < position_) {
    // It was restored from a backup.
    entries_.clear();
    position_ = {};
  }
  if (last > position_) {
    EventDecoder<Events> decoder{store_.conventions().reading()};
    for (const StoredEvent& event :
         store_.read_all({.from = GlobalSequence{position_.value() + 1}})) {
      position_ = event.sequence;
      const auto known = entries_.find(event.stream.key());
      if (known != entries_.end()) known->second.version = event.version;
      if (!decoder.knows(event.kind)) continue;
      try {
        decoder.decode(event, [&](const auto& happened) { take(event, happened); });
      } catch (const CorruptEvent& e) {
        // A store itself knows that it is suspended.
        const std::string message =
            "an event of the registry is left out: " + std::string{e.what()};
        options_.files.log->write(
            {.level = LogLevel::error, .name = "tenants.corrupt_event", .message = message});
      }
    }
  }
  read_at_ = now;
}

std::optional<Registered> Registry::find(std::string_view name) {
  const std::lock_guard lock{mutex_};
  read(Freshness::recent);
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    // It may have just been created by another process.
    read(Freshness::now);
    found = entries_.find(name);
  }
  return found == entries_.end() ? std::nullopt : std::optional{found->second};
}

Registered Registry::get(std::string_view name) {
  if (auto found = find(name)) return *std::move(found);
  throw NotFound{"there is no tenant '" + std::string{name.substr(0, 80)} + "'"};
}

std::vector<Tenant> Registry::list() {
  const std::lock_guard lock{mutex_};
  read(Freshness::now);
  std::vector<Tenant> all;
  all.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) all.push_back(entry.tenant);
  return all;
}

template <class E>
Tenant Registry::append(std::string_view name, const E& event) {
  const std::lock_guard lock{mutex_};
  const auto known = entries_.find(name);
  const auto expected = known == entries_.end() ? ExpectedVersion::none()
                                                : ExpectedVersion::exactly(known->second.version);
  {
    const ContextScope scope{{.actor = options_.who}};
    UnitOfWork unit{store_};
    unit.append(stream_of(name), expected, event);
    unit.commit();
  }
  read(Freshness::now);
  return entries_.find(name)->second.tenant;
}

Tenant Registry::create(std::string_view name, const Uuid& store, const KeyFiles& keys) {
  {
    const std::lock_guard lock{mutex_};
    for (const auto& [other, entry] : entries_) {
      const bool shares_keys = !keys.id.is_nil() && entry.keys.id == keys.id;
      if (!shares_keys && entry.tenant.store != store) continue;
      throw UsageError{"the " + std::string{shares_keys ? "key store" : "store"} + " of '" +
                       std::string{name} + "' is that of tenant '" + other +
                       "', or a copy of it; give each its own"};
    }
  }
  return append(name, Created{store, keys.id, keys.has_own_master});
}
Tenant Registry::suspend(std::string_view name, std::string_view reason) {
  return append(name, Suspended{std::string{reason}});
}
Tenant Registry::resume(std::string_view name) {
  return append(name, Resumed{});
}
Tenant Registry::drop(std::string_view name, std::string_view reason, Timestamp erase_from) {
  return append(name, Dropped{std::string{reason}, erase_from});
}
Tenant Registry::begin_erasing(std::string_view name) {
  return append(name, Erasing{});
}
Tenant Registry::end_erasing(std::string_view name) {
  return append(name, Erased{});
}

}  // namespace stela::tenants
