#include "key_store.hpp"

#include "keys_sql/keys.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>

namespace stela::keys {

/// A key as its row has it.
struct KeyRow {
  explicit KeyRow(const sql::key_row& row)
      : number{row.number()},
        id{code_of(row.id())},
        binding{code_of(row.binding())},
        purpose{row.purpose()},
        generation{row.generation()},
        subject{row.subject().value_or("")},
        kek{row.kek().value_or(0)},
        wrapped{row.wrapped().value_or("")},
        kek_wrapped{row.kek_wrapped().value_or("")},
        made_at{row.made_at()},
        is_destroyed{!row.wrapped().has_value()},
        is_allowed{row.allowed_at().has_value()} {}

  std::int64_t number;
  KeyId id;
  Code binding;
  std::string purpose;
  std::int64_t generation;
  std::string subject;
  std::int64_t kek;
  std::string wrapped;
  std::string kek_wrapped;
  Timestamp made_at;
  bool is_destroyed;
  bool is_allowed;
};

namespace {

template <class Statement>
std::vector<KeyRow> key_rows(Connection& connection, const Statement& statement) {
  std::vector<KeyRow> all;
  auto rows = connection.rows(statement);
  while (rows.step()) all.emplace_back(rows);
  return all;
}

template <class Statement>
std::optional<KeyRow> key_row(Connection& connection, const Statement& statement) {
  auto rows = connection.rows(statement);
  return rows.step() ? std::optional<KeyRow>{rows} : std::nullopt;
}

/// What a caller stands in line for.
struct KeyWork : CommitQueue::Ticket {
  KeyWork(FunctionRef<bool(Connection&)> reads, FunctionRef<void(Connection&)> writes)
      : read{reads}, write{writes} {}
  FunctionRef<bool(Connection&)> read;
  FunctionRef<void(Connection&)> write;
  std::exception_ptr error = {};
};

/// In one transaction.
void write_all(KeyDatabase& database, std::span<KeyWork* const> group) {
  database.write([&](Connection& connection) {
    for (KeyWork* const work : group) {
      work->error = nullptr;
      try {
        work->write(connection);
      } catch (const SubjectForgotten&) {
        work->error = std::current_exception();  // it has written nothing
      }
    }
  });
}

constexpr std::int64_t keys_of_a_batch = 10'000;
constexpr std::chrono::milliseconds look_interval{100};
constexpr std::string_view root_label = "stela key store root 1";
constexpr std::string_view key_label = "stela subject key 1";
constexpr std::string_view name_label = "stela subject name 1";

}  // namespace

KeyStore::KeyStore(const std::string& location, const KeyOptions& options)
    : options_{options}, database_{open_database(location, options)}, cache_{options.cached_keys} {
  database_->on_contact = [this](Connection& connection) { follow(connection); };
  const std::string master_path = database_->beside(".master");
  const MasterKey master = options.master.unwrap ? options.master : key_file(master_path);
  if (!settle(master)) {
    if (options.read_only) {
      throw SchemaMismatch{"'" + name() + "' is empty: no key store has been made in it yet"};
    }
    if (!options.master.unwrap && make_key_file(master_path)) {
      log(LogLevel::warning, "keys.master_made",
          "made the master key '" + master_path +
              "': keep a copy of it apart from the backups of "
              "the key store, as without it all personal data is lost");
    }
    make(master);
    settle(master);
  }
  open_erasures();
  resume_rotation();
}

bool KeyStore::settle(const MasterKey& master) {
  bool is_there = false;
  read([&](Connection& connection) {
    auto row = connection.rows(sql::key_store{});
    is_there = row.step();
    if (!is_there) return;
    id_ = Uuid{code_of(row.id())};
    keks_.emplace(master, id_);
    const auto kek = keks_->get(row.kek(), row.kek_wrapped());
    root_ = unseal(*kek, joined({root_label, text_of(id_.bytes())}), row.root());
    version_ = row.version();
  });
  if (!is_there) return false;
  if (!root_) {
    throw StoreFailed{"the key store '" + name() +
                      "' is damaged: its first row was changed; "
                      "restore a backup of it"};
  }
  binding_key_ = derived(*root_, Purpose::binding);
  return true;
}

void KeyStore::make(const MasterKey& master) {
  const Uuid id{KeyId::make().bytes};
  const Secret kek = Secret::random();
  const std::string wrapped = KeyEncryptionKeys{master, id}.wrap(1, kek);
  const std::string root = seal(kek, joined({root_label, text_of(id.bytes())}), Secret::random());
  const Timestamp now = options_.clock->now();
  write([&](Connection& connection) {
    // Another process may have made it.
    if (connection.rows(sql::key_store{}).step()) return;
    connection.run(sql::insert_kek{.number = 1, .wrapped = wrapped, .made_at = now});
    connection.run(
        sql::insert_key_store{.id = text_of(id.bytes()), .root = root, .kek = 1, .made_at = now});
  });
}

void KeyStore::open_erasures() {
  const std::string file =
      options_.erasures.empty() ? database_->beside(".erasures") : options_.erasures;
  erasures_.emplace(file, id_, derived(*root_, Purpose::erasures));
  std::int64_t seen = 0;
  read([&](Connection& connection) {
    auto row = connection.rows(sql::key_store{});
    if (row.step()) seen = row.erasures();
  });
  const bool is_applied = seen == erasures_->number() && erasures_->problems().empty();
  if (!file.empty()) erasures_->expect(seen);
  for (const std::string& problem : erasures_->problems()) {
    log(LogLevel::warning, "keys.erasures_wrong", problem);
  }
  if (!is_applied && !options_.read_only) apply_erasures();
}

void KeyStore::apply_erasures() {
  destroyed_again_ = destroy(erasures_->ids());
  if (destroyed_again_ == 0) return;
  log(LogLevel::warning, "keys.destroyed_again",
      "the key store '" + name() +
          "' had keys that the file of erasures names, as after a backup "
          "was restored: " +
          std::to_string(destroyed_again_) + " were destroyed again");
}

void KeyStore::read(FunctionRef<void(Connection&)> work) {
  const auto reads = [&](Connection& connection) {
    work(connection);
    return false;
  };
  run(reads, work);
}

void KeyStore::write(FunctionRef<void(Connection&)> work) {
  run([](Connection&) { return true; }, work);
}

void KeyStore::run(FunctionRef<bool(Connection&)> read, FunctionRef<void(Connection&)> write) {
  owner_.check();
  if (queue_.is_leading()) {
    throw UsageError{"a master key's callback used the key store that it belongs to"};
  }
  KeyWork ticket{read, write};
  queue_.submit(ticket, [&](std::span<CommitQueue::Ticket* const> group) { carry_out(group); });
  if (ticket.error) std::rethrow_exception(ticket.error);
}

void KeyStore::carry_out(std::span<CommitQueue::Ticket* const> group) noexcept {
  std::array<KeyWork*, CommitQueue::max_group_size> all;
  std::size_t size = 0;
  for (CommitQueue::Ticket* const member : group) {
    auto& work = static_cast<KeyWork&>(*member);
    try {
      if (work.read(database_->connection())) all[size++] = &work;
    } catch (...) {
      work.error = std::current_exception();
    }
  }
  const std::span writing{all.data(), size};
  if (writing.size() > 1) {
    try {
      return write_all(*database_, writing);
    } catch (...) {
      // One of them may be to blame: each alone.
    }
  }
  for (KeyWork* const work : writing) {
    try {
      write_all(*database_, {&work, 1});
    } catch (...) {
      work->error = std::current_exception();
    }
  }
}

std::string KeyStore::associated(const KeyRow& row) const {
  return joined({key_label, text_of(id_.bytes()), text_of(row.id.bytes), text_of(row.binding),
                 row.purpose, bytes_of(row.generation)});
}

bool KeyStore::is_gone(const KeyRow& row) const {
  return row.is_destroyed || erasures_->contains(row.id);
}

void KeyStore::refuse_row(const KeyRow& row) const {
  throw StoreFailed{"key " + std::to_string(row.number) + " of the key store '" + name() +
                    "' doesn't open: its row is damaged or was changed; restore a backup of the "
                    "key store"};
}

Secret KeyStore::unwrapped(const KeyRow& row) {
  if (row.kek_wrapped.empty()) refuse_row(row);
  auto secret = unseal(*keks_->get(row.kek, row.kek_wrapped), associated(row), row.wrapped);
  if (!secret) refuse_row(row);
  return std::move(*secret);
}

Key KeyStore::opened(const KeyRow& row) {
  Secret secret = unwrapped(row);
  std::string name(std::max(row.subject.size(), seal_size) - seal_size, '\0');
  const std::span bytes{reinterpret_cast<std::uint8_t*>(name.data()), name.size()};
  if (!unseal_bytes(secret, name_label, row.subject, bytes)) refuse_row(row);
  if (binding_of(name) != row.binding) refuse_row(row);
  return std::make_shared<const SubjectKey>(
      SubjectKey{row.id, {std::move(name), row.purpose}, std::move(secret), row.number});
}

Kek KeyStore::newest_kek(Connection& connection) {
  auto row = connection.rows(sql::newest_kek{});
  if (!row.step()) throw StoreFailed{"the key store '" + name() + "' has no key-encryption key"};
  return {row.number(), keks_->get(row.number(), row.wrapped())};
}

Key KeyStore::living_key(const std::optional<KeyRow>& newest, const Subject& subject) {
  if (!newest) return nullptr;
  if (!is_gone(*newest)) return opened(*newest);
  if (newest->is_destroyed && newest->is_allowed) return nullptr;
  throw SubjectForgotten{
      "'" + subject.name + "' was forgotten" +
      (subject.purpose.empty() ? "" : " for the purpose '" + subject.purpose + "'") +
      ": nothing personal can be written of this subject; stela::allow_again lets a person who "
      "returns in"};
}

Key KeyStore::find_or_make(Connection& connection, const Subject& subject, const Code& binding) {
  const auto newest =
      key_row(connection, sql::newest_key{.binding = text_of(binding), .purpose = subject.purpose});
  if (Key known = living_key(newest, subject)) return known;
  const Kek kek = newest_kek(connection);
  const auto key =
      std::make_shared<SubjectKey>(SubjectKey{KeyId::make(), subject, Secret::random()});
  const std::int64_t generation = newest ? newest->generation + 1 : 1;
  const std::string wrapped =
      seal(*kek.key,
           joined({key_label, text_of(id_.bytes()), text_of(key->id.bytes), text_of(binding),
                   subject.purpose, bytes_of(generation)}),
           key->secret);
  const std::string name =
      seal_bytes(key->secret, name_label,
                 {reinterpret_cast<const std::uint8_t*>(subject.name.data()), subject.name.size()});
  auto inserted = connection.rows(sql::insert_key{.id = text_of(key->id.bytes),
                                                  .binding = text_of(binding),
                                                  .purpose = subject.purpose,
                                                  .generation = generation,
                                                  .subject = name,
                                                  .kek = kek.number,
                                                  .wrapped = wrapped,
                                                  .made_at = options_.clock->now()});
  if (inserted.step()) key->number = inserted.number();
  return key;
}

Key KeyStore::key_of(const Subject& subject) {
  owner_.check();
  look(false);
  if (Key known = cache_.find(subject)) return known;
  if (subject.name.empty()) throw UsageError{"a subject needs a name"};
  const std::uint64_t epoch = cache_.epoch();
  const Code binding = binding_of(subject.name);
  Key key;
  const auto look_up = [&](Connection& connection) {
    key = living_key(key_row(connection, sql::newest_key{.binding = text_of(binding),
                                                         .purpose = subject.purpose}),
                     subject);
    return key == nullptr;
  };
  run(look_up, [&](Connection& connection) { key = find_or_make(connection, subject, binding); });
  if (key->number > highest_) highest_ = key->number;
  cache_.add(key->id, key, epoch);
  return key;
}

Key KeyStore::find(const KeyId& id) {
  owner_.check();
  look(false);
  if (const auto known = cache_.find(id)) return *known;
  const std::uint64_t epoch = cache_.epoch();
  std::optional<KeyRow> row;
  read([&](Connection& connection) {
    row = key_row(connection, sql::find_key{.id = text_of(id.bytes)});
  });
  if (!row && !erasures_->contains(id)) {
    throw KeyMissing{"the key store '" + name() + "' doesn't have the key " + id.to_string() +
                     ": it is an older one, or another store's; restore a newer backup of the "
                     "key store"};
  }
  const Key key = row && !is_gone(*row) ? opened(*row) : nullptr;
  cache_.add(id, key, epoch);
  return key;
}

void KeyStore::look(bool is_due) {
  const auto now = options_.clock->steady_now();
  const auto next = (now + look_interval).time_since_epoch().count();
  auto due = next_look_.load(std::memory_order_relaxed);
  if (!is_due && now.time_since_epoch().count() < due) return;
  // One thread looks.
  if (!next_look_.compare_exchange_strong(due, next) && !is_due) return;
  cache_.age(now);
  try {
    read([&](Connection& connection) { follow(connection); });
  } catch (...) {
    next_look_ = 0;
    throw;
  }
}

void KeyStore::follow(Connection& connection) {
  auto row = connection.rows(sql::position{});
  const bool is_there = row.step() && row.id() == text_of(id_.bytes());
  const bool may_lag = options_.read_only;  // on a standby
  if (!is_there || (!may_lag && (row.version() < version_ || row.highest() < highest_))) {
    highest_ = std::numeric_limits<std::int64_t>::max();
    cache_.clear();
    throw StoreFailed{
        "the key store '" + name() +
        "' was replaced by an older or another one while it was in use; open it again"};
  }
  highest_ = row.highest();
  if (version_.exchange(row.version()) == row.version()) return;
  cache_.clear();
  keks_->clear();
}

std::vector<KeyInfo> KeyStore::infos(const std::vector<KeyRow>& rows) {
  std::vector<KeyInfo> all;
  for (const KeyRow& row : rows) {
    if (is_gone(row)) continue;
    all.push_back({row.id, opened(row)->subject, row.number, row.generation, row.made_at});
  }
  return all;
}

std::vector<KeyInfo> KeyStore::keys_of(std::string_view subject) {
  std::vector<KeyRow> rows;
  read([&](Connection& connection) {
    rows = key_rows(connection, sql::keys_of_binding{.binding = text_of(binding_of(subject))});
  });
  return infos(rows);
}

std::vector<KeyInfo> KeyStore::living(std::int64_t after, std::size_t limit) {
  std::vector<KeyRow> rows;
  read([&](Connection& connection) {
    rows = key_rows(connection,
                    sql::living_keys{.after = after, .most = static_cast<std::int64_t>(limit)});
  });
  return infos(rows);
}

std::size_t KeyStore::destroy(std::span<const KeyId> ids) {
  std::int64_t destroyed = 0;
  const auto is_alive = [&](Connection& connection, const KeyId& id) {
    if (!erasures_->contains(id)) return true;
    const auto row = key_row(connection, sql::find_key{.id = text_of(id.bytes)});
    return row && !row->is_destroyed;
  };
  const auto is_any_alive = [&](Connection& connection) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](const KeyId& id) { return is_alive(connection, id); });
  };
  run(is_any_alive, [&](Connection& connection) {
    const Timestamp now = options_.clock->now();
    erasures_->add(ids, now);
    cache_.clear();
    destroyed = 0;
    for (const KeyId& id : ids) {
      destroyed += connection.run(sql::destroy_key{.id = text_of(id.bytes), .now = now});
    }
    connection.run(sql::note_erasures{.erasures = erasures_->number()});
  });
  look(true);  // so that a loss of it is noticed
  return static_cast<std::size_t>(destroyed);
}

void KeyStore::allow_again(std::string_view subject) {
  write([&](Connection& connection) {
    connection.run(
        sql::allow_subject{.binding = text_of(binding_of(subject)), .now = options_.clock->now()});
  });
}

KeyStanding KeyStore::standing() {
  KeyStanding standing{.id = id_, .rotated_at = {}};
  const auto fill = [&](Connection& connection) {
    auto position = connection.rows(sql::position{});
    if (position.step()) {
      standing.version = position.version();
      standing.highest = position.highest();
    }
    auto kek = connection.rows(sql::newest_kek{});
    if (kek.step()) {
      standing.rotation = kek.number();
      standing.rotated_at = kek.made_at();
    }
    auto older = connection.rows(sql::has_older_keks{});
    standing.is_rotating = older.step() && older.is_so();
  };
  read(fill);
  return standing;
}

KeyRotation KeyStore::rotate() {
  KeyRotation rotation{.began_at = options_.clock->now(), .ended_at = {}};
  const Secret kek = Secret::random();
  write([&](Connection& connection) {
    const std::int64_t number = newest_kek(connection).number + 1;
    connection.run(sql::insert_kek{
        .number = number, .wrapped = keks_->wrap(number, kek), .made_at = rotation.began_at});
  });
  finish_rotation(rotation);
  return rotation;
}

void KeyStore::finish_rotation(KeyRotation& rotation) {
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
    // From the beginning if somebody has begun another one meanwhile.
    after = size == 0 ? 0 : from;
  }
  keks_->clear();
  if (const std::string why = database_->tidy(); !why.empty()) {
    log(LogLevel::warning, "keys.not_vacuumed",
        "what is left of former keys stays in the tables until they are vacuumed: " + why);
  }
  rotation.ended_at = options_.clock->now();
  log(LogLevel::info, "keys.rotated",
      "all keys are wrapped by key-encryption key " + std::to_string(rotation.number));
}

void KeyStore::resume_rotation() {
  if (options_.read_only || !standing().is_rotating) return;
  try {
    KeyRotation rotation;
    finish_rotation(rotation);
  } catch (const std::exception& e) {
    log(LogLevel::warning, "keys.rotation_unfinished",
        "an interrupted rotation of the keys couldn't be finished: " + std::string{e.what()});
  }
}

std::size_t KeyStore::rewrap(Connection& connection, std::int64_t& after) {
  const Kek kek = newest_kek(connection);
  const std::vector<KeyRow> rows =
      key_rows(connection,
               sql::keys_to_rewrap{.after = after, .current = kek.number, .most = keys_of_a_batch});
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

/// False if there are keys yet that an older one wraps.
bool KeyStore::end_rotation(Connection& connection, std::int64_t& number) {
  const Kek kek = newest_kek(connection);
  if (connection.rows(sql::keys_to_rewrap{.after = 0, .current = kek.number, .most = 1}).step()) {
    return false;
  }
  const std::string root = seal(*kek.key, joined({root_label, text_of(id_.bytes())}), *root_);
  connection.run(sql::set_root{.root = root, .kek = kek.number});
  connection.run(sql::delete_older_keks{.current = kek.number});
  number = kek.number;
  return true;
}

void KeyStore::change_master(MasterKey master) {
  write([&](Connection& connection) {
    if (auto older = connection.rows(sql::has_older_keks{}); older.step() && older.is_so()) {
      throw UsageError{"the keys are being rotated; change the master key when that has ended"};
    }
    const Kek kek = newest_kek(connection);
    const KeyEncryptionKeys changed{master, id_};
    connection.run(
        sql::update_kek{.number = kek.number, .wrapped = changed.wrap(kek.number, *kek.key)});
  });
  keks_->set_master(std::move(master));
}

}  // namespace stela::keys
