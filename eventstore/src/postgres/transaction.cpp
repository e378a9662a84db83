#include "postgres/transaction.hpp"

#include "ledger/cursor.hpp"
#include "postgres/pages.hpp"
#include "postgres/snapshots.hpp"

#include <stela/eventstore/postgres_handle.hpp>
#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>

namespace stela::postgres {

AppendResult UserTransaction::append(const AppendRequest& request) {
  check_append(request, conventions());
  work_.metadata = metadata::encode(request.context);
  return writer_.append_inside(request, work_);
}

EventRange UserTransaction::read_stream(const StreamId& stream, const StreamQuery& query) {
  return ledger::read_stream(make_pages(*this, writer_.kinds()), stream, query);
}

std::optional<StoredSnapshot> UserTransaction::find_snapshot(const StreamId& stream,
                                                             StreamVersion to,
                                                             GlobalSequence up_to) {
  return postgres::find_snapshot(*this, conventions(), stream, to, up_to);
}

void UserTransaction::save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) {
  work_.snapshots.emplace_back(stream, snapshot);
}

void UserTransaction::drop_snapshot(const StreamId& stream) {
  work_.snapshots.emplace_back(stream, std::nullopt);
}

std::int64_t UserTransaction::run_sql(std::string_view sql, std::span<const SqlValue> values,
                                      Rows* rows) {
  return writer_.run_sql(work_, sql, values, rows);
}

PGconn* handle(Transaction& transaction) {
  if (auto* const open = dynamic_cast<UserTransaction*>(&transaction)) return open->lend();
  throw UsageError{"this transaction isn't one of a PostgreSQL store"};
}

Uuid UserTransaction::read(FunctionRef<void(Connection&)> work) {
  work(connection());
  return writer_.session_run();
}

bool UserTransaction::vouch(const Uuid&, std::int64_t sequence) {
  // The transaction ends with the run, and is confirmed before its caller gets an answer.
  writer_.note_read(sequence);
  return true;
}

}  // namespace stela::postgres
