// The entrance of a store: appends, transactions, participants and listeners, on any engine.
#pragma once

#include "database/core.hpp"
#include "deferred_batch.hpp"
#include "ledger/work.hpp"

#include <stela/framework/event_store.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace stela::ledger {

/// `Writer` and `WriteWork` are the engine's. Threads: any number at once.
template <class Writer, class WriteWork>
class AppendingCore : public Store::Core {
 public:
  using DeferredWrites = DeferredBatch<WriteWork>;

  const Conventions& conventions() const noexcept final { return conventions_; }

  AppendResult append(const AppendRequest& request) final {
    WriteWork work;
    fill(work, request);
    work.wants_events = !listeners_.is_empty();
    work.exclusive = writer().has_user_code();
    writer().run(work);
    notify(work);
    return std::move(work.result);
  }

  std::unique_ptr<DeferredAppend> defer(const AppendRequest& request, AppendClient& client) final {
    auto append = std::make_unique<typename DeferredWrites::Append>(client);
    fill(*append, request);
    return append;
  }

  void carry_out(DeferredAppends& appends) noexcept final {
    DeferredWrites batch{appends, {writer().has_user_code(), !listeners_.is_empty()}};
    writer().run(batch);
    for (auto* const append : batch.taken()) {
      if (!append->error && !append->in_context([&] { notify(*append); })) notify(*append);
      append->client.complete(std::move(append->error), std::move(append->result));
    }
  }

  void transact(FunctionRef<void(Transaction&)> user) final {
    WriteWork work;
    work.user = &user;
    work.exclusive = true;
    work.wants_events = !listeners_.is_empty();
    writer().run(work);
    notify(work);
    write_snapshots(*this, work);
  }

  void attach(TransactionParticipant& participant) final {
    writer().attach(participant, [](database::Connection&) {});
  }
  void attach(TransactionParticipant& participant, database::Database::Work prepare) final {
    writer().attach(participant, prepare);
  }
  void attach(database::DataParticipant& participant, database::Database::Work prepare) final {
    writer().attach(participant, prepare);
  }
  void attach_mark(Participant& mark) final { writer().attach_mark(mark); }
  void require_mark(const Participant& mark) final { writer().require_mark(mark); }
  void detach_mark(Participant& mark) final { writer().detach(mark); }
  void detach(TransactionParticipant& participant) final { writer().detach(participant); }
  void detach(database::DataParticipant& participant) final { writer().detach(participant); }
  void refuse_second(std::string_view participant) const final {
    writer().refuse_second(participant);
  }
  void forget_participant(std::string_view name) final { writer().forget_participant(name); }

  Subscription on_commit(std::function<void(const CommitNotice&)> listener) final {
    return listeners_.add(std::move(listener));
  }

 protected:
  /// The engine sets `conventions_` itself, before anything else is called.
  AppendingCore() = default;
  explicit AppendingCore(Conventions conventions) : conventions_{std::move(conventions)} {}

  virtual Writer& writer() const noexcept = 0;
  /// Called after each write.
  virtual void note_append() noexcept {}

  Conventions conventions_;

 private:
  /// UsageError if the request can't be stored.
  void fill(ledger::Work& work, const AppendRequest& request) const {
    ledger::fill(work, request, conventions_);
  }
  void notify(const ledger::Work& work) noexcept {
    note_append();
    if (!work.events.empty()) listeners_.notify({work.events});
  }

  CommitListeners listeners_{conventions_};
};

}  // namespace stela::ledger
