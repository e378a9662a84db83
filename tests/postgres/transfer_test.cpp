// Histories that move from one engine to the other.
#include "eventstore/transfer.hpp"
#include "database/postgres/connection.hpp"
#include "support/histories.hpp"
#include "support/postgres_server.hpp"
#include "support/soundness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace stela::postgres::transfer_test {
namespace {

using test::append;
using test::export_of;
using test::first_lines;
using test::full_lines;
using test::import_text;
using test::message_of;
using test::problems_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PostgresTransfer : public test::TransferTest {
 protected:
  Store on_postgres(const std::string& schema, Codec codec = Codec::json) {
    return postgres::open(server.url(),
                          {.codec = codec, .schema = schema, .clock = &clock, .random = &ids});
  }

  /// An event whose type declares that it always has a tag of a student.
  static void subscribe(Store& store, std::string_view course, std::vector<Tag> tags) {
    static constexpr std::array<TagDeclaration, 1> student{{{"student", true}}};
    const StreamId stream = StreamId::parse(course);
    const NewEvent event{.type = "subscribed",
                         .payload = "{}",
                         .tags = tags,
                         .declared = std::span<const TagDeclaration>{student}};
    const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
    store.append({.streams = {&one, 1}});
  }
  static std::string whole_export_of(Store& store) {
    std::ostringstream out;
    export_store(store, out);
    return out.str();
  }
  Store with_tags() {
    Store store = in_memory();
    append(store, "order-a");
    subscribe(store, "course-c1", {Tag::parse("student-s1")});
    subscribe(store, "course-c2", {Tag::parse("student-s1"), Tag::parse("term-7")});
    return store;
  }

  test::PostgresServer server;
};

TEST_F(PostgresTransfer, KeepsEveryByteFromSqliteToPostgresAndBack) {
  for (const Codec codec : {Codec::json, Codec::portable_binary}) {
    auto original = in_memory(codec);
    test::RandomHistory{codec == Codec::json ? 3U : 4U, clock}.append_to(original, 150);
    const std::string text = export_of(original);

    Store moved = on_postgres(std::string{to_string(codec)}, codec);
    import_text(moved, text);
    auto back = in_memory(codec);
    import_text(back, export_of(moved));

    EXPECT_EQ(full_lines(moved.read_all()), full_lines(original.read_all()));
    EXPECT_EQ(full_lines(back.read_all()), full_lines(original.read_all()));
    EXPECT_TRUE(export_of(back) == text);
    EXPECT_THAT(problems_of(moved), IsEmpty());
    EXPECT_THAT(problems_of(back), IsEmpty());
  }
}

TEST_F(PostgresTransfer, ContinuesWhereAnImportEnded) {
  auto original = in_memory();
  append(original, "order-a", {{"placed", 1, true, "{}"}});
  append(original, "order-b", 2);
  append(original, "order-a", {{"noted", 1, false, "{}"}, {"placed", 1, true, "{}"}});
  const std::string text = export_of(original);
  Store copy = on_postgres("copy");

  EXPECT_EQ(import_text(copy, first_lines(text, 3)).imported, 2);
  const auto rest = import_text(copy, text);

  EXPECT_EQ(rest.imported, 3);
  EXPECT_EQ(rest.skipped, 2);
  EXPECT_EQ(full_lines(copy.read_all()), full_lines(original.read_all()));
  append(copy, "order-a");
  EXPECT_EQ(copy.last_sequence(), GlobalSequence{6});
  EXPECT_THAT(problems_of(copy), IsEmpty());
}

TEST_F(PostgresTransfer, StoresWhatComesBeforeALineThatDoesNotFit) {
  auto original = in_memory();
  append(original, "order-a", 3);
  std::string text = export_of(original);
  const std::size_t last = text.rfind("\"version\":3");
  text.replace(last, 11, "\"version\":4");
  Store copy = on_postgres("copy");

  EXPECT_THAT(message_of<UsageError>([&] { import_text(copy, text); }),
              HasSubstr("line 4: version 4 of 'order-a' follows version 2; the store holds what "
                        "comes before it, up to event 2"));
  EXPECT_EQ(copy.last_sequence(), GlobalSequence{2});
}

TEST_F(PostgresTransfer, KeepsTagsFromSqliteToPostgresAndBack) {
  auto original = with_tags();
  const std::string text = export_of(original);
  Store moved = on_postgres("moved");
  import_text(moved, text);
  auto back = in_memory();
  import_text(back, export_of(moved));

  EXPECT_EQ(export_of(moved), text);
  EXPECT_EQ(export_of(back), text);
  EXPECT_EQ(import_text(moved, text).skipped, 3);
  const Query of_student{{{{"subscribed"}, {Tag::parse("student-s1")}}}};
  EXPECT_EQ(full_lines(moved.read(of_student)), full_lines(original.read(of_student)));
  const AppendCondition condition{of_student, GlobalSequence{2}};
  EXPECT_THROW(moved.append({.condition = &condition}), ConditionConflict);
  EXPECT_THAT(problems_of(moved), IsEmpty());
}

TEST_F(PostgresTransfer, KeepsTheTagsOfAWholeStore) {
  auto original = with_tags();
  const std::string text = whole_export_of(original);
  Store moved = on_postgres("moved");
  std::istringstream in{text};
  import_store(moved, in);

  EXPECT_THAT(first_lines(text, 1), AllOf(HasSubstr("\"version\":2"), HasSubstr("\"store_id\""),
                                          HasSubstr("\"tag_types\":[{")));
  EXPECT_EQ(whole_export_of(moved), text);
}

TEST_F(PostgresTransfer, RefusesAnEventWithoutTheTagThatItsTypeHas) {
  auto original = with_tags();
  std::string text = export_of(original);
  const std::string tags = R"("tags":["student-s1"],)";
  text.erase(text.find(tags), tags.size());
  Store copy = on_postgres("copy");

  EXPECT_THAT(message_of<UsageError>([&] { import_text(copy, text); }),
              HasSubstr("line 3: every event of type 'subscribed' in the store has a tag of "
                        "category 'student', and this one has none"));
  EXPECT_EQ(copy.last_sequence(), GlobalSequence{1});
}

TEST_F(PostgresTransfer, RefusesAStoreThatOthersTakePartIn) {
  auto original = in_memory();
  append(original, "order-a");
  Store copy = on_postgres("copy");
  Connection{{.conninfo = server.url()}}.execute(
      "INSERT INTO copy.stela_participants VALUES ('outbox', 'stream', 0)");

  EXPECT_THAT(message_of<UsageError>([&] { import_text(copy, export_of(original)); }),
              HasSubstr("requires 'outbox'"));
}

}  // namespace
}  // namespace stela::postgres::transfer_test
