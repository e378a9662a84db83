// How far a projector is, for callers that wait for it.
#pragma once

#include "builds.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace stela::projections {

/// True if readers' model contains everything up to `sequence`, false if the projector stopped
/// before it, unset if it may still get there. UsageError if there is no such projector.
std::optional<bool> has_reached(const std::vector<Build>& builds, std::string_view projector,
                                std::int64_t sequence);

/// When a wait ends. Any timeout is allowed.
std::chrono::steady_clock::time_point deadline_of(std::chrono::milliseconds timeout);

/// Notified after a runner of this process has committed or given up an event. The notice carries
/// nothing: read the tables. Threads: any number at once.
class Progress {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_progress() noexcept = 0;
  };

  void add(const std::shared_ptr<Listener>& listener) {
    const std::lock_guard lock{mutex_};
    std::erase_if(listeners_, [](const auto& one) { return one.expired(); });
    listeners_.push_back(listener);
  }

  /// Calls them without the lock, because they post to the user's executors.
  void tell() noexcept {
    for (std::size_t i = 0;; ++i) {
      std::shared_ptr<Listener> one;
      {
        const std::lock_guard lock{mutex_};
        if (i >= listeners_.size()) return;
        one = listeners_[i].lock();
      }
      if (one) one->on_progress();
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Listener>> listeners_;
};

}  // namespace stela::projections
