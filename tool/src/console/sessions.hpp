// Who may ask the console: links that are used once, and the sessions that they open.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

/// 256 bits that nobody can guess, in hexadecimal digits.
std::string new_secret();

/// Compares secrets: how long it takes says nothing of where they differ.
bool is_same_secret(std::string_view a, std::string_view b) noexcept;

/// Threads: any.
class Sessions {
 public:
  using Clock = std::chrono::steady_clock;

  /// What a browser has: a cookie that its scripts can't read, and a token that other pages' can't.
  struct Session {
    std::string id;
    std::string token;
  };

  /// Whose it is. Whoever had the link has no name: it is the console's own operator.
  struct Holder {
    std::string name = {};
    /// What it was opened by: the hash of a token, or "proxy".
    std::string proof = {};
    bool operator==(const Holder&) const = default;
  };

  static constexpr std::chrono::minutes link_lasts{5};
  static constexpr std::chrono::hours session_lasts{12};

  /// The secret of a link, which opens one session. Links that were made before open none.
  std::string new_link(Clock::time_point now = Clock::now());
  std::optional<Session> open(std::string_view link, Clock::time_point now = Clock::now());
  Session open_for(Holder holder, Clock::time_point now = Clock::now());
  /// Of a session that was used in the last twelve hours; `holder` becomes its own.
  std::optional<std::string> token_of(std::string_view id, Clock::time_point now = Clock::now(),
                                      Holder* holder = nullptr);

 private:
  struct Known {
    std::string token;
    Clock::time_point used;
    Holder holder = {};
  };

  Session add(Holder holder, Clock::time_point now);
  void forget_unused(const Holder& holder, Clock::time_point now);

  std::mutex mutex_;
  std::string link_;
  Clock::time_point link_until_;
  std::map<std::string, Known, std::less<>> sessions_;
};

}  // namespace stela::tool
