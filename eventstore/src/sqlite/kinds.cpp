#include "sqlite/kinds.hpp"

#include "sqlite_sql/kinds.hpp"

#include <mutex>
#include <new>

namespace stela::sqlite {

const EventKind* KindTable::find_committed(std::int64_t number) {
  const std::shared_lock lock{mutex_};
  const auto index = static_cast<std::size_t>(number - 1);
  return number >= 1 && index < entries_.size() ? &entries_[index]->kind : nullptr;
}

const EventKind* KindTable::find(std::int64_t number, Connection& connection) {
  if (const EventKind* const known = find_committed(number)) return known;
  if (&connection == writer_ && !added_.empty()) return find_added(number);
  load(connection);
  return find_committed(number);
}

const EventKind* KindTable::find_added(std::int64_t number) const noexcept {
  for (const auto& added : added_) {
    if (added->kind.number == number) return &added->kind;
  }
  return nullptr;
}

const EventKind& KindTable::intern(const Key& key, Connection& writer) {
  const std::size_t slot = key.type.size() + static_cast<unsigned char>(key.type.back());
  const Entry*& recent = recent_[slot % recent_.size()];
  if (recent == nullptr || !recent->is(key)) recent = find_key(key);
  return recent != nullptr ? recent->kind : add_new(key, writer);
}

const EventKind& KindTable::add_new(const Key& key, Connection& writer) {
  const auto number = static_cast<std::int32_t>(entries_.size() + added_.size() + 1);
  writer.run(sql::insert_event_kind{.kind = number,
                                    .category = key.category,
                                    .type = key.type,
                                    .version = key.version,
                                    .publishes = key.publishes});
  added_.push_back(std::make_unique<Entry>(Entry{
      std::string{key.category}, {number, std::string{key.type}, key.version, key.publishes}}));
  return added_.back()->kind;
}

bool KindTable::commit() noexcept {
  bool all_known = true;
  if (added_.empty()) return all_known;
  const std::unique_lock lock{mutex_};
  while (!added_.empty()) {
    std::unique_ptr<Entry>& entry = added_.front();
    if (static_cast<std::size_t>(entry->kind.number) == entries_.size() + 1) {
      try {
        add(entry);
      } catch (const std::bad_alloc&) {
        all_known = false;
      }
    }
    if (entry) {
      twins_.splice(twins_.end(), added_, added_.begin());
    } else {
      added_.pop_front();
    }
  }
  return all_known;
}

std::size_t KindTable::hash(const Key& key) noexcept {
  const std::hash<std::string_view> text;
  return text(key.type) * 31 + text(key.category) +
         static_cast<std::size_t>(key.version * 2 + (key.publishes ? 1 : 0));
}

const KindTable::Entry* KindTable::find_key(const Key& key) {
  {
    const std::shared_lock lock{mutex_};
    const auto [begin, end] = by_key_.equal_range(hash(key));
    for (auto it = begin; it != end; ++it) {
      if (it->second->is(key)) return it->second;
    }
  }
  for (const auto& added : added_) {
    if (added->is(key)) return added.get();
  }
  return nullptr;
}

void KindTable::load(Connection& connection) {
  const std::unique_lock lock{mutex_};
  auto rows =
      connection.rows(sql::event_kinds{.after = static_cast<std::int64_t>(entries_.size())});
  while (rows.step()) {
    // Numbers are dense; kinds after a gap are the result of tampering, and stay unknown.
    if (rows.kind() != static_cast<std::int64_t>(entries_.size()) + 1) break;
    auto entry = std::make_unique<Entry>(
        Entry{std::string{rows.category()},
              {static_cast<std::int32_t>(rows.kind()), std::string{rows.type()},
               static_cast<int>(rows.version()), rows.publishes()}});
    add(entry);
  }
}

void KindTable::add(std::unique_ptr<Entry>& entry) {
  const EventKind& kind = entry->kind;
  entries_.push_back(nullptr);
  try {
    by_key_.emplace(hash({entry->category, kind.type, kind.schema_version, kind.publishes}),
                    entry.get());
  } catch (...) {
    entries_.pop_back();
    throw;
  }
  entries_.back() = std::move(entry);
}

}  // namespace stela::sqlite
