// The open transaction of a store on PostgreSQL.
#pragma once

#include "database/transaction.hpp"
#include "postgres/reading.hpp"
#include "postgres/writer.hpp"

#include <stela/framework/event_store.hpp>

namespace stela::postgres {

/// Threads: the leader.
class UserTransaction final : public Transaction,
                              public database::OpenTransaction,
                              private Reading {
 public:
  UserTransaction(Writer& writer, WriteWork& work) noexcept : writer_{writer}, work_{work} {}

  const Conventions& conventions() const noexcept override { return writer_.conventions(); }
  AppendResult append(const AppendRequest& request) override;
  EventRange read_stream(const StreamId& stream, const StreamQuery& query) override;
  EventRange read(const stela::Query& query, const QueryRange& range) override;
  Standpoint standpoint(std::span<const TagNeed> needs) override;
  std::optional<AppendResult> find_append(std::string_view append_id) override;
  DecisionAnswer answer(const DecisionQuestion& question) override;
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
  void lock() override { writer_.lock(work_); }
  void note_failure() noexcept override { writer_.note_failure(); }
  void check_open() override { writer_.check_open(); }
  void check_usable() const override { writer_.check_usable(); }
  std::int64_t run_sql(std::string_view sql, std::span<const SqlValue> values, Rows* rows) override;
  PGconn* lend() { return writer_.lend(work_); }

 private:
  Uuid read(FunctionRef<void(Connection&)> work) override;
  bool vouch(const Uuid& run, std::int64_t sequence) override;

  Writer& writer_;
  WriteWork& work_;
};

}  // namespace stela::postgres
