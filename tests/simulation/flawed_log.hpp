// A process's way to its store: it may be interrupted at each call, and a mutant lies on it.
#pragma once

#include "mutants/mutant.hpp"

#include <stela/framework/event_store.hpp>

#include <functional>

namespace stela::sim {

class FlawedLog final : public EventLog {
  template <class Call>
  auto disturbed(Call&& call) {
    interruption_();
    auto result = call();
    interruption_();
    return result;
  }

 public:
  /// `interruption` is called before and after each call, and may throw.
  FlawedLog(EventLog& log, mutants::Mutant mutant, std::function<void()> interruption)
      : log_{log}, mutant_{mutant}, interruption_{std::move(interruption)} {}

  const Conventions& conventions() const noexcept override { return log_.conventions(); }
  AppendResult append(const AppendRequest& request) override;
  EventRange read_stream(const StreamId& stream, const StreamQuery& query) override {
    return disturbed([&] { return log_.read_stream(stream, query); });
  }
  EventRange read(const Query& query, const QueryRange& range) override;
  Standpoint standpoint(std::span<const TagNeed> needs) override {
    return disturbed([&] { return log_.standpoint(needs); });
  }
  std::optional<AppendResult> find_append(std::string_view append_id) override;
  std::optional<StoredSnapshot> find_snapshot(const StreamId& stream, StreamVersion to,
                                              GlobalSequence up_to) override {
    return log_.find_snapshot(stream, to, up_to);
  }
  void save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) override {
    log_.save_snapshot(stream, snapshot);
  }
  void drop_snapshot(const StreamId& stream) override { log_.drop_snapshot(stream); }
  void transact(FunctionRef<void(Transaction&)> work) override {
    interruption_();
    log_.transact(work);
    interruption_();
  }
  std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) override {
    return log_.outcome_of(sequence);
  }

 private:
  EventLog& log_;
  const mutants::Mutant mutant_;
  const std::function<void()> interruption_;
};

}  // namespace stela::sim
