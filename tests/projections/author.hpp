// Somebody who loads, writes and saves diaries at random, and keeps what they were in memory.
#pragma once

#include "projections/diaries.hpp"

#include <stela/eventstore.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace stela::test {

/// What a transaction is rolled back with.
struct RollBack {};

/// A store as a process has it, with its projector, and what its listener heard.
struct Desk {
  Desk(const std::string& path, const std::string& vfs);

  /// What was heard since this was asked last, by sequence.
  std::map<std::int64_t, std::string> take_heard() { return std::exchange(heard, {}); }

  Store store;
  Projections projections;
  std::map<std::int64_t, std::string> heard;
  Subscription listening;
};

/// All pages that are stored, by sequence.
std::map<std::int64_t, std::string> pages_of(Store& store);

/// What an author does is a function of its seed, its name and what is stored.
class Author {
 public:
  Author(unsigned seed, std::string name) : random_{seed}, name_{std::move(name)} {}

  int up_to(int largest) { return std::uniform_int_distribution<int>{0, largest}(random_); }
  bool one_in(int count) { return up_to(count - 1) == 0; }

  /// One thing, or inside a transaction several. What fails leaves it as it was thrown.
  void act(EventLog& log) { act(log, 0); }
  /// Several things in a transaction that is open.
  void act_inside(Transaction& transaction, int depth);
  /// A commit was in doubt: what was saved by it needn't be usable.
  void doubt();

  /// What something in memory says, or said inside a transaction, though it isn't so; or empty.
  std::string flaw(EventLog& log);

  int usable() const noexcept { return usable_; }
  int asked() const noexcept { return asked_; }

 private:
  /// An aggregate in memory, and whether it may say that it can't be used.
  struct Held {
    Diary diary;
    bool may_be_unusable = false;
  };

  std::string text() { return name_ + '-' + std::to_string(++texts_); }
  int type() { return up_to(static_cast<int>(page_names.size()) - 1); }
  Id<Diary> some_id() { return Id<Diary>::from(std::to_string(up_to(2))); }
  std::string append_id() { return one_in(4) ? "id-" + std::to_string(up_to(8)) : ""; }

  void act(EventLog& log, int depth);
  Held& some_held();
  void load(EventLog& log, int depth);
  void save(EventLog& log, Held& held);
  void unit(EventLog& log);
  void transact(EventLog& log, int depth);

  void check(EventLog& log, const Held& held);
  void check_held(EventLog& log);

  std::mt19937 random_;
  std::string name_;
  std::vector<Held> held_;
  std::string flaw_;
  int texts_ = 0;
  int usable_ = 0;
  int asked_ = 0;
};

}  // namespace stela::test
