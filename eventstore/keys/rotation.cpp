// How the key that all others are wrapped by is replaced.
#include "key_rows.hpp"
#include "key_store.hpp"

#include <stela/framework/error.hpp>

#include <utility>

namespace stela::keys {

namespace {

constexpr std::int64_t keys_of_a_batch = 10'000;

}  // namespace

KeyStanding KeyStore::standing() {
  KeyStanding now{.id = id, .made_at = {}};
  read([&](Connection& connection) {
    auto position = connection.rows(sql::position{.seen = 0});
    if (position.step()) {
      now.version = position.version();
      now.highest = position.highest();
      now.serves = position.serves().value_or("");
    }
    auto kek = connection.rows(sql::newest_kek{});
    if (kek.step()) {
      now.rotation = kek.number();
      now.made_at = kek.made_at();
      now.is_rotating = kek.has_older();
    }
    auto rotation = connection.rows(sql::rotation{.number = now.rotation});
    if (rotation.step()) now.rotated_at = rotation.ended_at();
  });
  return now;
}

void KeyStore::finish_rotation(KeyRotation& rotation, FunctionRef<void()> on_batch) {
  std::int64_t after = 0;
  for (bool is_done = false; !is_done;) {
    std::size_t size = 0;
    std::int64_t from = after;
    write([&](Connection& connection) {
      from = after;
      size = rewrap(connection, from);
      if (size == 0) is_done = end_rotation(connection, rotation.number);
    });
    rotation.rewrapped += static_cast<std::int64_t>(size);
    on_batch();
    // Restart if another rotation has begun meanwhile.
    after = size == 0 ? 0 : from;
  }
  keks->clear();
  rotation.left_over = database->tidy();
  if (!rotation.left_over.empty()) {
    log(LogLevel::warning, "keys.former_left",
        "former keys stay in the tables until the next rotation: " + rotation.left_over);
  }
  rotation.ended_at = options.clock->now();
  if (rotation.left_over.empty()) {
    write([&](Connection& connection) {
      connection.run(sql::note_rotation{.number = rotation.number, .ended_at = rotation.ended_at});
      if (!connection.rows(sql::rotation{.number = rotation.number}).step()) {
        rotation.left_over = "another rotation has begun";
      }
    });
  }
  log(LogLevel::info, "keys.rotated",
      "all keys are wrapped by key-encryption key " + std::to_string(rotation.number));
}

void KeyStore::resume_rotation() {
  if (options.read_only) return;
  const KeyStanding now = standing();
  if (!now.is_rotating && (now.rotation == 1 || now.rotated_at)) return;
  try {
    KeyRotation rotation;
    finish_rotation(rotation, [] {});
  } catch (const std::exception& e) {
    log(LogLevel::warning, "keys.rotation_unfinished",
        "an interrupted rotation of the keys couldn't be finished: " + std::string{e.what()});
  }
}

std::size_t KeyStore::rewrap(Connection& connection, std::int64_t& after) {
  const Kek kek = newest_kek(connection);
  const std::vector<KeyRow> rows = key_rows(
      connection, sql::living_keys{.after = after, .below = kek.number, .most = keys_of_a_batch});
  std::string numbers;
  std::string wrapped;
  for (const KeyRow& row : rows) {
    if (!numbers.empty()) numbers += ',';
    numbers += std::to_string(row.number);
    wrapped += seal(*kek.key, associated(row), unwrapped(row));
    after = row.number;
  }
  constexpr auto size = static_cast<std::int64_t>(Secret::size + seal_size);
  if (!rows.empty()) {
    connection.run(
        sql::rewrap_keys{.numbers = numbers, .size = size, .kek = kek.number, .wrapped = wrapped});
  }
  return rows.size();
}

/// False if an older key still wraps some keys.
bool KeyStore::end_rotation(Connection& connection, std::int64_t& number) {
  const Kek kek = newest_kek(connection);
  if (connection.rows(sql::living_keys{.after = 0, .below = kek.number, .most = 1}).step()) {
    return false;
  }
  const std::string sealed = seal(*kek.key, joined({root_label, raw_id()}), *root);
  connection.run(sql::set_root{.root = sealed, .kek = kek.number});
  connection.run(sql::delete_older_keks{.current = kek.number});
  number = kek.number;
  return true;
}

}  // namespace stela::keys

namespace stela {

using namespace keys;

KeyStanding Keys::standing() {
  return store_->standing();
}

std::optional<Timestamp> Keys::certain_since(std::int64_t rotation) {
  std::optional<Timestamp> since;
  store_->read([&](Connection& connection) {
    auto first = connection.rows(sql::first_rotation_after{.number = rotation});
    if (first.step()) since = first.ended_at();
  });
  return since;
}

KeyRotation Keys::rotate(const std::function<void(std::int64_t, std::int64_t)>& progress) {
  KeyStore& s = *store_;
  KeyRotation rotation{.began_at = s.options.clock->now(), .ended_at = {}};
  const Secret kek = Secret::random();
  s.write([&](Connection& connection) {
    s.keks->clear();  // another process may have changed the master key since
    const std::int64_t number = s.newest_kek(connection).number + 1;
    connection.run(sql::insert_kek{
        .number = number, .wrapped = s.keks->wrap(number, kek), .made_at = rotation.began_at});
  });
  const std::int64_t most = standing().highest;
  s.finish_rotation(rotation, [&] {
    if (progress) progress(rotation.rewrapped, most);
  });
  return rotation;
}

void Keys::change_master(MasterKey master) {
  KeyStore& s = *store_;
  s.write([&](Connection& connection) {
    if (auto newest = connection.rows(sql::newest_kek{}); newest.step() && newest.has_older()) {
      throw StoreBusy{
          "the keys are being rotated; nothing was changed; change the master key when that has "
          "ended"};
    }
    s.keks->clear();
    const Kek kek = s.newest_kek(connection);
    const KeyEncryptionKeys changed{master, s.id};
    connection.run(
        sql::update_kek{.number = kek.number, .wrapped = changed.wrap(kek.number, *kek.key)});
  });
  s.keks->set_master(std::move(master));
}

}  // namespace stela
