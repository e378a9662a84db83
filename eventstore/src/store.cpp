#include <stela/eventstore/store.hpp>

#include "database/core.hpp"

#include <stela/eventstore/detail/postgres_status.hpp>
#include <stela/eventstore/postgres.hpp>
#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace stela {
namespace {

constexpr std::string_view sqlite_prefix = "sqlite:";

/// "postgresql" of "postgresql://app@db/shop"; empty for a path, and for a file's URI, for which
/// `sqlite::open` suggests a path.
std::string scheme_of(const std::string& location) {
  const std::size_t end = location.find("://");
  if (end == std::string::npos || location.find('/') < end) return {};
  std::string scheme = location.substr(0, end);
  return scheme == "file" ? std::string{} : scheme;
}

constexpr std::string_view right_url =
    "a database of PostgreSQL's is named by a URL: postgresql://user@host/database";

/// "host=db dbname=shop", for libpq. A file with such a name must be written as "./host=db".
bool is_keywords_and_values(std::string_view location) {
  constexpr std::string_view keywords[] = {"host",
                                           "hostaddr",
                                           "port",
                                           "dbname",
                                           "user",
                                           "password",
                                           "service",
                                           "sslmode",
                                           "passfile",
                                           "sslcert",
                                           "sslkey",
                                           "sslrootcert",
                                           "options",
                                           "application_name",
                                           "sslpassword",
                                           "connect_timeout",
                                           "target_session_attrs"};
  location.remove_prefix(std::min(location.find_first_not_of(' '), location.size()));
  std::string word{location.substr(0, location.find_first_of("= "))};
  const std::string_view after = location.substr(word.size());
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool has_value =
      after.substr(std::min(after.find_first_not_of(' '), after.size())).starts_with('=');
  return has_value &&
         std::find(std::begin(keywords), std::end(keywords), word) != std::end(keywords);
}

/// "app:secret@db/shop": a URL whose scheme is wrong or missing.
bool is_rest_of_url(std::string_view location) {
  if (location.starts_with(sqlite_prefix) || location.starts_with("file:")) return false;
  if (location.starts_with('.')) return false;
  if (location.starts_with('/') && !location.starts_with("//")) return false;
  const std::size_t colon = location.find(':');
  return colon != std::string_view::npos && location.find('@', colon) != std::string_view::npos;
}

}  // namespace

void Store::Release::operator()(Core* core) const noexcept {
  if (owns) delete core;
}

Store::Store(std::unique_ptr<Core> core) noexcept : core_{core.release(), Release{.owns = true}} {}
Store::Store(Core& core) noexcept : core_{&core, Release{.owns = false}} {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

const Conventions& Store::conventions() const noexcept {
  return core_->conventions();
}
AppendResult Store::append(const AppendRequest& request) {
  return core_->append(request);
}
EventRange Store::read_stream(const StreamId& stream, const StreamQuery& query) {
  return core_->read_stream(stream, query);
}
EventRange Store::read(const Query& query, const QueryRange& range) {
  return core_->read(query, range);
}
Standpoint Store::standpoint(std::span<const TagNeed> needs) {
  return core_->standpoint(needs);
}
std::optional<AppendResult> Store::find_append(std::string_view append_id) {
  return core_->find_append(append_id);
}
DecisionAnswer Store::answer(const DecisionQuestion& question) {
  return core_->answer(question);
}
EventRange Store::read_all(const AllQuery& query) {
  return core_->read_all(query);
}
EventRange Store::read_at(std::span<const GlobalSequence> sequences) {
  return core_->read_at(sequences);
}
GlobalSequence Store::last_sequence() {
  return core_->last_sequence();
}
TagCatalogue Store::tag_catalogue() {
  return core_->tag_catalogue();
}
std::optional<StoredSnapshot> Store::find_snapshot(const StreamId& stream, StreamVersion to,
                                                   GlobalSequence up_to) {
  return core_->find_snapshot(stream, to, up_to);
}
void Store::save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) {
  core_->save_snapshot(stream, snapshot);
}
void Store::drop_snapshot(const StreamId& stream) {
  core_->drop_snapshot(stream);
}
void Store::transact(FunctionRef<void(Transaction&)> work) {
  core_->transact(work);
}
std::shared_ptr<const TransactionOutcome> Store::outcome_of(GlobalSequence sequence) {
  return core_->outcome_of(sequence);
}
void Store::attach(TransactionParticipant& participant) {
  core_->attach(participant);
}
void Store::detach(TransactionParticipant& participant) {
  core_->detach(participant);
}
void Store::forget_participant(std::string_view name) {
  core_->forget_participant(name);
}
Subscription Store::on_commit(std::function<void(const CommitNotice&)> listener) {
  return core_->on_commit(std::move(listener));
}
Store& Store::anchor() noexcept {
  return core_->anchor();
}
const Uuid& Store::id() const noexcept {
  return core_->id();
}
database::Database& Store::database() const noexcept {
  return *core_;
}

bool is_on_server(const std::string& location) {
  // Errors never contain the location itself, which may hold a password.
  if (const std::string scheme = scheme_of(location); !scheme.empty()) {
    if (scheme == "postgresql" || scheme == "postgres") return true;
    throw UsageError{"this build has no engine for '" + scheme +
                     "://'; name a database of SQLite's by the path of its file; " +
                     std::string{right_url}};
  }
  if (is_keywords_and_values(location)) {
    throw UsageError{"these are keywords and values of a connection string; " +
                     std::string{right_url}};
  }
  if (location.starts_with("postgresql:") || location.starts_with("postgres:")) {
    throw UsageError{std::string{right_url} + ", with two slashes after the colon"};
  }
  if (is_rest_of_url(location)) {
    throw UsageError{"this looks like a URL that begins wrongly; " + std::string{right_url} +
                     "; before the name of a file write './'"};
  }
  return false;
}

Store open(const std::string& location, const OpenOptions& options) {
  if (is_on_server(location)) return postgres::open(location, {.keys = options.keys});
  const bool is_prefixed = location.starts_with(sqlite_prefix);
  return sqlite::open(is_prefixed ? location.substr(sqlite_prefix.size()) : location,
                      {.keys = options.keys});
}

#ifndef STELA_HAS_POSTGRES
namespace {

[[noreturn]] void refuse_server() {
  throw UsageError{
      "this build has no engine for 'postgresql://'; it has SQLite: name a database by the path of "
      "its file"};
}

}  // namespace

Store postgres::open(const std::string&, const Options&) {
  refuse_server();
}

std::string postgres::describe(const std::string&) {
  refuse_server();
}

postgres::ServerStatus postgres::server_status(Store&) {
  throw UsageError{"this store isn't on PostgreSQL"};
}
#endif

}  // namespace stela
