// A database on a failing file system, with everything that was promised about what is in it.
#pragma once

#include "faults/evidence.hpp"
#include "support/fault_vfs.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

/// Remembers how each append ended, and holds the database to it afterwards.
class Trial {
 public:
  /// An append of one event to one stream.
  static std::vector<PlainAppend> one_event(std::string_view stream);
  static std::vector<PlainAppend> events(std::string_view stream, int count,
                                         std::size_t payload_size = 0);

  explicit Trial(const FailNth::Plan& plan) : plan_{plan} {}

  std::string path() const { return dir_.file("shop.db"); }
  /// On the failing file system.
  sqlite::Options options() const { return {.vfs = vfs_.name()}; }
  /// Opens the database and appends to it, without any fault.
  Store open_healthy(sqlite::Options options);
  /// From now on it fails as planned.
  void arm() { faults_.arm(plan_); }
  void heal() { faults_.disarm(); }
  bool has_failed() const { return faults_.has_fired(); }
  std::string what_failed() const { return faults_.first_failure(); }

  /// Appends under an id of its own. Nothing if that worked, else the error that it ended with.
  /// Threads: any number at once.
  std::optional<ErrorCode> append(EventLog& log, std::vector<PlainAppend> appends);
  /// The same, inside a transaction that also writes a row of the caller's own for each event.
  std::optional<ErrorCode> transact(Store& store, std::vector<PlainAppend> appends);
  /// Runs `call`, which is to append nothing that lasts.
  template <class Call>
  std::optional<ErrorCode> attempt(Call&& call) {
    try {
      call();
    } catch (const Error& e) {
      note(e);
      return e.code();
    }
    return std::nullopt;
  }
  /// What the last error said.
  std::string last_error() const;
  /// The errors so far, each once: "store_full".
  std::set<std::string> errors() const;
  /// True once a commit was in doubt: the store must be reopened.
  bool is_in_doubt() const;

  /// After the store is closed: what is wrong with the database, or empty. Every acknowledged
  /// append is there, no refused one, a doubtful one whole or not at all; nothing is half-written;
  /// and appending each of them again under its id leaves exactly one of it.
  std::string verdict();

  /// How many appends in doubt were found, and how many not.
  int doubts_that_stand() const { return standing_; }
  int doubts_that_fell() const { return fallen_; }

 private:
  enum class End { acknowledged, refused, doubtful };
  struct Attempt {
    std::string id;
    std::vector<PlainAppend> appends;
    End end = End::acknowledged;
  };

  template <class Write>
  std::optional<ErrorCode> keep(std::vector<PlainAppend> appends, Write&& write);
  void note(const Error& error);
  std::string judge(const Attempt& attempt, Store& store);

  TempDir dir_ = TempDir::in_memory();
  FailNth::Plan plan_;
  FailNth faults_;
  FaultVfs vfs_{faults_};
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Attempt> attempts_;
  std::string last_error_;
  std::set<std::string> errors_;
  int standing_ = 0;
  int fallen_ = 0;
};

}  // namespace stela::test
