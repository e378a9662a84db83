// The kinds of events of one database, as they are numbered there.
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

/// Kinds never change and never go, so what is handed out stays valid as long as the table; but for
/// those that a transaction adds and rolls back, which are valid until the next one begins.
/// Threads: `find` from any thread, each with a connection of its own; the rest is the writer's.
class KindTable {
 public:
  struct Key {
    std::string_view category;
    std::string_view type;
    int version;
    bool publishes;
  };

  /// Names the connection whose transactions add kinds: what it sees may be rolled back. Before
  /// anything is asked.
  void set_writer(const Connection& writer) noexcept { writer_ = &writer; }

  /// The kind of that number, looked up in the database if it is new here; null if there is none.
  const EventKind* find(std::int64_t number, Connection& connection);

  /// At the beginning of a write transaction.
  void begin() noexcept { dropped_.clear(); }
  /// Learns what other processes added.
  void refresh(Connection& writer) { load(writer); }
  /// The kind with that key, added to the database if it is new there.
  const EventKind& intern(const Key& key, Connection& writer);

  /// A point in the transaction to roll back to.
  std::size_t mark() const noexcept { return added_.size(); }
  void roll_back_to(std::size_t mark) noexcept {
    if (mark == added_.size()) return;
    dropped_.splice(dropped_.end(), added_, std::next(added_.begin(), std::ptrdiff_t(mark)),
                    added_.end());
    recent_ = {};
  }
  /// False if there was no memory for all of it: then the rest has to be learnt by `refresh`.
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
  /// Moves from one to another without memory of its own.
  using Chain = std::list<std::unique_ptr<Entry>>;

  static std::size_t hash(const Key& key) noexcept;
  const EventKind* find_committed(std::int64_t number);
  const EventKind* find_added(std::int64_t number) const noexcept;
  const Entry* find_key(const Key& key);
  const EventKind& add_new(const Key& key, Connection& writer);
  void load(Connection& connection);
  /// Takes the entry, or throws and leaves it.
  void add(std::unique_ptr<Entry>& entry);

  const Connection* writer_ = nullptr;
  std::shared_mutex mutex_;
  /// Guarded by mutex_; what is committed, by number - 1.
  Entries entries_;
  std::unordered_multimap<std::size_t, const Entry*> by_key_;
  /// The writer's own: what its transaction added or dropped again, what it committed beside an
  /// entry that a reader had loaded first (listeners still see it), and what it used last.
  Chain added_;
  Chain dropped_;
  Chain twins_;
  std::array<const Entry*, 16> recent_{};
};

}  // namespace stela::sqlite
