// Decides which of a connection's texts are prepared.
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

/// A text is prepared when it comes a second time while it is remembered. The most recently used
/// texts are remembered.
/// Threads: one at a time.
class PreparedTexts {
 public:
  static constexpr std::size_t max_texts = 256;

  /// `prefix` begins the names on the server.
  explicit PreparedTexts(std::string prefix) : prefix_{std::move(prefix)} {}

  struct Text {
    /// The name on the server; empty at its first run.
    std::string name;
    bool is_prepared = false;
    std::chrono::steady_clock::time_point prepared_at = {};
  };

  /// `scope` resolves the names in the text. The same text is another statement in another scope,
  /// or with other parameter types. The result is valid for at least `max_texts` calls.
  Text& use(std::string_view scope, std::string_view sql, const std::vector<Oid>& types);
  /// Forgets a text that failed: its prepared form may be outdated.
  void forget(const Text& text);

  /// Names that the server may drop.
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
