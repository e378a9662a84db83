#include "postgres/read_model.hpp"

#include "database/checksum.hpp"
#include "database/failure_watch.hpp"
#include "database/postgres/sql_text.hpp"
#include "database/postgres/user_values.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

namespace stela::projections {
namespace {

constexpr std::size_t longest_name = 63;
constexpr std::size_t digits = 16;

constexpr std::string_view only_reads =
    "failed: a projector only reads, and changes the rows of its own tables; its transaction is "
    "begun and ended for it";
constexpr std::string_view in_create_only = "failed: tables are made in `create` only";

bool is_any_of(std::string_view word, std::span<const std::string_view> words) noexcept {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool changes_schema(std::string_view word) noexcept {
  constexpr std::array<std::string_view, 5> words{"alter", "comment", "create", "drop", "truncate"};
  return is_any_of(word, words);
}

/// The written form of the table that the statement changes at `at`; empty if it changes none
/// there.
std::string_view target_at(const std::vector<std::string>& pieces, std::size_t at) {
  const auto piece = [&](std::size_t i) -> std::string_view {
    return i < pieces.size() ? std::string_view{pieces[i]} : std::string_view{};
  };
  const std::string_view before = at > 0 ? piece(at - 1) : std::string_view{};
  std::size_t target = 0;
  if (piece(at) == "into" && (before == "insert" || before == "merge")) {
    target = at + 1;
  } else if (piece(at) == "update" && before != "do" && before != "for" && before != "key" &&
             before != "then" && before != "on") {
    target = at + 1;
  } else if (piece(at) == "from" && before == "delete") {
    target = at + 1;
  } else {
    return {};
  }
  return piece(piece(target) == "only" ? target + 1 : target);
}

/// Clears an attempt's state in the model.
template <class Model>
struct Ending {
  Model*& connection;
  ~Ending() { connection = nullptr; }
};

}  // namespace

std::string schema_of(const postgres::Connection& connection, const Build& build) {
  const std::int64_t number = build.target != 0 ? build.target : build.number;
  std::string name = connection.options().schema;
  name.append("/").append(build.name).append("@").append(std::to_string(number));
  if (name.size() <= longest_name) return name;
  std::string sum(digits, '0');
  const auto end =
      std::to_chars(sum.data(), sum.data() + digits, database::text_checksum(name), 16);
  sum.resize(static_cast<std::size_t>(end.ptr - sum.data()));
  std::size_t kept = longest_name - digits - 1;
  // Don't cut a multi-byte character.
  while (kept > 0 && (static_cast<unsigned char>(name[kept]) & 0xc0U) == 0x80U) --kept;
  return name.substr(0, kept) + '~' + sum;
}

void PostgresReadModel::attempt(database::Connection& connection, FunctionRef<void()> work) {
  connection_ = &postgres::connection_of(connection);
  const Ending<postgres::Connection> ending{connection_};
  is_careful_ = is_spoilt_ = false;
  connection_->query("SAVEPOINT stela_attempt");
  std::exception_ptr error;
  try {
    attempt_once(work);
  } catch (...) {
    error = std::current_exception();
  }
  if (is_spoilt_ && !store_failure_) {
    // The handler may have caught the statement's error, and as on SQLite the other statements must
    // still count.
    connection_->query("ROLLBACK TO SAVEPOINT stela_attempt");
    is_careful_ = true;
    is_spoilt_ = false;
    attempt_once(work);
  } else if (error) {
    std::rethrow_exception(error);
  } else if (store_failure_) {
    return;
  }
  set(*connection_, own_settings(*connection_));
  connection_->query("RELEASE SAVEPOINT stela_attempt");
}

void PostgresReadModel::attempt_once(FunctionRef<void()> work) {
  const std::string schema = schema_of(*connection_, build_);
  path_ = postgres::quoted(schema) + ", " + users_path(*connection_);
  set(*connection_, {path_, schema});
  created_ = {};
  work();
}

std::int64_t PostgresReadModel::run(std::string_view sql, std::span<const SqlValue> values,
                                    Rows* rows) try {
  const std::int64_t changed = run_checked(sql, values, rows);
  if (creating_) created_.add(sql, build_.prefix());
  return changed;
} catch (const UsageError&) {
  note_refusal();
  throw;
} catch (const ConstraintViolated&) {
  note_refusal();
  throw;
}

std::int64_t PostgresReadModel::run_checked(std::string_view sql, std::span<const SqlValue> values,
                                            Rows* rows) {
  postgres::UserStatement statement{.sql = sql, .text = {}, .values = values, .who = who_};
  if (connection_ == nullptr) statement.refuse("failed: it is run outside of a handler");
  if (is_spoilt_) statement.refuse("isn't run: a statement before it failed");
  statement.text = checked_text(statement);
  if (!creating_) statement.scope = path_;
  try {
    if (!is_careful_) return postgres::run(*connection_, statement, rows);
    return run_between_savepoints(*connection_, statement, nullptr, rows);
  } catch (const UsageError&) {
    is_spoilt_ = !is_careful_;
    throw;
  } catch (const ConstraintViolated&) {
    is_spoilt_ = !is_careful_;
    throw;
  } catch (...) {
    store_failure_ = std::current_exception();
    throw;
  }
}

void PostgresReadModel::note_refusal() noexcept {
  created_.note_failure();
  if (connection_ != nullptr) database::FailureWatch::note_refusal(connection_->database());
}

/// The text for the server. A text is checked once per number of values.
std::string PostgresReadModel::checked_text(const postgres::UserStatement& statement) {
  const auto known = checked_.find(statement.sql);
  const bool is_known = known != checked_.end() && known->second.values == statement.values.size();
  if (is_known) return known->second.text;
  check(statement);
  std::string text = postgres::with_dollars(postgres::with_names(statement.sql));
  // A handler may not run what `create` may.
  if (creating_) return text;
  if (checked_.size() == max_checked) checked_.clear();
  checked_.insert_or_assign(std::string{statement.sql}, CheckedText{text, statement.values.size()});
  return text;
}

void PostgresReadModel::check(const postgres::UserStatement& statement) const {
  constexpr std::array<std::string_view, 9> rows{"delete", "insert", "merge", "select", "table",
                                                 "update", "values", "with",  "explain"};
  const std::vector<std::string> pieces = postgres::pieces_of(statement.sql);
  for (const std::string& piece : pieces) {
    if (piece.size() <= longest_name || piece.front() == '\'' || piece.front() == '$') continue;
    statement.refuse("failed: the name '" + piece + "' has " + std::to_string(piece.size()) +
                     " bytes; PostgreSQL takes 63");
  }
  const std::string word = postgres::first_word(statement.sql);
  if (word.empty()) statement.refuse("isn't one statement; run one at a time");
  if (changes_schema(word)) {
    if (!creating_) statement.refuse(in_create_only);
    if (postgres::names(statement.sql, "temp") || postgres::names(statement.sql, "temporary")) {
      statement.refuse("failed: a table in temp goes with the connection; make it without");
    }
    const bool is_named = std::find(pieces.begin(), pieces.end(), "{") != pieces.end();
    if (!is_named) {
      statement.refuse("failed: name what is made in braces, as in CREATE TABLE {orders}");
    }
    return postgres::check_parameters(statement.sql, statement.values.size());
  }
  if (!is_any_of(word, rows)) statement.refuse(only_reads);
  for (std::size_t at = 0; at < pieces.size(); ++at) {
    const std::string_view target = target_at(pieces, at);
    if (!target.empty() && target != "{") {
      statement.refuse("failed: it writes '" + std::string{target} +
                       "'; a projector writes only tables of its own, named in braces");
    }
    const bool makes_table =
        pieces[at] == "into" && word != "insert" && word != "merge" && target.empty();
    if (makes_table) statement.refuse(in_create_only);
  }
  postgres::check_parameters(statement.sql, statement.values.size());
}

}  // namespace stela::projections
