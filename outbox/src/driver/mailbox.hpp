// Where the relay's thread waits, and what wakes it.
#pragma once

#include "database/database.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/outbox/publisher.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace stela::relay {

/// Collects a publisher's answers, and waits for them and for commits of any process.
/// Threads: `take` and `wake` from any; the rest belongs to the relay's thread.
class Mailbox final : public AnswerSink {
 public:
  explicit Mailbox(stela::Store& store) : watch_{store.database().watch_commits()} {}

  void take(Answer answer) override;
  void wake() noexcept { watch_->wake(); }

  /// Everything that arrived since the last call; valid until the next one.
  std::span<const Answer> answers();

  /// Waits until something arrives, at most until `deadline`.
  void wait_until(database::CommitWatch::Time deadline) { watch_->wait_until(deadline); }

 private:
  std::mutex mutex_;
  /// Guarded by mutex_.
  std::vector<Answer> answers_;
  std::vector<Answer> taken_;
  std::unique_ptr<database::CommitWatch> watch_;
};

}  // namespace stela::relay
