// Which statements are prepared on a connection, of those that it gets as text.
#pragma once

#include "database/postgres/parameters.hpp"

#include <chrono>
#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stela::postgres {

/// Prepared is what comes a second time while it is remembered: the most recently used texts are.
/// Threads: one at a time.
class PreparedTexts {
 public:
  static constexpr std::size_t max_texts = 256;

  /// `prefix`: of the names on the server.
  explicit PreparedTexts(std::string prefix) : prefix_{std::move(prefix)} {}

  struct Text {
    /// On the server; empty at its first run.
    std::string name;
    bool is_prepared = false;
    std::chrono::steady_clock::time_point prepared_at = {};
  };

  /// `scope`: by what the names in the text are found. The same text means another statement in
  /// another one, and with parameters of other types. Lasts for `max_texts` calls at least.
  Text& use(std::string_view scope, std::string_view sql, const std::vector<Oid>& types);
  /// One that failed: it may no longer be what it was prepared for.
  void forget(const Text& text);

  /// Names that the server may forget.
  const std::vector<std::string>& dropped() const noexcept { return dropped_; }
  void clear_dropped() noexcept { dropped_.clear(); }

 private:
  struct Entry {
    std::string key;
    Text text;
  };
  using Entries = std::list<Entry>;

  void drop(Entries::iterator entry);

  const std::string prefix_;
  /// The most recently used ones first.
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_key_;
  std::vector<std::string> dropped_;
  int names_ = 0;
  std::string key_;
};

}  // namespace stela::postgres
