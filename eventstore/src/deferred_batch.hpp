// The deferred appends that one thread carries out.
#pragma once

#include "commit_queue.hpp"
#include "database/deferred_append.hpp"

#include <stela/framework/context.hpp>
#include <stela/framework/detail/function_ref.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <limits>
#include <new>
#include <span>

namespace stela {

/// Takes the appends only when it is this thread's turn, so that groups are as large as possible.
/// `Work` is the engine's, with a `request`, an `error` and `wants_events`. Threads: the one that
/// carries them out; the leader calls `take`.
template <class Work>
class DeferredBatch final : public CommitQueue::Source {
 public:
  struct Append final : DeferredAppend, Work {
    explicit Append(AppendClient& to) noexcept : client{to} {}
    std::size_t size() const noexcept override { return this->bytes; }
    /// Calls `f`, which doesn't throw, in the context of the append, for user code that may run in
    /// it. False if there is no memory for that.
    bool in_context(FunctionRef<void()> f) noexcept try {
      const auto scope = ContextScope::exactly(this->request->context);
      f();
      return true;
    } catch (...) {
      return false;
    }

    AppendClient& client;
  };

  struct Settings {
    /// Each runs alone and on this thread.
    bool is_exclusive = false;
    bool wants_events = false;
  };

  DeferredBatch(DeferredAppends& appends, const Settings& settings) noexcept
      : appends_{appends}, settings_{settings} {
    turn_.exclusive = settings.is_exclusive;
    turn_.source = this;
  }

  /// The batch's ticket in line.
  CommitQueue::Ticket& turn() noexcept { return turn_; }
  std::span<Append* const> taken() const noexcept { return {taken_.data(), size_}; }

  CommitQueue::Ticket* take(std::size_t bytes) noexcept override {
    DeferredAppend* const next = size_ < taken_.size() ? appends_.take(bytes) : nullptr;
    if (next == nullptr) return nullptr;
    auto* const append = static_cast<Append*>(next);
    append->exclusive = settings_.is_exclusive;
    append->wants_events = settings_.wants_events;
    taken_[size_++] = append;
    return append;
  }

  /// Fails all appends; for a batch that never reached the line.
  void fail(const std::exception_ptr& error) noexcept {
    while (take(std::numeric_limits<std::size_t>::max()) != nullptr) {
      taken_[size_ - 1]->error = error;
    }
  }

  /// Calls `execute` with the group. If the group is a single one of these appends, it runs in that
  /// append's context, for user code.
  void in_context(std::span<CommitQueue::Ticket* const> group,
                  FunctionRef<void()> execute) noexcept {
    if (!settings_.is_exclusive || size_ == 0 || group.front() != taken_.front()) return execute();
    Append& alone = *taken_.front();
    if (!alone.in_context(execute)) alone.error = std::make_exception_ptr(std::bad_alloc{});
  }

 private:
  DeferredAppends& appends_;
  const Settings settings_;
  CommitQueue::Ticket turn_;
  std::array<Append*, CommitQueue::max_group_size> taken_{};
  std::size_t size_ = 0;
};

}  // namespace stela
