// The kinds of events of one database, as they are numbered there.
#pragma once

#include "sqlite/connection.hpp"

#include <stela/framework/stored_event.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stela::sqlite {

/// Kinds never change and never go, so what is handed out stays valid as long as the table; but for
/// those that a transaction adds, which go with it if it is rolled back.
/// Threads: `find` from any thread, each with a connection of its own; the rest is the writer's.
class KindTable {
 public:
  struct Key {
    std::string_view category;
    std::string_view type;
    int version;
    bool publishes;
  };

  /// The kind of that number, looked up in the database if it is new here; null if there is none.
  const EventKind* find(std::int64_t number, Connection& connection);

  /// Learns what other processes added. At the beginning of a write transaction.
  void refresh(Connection& writer) { load(writer); }
  /// The kind with that key, added to the database if it is new there.
  const EventKind& intern(const Key& key, Connection& writer);
  /// As `find`, but also what the transaction itself added.
  const EventKind* find_in_transaction(std::int64_t number);

  /// A point in the transaction to roll back to.
  std::size_t mark() const noexcept { return added_.size(); }
  void roll_back_to(std::size_t mark) noexcept {
    if (mark == added_.size()) return;
    added_.resize(mark);
    recent_ = {};
  }
  void commit();

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

  static std::size_t hash(const Key& key) noexcept;
  const EventKind* find_committed(std::int64_t number);
  const Entry* find_key(const Key& key);
  const EventKind& add_new(const Key& key, Connection& writer);
  void load(Connection& connection);
  void add(std::unique_ptr<Entry> entry);

  std::shared_mutex mutex_;
  /// Guarded by mutex_; what is committed, by number - 1.
  Entries entries_;
  std::unordered_multimap<std::size_t, const Entry*> by_key_;
  /// Guarded by mutex_; twins of entries that a reader loaded first.
  Entries twins_;
  /// The writer's own: what its transaction added, and what it used last.
  Entries added_;
  std::array<const Entry*, 16> recent_{};
};

}  // namespace stela::sqlite
