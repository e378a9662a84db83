#include "key_store.hpp"

#include "key_rows.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <limits>
#include <map>
#include <utility>

namespace stela::keys {

namespace {

/// A caller's work in the queue.
struct KeyWork : CommitQueue::Ticket {
  KeyWork(FunctionRef<bool(Connection&)> reads, FunctionRef<void(Connection&)> writes,
          KeyDatabase::Kind what)
      : read{reads}, write{writes}, kind{what} {}
  FunctionRef<bool(Connection&)> read;
  FunctionRef<void(Connection&)> write;
  KeyDatabase::Kind kind;
  std::exception_ptr error = {};
};

/// Writes all in one transaction; if that fails, writes each alone, because only one may be at
/// fault.
void write_all(KeyDatabase& database, std::span<KeyWork* const> group) {
  using Kind = KeyDatabase::Kind;
  const bool only_adds =
      std::ranges::all_of(group, [](const KeyWork* work) { return work->kind == Kind::adds; });
  try {
    database.write(only_adds ? Kind::adds : Kind::changes, [&](Connection& connection) {
      for (KeyWork* const work : group) {
        work->error = nullptr;
        try {
          work->write(connection);
        } catch (const SubjectForgotten&) {
          work->error = std::current_exception();  // it has written nothing
        }
      }
    });
  } catch (...) {
    if (group.size() == 1) group.front()->error = std::current_exception();
    for (KeyWork* work : group.subspan(group.size() == 1 ? 1 : 0)) write_all(database, {&work, 1});
  }
}

constexpr std::chrono::milliseconds look_interval{100};
constexpr std::string_view key_label = "stela subject key 1";
constexpr std::string_view name_label = "stela subject name 1";

}  // namespace

KeyStore::KeyStore(const std::string& location, const KeyOptions& asked)
    : options{asked}, database{open_database(location, asked)}, cache{asked.cached_keys} {
  const std::string master_path = database->beside(".master");
  const MasterKey master = options.master.unwrap ? options.master : key_file(master_path);
  if (!settle(master)) {
    if (options.read_only) {
      throw SchemaMismatch{"'" + name() + "' is empty: no key store has been made in it yet"};
    }
    if (!options.master.unwrap && make_key_file(master_path)) {
      log(LogLevel::warning, "keys.master_made",
          "made the master key '" + master_path +
              "': keep a copy of it apart from the backups of the key store, as without it all "
              "personal data is lost");
    }
    make(master);
    settle(master);
  }
  database->on_contact = [this](Connection& connection) { follow(connection); };
  open_erasures();
  resume_rotation();
  aging_ = start_aging();
}

KeyStore::~KeyStore() {
  // A forked child has no such thread.
  if (!owner.is_this()) {
    aging_.detach();
    return;
  }
  aging_ends_.request_stop();
  aging_.join();
}

/// Blocks all signals in the thread: the application may wait for its signals elsewhere.
std::thread KeyStore::start_aging() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread started{[this, stop = aging_ends_.get_token()] { age_now_and_then(stop); }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void KeyStore::age_now_and_then(const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock{mutex};
  std::condition_variable_any timer;
  const auto is_over = [&] { return stop.stop_requested(); };
  while (!timer.wait_for(lock, stop, KeyCache::aging_interval, is_over)) {
    cache.age(options.clock->steady_now());
  }
}

bool KeyStore::settle(const MasterKey& master) {
  bool is_there = false;
  read([&](Connection& connection) {
    auto row = connection.rows(sql::key_store{});
    is_there = row.step();
    if (!is_there) return;
    id = Uuid{code_of(row.id())};
    keks.emplace(master, id);
    const auto kek = keks->get(row.kek(), row.kek_wrapped());
    root = unseal(*kek, joined({root_label, raw_id()}), row.root());
    version = row.version();
  });
  if (!is_there) return false;
  if (!root) {
    throw StoreFailed{"the key store '" + name() +
                      "' is damaged: its first row was changed; restore a backup of it"};
  }
  binding_key = derived(*root, Purpose::binding);
  return true;
}

void KeyStore::make(const MasterKey& master) {
  const Uuid made{KeyId::make().bytes};
  const std::string_view raw = text_of(made.bytes());
  const Secret kek = Secret::random();
  const std::string wrapped = KeyEncryptionKeys{master, made}.wrap(1, kek);
  const std::string sealed = seal(kek, joined({root_label, raw}), Secret::random());
  const Timestamp now = options.clock->now();
  write([&](Connection& connection) {
    // Another process may have created it.
    if (connection.rows(sql::key_store{}).step()) return;
    connection.run(sql::insert_kek{.number = 1, .wrapped = wrapped, .made_at = now});
    connection.run(sql::insert_key_store{.id = raw, .root = sealed, .kek = 1, .made_at = now});
  });
}

void KeyStore::open_erasures() {
  const std::string file =
      options.erasures.empty() ? database->beside(".erasures") : options.erasures;
  erasures.emplace(file, id, derived(*root, Purpose::erasures));
  std::int64_t seen = 0;
  read([&](Connection& connection) {
    auto row = connection.rows(sql::key_store{});
    if (row.step()) seen = row.erasures();
  });
  erasures_applied = seen == erasures->number() && erasures->problems().empty();
  if (!file.empty()) erasures->expect(seen);
  for (const std::string& problem : erasures->problems()) {
    log(LogLevel::warning, "keys.erasures_wrong", problem);
  }
  if (erasures_applied || options.read_only) return;
  destroyed_again = destroy(erasures->ids());
  if (destroyed_again == 0) return;
  log(LogLevel::warning, "keys.destroyed_again",
      "the key store '" + name() +
          "' had keys that the file of erasures names, as after a backup was restored: " +
          std::to_string(destroyed_again) + " were destroyed again");
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

void KeyStore::run(FunctionRef<bool(Connection&)> read, FunctionRef<void(Connection&)> write,
                   KeyDatabase::Kind kind) {
  owner.check();
  if (queue.is_leading()) {
    throw UsageError{"a master key's callback used the key store that it belongs to"};
  }
  KeyWork ticket{read, write, kind};
  queue.submit(ticket, [&](std::span<CommitQueue::Ticket* const> group) { carry_out(group); });
  if (ticket.error) std::rethrow_exception(ticket.error);
}

void KeyStore::carry_out(std::span<CommitQueue::Ticket* const> group) noexcept {
  std::array<KeyWork*, CommitQueue::max_group_size> all;
  std::size_t size = 0;
  for (CommitQueue::Ticket* const member : group) {
    auto& work = static_cast<KeyWork&>(*member);
    try {
      if (work.read(database->connection())) all[size++] = &work;
    } catch (...) {
      work.error = std::current_exception();
    }
  }
  if (size > 0) write_all(*database, {all.data(), size});
}

std::string KeyStore::associated(const KeyRow& row) const {
  return joined({key_label, raw_id(), text_of(row.id.bytes), text_of(row.binding), row.purpose,
                 bytes_of(row.generation)});
}

bool KeyStore::is_gone(const KeyRow& row) const {
  return row.is_destroyed || erasures->contains(row.id);
}

void KeyStore::refuse_row(const KeyRow& row) const {
  throw StoreFailed{"key " + std::to_string(row.number) + " of the key store '" + name() +
                    "' doesn't open: its row is damaged or was changed; restore a backup of the "
                    "key store"};
}

Secret KeyStore::unwrapped(const KeyRow& row) {
  if (row.kek_wrapped.empty()) refuse_row(row);
  auto secret = unseal(*keks->get(row.kek, row.kek_wrapped), associated(row), row.wrapped);
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
  return {row.number(), keks->get(row.number(), row.wrapped())};
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
      key_row(connection, sql::keys_of{.binding = text_of(binding), .purpose = subject.purpose});
  if (Key known = living_key(newest, subject)) return known;
  const Kek kek = newest_kek(connection);
  const auto key =
      std::make_shared<SubjectKey>(SubjectKey{KeyId::make(), subject, Secret::random()});
  KeyRow row{.id = key->id,
             .binding = binding,
             .purpose = subject.purpose,
             .generation = newest ? newest->generation + 1 : 1};
  row.wrapped = seal(*kek.key, associated(row), key->secret);
  row.subject = seal_bytes(key->secret, name_label, span_of(subject.name));
  auto inserted = connection.rows(sql::insert_key{.id = text_of(row.id.bytes),
                                                  .binding = text_of(binding),
                                                  .purpose = row.purpose,
                                                  .generation = row.generation,
                                                  .subject = row.subject,
                                                  .kek = kek.number,
                                                  .wrapped = row.wrapped,
                                                  .made_at = options.clock->now()});
  if (inserted.step()) key->number = inserted.number();
  return key;
}

void KeyStore::look(bool is_due) {
  const auto now = options.clock->steady_now();
  const auto next = (now + look_interval).time_since_epoch().count();
  auto due = next_look.load(std::memory_order_relaxed);
  if (!is_due && now.time_since_epoch().count() < due) return;
  // Only one thread looks.
  if (!next_look.compare_exchange_strong(due, next) && !is_due) return;
  cache.age(now);
  try {
    read([&](Connection& connection) { follow(connection); });
  } catch (...) {
    next_look = 0;
    throw;
  }
}

NewestKey KeyStore::seen() {
  const std::lock_guard lock{newest_mutex};
  return newest_key;
}

void KeyStore::note_newest(const SubjectKey& key) {
  const std::lock_guard lock{newest_mutex};
  if (key.number <= newest_key.number) return;
  newest_key = {key.number, std::string{text_of(key.id.bytes)}};
}

void KeyStore::follow(Connection& connection) {
  const NewestKey last = seen();
  auto row = connection.rows(sql::position{.seen = last.number});
  const bool is_there = row.step() && row.id() == raw_id();
  const auto lacks_seen = [&] {
    if (options.read_only && row.highest() < last.number) return false;  // on a standby
    return last.number > 0 && row.seen_id().value_or("") != last.id;
  };
  const bool may_lag = options.read_only;
  if (!is_there || (!may_lag && row.version() < version) || lacks_seen()) {
    version = std::numeric_limits<std::int64_t>::max();  // permanently
    cache.clear();
    throw StoreFailed{
        "the key store '" + name() +
        "' was replaced by an older or another one while it was in use; open it again"};
  }
  if (row.highest() > last.number) {
    const std::lock_guard lock{newest_mutex};
    newest_key = {row.highest(), std::string{row.newest().value_or("")}};
  }
  if (version.exchange(row.version()) == row.version()) return;
  cache.clear();
  keks->clear();
}

std::vector<KeyInfo> KeyStore::infos(const std::vector<KeyRow>& rows) {
  std::vector<KeyInfo> all;
  for (const KeyRow& row : rows) {
    if (is_gone(row)) continue;
    all.push_back({row.id, opened(row)->subject, row.number, row.generation, row.made_at, {}});
  }
  return all;
}

std::size_t KeyStore::destroy(std::span<const KeyId> ids) {
  std::int64_t destroyed = 0;
  const auto is_alive = [&](Connection& connection, const KeyId& key) {
    if (!erasures->contains(key)) return true;
    const auto row = key_row(connection, sql::find_key{.id = text_of(key.bytes)});
    return row && !row->is_destroyed;
  };
  const auto is_any_alive = [&](Connection& connection) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](const KeyId& key) { return is_alive(connection, key); });
  };
  run(is_any_alive, [&](Connection& connection) {
    const Timestamp now = options.clock->now();
    erasures->add(ids, now);
    cache.clear();
    destroyed = 0;
    for (const KeyId& key : ids) {
      destroyed += connection.run(sql::destroy_key{.id = text_of(key.bytes), .now = now});
    }
    connection.run(sql::note_erasures{.erasures = erasures->number()});
  });
  look(true);  // to notice a loss of the erasure
  return static_cast<std::size_t>(destroyed);
}

}  // namespace stela::keys
