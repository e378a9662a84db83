// Trouble that a follower waits out, and says ever less often.
#pragma once

#include "database/database.hpp"

#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <new>
#include <optional>
#include <string>

namespace stela::follow {

/// Runs a turn of a follower's loop. What trouble it met that ends by itself, of the database or
/// for want of memory; nothing if it went well. What no waiting ends is thrown.
inline std::optional<std::string> trouble_of(const database::Database& database,
                                             FunctionRef<void()> turn) {
  try {
    turn();
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return "there isn't enough memory for the next events";
  } catch (const Error& e) {
    if (!database.recovers_from(e)) throw;
    return e.what();
  }
}

/// Lets a text through at once, then a second later, and after twice as long each time, up to ten
/// minutes. Once it hasn't come for as long again after its time, it is new.
/// Threads: one at a time.
class Repetition {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  bool lets_through(const std::string& text, Steady now) {
    if (said_.size() >= most_texts && !said_.contains(text)) said_.clear();
    Said& said = said_[text];
    if (said.pause.count() > 0 && now < said.next) return false;
    const bool is_new = said.pause.count() == 0 || now >= said.next + said.pause;
    said.pause = is_new ? first_pause : std::min(said.pause * 2, longest_pause);
    said.next = now + said.pause;
    return true;
  }
  /// It is over: what comes next is new.
  void forget() noexcept { said_.clear(); }

 private:
  static constexpr std::size_t most_texts = 32;
  static constexpr std::chrono::seconds first_pause{1};
  static constexpr std::chrono::seconds longest_pause{600};

  struct Said {
    std::chrono::seconds pause{0};
    Steady next{};
  };
  std::map<std::string, Said> said_;
};

}  // namespace stela::follow
