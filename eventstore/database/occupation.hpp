// What a thread is doing with a store, for messages to waiting threads.
#pragma once

#include <stela/eventstore/export.hpp>

#include <mutex>
#include <string>
#include <string_view>

namespace stela::database {

/// Names the thread's present work for as long as the object lives: "projector 'totals' v1".
/// Threads: the one that creates it.
class STELA_EVENTSTORE_EXPORT Occupation {
 public:
  /// `what` must outlive it.
  explicit Occupation(std::string_view what) noexcept;
  ~Occupation();
  Occupation(const Occupation&) = delete;
  Occupation& operator=(const Occupation&) = delete;

  /// The occupation of one thread. Others may read it as long as that thread lives.
  class Slot {
   public:
    std::string read() {
      const std::lock_guard lock{mutex_};
      return std::string{what_};
    }

   private:
    friend class Occupation;
    std::string_view exchange(std::string_view what) noexcept;

    std::mutex mutex_;
    /// Guarded by mutex_.
    std::string_view what_;
  };
  static Slot& of_this_thread() noexcept;

 private:
  const std::string_view outer_;
};

}  // namespace stela::database
