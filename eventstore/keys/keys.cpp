#include <stela/eventstore/keys.hpp>

#include "key_store.hpp"
#include "keys_sql/keys.hpp"

#include <stela/framework/error.hpp>

#include <utility>

namespace stela {

Keys::Keys(std::unique_ptr<keys::KeyStore> store) noexcept : store_{std::move(store)} {}
Keys::~Keys() = default;
Keys::Keys(Keys&&) noexcept = default;
Keys& Keys::operator=(Keys&&) noexcept = default;

std::shared_ptr<const SubjectKey> Keys::key_of(const Subject& subject) {
  return store_->key_of(subject);
}

std::shared_ptr<const SubjectKey> Keys::find(const KeyId& id) {
  return store_->find(id);
}

void Keys::refresh() {
  store_->look(true);
}

std::vector<KeyInfo> Keys::keys_of(std::string_view subject) {
  return store_->keys_of(subject);
}

std::vector<KeyInfo> Keys::living(std::int64_t after, std::size_t limit) {
  return store_->living(after, limit);
}

std::vector<DestroyedKey> Keys::destroyed(std::int64_t after, std::size_t limit) {
  std::vector<DestroyedKey> all;
  store_->read([&](database::Connection& connection) {
    auto rows = connection.rows(
        keys::sql::destroyed_keys{.after = after, .most = static_cast<std::int64_t>(limit)});
    while (rows.step()) {
      all.push_back({KeyId{keys::code_of(rows.id())}, rows.number(), std::string{rows.purpose()},
                     rows.generation(), rows.destroyed_at()});
    }
  });
  return all;
}

std::size_t Keys::destroy(std::span<const KeyId> ids) {
  return store_->destroy(ids);
}

void Keys::allow_again(std::string_view subject) {
  store_->allow_again(subject);
}

KeyStanding Keys::standing() {
  return store_->standing();
}

void Keys::check_standing(const Uuid& id, std::int64_t highest) {
  const KeyStanding actual = store_->standing();
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

KeyRotation Keys::rotate() {
  return store_->rotate();
}

void Keys::change_master(MasterKey master) {
  store_->change_master(std::move(master));
}

std::vector<std::string> Keys::erasure_problems() const {
  return store_->erasures().problems();
}

std::size_t Keys::destroyed_again() const noexcept {
  return store_->destroyed_again();
}

Keys open_keys(const std::string& location, const KeyOptions& options) {
  return Keys{std::make_unique<keys::KeyStore>(location, options)};
}

}  // namespace stela
