// Trouble that a follower waits out, and logs less and less often.
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

/// Runs a turn of a follower's loop. Returns passing trouble of the database or lack of memory;
/// nothing if it went well. Lasting errors are thrown.
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

/// Lets a text through at once, then after a second, then after pauses that double up to ten
/// minutes. A text that stays away for a further pause counts as new.
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
  /// The trouble is over: later texts count as new.
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
