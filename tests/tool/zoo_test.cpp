// Each finding in a store that has it: what the program says of it, and whether its advice helps.
#include "support/zoo/zoo.hpp"
#include "diagnosis/finding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace stela::tool::zoo_test {
namespace {

using namespace std::chrono_literals;
using test::member;
using test::Ran;
using test::zoo::Animal;
using test::zoo::Codes;
using test::zoo::Habitat;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> all_of(const std::string& text, const std::string& pattern) {
  const std::regex expression{pattern};
  std::vector<std::string> all;
  for (std::sregex_iterator each{text.begin(), text.end(), expression}, end; each != end; ++each) {
    all.push_back((*each)[1]);
  }
  return all;
}

const CodeFacts& facts_of(const std::string& word) {
  const auto all = all_codes();
  return *std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.word == word; });
}

/// Of two answers these differ, and what follows a quote is written in another form in JSON.
std::string without_times(const std::string& text) {
  static const std::regex times{"[0-9.]+ (ms|s|min)\\b|; next retry.*"};
  return std::regex_replace(text.substr(0, text.find('\\')), times, "…");
}

/// What is absent is null.
std::string text_of(const std::string& json, const std::string& name) {
  const std::string value = member(json, name);
  return value == "null" ? "" : value;
}

/// Before it is asked again: asking takes more than waiting.
bool rest() {
  return test::is_stopped_within(150ms, {});
}

class Zoo : public ::testing::TestWithParam<Animal> {
 protected:
  /// What JSON says of it; empty if nothing is wrong by its code.
  std::string finding() const {
    const auto found = all_of(
        habitat.run({"check", "--format", "json"}).out,
        R"re((\{"code":")re" + animal.code + R"re(","severity".*?"caused_by":(null|\{.*?\})\}))re");
    return found.empty() ? "" : found.front();
  }
  Ran why(const std::string& subject) const {
    std::vector<std::string> words{"why", "--json"};
    if (!subject.empty()) words.push_back(subject);
    return habitat.run(words);
  }

  void expect_that_check_says_so(const std::string& said) const;
  void expect_that_why_says_so() const;
  void expect_that_doctor_says_so() const;
  void follow(const std::string& remedy);

  const Animal& animal = GetParam();
  const CodeFacts& facts = facts_of(animal.code);
  const bool is_of_a_store = facts.code < Code::message_parked;
  const Timestamp begun = system_clock().now();
  Habitat habitat;

 private:
  bool is_gone() const {
    return is_of_a_store ? !habitat.has(animal.code)
                         : member(why(animal.subject).out, "code") != animal.code;
  }
  std::vector<std::string> words_of(std::string command) const;
  void run_as_printed(const std::string& command);
};

void Zoo::expect_that_check_says_so(const std::string& said) const {
  const std::string severity{word_of(facts.severity)};
  EXPECT_EQ(member(said, "severity"), severity);
  EXPECT_EQ(text_of(said, "subject"), animal.subject);
  EXPECT_FALSE(text_of(said, "remedy").empty());
  const std::string since = member(said, "since_at");
  if (animal.is_undated) {
    EXPECT_EQ(since, "null") << "delete the word is_undated";
  } else {
    EXPECT_GE(since, to_string(begun - 3min)) << said;
    EXPECT_LE(since, to_string(system_clock().now())) << said;
  }
  const auto cause = all_of(said, R"re("caused_by":\{"code":"(\w+)")re");
  EXPECT_EQ(cause.empty() ? "" : cause.front(), animal.cause);

  // The same on each engine.
  if (test::is_on_postgres()) return;
  Ran text = habitat.run({"check"});
  const bool is_critical = text.out.find("CRITICAL: ") != std::string::npos;
  EXPECT_EQ(text.code, is_critical ? 2 : 1);
  // Between the two answers a time may have passed that one of them says is still to come.
  std::string json = said;
  const auto expected = [&] {
    return (facts.severity == Severity::critical ? "CRITICAL: " : "WARNING: ") +
           without_times(member(json, "sentence"));
  };
  for (int i = 0; i < 5 && without_times(text.out).find(expected()) == std::string::npos; ++i) {
    json = finding();
    text = habitat.run({"check"});
  }
  EXPECT_THAT(without_times(text.out), HasSubstr(expected()));
}

void Zoo::expect_that_why_says_so() const {
  for (const auto& [subject, chain] : animal.chains) {
    const Ran ran = why(subject);
    EXPECT_EQ(all_of(ran.out, R"re("code":"(\w+)")re"), chain) << "why " << subject;
    Severity worst = Severity::fine;
    for (const std::string& code : chain) worst = std::max(worst, facts_of(code).severity);
    EXPECT_EQ(ran.code, static_cast<int>(worst)) << ran.out << ran.err;
  }
}

void Zoo::expect_that_doctor_says_so() const {
  const Ran doctor = habitat.run({"doctor"});
  if (facts.severity == Severity::critical) {
    EXPECT_EQ(doctor.code, 1);
  }
  // Where there is no store, nothing else is looked at.
  if (facts.code != Code::database_down) {
    EXPECT_THAT(doctor.out, HasSubstr(animal.code));
  }
}

/// What stands in capitals is the operator's to fill in.
std::vector<std::string> Zoo::words_of(std::string command) const {
  for (const auto& [placeholder, word] : animal.words) {
    command = std::regex_replace(command, std::regex{"\\b" + placeholder + "\\b"}, word);
  }
  std::istringstream text{command};
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  words.erase(words.begin());
  return words;
}

void Zoo::run_as_printed(const std::string& command) {
  if (command.starts_with("stela outbox work")) {
    habitat.start_worker("advised");
    return;
  }
  auto words = words_of(command);
  Ran ran = habitat.run(words);
  if (ran.code == 2 && ran.err.find("--yes") != std::string::npos) {
    words.emplace_back("--yes");
    ran = habitat.run(words);
  }
  EXPECT_THAT(ran.err, Not(HasSubstr("--help'"))) << command << ": can't be run as it is printed";
}

void Zoo::follow(const std::string& remedy) {
  EXPECT_THAT(all_of(remedy, "'((outbox|projections|timers|inbox|events) [^']*)'"), IsEmpty())
      << "the program's name is missing";
  if (animal.mend) animal.mend(habitat);
  for (const std::string& command : all_of(remedy, "'(stela [^']*)'")) run_as_printed(command);
  if (animal.settle) animal.settle(habitat);
  EXPECT_TRUE(test::eventually([&] { return is_gone() || rest(); })) << remedy << finding();
}

TEST_P(Zoo, IsSeenAndItsAdviceHelps) {
  animal.build(habitat);
  std::string said;
  if (is_of_a_store) {
    ASSERT_TRUE(test::eventually([&] { return !(said = finding()).empty() || rest(); }))
        << habitat.run({"check"}).out;
    expect_that_check_says_so(said);
    expect_that_doctor_says_so();
  } else {
    said = why(animal.subject).out;
  }
  expect_that_why_says_so();
  const std::string remedy = text_of(said, "remedy");
  if (!remedy.empty()) follow(remedy);
}

INSTANTIATE_TEST_SUITE_P(, Zoo, ::testing::ValuesIn(test::zoo::animals()),
                         [](const auto& each) { return each.param.name(); });

TEST(Animals, AreThereForEachCode) {
  std::set<std::string_view> codes;
  const auto animals = test::zoo::animals();
  for (const Animal& animal : animals) codes.insert(animal.code);
  // Of a server that has a standby, or a transaction that is ten minutes old.
  codes.insert({"database_standby", "database_transaction", "standby_late"});
  // No table of SQLite is locked for itself.
  if (!test::is_on_postgres()) codes.insert("database_locked");
  for (const CodeFacts& one : all_codes()) EXPECT_TRUE(codes.contains(one.word)) << one.word;
}

}  // namespace
}  // namespace stela::tool::zoo_test
