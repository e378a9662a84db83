#include "postgres/server_session.hpp"

#include "database/checksum.hpp"
#include "database/postgres/sql_text.hpp"

#include <stela/framework/detail/transaction_scope.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace stela::postgres {
namespace {

/// Notes a new run, unless another connection was faster. Also works where transactions are
/// read-only by default.
void note_run(Connection& connection) {
  Connection::Pipeline pipeline{connection};
  pipeline.add(begin_sql);
  pipeline.add(sql::note_run{});
  pipeline.add("COMMIT");
  try {
    pipeline.run_all("noting the run");
  } catch (...) {
    connection.roll_back();
    throw;
  }
}

[[noreturn]] void fail_without_run() {
  throw StoreBusy{"the server's run isn't noted yet; try again"};
}

/// Call it before the session's own path is set.
std::string users_path_of(Connection& connection) {
  return std::string{
      connection.row(sql::users_schemas{.schema = connection.options().schema}).path()};
}

}  // namespace

bool is_behind_pooler(Connection& connection) {
  return connection.row(sql::backend{}).pid() != PQbackendPID(connection.handle());
}

void find_first_in(Connection& connection, const std::string& schema) {
  if (schema.empty()) return;
  const std::string& others = connection.users_path();
  connection.set_users_path(postgres::quoted(schema) + (others.empty() ? "" : ", " + others));
}

void set_up(Connection& connection) {
  connection.set_users_path(users_path_of(connection));
  find_first_in(connection, connection.options().sql_schema);
  if (connection.options().is_pooled) return;
  const std::int64_t pid = PQbackendPID(connection.handle());
  const std::string path = own_path(connection.options().schema);
  if (connection.row(sql::set_up_session{.path = path, .pid = pid}).pid() == pid) return;
  throw UsageError{
      "this connection goes through a pooler, and the first one didn't; name poolers only, or "
      "servers only"};
}

void add_restoring(Connection::Pipeline& pipeline, const Connection& connection) {
  pipeline.add("RESET ALL");
  // RESET ALL doesn't include these.
  pipeline.add("RESET SESSION AUTHORIZATION");
  pipeline.add("RESET ROLE");
  pipeline.add("SELECT set_config('client_encoding', 'UTF8', false)");
  if (connection.options().is_pooled) return;
  // A copy, because the path is gone when the pipeline runs.
  Parameters path;
  path.add_untyped(own_path(connection.options().schema));
  pipeline.add(sql::restore_session::sql, std::move(path));
}

bool take_run(Connection& connection, const sql::server_run::Row& row) {
  if (row.is_standby() && !connection.options().is_read_only) {
    throw StoreBusy{
        "the server is a standby; wait for the failover, name the primary, or open the store "
        "read-only"};
  }
  const Uuid run = row.run().value_or(Uuid{});
  connection.set_run(run);
  return row.is_standby() || !run.is_nil();
}

void begin_transaction(Connection& connection, std::string_view begin, std::string_view doing,
                       FunctionRef<void(Connection::Pipeline&)> more) {
  const std::string path = own_path(connection.options().schema);
  const bool is_pooled = connection.options().is_pooled;
  constexpr int attempts = 2;
  for (int i = 0; i < attempts; ++i) {
    Connection::Pipeline pipeline{connection};
    pipeline.add(begin);
    std::optional<Place<sql::server_run>> run;
    if (is_pooled) {
      run = pipeline.add(sql::server_run{});
      pipeline.add(sql::set_pooled_transaction{.path = path});
    }
    more(pipeline);
    auto results = pipeline.run_all(doing);
    if (!run || take_run(connection, run->row(results))) return;
    connection.roll_back();
    note_run(connection);
  }
  fail_without_run();
}

ServerSession::ServerSession(const ConnectionOptions& options) : connection{options} {
  set_up(connection);
  find_run();
}

void ServerSession::find_run() {
  run_found_at = std::chrono::steady_clock::now();
  if (take_run(connection, connection.row(sql::server_run{}))) return;
  note_run(connection);
  if (!take_run(connection, connection.row(sql::server_run{}))) fail_without_run();
}

void ServerSession::check_is_standby() const {
  if (!run().is_nil() || connection.is_standby()) return;
  throw ConnectionLost{"the standby was promoted while it was read"};
}

int default_readers() noexcept {
  // Several for each core, because they wait for the server most of the time. A machine with many
  // cores leaves connections to others: a server has a hundred by default.
  constexpr unsigned per_core = 2;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency() * per_core, 8U, 32U));
}

namespace {

/// The number of `Urgent` objects of this thread.
thread_local int urgency = 0;

}  // namespace

Sessions::Urgent::Urgent() noexcept {
  ++urgency;
}

Sessions::Urgent::~Urgent() {
  --urgency;
}

bool Sessions::Urgent::is_thread() noexcept {
  return urgency > 0 || detail::TransactionScope::is_open();
}

/// A thread's place among the readers, and its session.
class Sessions::Loan {
 public:
  explicit Loan(Sessions& sessions)
      : sessions_{sessions}, has_place_{sessions.take_place(session_)} {}
  ~Loan() {
    if (!is_kept_ || !session_->connection.is_usable()) session_.reset();
    if (has_place_) sessions_.give_place(std::move(session_));
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  /// True from the beginning for a kept session.
  bool has_session() const noexcept { return session_ != nullptr; }
  ServerSession& session() noexcept { return *session_; }
  /// Replaces the session by a new one.
  void open() {
    session_.reset();
    session_ = sessions_.open();
  }
  /// Keeps the session for the next thread, if it is still usable.
  void keep() noexcept { is_kept_ = true; }

 private:
  Sessions& sessions_;
  std::unique_ptr<ServerSession> session_;
  const bool has_place_;
  bool is_kept_ = false;
  /// Urgent once the thread has stopped waiting.
  const Urgent urgent_;
};

struct Sessions::Waiter {
  std::condition_variable turn;
  bool has_place = false;
  std::unique_ptr<ServerSession> session;
};

Sessions::Sessions(ConnectionOptions options, int readers, std::unique_ptr<ServerSession> first)
    : options_{std::move(options)},
      readers_{static_cast<std::size_t>(readers)},
      outage_{options_.patience} {
  // Returning a session must not fail.
  idle_.reserve(readers_);
  if (first != nullptr) idle_.push_back(std::move(first));
}

std::unique_ptr<ServerSession> Sessions::open() {
  owner_.check();
  return outage_.outlast([this] { return std::make_unique<ServerSession>(options_); });
}

bool Sessions::take_place(std::unique_ptr<ServerSession>& session) {
  // Checked first: a thread that doesn't exist in a forked child may hold the mutex.
  owner_.check();
  std::unique_lock lock{mutex_};
  if (lent_ < readers_) {
    ++lent_;
    if (idle_.empty()) return true;
    session = std::move(idle_.back());
    idle_.pop_back();
    return true;
  }
  if (Urgent::is_thread()) return false;
  Waiter waiter;
  wait_for_place(lock, waiter);
  session = std::move(waiter.session);
  return true;
}

void Sessions::wait_for_place(std::unique_lock<std::mutex>& lock, Waiter& waiter) {
  const auto at = waiting_.insert(waiting_.end(), &waiter);
  const auto deadline = std::chrono::steady_clock::now() + options_.patience;
  if (waiter.turn.wait_until(lock, deadline, [&] { return waiter.has_place; })) return;
  waiting_.erase(at);
  lock.unlock();
  outage_.check();
  throw StoreBusy{"all " + std::to_string(readers_) + " connections that read were in use for " +
                  std::to_string(options_.patience.count()) +
                  " ms; let fewer threads read at once, look for what takes so long, or set "
                  "readers to more"};
}

void Sessions::give_place(std::unique_ptr<ServerSession> session) noexcept {
  const std::lock_guard lock{mutex_};
  if (waiting_.empty()) {
    --lent_;
    if (session != nullptr) idle_.push_back(std::move(session));
    return;
  }
  // Passes the place on directly, so that no other thread takes it.
  Waiter& next = *waiting_.front();
  waiting_.pop_front();
  next.session = std::move(session);
  next.has_place = true;
  // Notified under the mutex, because the waiter may be gone afterwards.
  next.turn.notify_one();
}

void Sessions::check_run(ServerSession& session) {
  const bool is_distrusted = [&] {
    const std::lock_guard lock{mutex_};
    return session.run_found_at <= distrusted_at_;
  }();
  const bool was_asked = session.run_found_at != std::chrono::steady_clock::time_point{};
  // Behind a pooler, each transaction asks for its own run.
  if (is_distrusted && !(options_.is_pooled && was_asked)) session.find_run();
}

void Sessions::distrust() noexcept {
  const std::lock_guard lock{mutex_};
  distrusted_at_ = std::chrono::steady_clock::now();
}

void Sessions::drop_idle() {
  std::vector<std::unique_ptr<ServerSession>> dropped;
  dropped.reserve(readers_);
  const std::lock_guard lock{mutex_};
  dropped.swap(idle_);
}

Uuid Sessions::lend_on(Loan& loan, FunctionRef<void(Connection&)> work) {
  // If this throws, the session isn't kept.
  ServerSession& session = loan.session();
  check_run(session);
  work(session.connection);
  session.check_is_standby();
  loan.keep();
  return session.run();
}

void Sessions::begin_on(Loan& loan, FunctionRef<void(Connection&)> begin) {
  if (loan.has_session()) {
    try {
      check_run(loan.session());
      begin(loan.session().connection);
      return;
    } catch (const ConnectionLost&) {
      drop_idle();
    } catch (...) {
      loan.session().connection.roll_back();
      loan.keep();
      throw;
    }
  }
  loan.open();
  begin(loan.session().connection);
}

Uuid Sessions::run(FunctionRef<void(Connection&)> begin, FunctionRef<void(Connection&)> work) {
  Loan loan{*this};
  begin_on(loan, begin);
  ServerSession& session = loan.session();
  const Uuid run = session.run();
  try {
    work(session.connection);
    session.check_is_standby();
  } catch (...) {
    session.connection.roll_back();
    loan.keep();
    throw;
  }
  loan.keep();
  return run;
}

Uuid Sessions::read(FunctionRef<void(Connection&)> work) {
  if (!options_.is_pooled) return lend(work);
  return lend([&](Connection& connection) {
    begin_transaction(connection, "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
                      "beginning to read", [](Connection::Pipeline&) {});
    work(connection);
    connection.query("COMMIT", {}, "ending to read");
  });
}

Uuid Sessions::lend(FunctionRef<void(Connection&)> work) {
  Loan loan{*this};
  if (loan.has_session()) {
    try {
      return lend_on(loan, work);
    } catch (const ConnectionLost&) {
      // The other kept sessions are as old.
      drop_idle();
    }
  }
  loan.open();
  return lend_on(loan, work);
}

std::int64_t order_lock(std::string_view schema) noexcept {
  return static_cast<std::int64_t>(
      database::text_checksum("stela, order of appends: " + std::string{schema}));
}

std::int64_t module_lock(std::string_view schema) noexcept {
  return static_cast<std::int64_t>(
      database::text_checksum("stela, writes of modules: " + std::string{schema}));
}

std::string_view sync_word(database::Sync sync) noexcept {
  return sync == database::Sync::none ? "off" : "on";
}

void check_committed(const Result& commit) {
  if (commit.command() == "COMMIT") return;
  throw StoreFailed{"the transaction failed before its end, and the server rolled it back"};
}

}  // namespace stela::postgres
