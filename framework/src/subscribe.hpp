// Connects a listener to a signal, and disconnects it while other threads call it.
#pragma once

#include <stela/framework/event_store.hpp>

#include <boost/signals2/signal.hpp>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace stela {

/// Knows which threads are calling a listener. Threads: any number at once.
class ListenerGate {
 public:
  /// One call of the listener.
  class Call {
   public:
    explicit Call(ListenerGate& gate) : gate_{gate}, is_allowed_{gate.enter()} {}
    ~Call() {
      if (is_allowed_) gate_.leave();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    /// False if the listener must not be called any more.
    bool is_allowed() const noexcept { return is_allowed_; }

   private:
    ListenerGate& gate_;
    const bool is_allowed_;
  };

  /// Returns when no thread calls the listener any more, except this thread from inside a call.
  void close() noexcept {
    std::unique_lock lock{mutex_};
    is_closed_ = true;
    const auto self = std::this_thread::get_id();
    left_.wait(lock, [&] {
      return std::all_of(callers_.begin(), callers_.end(), [&](auto id) { return id == self; });
    });
  }

 private:
  bool enter() {
    const std::lock_guard lock{mutex_};
    if (!is_closed_) callers_.push_back(std::this_thread::get_id());
    return !is_closed_;
  }
  void leave() noexcept {
    const std::lock_guard lock{mutex_};
    callers_.erase(std::find(callers_.begin(), callers_.end(), std::this_thread::get_id()));
    left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  // Guarded by mutex_.
  std::vector<std::thread::id> callers_;
  bool is_closed_ = false;
};

/// Calls `listener` until the subscription ends.
template <class Argument, class Listener>
Subscription subscribe(boost::signals2::signal<void(Argument)>& signal, Listener listener) {
  const auto gate = std::make_shared<ListenerGate>();
  const auto connection = signal.connect([gate, listener = std::move(listener)](Argument argument) {
    try {
      const ListenerGate::Call call{*gate};
      if (call.is_allowed()) listener(argument);
    } catch (...) {
      // Listeners report their own errors, so this one had no memory to do so. The other listeners
      // are still called.
    }
  });
  // Owns nothing. Its deleter disconnects the listener.
  return Subscription{std::shared_ptr<void>{nullptr, [gate, connection](void*) {
                                              connection.disconnect();
                                              gate->close();
                                            }}};
}

}  // namespace stela
