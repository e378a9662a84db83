// Access to the console: links that work once, and the sessions that they open.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

/// 256 random bits in hexadecimal.
std::string new_secret();

/// Compares secrets in constant time.
bool is_same_secret(std::string_view a, std::string_view b) noexcept;

/// Threads: any.
class Sessions {
 public:
  using Clock = std::chrono::steady_clock;

  /// A browser's session: a cookie that scripts can't read, and a token that other sites can't.
  struct Session {
    std::string id;
    std::string token;
  };

  /// The session's owner. The name is empty for the console's own operator, who had the link.
  struct Holder {
    std::string name = {};
    /// The proof that opened it: the hash of a token, or "proxy".
    std::string proof = {};
    bool operator==(const Holder&) const = default;
  };

  static constexpr std::chrono::minutes link_lasts{5};
  static constexpr std::chrono::hours session_lasts{12};

  /// The secret of a link, which opens one session. Earlier links become invalid.
  std::string new_link(Clock::time_point now = Clock::now());
  std::optional<Session> open(std::string_view link, Clock::time_point now = Clock::now());
  Session open_for(Holder holder, Clock::time_point now = Clock::now());
  /// The token of a session used in the last twelve hours. Sets `holder` to its owner.
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
