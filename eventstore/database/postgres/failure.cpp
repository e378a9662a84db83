#include "database/postgres/failure.hpp"

#include <array>
#include <new>

namespace stela::postgres {
namespace {

enum class Kind { busy, full, failed, lost, usage, mismatch, unique, constraint, forgotten };

struct Meaning {
  /// An SQLSTATE, or its class.
  std::string_view state;
  Kind kind;
  std::string_view advice;
};

// The first match counts.
constexpr std::array meanings{
    Meaning{"23505", Kind::unique, ""},
    Meaning{"23", Kind::constraint, ""},
    Meaning{"25006", Kind::failed,
            "the server only reads: it is a standby, or its transactions are read-only; name the "
            "primary (several hosts with target_session_attrs=read-write find it)"},
    Meaning{
        "26000", Kind::busy,
        "SQL on the connection has dropped what was prepared (DEALLOCATE, DISCARD); nothing was "
        "written; try again"},
    Meaning{"42P05", Kind::busy,
            "SQL on the connection has prepared a statement of that name; nothing was written; try "
            "again"},
    Meaning{"25P02", Kind::failed,
            "a statement before it failed and was caught; nothing is written"},
    Meaning{"2BP01", Kind::usage, "other objects of the database depend on it; drop them first"},
    Meaning{"28P01", Kind::failed,
            "the server refuses the password or the user; set it in the connection string, "
            "PGPASSWORD or ~/.pgpass"},
    Meaning{"28", Kind::failed,
            "the server doesn't let this user in; see its pg_hba.conf, and whether it wants TLS"},
    Meaning{"3D000", Kind::failed, "make the database first: CREATE DATABASE"},
    Meaning{"40", Kind::busy, "nothing was written; try again"},
    Meaning{"42501", Kind::failed,
            "the role lacks rights; GRANT them, or name a role that has them"},
    Meaning{"53100", Kind::full, "the server's disk is full; nothing was written; make room"},
    Meaning{"53300", Kind::busy,
            "the server has no connection left; try again, use a pooler, or raise "
            "max_connections"},
    Meaning{
        "53400", Kind::full,
        "it reaches a limit of the server's configuration, such as temp_file_limit; nothing was "
        "written; raise the limit"},
    Meaning{"53", Kind::busy,
            "the server is short of memory or other means; nothing was written; try again"},
    Meaning{"54", Kind::usage, "it is larger than PostgreSQL takes in one piece; append less"},
    Meaning{"55P03", Kind::busy, "another session holds a lock; nothing was written; try again"},
    Meaning{"57014", Kind::busy,
            "the server cancelled the statement, because of statement_timeout or a cancel request; "
            "nothing was written"},
    Meaning{"57P", Kind::lost, "the server ended the connection, or isn't ready; try again"},
    Meaning{"25P03", Kind::lost, "the transaction was idle for too long; nothing was written"},
    Meaning{"08", Kind::lost, "the connection failed; try again"},
    // Raised by Stela's guard_keys.
    Meaning{"STFOR", Kind::forgotten, "nothing was written"},
    Meaning{"3F000", Kind::mismatch, "Stela's tables are missing"},
    Meaning{"42P01", Kind::mismatch, ""},
};

[[noreturn]] void raise(Kind kind, const std::string& what, const Constraint& constraint) {
  switch (kind) {
    case Kind::busy:
      throw StoreBusy{what};
    case Kind::full:
      throw StoreFull{what};
    case Kind::lost:
      throw ConnectionLost{what};
    case Kind::usage:
      throw UsageError{what};
    case Kind::mismatch:
      throw SchemaMismatch{what};
    case Kind::forgotten:
      throw SubjectForgotten{what};
    case Kind::unique:
      throw UniquenessViolated{what, constraint};
    case Kind::constraint:
      throw ConstraintViolated{what, constraint};
    case Kind::failed:
      break;
  }
  throw StoreFailed{what};
}

std::string field(const PGresult* result, int code) {
  const char* const text = PQresultErrorField(result, code);
  return text != nullptr ? text : "";
}

std::string without_line_ends(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return text;
}

/// The columns in "Key (email)=(x) already exists."
std::vector<std::string> columns_of(const std::string& detail) {
  std::vector<std::string> columns;
  const std::size_t begin = detail.find('(');
  const std::size_t end = detail.find(")=(");
  if (begin == std::string::npos || end == std::string::npos) return columns;
  std::string column;
  for (const char c : detail.substr(begin + 1, end - begin - 1) + ',') {
    if (c == ' ') continue;
    if (c != ',') {
      column += c;
      continue;
    }
    columns.push_back(std::move(column));
    column.clear();
  }
  return columns;
}

Constraint constraint_of(const PGresult* result) {
  Constraint constraint{.table = field(result, PG_DIAG_TABLE_NAME),
                        .columns = columns_of(field(result, PG_DIAG_MESSAGE_DETAIL)),
                        .name = field(result, PG_DIAG_CONSTRAINT_NAME)};
  if (std::string column = field(result, PG_DIAG_COLUMN_NAME); !column.empty()) {
    constraint.columns = {std::move(column)};
  }
  return constraint;
}

}  // namespace

std::string_view state_of(const PGresult* result) noexcept {
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return state != nullptr ? state : "";
}

void fail(const PGresult* result, std::string_view doing) {
  if (result == nullptr) throw std::bad_alloc{};
  const std::string_view state = state_of(result);
  std::string what{doing};
  const std::string said = field(result, PG_DIAG_MESSAGE_PRIMARY);
  what += " failed: " + (said.empty() ? without_line_ends(PQresultErrorMessage(result)) : said);
  if (!state.empty()) what.append(" (SQLSTATE ").append(state).append(")");
  for (const Meaning& meaning : meanings) {
    if (!state.starts_with(meaning.state)) continue;
    if (!meaning.advice.empty()) what.append("; ").append(meaning.advice);
    raise(meaning.kind, what, constraint_of(result));
  }
  // libpq's own errors have no state.
  if (state.empty()) throw ConnectionLost{what};
  throw StoreFailed{what};
}

void fail_to_connect(std::string said, const std::string& place) {
  said = without_line_ends(std::move(said));
  const std::string what = "can't connect to " + place + ": " + said;
  const auto says = [&](std::string_view text) { return said.find(text) != std::string::npos; };
  if (says("could not match")) {
    throw UsageError{what + "; name as many ports and addresses as hosts"};
  }
  const bool is_one_host = place.find(',') == std::string::npos;
  if (says("could not translate host name") && is_one_host) {
    throw StoreFailed{what + "; is the host's name right?"};
  }
  if (says("password authentication failed") || says("no password supplied")) {
    throw StoreFailed{what +
                      "; the server refuses the user or the password; set it in the "
                      "connection string, PGPASSWORD or ~/.pgpass"};
  }
  if (says("pg_hba.conf")) {
    throw StoreFailed{what +
                      "; the server doesn't let this user in from here; see its "
                      "pg_hba.conf, and whether it wants TLS"};
  }
  if (says("SSL") || says("certificate")) {
    throw StoreFailed{what + "; see sslmode and sslrootcert, and the server's ssl"};
  }
  if (says("does not exist")) {
    throw StoreFailed{what + "; make the role and the database first"};
  }
  if (says("server is in hot standby mode") || says("session is read-only") ||
      says("server is not in hot standby mode")) {
    throw StoreBusy{what +
                    "; none of the hosts is what target_session_attrs asks for; wait for "
                    "the failover, or name the primary"};
  }
  if (says("not permitted to log in")) {
    throw StoreFailed{what + "; ALTER the ROLE to LOGIN, or name another one"};
  }
  if (says("permission denied for database")) {
    throw StoreFailed{what + "; GRANT CONNECT ON the DATABASE to this role"};
  }
  if (says("not currently accepting connections")) {
    throw StoreFailed{what + "; ALTER the DATABASE to ALLOW_CONNECTIONS, or name another one"};
  }
  if (says("too many clients") || says("remaining connection slots")) {
    throw StoreBusy{what +
                    "; the server has no connection left; try again, use a pooler, or raise "
                    "max_connections"};
  }
  if (says("too many connections for")) {
    throw StoreBusy{what +
                    "; try again, use a pooler, or ALTER the ROLE or the DATABASE to a higher "
                    "CONNECTION LIMIT"};
  }
  if (says("no more connections allowed")) {
    throw StoreBusy{what +
                    "; the pooler has no connection left; try again, or raise max_client_conn"};
  }
  if (says("the database system is")) {
    throw StoreBusy{what + "; the server is being started or stopped; try again"};
  }
  throw StoreBusy{what + "; is the server running?"};
}

}  // namespace stela::postgres
