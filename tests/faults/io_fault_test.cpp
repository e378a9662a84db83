// Every operation on the files fails in turn, until a run gets through without meeting the fault.
#include "faults/trial.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stela::io_fault_test {
namespace {

namespace fs = std::filesystem;
using test::append;
using test::entries_of;
using test::FileOperation;
using test::Trial;
using test::Verdict;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;

// --- what fails

struct Failure {
  std::string name;
  Verdict verdict;
  std::vector<FileOperation> operations;
  /// What may come of it.
  std::vector<std::string> errors;
};

const std::vector<Failure>& failures() {
  static const std::vector<Failure> all{
      {"IoError",
       Verdict::io_error,
       {FileOperation::open, FileOperation::remove, FileOperation::read, FileOperation::write,
        FileOperation::truncate, FileOperation::sync, FileOperation::shm_map,
        FileOperation::shm_lock},
       {"store_failed", "commit_in_doubt"}},
      {"FullDisk",
       Verdict::disk_full,
       {FileOperation::open, FileOperation::write, FileOperation::shm_map},
       {"store_full", "commit_in_doubt"}},
      {"ShortWrite",
       Verdict::short_write,
       {FileOperation::write},
       {"store_failed", "commit_in_doubt"}},
      {"SyncError", Verdict::io_error, {FileOperation::sync}, {"store_failed", "commit_in_doubt"}},
  };
  return all;
}

// --- what is done meanwhile

/// The fault has gone. Whatever it was, the store goes on, unless a commit is in doubt.
void expect_to_go_on(Trial& trial, Store& store) {
  const bool was_in_doubt = trial.is_in_doubt();
  const auto after = trial.append(store, Trial::one_event("order-9"));
  if (!was_in_doubt) {
    EXPECT_EQ(after, std::nullopt) << trial.last_error();
    return;
  }
  EXPECT_EQ(after, ErrorCode::store_failed);
  EXPECT_THAT(trial.last_error(), HasSubstr("an earlier commit is in doubt"));
  EXPECT_THAT(trial.last_error(), HasSubstr("reopen the store"));
}

void open_a_new_database(Trial& trial) {
  trial.arm();
  const auto opening = trial.attempt([&] {
    auto store = sqlite::open(trial.path(), trial.options());
    trial.append(store, Trial::one_event("order-1"));
  });
  trial.heal();
  if (!opening) return;
  auto store = sqlite::open(trial.path(), trial.options());
  expect_to_go_on(trial, store);
}

/// Leaves a log behind that must be read anew, as after a crash.
void prepare_a_log(const std::string& path) {
  const test::TempDir dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("shop.db"));
  for (int i = 0; i < 20; ++i) append(store, "order-1", "{}");
  for (const std::string suffix : {"", "-wal"}) {
    fs::copy_file(dir.file("shop.db") + suffix, path + suffix);
  }
}

void open_after_a_crash(Trial& trial) {
  prepare_a_log(trial.path());
  trial.arm();
  trial.attempt([&] {
    auto store = sqlite::open(trial.path(), trial.options());
    trial.append(store, Trial::one_event("order-1"));
  });
  trial.heal();
  auto store = sqlite::open(trial.path(), trial.options());
  EXPECT_GE(store.last_sequence(), GlobalSequence{20});
}

void append_appends(Trial& trial, const std::vector<test::PlainAppend>& appends,
                    const sqlite::Options& options = {}) {
  auto store = trial.open_healthy(options);
  trial.append(store, Trial::one_event("order-1"));
  trial.arm();
  trial.append(store, appends);
  trial.append(store, Trial::one_event("order-1"));
  trial.heal();
  expect_to_go_on(trial, store);
}

void append_one_event(Trial& trial) {
  append_appends(trial, Trial::one_event("order-1"));
}

void append_to_several_streams(Trial& trial) {
  std::vector<test::PlainAppend> appends;
  for (const std::string_view stream : {"order-1", "order-2", "customer-1"}) {
    appends.push_back(Trial::events(stream, 2).front());
  }
  append_appends(trial, appends);
}

void append_a_hundred_events(Trial& trial) {
  append_appends(trial, Trial::events("order-1", 100, 500));
}

/// With a checkpoint due after each commit.
void checkpoint(Trial& trial) {
  auto store = trial.open_healthy({.checkpoint_pages = 1});
  trial.append(store, Trial::events("order-1", 30, 500));
  trial.arm();
  trial.append(store, Trial::events("order-1", 10, 500));
  trial.append(store, Trial::one_event("order-2"));
  trial.heal();
  expect_to_go_on(trial, store);
}

/// The caller's own work: one that the caller rolls back, one that commits a table of the caller's
/// beside the events.
void transact(Trial& trial) {
  auto store = trial.open_healthy({});
  trial.arm();
  bool rolled_back = false;
  trial.attempt([&] {
    try {
      store.transact([&](Transaction& transaction) {
        append(transaction, "order-1", "{}");
        throw std::domain_error{"no"};
      });
    } catch (const std::domain_error&) {
      rolled_back = true;
    }
  });
  trial.transact(store, Trial::events("order-2", 3, 500));
  trial.heal();
  EXPECT_TRUE(rolled_back || trial.has_failed());
  expect_to_go_on(trial, store);
}

void save_a_snapshot(Trial& trial) {
  auto store = trial.open_healthy({});
  trial.append(store, Trial::one_event("order-1"));
  const StreamId stream = StreamId::parse("order-1");
  const auto save = [&](const std::string& payload) {
    return trial.attempt([&] {
      store.save_snapshot(stream, {StreamVersion{1}, GlobalSequence{1}, 1, payload});
    });
  };
  trial.arm();
  auto during = save(std::string(9000, 's'));
  trial.heal();
  const auto found = store.find_snapshot(stream, StreamVersion{1}, GlobalSequence{1});
  EXPECT_EQ(found.value_or(StoredSnapshot{}).payload.size(), during ? 0u : 9000u);
  expect_to_go_on(trial, store);
}

void close(Trial& trial) {
  {
    auto store = trial.open_healthy({});
    trial.append(store, Trial::events("order-1", 20, 500));
    trial.arm();
  }
  trial.heal();
}

void read(Trial& trial) {
  {
    auto store = trial.open_healthy({});
    trial.append(store, Trial::events("order-1", 300, 500));
  }
  auto store = trial.open_healthy({});
  trial.arm();
  std::size_t seen = 0;
  const auto during = trial.attempt([&] { seen = entries_of(store).size(); });
  EXPECT_EQ(seen, during ? 0u : 300u);
  trial.heal();
  EXPECT_EQ(entries_of(store).size(), 300u);
}

void commit_in_a_group(Trial& trial) {
  auto store = trial.open_healthy({});
  trial.append(store, Trial::one_event("order-1"));
  trial.arm();
  {
    std::vector<std::jthread> members;
    for (int i = 0; i < 6; ++i) {
      members.emplace_back([&] { trial.append(store, Trial::events("order-1", 2, 500)); });
    }
  }
  trial.heal();
  expect_to_go_on(trial, store);
}

struct Scenario {
  std::string name;
  void (*run)(Trial&);
  /// It doesn't do what they fail.
  std::vector<std::string> never = {};
};

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all{
      {"OpeningANewDatabase", open_a_new_database},
      {"OpeningAfterACrash", open_after_a_crash},
      {"AppendingOneEvent", append_one_event},
      {"AppendingToSeveralStreams", append_to_several_streams},
      {"AppendingAHundredEvents", append_a_hundred_events},
      {"Checkpointing", checkpoint},
      {"Transacting", transact},
      {"SavingASnapshot", save_a_snapshot, {"SyncError"}},
      {"Closing", close},
      {"Reading", read, {"FullDisk", "ShortWrite", "SyncError"}},
      {"CommittingInAGroup", commit_in_a_group},
  };
  return all;
}

// --- the tests

struct Case {
  const Scenario* scenario;
  const Failure* failure;
  bool for_ever;

  std::string name() const {
    return scenario->name + failure->name + (for_ever ? "ForEver" : "Once");
  }
  friend void PrintTo(const Case& a_case, std::ostream* out) { *out << a_case.name(); }
};

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const Scenario& scenario : scenarios()) {
    for (const Failure& failure : failures()) {
      const auto& never = scenario.never;
      if (std::find(never.begin(), never.end(), failure.name) != never.end()) continue;
      for (const bool for_ever : {false, true}) all.push_back({&scenario, &failure, for_ever});
    }
  }
  return all;
}

class IoFault : public ::testing::TestWithParam<Case> {};

TEST_P(IoFault, LosesNothingAcknowledgedAndNamesTheError) {
  const auto& [scenario, failure, for_ever] = GetParam();
  constexpr int limit = 2000;
  int nth = 0;
  bool failed = true;
  while (failed && nth < limit) {
    Trial trial{{failure->operations, failure->verdict, ++nth, for_ever}};
    scenario->run(trial);
    failed = trial.has_failed();

    SCOPED_TRACE("call " + std::to_string(nth) + ", " + trial.what_failed());
    ASSERT_EQ(trial.verdict(), "");
    ASSERT_THAT(trial.errors(), IsSubsetOf(failure->errors)) << trial.last_error();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(nth, 1) << "the fault was never met";
  EXPECT_FALSE(failed) << "no run got through";
}

INSTANTIATE_TEST_SUITE_P(Faults, IoFault, ::testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace stela::io_fault_test
