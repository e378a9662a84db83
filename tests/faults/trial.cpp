#include "faults/trial.hpp"

#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/framework/error.hpp>

#include <sqlite3.h>

#include <atomic>
#include <map>
#include <utility>

namespace stela::test {
namespace {

/// A payload that no other event has.
std::string next_payload(std::size_t size) {
  static std::atomic<int> count{0};
  std::string payload = R"({"n":)";
  payload += std::to_string(++count);
  payload += R"(,"fill":")";
  payload.append(size, 'x');
  payload += R"("})";
  return payload;
}

/// How often each payload of the append stands in the store: 0 or 1 for all, or -1.
int times_in(Store& store, const std::vector<PlainAppend>& appends) {
  std::map<std::string, int> found;
  for (const Entry& entry : entries_of(store)) ++found[entry.payload];
  int times = -2;
  for (const PlainAppend& append : appends) {
    for (const std::string& payload : append.payloads) {
      const auto it = found.find(payload);
      const int here = it == found.end() ? 0 : it->second;
      times = times == -2 || times == here ? here : -1;
    }
  }
  return times;
}

/// The caller's own SQL; a failure of it is the caller's own exception.
void run_sql(Transaction& transaction, const char* sql) {
  sqlite3* const database = sqlite::handle(transaction);
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw StoreFailed{sqlite3_errmsg(database)};
  }
}

}  // namespace

std::vector<PlainAppend> Trial::one_event(std::string_view stream) {
  return events(stream, 1);
}

std::vector<PlainAppend> Trial::events(std::string_view stream, int count,
                                       std::size_t payload_size) {
  PlainAppend append{StreamId::parse(stream)};
  for (int i = 0; i < count; ++i) append.payloads.push_back(next_payload(payload_size));
  return {append};
}

Store Trial::open_healthy(sqlite::Options options) {
  options.vfs = vfs_.name();
  heal();
  return sqlite::open(path(), options);
}

template <class Write>
std::optional<ErrorCode> Trial::keep(std::vector<PlainAppend> appends, Write&& write) {
  Attempt attempt{.id = "append of ", .appends = std::move(appends)};
  attempt.id += attempt.appends.front().payloads.front().substr(0, 40);
  std::optional<ErrorCode> code;
  try {
    write(attempt);
  } catch (const Error& e) {
    note(e);
    code = e.code();
    attempt.end = e.code() == ErrorCode::commit_in_doubt ? End::doubtful : End::refused;
  }
  const std::lock_guard lock{mutex_};
  attempts_.push_back(std::move(attempt));
  return code;
}

std::optional<ErrorCode> Trial::append(EventLog& log, std::vector<PlainAppend> appends) {
  return keep(std::move(appends),
              [&](const Attempt& attempt) { test::append(log, attempt.appends, attempt.id); });
}

std::optional<ErrorCode> Trial::transact(Store& store, std::vector<PlainAppend> appends) {
  return keep(std::move(appends), [&](const Attempt& attempt) {
    store.transact([&](Transaction& transaction) {
      test::append(transaction, attempt.appends, attempt.id);
      run_sql(transaction, "CREATE TABLE IF NOT EXISTS notes (payload TEXT)");
      run_sql(transaction,
              "INSERT INTO notes SELECT payload FROM events "
              "WHERE sequence > (SELECT max(sequence) - 3 FROM events)");
    });
  });
}

void Trial::note(const Error& error) {
  const std::lock_guard lock{mutex_};
  last_error_ = error.what();
  errors_.emplace(to_string(error.code()));
}

std::string Trial::last_error() const {
  const std::lock_guard lock{mutex_};
  return last_error_;
}

std::set<std::string> Trial::errors() const {
  const std::lock_guard lock{mutex_};
  return errors_;
}

bool Trial::is_in_doubt() const {
  return errors().contains(std::string{to_string(ErrorCode::commit_in_doubt)});
}

std::string Trial::verdict() {
  heal();
  auto store = sqlite::open(path());
  if (std::string flaw = flaw_in(entries_of(store)); !flaw.empty()) return flaw;
  for (const Attempt& attempt : attempts_) {
    if (std::string flaw = judge(attempt, store); !flaw.empty()) return attempt.id + ": " + flaw;
  }
  if (std::string flaw = flaw_in(entries_of(store)); !flaw.empty()) return flaw;
  const std::string integrity = integrity_of(path());
  return integrity == "ok" ? std::string{} : integrity;
}

std::string Trial::judge(const Attempt& attempt, Store& store) {
  const int times = times_in(store, attempt.appends);
  if (times < 0) return "half-written";
  if (times > 1) return "written twice";
  if (attempt.end == End::acknowledged && times == 0) return "acknowledged and lost";
  if (attempt.end == End::refused && times == 1) return "refused and written";
  if (attempt.end == End::doubtful) ++(times == 1 ? standing_ : fallen_);

  const AppendResult again = test::append(store, attempt.appends, attempt.id);
  if (again.repeated != (times == 1)) return "its id doesn't tell whether it stands";
  return times_in(store, attempt.appends) == 1 ? std::string{} : "not there exactly once";
}

}  // namespace stela::test
