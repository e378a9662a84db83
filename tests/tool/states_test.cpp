// Each state that a store can have leads to a code, or is known to be well.
#include "diagnosis/chain.hpp"
#include "diagnosis/diagnose.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace stela::tool::states_test {
namespace {

using namespace std::chrono_literals;
using enum Code;

constexpr Timestamp now{std::chrono::microseconds{1'700'000'000'000'000}};

template <class E>
std::vector<E> all_until(E last) {
  std::vector<E> all;
  for (int i = 0; i <= static_cast<int>(last); ++i) all.push_back(static_cast<E>(i));
  return all;
}

std::optional<Code> first_code(const OutboxStatus& status) {
  const auto findings = diagnose({.at = now, .outbox = status});
  return findings.empty() ? std::nullopt : std::optional{findings.front().code};
}

// What each value must lead to; `well` to nothing. Without a default: a new one doesn't compile
// until it is judged.

Code expected(WorkerProcess process) {
  switch (process) {
    case WorkerProcess::runs:
      return worker_silent;
    case WorkerProcess::ended:
    case WorkerProcess::unknown:
      return worker_ended;
  }
  return well;
}

Code expected(BrokerState state) {
  switch (state) {
    case BrokerState::connecting:
    case BrokerState::connected:
      return well;
    case BrokerState::down:
      return worker_cut_off;
    case BrokerState::misconfigured:
      return worker_misconfigured;
  }
  return well;
}

Code expected(MessageState state) {
  switch (state) {
    case MessageState::pending:
    case MessageState::in_flight:
    case MessageState::retrying:
      return message_pending;
    case MessageState::parked:
      return message_parked;
    case MessageState::discarded:
      return message_discarded;
    case MessageState::published:
      return message_published;
  }
  return well;
}

Code expected(SetAsideReason reason) {
  switch (reason) {
    case SetAsideReason::refused:
    case SetAsideReason::attempts:
    case SetAsideReason::unrecognized:
      return message_parked;
    case SetAsideReason::behind:
      return message_parked_behind;
    case SetAsideReason::discarded:
    case SetAsideReason::skipped:
      return message_discarded;
  }
  return well;
}

Code expected(HoldReason reason) {
  switch (reason) {
    case HoldReason::clock:
    case HoldReason::restored:
    case HoldReason::imported:
    case HoldReason::by_operator:
    case HoldReason::unrecognized:
      return timers_held;
  }
  return well;
}

TEST(States, OfAPartitionThatIsStoppedHaveACodeEach) {
  std::set<Code> met;
  for (const StopReason reason : all_until(StopReason::unrecognized)) {
    const PartitionStatus partition{.stopped = reason};
    EXPECT_EQ(first_code({.at = now, .partitions = {partition}}), code_of(reason));
    EXPECT_TRUE(met.insert(code_of(reason)).second) << to_string(reason);
  }
}

TEST(States, OfAWorkerHaveACode) {
  for (const WorkerProcess process : all_until(WorkerProcess::unknown)) {
    const WorkerStatus worker{.name = "w1", .process = process, .partitions = 1};
    EXPECT_EQ(first_code({.at = now, .workers = {worker}}), expected(process));
  }
}

TEST(States, OfABrokerHaveACodeIfTheyAreTrouble) {
  for (const BrokerState state : all_until(BrokerState::misconfigured)) {
    const WorkerStatus worker{.name = "w1",
                              .is_alive = true,
                              .broker = BrokerStatus{state},
                              .is_cut_off = state == BrokerState::down};
    EXPECT_EQ(first_code({.at = now, .workers = {worker}}).value_or(well), expected(state));
  }
}

TEST(States, OfAMessageHaveACode) {
  for (const MessageState state : all_until(MessageState::published)) {
    EXPECT_EQ(describe({.state = state, .reason = SetAsideReason::refused}, {}).code,
              expected(state));
  }
  for (const SetAsideReason reason : all_until(SetAsideReason::unrecognized)) {
    const MessageState state =
        expected(reason) == message_discarded ? MessageState::discarded : MessageState::parked;
    EXPECT_EQ(describe({.state = state, .reason = reason}, {}).code, expected(reason));
  }
}

TEST(States, OfTimersThatAreHeldHaveACode) {
  for (const HoldReason reason : all_until(HoldReason::unrecognized)) {
    const auto findings = diagnose({.at = now, .holds = {{.reason = reason}}});
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].code, expected(reason));
  }
}

/// What the schema lets a column hold, and the code of each word: `well` where it is a setting, a
/// kind, or the way of things.
const std::map<std::string, std::vector<Code>> lists{
    {"fence IN ('stream', 'subject', 'none')", {well, well, well}},
    {"kind IN ('retry', 'republish')", {message_pending, message_pending}},
    {"reason IN ('refused', 'attempts', 'behind')",
     {message_parked, message_parked, message_parked_behind}},
    {"kind IN ('async', 'inline', 'reaction')", {well, well, well}},
    {"state IN ('building', 'living', 'retired', 'scratch')", {well, well, well, well}},
    {"state IN ('parked', 'retry', 'skipped')", {projector_parked, projector_parked, well}},
    {"state IN ('pending', 'unknown', 'parked')",
     {process_overdue, process_unknown_timers, process_parked}}};

std::vector<std::string> all_of(const std::string& text, const std::string& pattern) {
  const std::regex expression{pattern};
  std::vector<std::string> all;
  for (std::sregex_iterator each{text.begin(), text.end(), expression}, end; each != end; ++each) {
    all.push_back((*each)[1]);
  }
  return all;
}

TEST(States, ThatTheSchemaListsHaveACodeEach) {
  std::set<std::string> met;
  for (const char* const module : {"eventstore", "outbox", "projections"}) {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator{std::string{STELA_SOURCE} + '/' + module}) {
      if (file.path().extension() != ".sql") continue;
      std::ifstream stream{file.path()};
      const std::string text{std::istreambuf_iterator<char>{stream}, {}};
      for (const std::string& list : all_of(text, R"(CHECK\s*\(\s*(\w+ IN \('[^)]*\)))")) {
        ASSERT_TRUE(lists.contains(list)) << file.path() << ": " << list;
        met.insert(list);
      }
    }
  }
  EXPECT_EQ(met.size(), lists.size());
  for (const auto& [list, codes] : lists) EXPECT_EQ(all_of(list, "('\\w+')").size(), codes.size());
}

}  // namespace
}  // namespace stela::tool::states_test
