#include "key_rows.hpp"
#include "key_store.hpp"

#include <stela/framework/error.hpp>

#include <map>
#include <utility>

namespace stela {

using namespace keys;

Keys::Keys(std::unique_ptr<KeyStore> store) noexcept : store_{std::move(store)} {}
Keys::~Keys() = default;
Keys::Keys(Keys&&) noexcept = default;
Keys& Keys::operator=(Keys&&) noexcept = default;

Keys open_keys(const std::string& location, const KeyOptions& options) {
  return Keys{std::make_unique<KeyStore>(location, options)};
}

std::shared_ptr<const SubjectKey> Keys::key_of(const Subject& subject) {
  KeyStore& s = *store_;
  s.owner.check();
  s.look(false);
  if (Key known = s.cache.find(subject)) return known;
  if (subject.name.empty()) throw UsageError{"a subject needs a name"};
  const std::uint64_t epoch = s.cache.epoch();
  const Code binding = s.binding_of(subject.name);
  Key key;
  s.run(
      [&](Connection& connection) {
        key = s.living_key(key_row(connection, sql::keys_of{.binding = text_of(binding),
                                                            .purpose = subject.purpose}),
                           subject);
        return key == nullptr;
      },
      [&](Connection& connection) { key = s.find_or_make(connection, subject, binding); },
      KeyDatabase::Kind::adds);
  s.note_newest(*key);
  s.cache.add(key->id, key, epoch);
  return key;
}

std::shared_ptr<const SubjectKey> Keys::find(const KeyId& id) {
  KeyStore& s = *store_;
  s.owner.check();
  s.look(false);
  if (const auto known = s.cache.find(id)) return *known;
  const std::uint64_t epoch = s.cache.epoch();
  std::optional<KeyRow> row;
  s.read([&](Connection& connection) {
    row = key_row(connection, sql::find_key{.id = text_of(id.bytes)});
  });
  if (!row && !s.erasures->contains(id)) {
    throw KeyMissing{"the key store '" + s.name() + "' doesn't have the key " + id.to_string() +
                     ": it is an older one, or another store's; restore a newer backup of the "
                     "key store"};
  }
  const Key key = row && !s.is_gone(*row) ? s.opened(*row) : nullptr;
  s.cache.add(id, key, epoch);
  return key;
}

void Keys::refresh() {
  store_->look(true);
}

namespace {

template <class Query>
std::vector<DestroyedKey> destroyed_keys(KeyStore& store, const Query& query) {
  std::vector<DestroyedKey> all;
  store.read([&](Connection& connection) {
    all.clear();
    auto row = connection.rows(query);
    while (row.step()) {
      all.push_back({KeyId{code_of(row.id())}, row.number(), std::string{row.purpose()},
                     row.generation(), row.destroyed_at(), row.destroyed_by()});
    }
  });
  return all;
}

}  // namespace

std::vector<KeyInfo> Keys::keys_of(std::string_view subject) {
  const Code binding = store_->binding_of(subject);
  std::vector<KeyRow> rows;
  std::map<std::string, KeyHold> holds;
  store_->read([&](Connection& connection) {
    rows = key_rows(connection, sql::keys_of{.binding = text_of(binding), .purpose = {}});
    auto row = connection.rows(
        sql::holds_of{.binding = text_of(binding), .now = store_->options.clock->now()});
    while (row.step()) {
      holds[std::string{row.purpose()}] = {row.until(), std::string{row.reason()}};
    }
  });
  std::vector<KeyInfo> infos = store_->infos(rows);
  for (KeyInfo& key : infos) {
    const auto hold = holds.find(key.subject.purpose);
    if (hold != holds.end()) key.hold = hold->second;
  }
  return infos;
}

std::vector<KeyInfo> Keys::living(std::int64_t after, std::size_t limit) {
  const auto most = static_cast<std::int64_t>(limit);
  std::vector<KeyRow> rows;
  store_->read([&](Connection& connection) {
    rows = key_rows(connection, sql::living_keys{.after = after, .below = all_keks, .most = most});
  });
  return store_->infos(rows);
}

std::vector<DestroyedKey> Keys::destroyed(std::int64_t after, std::size_t limit) {
  const auto most = static_cast<std::int64_t>(limit);
  return destroyed_keys(*store_, sql::destroyed_keys{.after = after, .most = most});
}

std::vector<DestroyedKey> Keys::destroyed_of(std::string_view subject) {
  const Code binding = store_->binding_of(subject);
  return destroyed_keys(*store_, sql::destroyed_keys_of{.binding = text_of(binding)});
}

std::size_t Keys::destroy(std::span<const KeyId> ids) {
  return store_->destroy(ids);
}

void Keys::allow_again(std::string_view subject) {
  store_->write([&](Connection& connection) {
    connection.run(sql::allow_subject{.binding = text_of(store_->binding_of(subject)),
                                      .now = store_->options.clock->now()});
  });
}

void Keys::hold(const Subject& subject, std::optional<Timestamp> until, std::string_view reason) {
  const Code binding = store_->binding_of(subject.name);
  store_->write([&](Connection& connection) {
    connection.run(sql::hold_purpose{.binding = text_of(binding),
                                     .purpose = subject.purpose,
                                     .until = until,
                                     .reason = reason,
                                     .now = store_->options.clock->now()});
  });
}

void Keys::release(const Subject& subject) {
  const Code binding = store_->binding_of(subject.name);
  store_->write([&](Connection& connection) {
    connection.run(sql::release_purpose{.binding = text_of(binding), .purpose = subject.purpose});
  });
}

void Keys::check_standing(const Uuid& id, std::int64_t highest) {
  const KeyStanding actual = standing();
  if (actual.id != id) {
    throw KeysBehind{"'" + store_->name() + "' is the key store " + actual.id.to_string() +
                     ", and the events were written with " + id.to_string() + "; open that one"};
  }
  if (actual.highest >= highest) return;
  throw KeysBehind{"the key store '" + store_->name() + "' has keys up to number " +
                   std::to_string(actual.highest) +
                   ", and the events were written with keys up to " + std::to_string(highest) +
                   ": " + std::to_string(highest - actual.highest) +
                   " are missing, as after an older backup was restored; restore a backup of the "
                   "key store that is younger than the events"};
}

std::vector<std::string> Keys::erasure_problems() const {
  return store_->erasures->problems();
}

std::size_t Keys::destroyed_again() const noexcept {
  return store_->destroyed_again;
}

std::size_t Keys::brought_back() {
  KeyStore& s = *store_;
  if (s.erasures_applied || !s.options.read_only) return 0;
  std::size_t living = 0;
  s.read([&](Connection& connection) {
    for (const KeyId& id : s.erasures->ids()) {
      const auto row = key_row(connection, sql::find_key{.id = text_of(id.bytes)});
      if (row && !row->is_destroyed) ++living;
    }
  });
  return living;
}

}  // namespace stela
