// The open transaction of an SQLite store.
#pragma once

#include "database/transaction.hpp"
#include "sqlite/readers.hpp"
#include "sqlite/writer.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

namespace stela::sqlite {

/// Threads: the leader.
class STELA_EVENTSTORE_EXPORT OpenTransaction final : public Transaction,
                                                      public database::OpenTransaction,
                                                      private Reading {
 public:
  OpenTransaction(Writer& writer, WriteWork& work) noexcept : writer_{writer}, work_{work} {}

  const Conventions& conventions() const noexcept override { return writer_.conventions(); }
  AppendResult append(const AppendRequest& request) override;
  EventRange read_stream(const StreamId& stream, const StreamQuery& query) override;
  EventRange read(const stela::Query& query, const QueryRange& range) override;
  Standpoint standpoint(std::span<const TagNeed> needs) override;
  std::optional<AppendResult> find_append(std::string_view append_id) override;
  std::optional<StoredSnapshot> find_snapshot(const StreamId& stream, StreamVersion to,
                                              GlobalSequence up_to) override;
  void save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) override;
  void drop_snapshot(const StreamId& stream) override;
  void transact(FunctionRef<void(Transaction&)> work) override {
    writer_.run_inside(work_, [&] { work(*this); });
  }
  std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) override {
    return work_.outcomes.of(sequence);
  }

  Connection& connection() noexcept override { return writer_.connection(); }
  void lock() override {}
  void note_failure() noexcept override { writer_.note_failure(); }
  void check_open() override { writer_.check_transaction(); }
  std::int64_t run_sql(std::string_view sql, std::span<const SqlValue> values,
                       Rows* rows) override {
    return writer_.run_sql(sql, values, rows);
  }
  /// For code that hands the connection to the user.
  sqlite3* lend() noexcept { return writer_.lend(); }

 private:
  void read(FunctionRef<void(Connection&)> work) override { work(connection()); }

  Writer& writer_;
  WriteWork& work_;
};

std::optional<StoredSnapshot> find_snapshot(Connection& connection, const Conventions& conventions,
                                            const StreamId& stream, StreamVersion to,
                                            GlobalSequence up_to);
void save_snapshot(Connection& connection, const StreamId& stream, const StoredSnapshot& snapshot,
                   Timestamp now);

}  // namespace stela::sqlite
