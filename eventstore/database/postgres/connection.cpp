#include "database/postgres/connection.hpp"

#include "database/failure_watch.hpp"
#include "database/postgres/conninfo.hpp"
#include "database/postgres/sql_text.hpp"
#include "database/postgres/statement.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

namespace stela::postgres {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A parameter that the server reported.
std::string_view parameter_of(PGconn* connection, const char* name) noexcept {
  const char* const value = PQparameterStatus(connection, name);
  return value != nullptr ? value : "";
}

}  // namespace

Connection::Connection(const ConnectionOptions& options)
    : options_{options}, place_{describe(options.conninfo)} {
  std::string why;
  const auto connect = [&](const Host* host, const char* which) {
    const Keywords keywords = keywords_of(options, host, which);
    connection_.reset(PQconnectdbParams(keywords.names.data(), keywords.values.data(), 1));
    if (connection_ == nullptr) throw std::bad_alloc{};
    if (PQstatus(handle()) == CONNECTION_OK) return true;
    why += PQerrorMessage(handle());
    return false;
  };
  const std::vector<Host> hosts = hosts_of(options.conninfo);
  const auto connect_to_any_of = [&](const char* which) {
    return std::any_of(hosts.begin(), hosts.end(),
                       [&](const Host& host) { return connect(&host, which); });
  };
  const char* const wanted = options.is_read_only ? "any" : "primary";
  bool is_connected = false;
  if (hosts.empty()) {
    is_connected = connect(nullptr, wanted);
  } else if (options.is_read_only && !names_its_target(options.conninfo)) {
    // The primary has the latest data.
    is_connected = connect_to_any_of("primary");
    if (!is_connected) why.clear();
    is_connected = is_connected || connect_to_any_of(wanted);
  } else {
    is_connected = connect_to_any_of(wanted);
  }
  if (!is_connected) fail_to_connect(std::move(why), place_);
  check_server();
  PQsetNoticeReceiver(
      handle(), [](void* self, const PGresult* result) { note(self, result); }, this);
  PQsetnonblocking(handle(), 1);
}

Connection::~Connection() {
  statements_.clear();
  if (owner_.is_this()) return;
  // Leak the parent's connection: libpq would end it on the server, through the shared socket.
  (void)connection_.release();
}

void Connection::check_server() const {
  constexpr int oldest = 150000;
  if (const int version = PQserverVersion(handle()); version < oldest) {
    throw StoreFailed{place_ + " is PostgreSQL " + std::to_string(version / 10000) +
                      "; Stela needs 15 or newer"};
  }
  const std::string_view encoding = parameter_of(handle(), "server_encoding");
  if (!encoding.empty() && encoding != "UTF8") {
    throw StoreFailed{place_ + " stores text as " + std::string{encoding} +
                      "; make a database with ENCODING 'UTF8' TEMPLATE template0"};
  }
  // Some services set it when a disk is full.
  if (parameter_of(handle(), "default_transaction_read_only") == "on" && !is_standby() &&
      !options_.is_read_only) {
    throw StoreFailed{place_ +
                      " only reads: default_transaction_read_only is on; ask who set it, and ALTER "
                      "the DATABASE or the ROLE, or name the primary"};
  }
}

void Connection::note(void* self, const PGresult* result) noexcept {
  const char* const severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* const text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (severity == nullptr || std::string_view{severity} != "WARNING") return;
  static_cast<Connection*>(self)->warnings_.emplace_back(text != nullptr ? text : "");
}

bool Connection::is_standby() const noexcept {
  return parameter_of(handle(), "in_hot_standby") == "on";
}

bool Connection::in_transaction() const noexcept {
  if (!is_usable()) return false;
  const PGTransactionStatusType status = PQtransactionStatus(handle());
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

void Connection::lose(std::string why) {
  is_lost_ = true;
  while (!why.empty() && why.back() == '\n') why.pop_back();
  try {
    throw ConnectionLost{"the connection to " + place_ + " is lost: " + why};
  } catch (...) {
    database::FailureWatch::note(database());
    throw;
  }
}

void Connection::fail(const PGresult* result, std::string_view doing) {
  try {
    postgres::fail(result, doing);
  } catch (const Error& e) {
    // Other errors may be the handler's own fault: a constraint, a wrong statement.
    const ErrorCode code = e.code();
    if (code == ErrorCode::store_busy || code == ErrorCode::store_full) {
      database::FailureWatch::note(database());
    }
    throw;
  }
}

void Connection::check_encoding() const {
  static const int utf8 = pg_char_to_encoding("UTF8");
  if (PQclientEncoding(handle()) == utf8 || PQstatus(handle()) != CONNECTION_OK) return;
  throw UsageError{"client_encoding was changed to '" +
                   std::string{parameter_of(handle(), "client_encoding")} +
                   "' by SQL in the transaction, and Stela needs 'UTF8'; nothing was written"};
}

Connection::Time Connection::begin() {
  owner_.check();
  if (is_lost_) lose("it failed before");
  check_encoding();
  warnings_.clear();
  return steady_clock::now() + options_.reply_timeout;
}

bool Connection::is_alive() noexcept {
  if (!is_usable()) return false;
  pollfd socket{PQsocket(handle()), POLLIN, 0};
  // An unrequested message either says why the server ends the connection, or doesn't matter. It is
  // followed by the end, or by silence.
  while (poll(&socket, 1, 0) > 0) {
    if (PQconsumeInput(handle()) != 0) continue;
    is_lost_ = true;
    return false;
  }
  return true;
}

void Connection::cancel() noexcept {
  PGcancel* const request = PQgetCancel(handle());
  if (request == nullptr) return;
  std::array<char, 256> why{};
  PQcancel(request, why.data(), static_cast<int>(why.size()));
  PQfreeCancel(request);
}

void Connection::wait(short events, Time deadline) {
  const Time until = silence_ != nullptr ? silence_->wait_until(deadline) : deadline;
  const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
  if (left <= milliseconds::zero()) {
    lose("the server said nothing for " + std::to_string(options_.reply_timeout.count()) +
         " ms; it hangs, or waits for a standby of synchronous_standby_names");
  }
  pollfd waiting{PQsocket(handle()), events, 0};
  if (poll(&waiting, 1, static_cast<int>(left.count())) < 0 && errno != EINTR) {
    lose("its socket can't be waited for");
  }
}

void Connection::flush(Time deadline) {
  while (true) {
    const int left = PQflush(handle());
    if (left < 0) lose(PQerrorMessage(handle()));
    if (left == 0) return;
    wait(POLLIN | POLLOUT, deadline);
    // A server that answers before it has read everything must be able to send.
    if (PQconsumeInput(handle()) == 0) lose(PQerrorMessage(handle()));
  }
}

Result Connection::next(Time deadline) {
  while (PQisBusy(handle()) != 0) {
    wait(POLLIN, deadline);
    if (PQconsumeInput(handle()) == 0) lose(PQerrorMessage(handle()));
  }
  return Result{PQgetResult(handle())};
}

void Connection::send(std::string_view sql, Parameters& parameters) {
  const std::string text = in_schema(sql, options_.schema);
  const auto values = parameters.values();
  if (PQsendQueryParams(handle(), text.c_str(), parameters.count(), parameters.types().data(),
                        values.data(), parameters.lengths(), parameters.formats(), 1) == 0) {
    lose(PQerrorMessage(handle()));
  }
}

void Connection::send_user(const std::string& sql, Parameters& parameters) {
  const auto values = parameters.values();
  if (PQsendQueryParams(handle(), sql.c_str(), parameters.count(), parameters.types().data(),
                        values.data(), parameters.lengths(), parameters.formats(), 0) == 0) {
    lose(PQerrorMessage(handle()));
  }
}

void Connection::send_prepared(const std::string& name, Parameters& parameters, bool as_text) {
  const auto values = parameters.values();
  if (PQsendQueryPrepared(handle(), name.c_str(), parameters.count(), values.data(),
                          parameters.lengths(), parameters.formats(), as_text ? 0 : 1) == 0) {
    lose(PQerrorMessage(handle()));
  }
}

void Connection::send_prepare(const std::string& name, const std::string& sql,
                              const std::vector<Oid>& types) {
  has_prepared_ = true;
  if (PQsendPrepare(handle(), name.c_str(), sql.c_str(), static_cast<int>(types.size()),
                    types.data()) == 0) {
    lose(PQerrorMessage(handle()));
  }
}

void Connection::prepare(const std::string& name, std::string_view sql,
                         const std::vector<Oid>& types) {
  begin();
  send_prepare(name, std::string{sql}, types);
  finish("preparing a statement");
}

Result Connection::finish(std::string_view doing, const PreparedTexts::Text* text) {
  const Time deadline = steady_clock::now() + options_.reply_timeout;
  flush(deadline);
  Result last;
  for (Result each = next(deadline); each.get() != nullptr; each = next(deadline)) {
    // Of several errors, the first says why.
    if (last.get() == nullptr || !last.is_error()) last = std::move(each);
  }
  if (PQstatus(handle()) != CONNECTION_OK) is_lost_ = true;
  if (last.get() == nullptr || last.is_error()) {
    note_failure(last, text);
    fail(last.get(), doing);
  }
  return last;
}

PreparedTexts::Text* Connection::own_text(std::string_view sql, const Parameters& parameters,
                                          Time now) {
  if (!may_prepare()) return nullptr;
  constexpr std::chrono::seconds longest{1};
  PreparedTexts::Text* text = &own_texts_.use({}, sql, parameters.types());
  if (text->is_prepared && now - text->prepared_at > longest) {
    own_texts_.forget(*text);
    text = &own_texts_.use({}, sql, parameters.types());
  }
  return text->name.empty() ? nullptr : text;
}

Result Connection::query(std::string_view sql, Parameters parameters, std::string_view doing) {
  begin();
  PreparedTexts::Text* const text = own_text(sql, parameters, steady_clock::now());
  if (text == nullptr) {
    send(sql, parameters);
    return finish(doing);
  }
  if (!text->is_prepared || !own_texts_.dropped().empty()) {
    Pipeline one{*this};
    one.add(sql, std::move(parameters));
    return std::move(one.run_all(doing).front());
  }
  send_prepared(text->name, parameters);
  return finish(doing, text);
}

void Connection::note_failure(const Result& failed, const PreparedTexts::Text* text) {
  constexpr std::string_view has_no_such_statement = "26000";
  constexpr std::string_view has_another_one = "42P05";
  constexpr std::string_view has_changed_its_result = "0A000";
  const std::string_view state = state_of(failed.get());
  // If nothing was prepared, the author of the statement made the mistake.
  if (has_prepared_ && (state == has_no_such_statement || state == has_another_one)) {
    *options_.prepares_nothing = true;
    give_up();
  }
  if (text != nullptr && state == has_changed_its_result) own_texts_.forget(*text);
}

std::size_t Connection::send_dropped(const PreparedTexts& texts) {
  Parameters none;
  for (const std::string& name : texts.dropped()) send_user("DEALLOCATE " + name, none);
  return texts.dropped().size();
}

Result Connection::query_users(const std::string& sql, std::string_view scope,
                               Parameters parameters) {
  const Time deadline = begin();
  ran_users_sql_ = true;
  const bool is_kept = !scope.empty() && may_prepare();
  PreparedTexts::Text unprepared;
  PreparedTexts::Text& text =
      is_kept ? users_texts_.use(scope, sql, parameters.types()) : unprepared;
  const bool is_new = !text.name.empty() && !text.is_prepared;
  if (PQenterPipelineMode(handle()) == 0) lose(PQerrorMessage(handle()));
  const std::size_t before = send_dropped(users_texts_);
  if (is_new) send_prepare(text.name, sql, parameters.types());
  if (text.name.empty()) {
    send_user(sql, parameters);
  } else {
    send_prepared(text.name, parameters, true);
  }
  if (PQpipelineSync(handle()) == 0) lose(PQerrorMessage(handle()));
  flush(deadline);
  std::vector<Result> results = finish_pipeline(before + (is_new ? 2 : 1));
  const auto failed = std::find_if(results.begin(), results.end(),
                                   [](const Result& each) { return each.is_error(); });
  const auto done = static_cast<std::size_t>(failed - results.begin());
  if (done >= before) users_texts_.clear_dropped();
  if (is_new) text.is_prepared = done > before;
  if (failed == results.end()) return std::move(results.back());
  note_failure(*failed);
  // A row that a constraint refuses doesn't mean that the statement is outdated.
  if (is_kept && !state_of(failed->get()).starts_with("23")) users_texts_.forget(text);
  return std::move(*failed);
}

Result Connection::query_text(const std::string& sql, Parameters parameters) {
  begin();
  send_user(sql, parameters);
  return finish("the statement");
}

void Connection::execute(const std::string& sql) {
  begin();
  if (PQsendQuery(handle(), in_schema(sql, options_.schema).c_str()) == 0) {
    lose(PQerrorMessage(handle()));
  }
  finish("a statement");
}

void Connection::Pipeline::send(Step& step) {
  if (step.is_users) return connection_.send_user(std::string{step.sql}, step.parameters);
  if (step.text == nullptr) return connection_.send(step.sql, step.parameters);
  step.is_new = !step.text->is_prepared;
  if (step.is_new) {
    connection_.send_prepare(step.text->name, in_schema(step.sql, connection_.options_.schema),
                             step.parameters.types());
    step.text->is_prepared = true;
    step.text->prepared_at = steady_clock::now();
  }
  connection_.send_prepared(step.text->name, step.parameters);
}

std::vector<Result> Connection::Pipeline::run() {
  const Time deadline = connection_.begin();
  PGconn* const handle = connection_.handle();
  // One time for all steps: no step then drops a statement that another one needs.
  const Time now = steady_clock::now();
  for (Step& step : steps_) {
    if (step.is_users) connection_.ran_users_sql_ = true;
    if (!step.is_users) step.text = connection_.own_text(step.sql, step.parameters, now);
  }
  if (PQenterPipelineMode(handle) == 0) connection_.lose(PQerrorMessage(handle));
  const std::span<Step> first = first_part();
  for (Step& step : first) send(step);
  // After the steps, which may begin a transaction. A failed transaction accepts only its end.
  const bool has_failed = PQtransactionStatus(handle) == PQTRANS_INERROR;
  const std::size_t dropped = has_failed ? 0 : connection_.send_dropped(connection_.own_texts_);
  if (PQpipelineSync(handle) == 0) connection_.lose(PQerrorMessage(handle));
  if (has_rest()) {
    for (Step& step : std::span{steps_}.subspan(first.size())) send(step);
    if (PQpipelineSync(handle) == 0) connection_.lose(PQerrorMessage(handle));
  }
  connection_.flush(deadline);
  return read(first, dropped);
}

void Connection::Pipeline::run_rest(std::string_view doing) {
  for (const Result& each : read(std::span{steps_}.subspan(end_of_first_), 0)) {
    if (each.is_error()) connection_.fail(each.get(), doing);
  }
}

std::vector<Result> Connection::Pipeline::read(std::span<Step> part, std::size_t others) {
  const auto preparations =
      std::count_if(part.begin(), part.end(), [](const Step& step) { return step.is_new; });
  const std::size_t count = part.size() + static_cast<std::size_t>(preparations) + others;
  const bool is_last = part.data() + part.size() == steps_.data() + steps_.size();
  std::vector<Result> results =
      is_last ? connection_.finish_pipeline(count) : connection_.finish_part(count);
  // A part without its own transaction is committed at its end.
  std::optional<Result> failed_commit;
  if (results.size() > count) {
    failed_commit = std::move(results.back());
    results.pop_back();
  }
  for (std::size_t i = 0; i < others; ++i) {
    if (results.back().status() == PGRES_FATAL_ERROR) connection_.give_up();
    if (i == 0 && !results.back().is_error()) connection_.own_texts_.clear_dropped();
    results.pop_back();
  }
  if (failed_commit) results.back() = std::move(*failed_commit);
  return results_of_steps(part, std::move(results));
}

std::vector<Result> Connection::Pipeline::results_of_steps(std::span<Step> part,
                                                           std::vector<Result> results) {
  std::vector<Result> of_steps;
  auto result = results.begin();
  for (const Step& step : part) {
    const bool is_unprepared = step.is_new && result->is_error();
    if (is_unprepared) step.text->is_prepared = false;
    if (step.is_new && !is_unprepared) ++result;
    of_steps.push_back(std::move(*result));
    result += is_unprepared ? 2 : 1;
    if (of_steps.back().is_error()) connection_.note_failure(of_steps.back(), step.text);
  }
  return of_steps;
}

std::vector<Result> Connection::finish_part(std::size_t count) {
  const Time deadline = steady_clock::now() + options_.reply_timeout;
  std::vector<Result> results;
  while (true) {
    Result each = next(deadline);
    if (PQstatus(handle()) != CONNECTION_OK) {
      lose(each.get() != nullptr ? PQresultErrorMessage(each.get()) : PQerrorMessage(handle()));
    }
    // The end of a statement.
    if (each.get() == nullptr) continue;
    if (each.status() == PGRES_PIPELINE_SYNC) break;
    results.push_back(std::move(each));
  }
  const bool has_failed_commit = results.size() == count + 1 && results.back().is_error();
  if (results.size() != count && !has_failed_commit) lose("the server left out an answer");
  return results;
}

std::vector<Result> Connection::finish_pipeline(std::size_t count) {
  std::vector<Result> results = finish_part(count);
  if (PQexitPipelineMode(handle()) == 0) lose(PQerrorMessage(handle()));
  return results;
}

std::vector<Result> Connection::Pipeline::run_all(std::string_view doing) {
  std::vector<Result> results = run();
  for (const Result& each : results) {
    if (!each.is_error()) continue;
    if (has_rest()) connection_.give_up();
    connection_.fail(each.get(), doing);
  }
  return results;
}

void Connection::roll_back() noexcept {
  if (!in_transaction()) return;
  try {
    execute("ROLLBACK");
    ran_users_sql_ = false;
  } catch (...) {
    is_lost_ = true;
  }
}

database::Statement& Connection::prepared(std::string_view, std::string_view sql) {
  auto& kept = statements_[sql.data()];
  if (kept == nullptr) kept = std::make_unique<Statement>(*this, sql);
  return *kept;
}

std::string own_path(std::string_view schema) {
  return quoted(schema) + ", pg_temp";
}

}  // namespace stela::postgres
