// What a thread does with a store, for messages to those who wait for it.
#pragma once

#include <stela/eventstore/export.hpp>

#include <mutex>
#include <string>
#include <string_view>

namespace stela::database {

/// Says what the thread is busy with, for as long as it lives: "projector 'totals' v1".
/// Threads: the one that makes it.
class STELA_EVENTSTORE_EXPORT Occupation {
 public:
  /// `what` must outlive it.
  explicit Occupation(std::string_view what) noexcept;
  ~Occupation();
  Occupation(const Occupation&) = delete;
  Occupation& operator=(const Occupation&) = delete;

  /// Of one thread. Others may ask, as long as that thread lives.
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
