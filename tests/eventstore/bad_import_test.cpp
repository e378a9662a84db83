// What can't be imported, and what is said of it.
#include "eventstore/transfer.hpp"
#include "support/bystander.hpp"
#include "support/histories.hpp"
#include "support/random_history.hpp"
#include "support/soundness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace stela::bad_import_test {
namespace {

using test::append;
using test::Bystander;
using test::export_of;
using test::first_lines;
using test::import_text;
using test::message_of;
using test::problems_of;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class BadImport : public test::TransferTest {
 protected:
  BadImport() {
    for (int i = 0; i < 3; ++i) append(original, "order-1");
    text = export_of(original);
  }
  /// What is said of the third line, event 2, with `from` replaced by `to`; what was before it is
  /// imported.
  std::string problem_with(const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t line = first_lines(text, 2).size();
    const std::size_t at = changed.find(from, line);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    return problem_of(changed);
  }
  std::string problem_of(const std::string& changed,
                         const std::string& advice = "mend the line and import again") {
    auto copy = in_memory();
    const std::string problem = message_of<UsageError>([&] { import_text(copy, changed); });
    EXPECT_THAT(problem,
                AllOf(HasSubstr("line 3: "),
                      EndsWith("the store holds what comes before it, up to event 1; " + advice)));
    EXPECT_EQ(copy.last_sequence(), GlobalSequence{1});
    EXPECT_THAT(problems_of(copy), IsEmpty());
    EXPECT_EQ(import_text(copy, text).last, GlobalSequence{3});
    return problem;
  }

  Store original = in_memory();
  std::string text;
};

TEST_F(BadImport, NamesTheLineAndItsError) {
  const std::vector<std::array<std::string, 3>> changes{
      {"{\"seq", "\"seq", "it "},
      {"\"sequence\":2", "\"sequence\":2.5", "sequence isn't a whole number"},
      {"\"sequence\":2", "\"sequence\":\"2\"", "sequence isn't a whole number"},
      {"\"sequence\":2", "\"sequence\":-2", "sequence is less than 1"},
      {"\"sequence\":2", "\"sequence\":99999999999999999999", "sequence isn't a whole number"},
      {"\"sequence\":2,", "", "sequence is missing"},
      {"\"sequence\":2,", "\"sequence\":2,\"sequence\":2,", "sequence appears twice"},
      {"\"sequence\":2,", "\"sequence\":3,", "event 3 follows event 1"},
      {"\"sequence\":2,", "\"sequence\":1,", "event 1 follows event 1"},
      {"order-1", "or der-1", "can't be a stream name"},
      {"\"version\":2", "\"version\":3", "version 3 of 'order-1' follows version 1"},
      {"\"version\":2", "\"version\":1", "version 1 of 'order-1' follows version 1"},
      {"\"version\":2", "\"version\":9223372036854775807", "follows version 1"},
      {"\"id\":\"0", "\"id\":\"x", "id isn't a UUID"},
      {"\"noted\"", "\"no ted\"", "type isn't the name of an event"},
      {"\"schema_version\":1", "\"schema_version\":0", "schema_version is less than 1"},
      {"\"schema_version\":1", "\"schema_version\":2147483648", "schema_version is too large"},
      {"\"publishes\":false", "\"publishes\":0", "publishes isn't true or false"},
      {"\"recorded_at\":1", "\"recorded_at\":null,\"x\":1", "recorded_at isn't a whole number"},
      {"\"payload\":{}", "\"payload\":{\"a\":nul}", "payload isn't JSON"},
      {"\"payload\":{}", "\"payload\":{\"a\":[1,]}", "payload isn't JSON"},
      {"\"payload\":{}", "\"payload_base64\":\"AA\"", "payload_base64 isn't base64"},
      {"\"payload\":{}", "\"payload_base64\":\"AB==\"", "payload_base64 isn't base64"},
      {"\"payload\":{}", "\"payload\":{},\"payload_base64\":\"\"", "payload must appear once"},
      {",\"payload\":{}", "", "payload must appear once"},
      {"\"payload\":{}", "\"payload\":{},\"note\":1", "'note' isn't a field of an event"},
      {"\"payload\":{}", "\"correlation\":\"\",\"payload\":{}", "correlation is empty"},
      {"\"payload\":{}", "\"correlation\":\"\\u0001\",\"payload\":{}", "control character"},
      {"\"payload\":{}", "\"causation\":\"7\",\"payload\":{}", "causation isn't a UUID"},
      {"\"payload\":{}", "\"metadata\":[],\"payload\":{}", "isn't an object"},
      {"\"payload\":{}", "\"metadata\":{\"actor\":7},\"payload\":{}", "actor isn't a text"},
      {"\"payload\":{}}", "\"payload\":{}} x", "it isn't valid JSON: "},
      {"\"payload\":{}}", "\"payload\":{}", "payload "}};
  for (const auto& [from, to, expected] : changes) {
    EXPECT_THAT(problem_with(from, to), HasSubstr(expected)) << to;
  }
}

TEST_F(BadImport, NamesALineThatIsNone) {
  const std::string before = first_lines(text, 2);
  EXPECT_THAT(problem_of(before + "\n"), HasSubstr("line 3: it's empty"));
  EXPECT_THAT(problem_of(before + "[]\n"), HasSubstr("line 3: it isn't an object"));
  EXPECT_THAT(problem_of(before + std::string(97 * 1024 * 1024, 'x')),
              HasSubstr("the line is longer than any event can be"));
  problem_of(before + text.substr(before.size(), 40),
             "the input ends here: if it is cut off, export again and import that (existing events "
             "are skipped); otherwise mend the line and import again");
}

TEST_F(BadImport, NamesAHeaderThatIsNone) {
  auto copy = in_memory();
  const auto problem = [&](const std::string& bad) {
    return message_of<UsageError>([&] { import_text(copy, bad); });
  };
  EXPECT_THAT(problem(""), HasSubstr("line 1: there is nothing to import"));
  EXPECT_THAT(problem("{}\n"), HasSubstr("line 1: this isn't an export of Stela"));
  EXPECT_THAT(problem("hello\n"), HasSubstr("line 1: it "));
  EXPECT_THAT(problem(R"({"format":"stela-events","version":3,"codec":"json"})"),
              HasSubstr("of another version of Stela"));
  EXPECT_THAT(problem(R"({"format":"stela-events","version":2,"codec":"json"})"),
              HasSubstr("the header doesn't name its store"));
  EXPECT_THAT(problem(R"({"format":"stela-events","version":1,"codec":"xml"})"),
              AllOf(HasSubstr("the codec isn't one"), HasSubstr("nothing is imported")));
  EXPECT_THAT(problem(text.substr(first_lines(text, 1).size())), HasSubstr("line 1: this isn't"));
}

TEST_F(BadImport, RefusesAnotherCodec) {
  auto binary = in_memory(Codec::portable_binary);
  EXPECT_THAT(message_of<UsageError>([&] { import_text(binary, text); }),
              HasSubstr("these events have the codec 'json', and the store has 'portable_binary'"));
  EXPECT_EQ(binary.last_sequence(), GlobalSequence{0});
}

TEST_F(BadImport, RefusesEventsThatLeaveAGap) {
  auto copy = in_memory();
  EXPECT_THAT(message_of<UsageError>(
                  [&] { import_text(copy, export_of(original, {.from = GlobalSequence{2}})); }),
              HasSubstr("line 2: event 2 can't follow the store's event 0"));
}

TEST_F(BadImport, RefusesAnIdThatAnotherEventHas) {
  const auto id_of = [&](int line) {
    const std::size_t at = text.find("\"id\":", first_lines(text, line - 1).size());
    return text.substr(at,
                       std::string_view{R"("id":"0190d3c0-1234-7000-8000-00000000abcd")"}.size());
  };
  EXPECT_THAT(problem_with(id_of(3), id_of(2)), HasSubstr("event 1 has the same id, 0"));

  // Also where that one is in the store already.
  auto copy = in_memory();
  import_text(copy, first_lines(text, 2));
  std::string changed = text;
  changed.replace(changed.find(id_of(3)), id_of(3).size(), id_of(2));
  EXPECT_THAT(message_of<UsageError>([&] { import_text(copy, changed); }),
              HasSubstr("line 3: event 1 has the same id, 0"));
}

TEST_F(BadImport, RefusesEventsThatContradictTheStore) {
  const std::vector<std::array<std::string, 3>> changes{
      {"\"id\":\"0", "\"id\":\"1", "its id is "},
      {"order-1", "order-2", "it is version 2 of 'order-1' there"},
      {"\"noted\"", "\"other\"", "its type, schema_version or publishes differs"},
      {"\"recorded_at\":1", "\"recorded_at\":2", "its recorded_at differs"},
      {"\"payload\":{}", "\"metadata\":{\"actor\":\"x\"},\"payload\":{}", "its metadata differs"},
      {"\"payload\":{}", "\"correlation\":\"x\",\"payload\":{}", "its correlation or causation"},
      {"\"payload\":{}", "\"payload\":[]", "its payload differs"}};
  for (const auto& [from, to, expected] : changes) {
    std::string changed = text;
    changed.replace(changed.find(from, first_lines(text, 2).size()), from.size(), to);
    EXPECT_THAT(message_of<UsageError>([&] { import_text(original, changed); }),
                AllOf(HasSubstr("line 3: the store has another event 2: "), HasSubstr(expected),
                      HasSubstr("import into a new database")));
  }
  EXPECT_EQ(export_of(original), text);
}

TEST_F(BadImport, RefusesAStoreThatSomebodyElseAppendsTo) {
  auto source = in_memory();
  append(source, "order-1", 1500);
  auto copy = in_memory();
  const TransferOptions meanwhile{.progress = [&](const Progress&) { append(copy, "stock-1"); }};

  EXPECT_THAT(message_of<UsageError>([&] { import_text(copy, export_of(source), meanwhile); }),
              AllOf(HasSubstr("line 1002: another process appended to the store during the import"),
                    HasSubstr("the line is correct"), Not(HasSubstr("mend the line"))));
  EXPECT_EQ(copy.last_sequence(), GlobalSequence{1002});
  EXPECT_THAT(problems_of(copy), IsEmpty());
}

TEST_F(BadImport, RefusesAStoreWhoseParticipantsWouldMissTheEvents) {
  auto copy = in_memory();
  Bystander bystander;
  copy.attach(bystander);
  EXPECT_THAT(message_of<UsageError>([&] { import_text(copy, text); }),
              HasSubstr("requires 'bystander' to take part in every append"));
  EXPECT_EQ(copy.last_sequence(), GlobalSequence{0});
  copy.forget_participant("bystander");
  copy.detach(bystander);
  EXPECT_EQ(import_text(copy, text).imported, 3);
}

TEST_F(BadImport, RefusesAWholeStoreOfWhichLinesAreMissing) {
  append(original, "order-1", {{"noted", 1, false, "{}"}}, "first");
  append(original, "order-1", {{"noted", 1, false, "{}"}}, "second");
  std::ostringstream out;
  export_store(original, out);
  const std::string whole = out.str();
  const auto problem = [&](const std::string& changed) {
    auto copy = in_memory();
    std::istringstream in{changed};
    return message_of<UsageError>([&] { import_store(copy, in); });
  };

  std::string partial = whole;
  const std::size_t at = partial.find("{\"state\":\"append_ids\"");
  partial.erase(at, partial.find('\n', at) + 1 - at);
  EXPECT_THAT(problem(partial), AllOf(HasSubstr("the export has 2 lines of states, and 1 are here"),
                                      HasSubstr("export again and import that")));

  auto copy = in_memory();
  std::istringstream in{whole};
  EXPECT_EQ(import_store(copy, in).append_ids, 2);
}

TEST_F(BadImport, SurvivesAnyText) {
  auto source = in_memory();
  test::RandomHistory{6, clock}.append_to(source, 8);
  const std::string whole = export_of(source);
  std::mt19937 random{3};
  const auto any = [&](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>{0, below - 1}(random);
  };
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::string changed = whole;
    const std::size_t at = any(changed.size());
    switch (any(4)) {
      case 0:
        changed[at] = static_cast<char>(any(256));
        break;
      case 1:
        changed.erase(at, 1 + any(30));
        break;
      case 2:
        changed.insert(at, 1, "{}[]\",:\\\n0"[any(10)]);
        break;
      default:
        changed.resize(at);
    }
    auto copy = in_memory();
    try {
      import_text(copy, changed);
    } catch (const UsageError&) {
      ++refused;
    }
    ASSERT_THAT(problems_of(copy), IsEmpty());
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace stela::bad_import_test
