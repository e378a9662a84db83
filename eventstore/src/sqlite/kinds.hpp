// The event kinds of one database, with its numbers.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/framework/stored_event.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stela::sqlite {

/// Kinds never change or disappear, so results are valid as long as the table, except for kinds
/// that a transaction adds and rolls back: those are valid until the next transaction begins.
/// Threads: `find` from any thread, each with a connection of its own; the rest is the writer's.
class KindTable {
 public:
  struct Key {
    std::string_view category;
    std::string_view type;
    int version;
    bool publishes;
  };

  /// Sets the connection whose transactions add kinds, which may be rolled back. Call it before
  /// anything else.
  void set_writer(const Connection& writer) noexcept { writer_ = &writer; }

  /// The kind with that number, from the database if it isn't cached; null if there is none.
  const EventKind* find(std::int64_t number, Connection& connection);

  /// Call it when a write transaction begins.
  void begin() noexcept { dropped_.clear(); }
  /// Reads kinds that other processes added.
  void refresh(Connection& writer) { load(writer); }
  /// The kind with that key; adds it to the database if it is new there.
  const EventKind& intern(const Key& key, Connection& writer);

  /// A point in the transaction to roll back to.
  std::size_t mark() const noexcept { return added_.size(); }
  void roll_back_to(std::size_t mark) noexcept {
    if (mark == added_.size()) return;
    dropped_.splice(dropped_.end(), added_, std::next(added_.begin(), std::ptrdiff_t(mark)),
                    added_.end());
    recent_ = {};
  }
  /// False if memory was too short: then call `refresh` to read the rest.
  bool commit() noexcept;

 private:
  struct Entry {
    std::string category;
    EventKind kind;

    bool is(const Key& key) const noexcept {
      return kind.schema_version == key.version && kind.publishes == key.publishes &&
             kind.type == key.type && category == key.category;
    }
  };
  using Entries = std::vector<std::unique_ptr<Entry>>;
  /// Entries move between chains without allocating memory.
  using Chain = std::list<std::unique_ptr<Entry>>;

  static std::size_t hash(const Key& key) noexcept;
  const EventKind* find_committed(std::int64_t number);
  const EventKind* find_added(std::int64_t number) const noexcept;
  const Entry* find_key(const Key& key);
  const EventKind& add_new(const Key& key, Connection& writer);
  void load(Connection& connection);
  /// Takes the entry; if it throws, the entry stays.
  void add(std::unique_ptr<Entry>& entry);

  const Connection* writer_ = nullptr;
  std::shared_mutex mutex_;
  /// Committed kinds, by number - 1; guarded by mutex_.
  Entries entries_;
  std::unordered_multimap<std::size_t, const Entry*> by_key_;
  /// Only the writer uses these: kinds that its transaction added or rolled back, kinds that it
  /// committed after a reader had loaded them (listeners still see its entries), and its last ones.
  Chain added_;
  Chain dropped_;
  Chain twins_;
  std::array<const Entry*, 16> recent_{};
};

}  // namespace stela::sqlite
