// What appending processes write down outside of the database, before and after each append.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stela::chaos {

/// An append under an id of its own: `count` tickets with the serial numbers from `first` on.
struct Attempt {
  /// What became of it, as far as the process knows.
  enum class State : std::uint8_t {
    /// No answer: it may be stored.
    unanswered,
    /// It was told that nothing was written.
    refused,
    /// It was told where it stands.
    stored,
  };

  std::string id = {};
  std::int64_t first = 0;
  int count = 0;
  State state = State::unanswered;
  /// Of its first event, once it is stored.
  std::int64_t sequence = 0;
};

/// One file for each process, which outlives it. A line is written whole or not at all, whenever
/// the process is killed.
class Ledger {
 public:
  explicit Ledger(const std::string& file);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// As the attempt says; before it is made, it is unanswered.
  void note(const Attempt& attempt);

  /// The last that is known of each attempt, in the order in which they were begun.
  static std::vector<Attempt> read(const std::string& file);

 private:
  int file_;
};

/// A ticket that is in the database.
struct StoredTicket {
  std::int64_t sequence = 0;
  std::int64_t serial = 0;
};

/// In what the database contradicts its appenders: each stored attempt must be there once, where it
/// was said to be; a refused one not at all; an unanswered one once and whole, or not at all.
std::vector<std::string> contradictions(const std::vector<Attempt>& attempts,
                                        const std::vector<StoredTicket>& tickets);

}  // namespace stela::chaos
